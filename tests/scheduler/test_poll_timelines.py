"""One poll as a whole: the scan cap, the batch, what is offered, manual runs, and the end of admitting."""

from __future__ import annotations

from tests.scheduler.timeline import check


def test_ninety_nine_due_instants_are_decided_one_by_one() -> None:
    skipped = ", ".join(f"skip report@{9 + count // 60:02}:{count % 60:02} misfire" for count in range(1, 99))
    check(f"""
        09:00  create report cron="* * * * *" misfire=skip
        10:39:30  poll               -> {skipped}, admit report@10:39
    """)


def test_the_hundredth_due_instant_makes_one_interval_of_them() -> None:
    check("""
        09:00  create report cron="* * * * *" misfire=skip
        10:40  poll                  -> interval report@09:00..10:40 backlog at_least=99, admit report@10:40
        10:40  start report@10:40
        10:40  complete report@10:40
        10:41  poll                  -> admit report@10:41
    """)


def test_a_backlog_swallows_what_is_timely_too() -> None:
    check("""
        09:00  create report cron="* * * * *" misfire=skip lateness=2h overlap=parallel
        10:40  poll                  -> interval report@09:00..10:40 backlog at_least=99, admit report@10:40
    """)


def test_a_candidate_before_a_backlog_gets_its_own_supersession() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:00:30
        09:00  create report cron="* * * * *" misfire=latest
        09:00:30  poll               -> admit hog@09:00:30
        09:00:30  start hog@09:00:30
        09:01  poll                  -> hold report@09:01
        12:00  poll                  -> supersede report@09:01 by 12:00
                                     -> interval report@09:01..12:00 superseded at_least=100, hold report@12:00
        12:00  complete hog@09:00:30
        12:00  poll                  -> admit report@12:00
    """)


def test_three_years_of_missed_minutes_are_one_interval_and_one_make_up() -> None:
    check("""
        09:00  create report cron="* * * * *" misfire=latest
        2029-03-02T09:00:30Z  poll   -> interval report@2026-03-02T09:00Z..09:00 superseded at_least=100
                                     -> admit report@09:00
        09:01  poll                  -> skip report@09:01 overlap, offer report@09:00
    """)


def test_a_batch_is_cut_and_the_next_poll_goes_on() -> None:
    check("""
        09:00  open batch=2
        09:00  create report cron="*/15 * * * *" misfire=skip
        10:20  poll                  -> skip report@09:15 misfire, skip report@09:30 misfire, more
        10:20  poll more             -> skip report@09:45 misfire, skip report@10:00 misfire, skip report@10:15 misfire
        10:20  poll                  -> nothing
    """)


def test_pending_runs_are_offered_before_anything_is_decided_while_slots_are_free() -> None:
    check("""
        09:00  open slots=1
        09:00  create a cron="*/15 * * * *"
        09:00  create b cron="*/15 * * * *" misfire=skip lateness=10m
        09:15  poll                  -> admit a@09:15
        09:16  poll                  -> offer a@09:15
        09:16  start a@09:15
        09:17  poll                  -> nothing
        09:18  complete a@09:15
        09:18  poll                  -> admit b@09:15
    """)


def test_a_poll_may_start_what_it_offers_in_the_same_batch() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll start=yes        -> admit report@09:15, start report@09:15
        09:15  run report@09:15 state=started
        09:16  poll                  -> nothing
    """)


def test_an_admission_and_its_start_are_never_cut_apart() -> None:
    check("""
        09:00  open batch=3
        09:00  create a cron="*/15 * * * *"
        09:00  create b cron="*/15 * * * *"
        09:15  poll start=yes        -> admit a@09:15, start a@09:15, more
        09:15  poll start=yes        -> admit b@09:15, start b@09:15
    """)


def test_manual_runs_take_no_schedule_slot_and_are_never_refused_for_capacity() -> None:
    check("""
        09:00  open slots=1
        09:00  create report cron="*/15 * * * *"
        09:10  run_now report        -> admit report#1
        09:10  run_now               raises=DefinitionError
        09:10  run_now target=loose  -> admit #1
        09:11  start report#1
        09:11  start #1              raises=NoTaskSlot
        09:12  complete report#1
        09:15  poll                  -> hold report@09:15, offer #1
        09:15  start #1
        09:15  complete #1
        09:15  poll                  -> admit report@09:15
    """)


def test_after_stop_admitting_nothing_is_decided_or_offered_and_what_is_due_stays_due() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" lateness=10m
        09:00  run_now report        -> admit report#1
        09:01  stop
        09:15  poll                  -> nothing
        09:15  run_now report        raises=SchedulerClosed
        09:15  start report#1
        09:15  complete report#1
        09:16  reopen
        09:16  poll                  -> admit report@09:15
    """)
