"""Every row of the decision table, in its order: what becomes of a due instant."""

from __future__ import annotations

from tests.scheduler.timeline import check


def test_a_timely_instant_is_admitted_and_offered() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:14:59.999999  poll next=09:15  -> nothing
        09:15  poll next=09:30       -> admit report@09:15 exhausts=no revision=1
        09:15  start report@09:15
        09:16  complete report@09:15
        09:29  poll                  -> nothing
    """)


def test_the_boundary_tick_admits_once_however_often_it_is_polled() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel
        09:15  poll                  -> admit report@09:15
        09:15  poll                  -> offer report@09:15
        09:15:00.000001  poll        -> offer report@09:15
        09:14:59.999999  poll        -> offer report@09:15
        09:15  crash
        09:15  poll                  -> offer report@09:15
    """)


def test_a_newer_instant_never_touches_an_admitted_run() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" misfire=latest
        09:15  poll                  -> admit report@09:15
        09:50  poll                  -> supersede report@09:30 by 09:45, skip report@09:45 overlap, offer report@09:15
        09:50  run report@09:15 state=pending
        09:50  start report@09:15
        10:05  poll                  -> skip report@10:00 overlap
        10:05  run report@09:15 state=started
    """)


def test_the_last_timely_moment_is_the_allowance_itself() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" misfire=skip lateness=60s
        09:16  poll                  -> admit report@09:15
        09:16  start report@09:15
        09:16  complete report@09:15
        09:31:00.000001  poll        -> skip report@09:30 misfire
    """)


def test_a_spent_period_is_skipped_and_names_the_lowest_sequence_that_spent_it() -> None:
    check("""
        09:00  create daily once_per=day
        09:00  external daily at=08:00
        09:01  run_now daily         -> admit daily#1
        09:05  poll                  -> skip daily@00:00 spent spent_by=external, offer daily#1
        09:06  poll                  -> offer daily#1
    """)


def test_a_held_candidate_is_tested_for_spent_also_with_no_slot_free() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:01
        09:01  poll                  -> admit hog@09:01 exhausts=yes
        09:01  start hog@09:01
        09:02  create daily once_per=day
        09:02  poll                  -> hold daily@00:00
        09:03  run_now daily         -> admit daily#1
        09:04  poll                  -> skip daily@00:00 spent spent_by=daily#1
        09:05  complete hog@09:01
        09:05  poll                  -> offer daily#1
    """)


def test_a_candidate_gives_way_to_a_newer_instant_that_is_spent_too() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:01
        09:01  poll                  -> admit hog@09:01
        09:01  start hog@09:01
        09:02  create daily once_per=day
        09:02  poll                  -> hold daily@00:00
        09:03  external daily at=2026-03-03T05:00Z
        2026-03-03T06:00Z  poll      -> supersede daily@2026-03-02T00:00Z by 00:00, skip daily@00:00 spent
        06:01  complete hog@2026-03-02T09:01Z
        06:01  poll                  -> nothing
    """)


def test_an_older_candidate_gives_way_as_soon_as_a_newer_instant_is_due() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:10
        09:00  create report cron="*/15 * * * *"
        09:10  poll                  -> admit hog@09:10
        09:10  start hog@09:10
        09:15  poll                  -> hold report@09:15
        09:20  poll next=09:30       -> nothing
        09:30  poll                  -> supersede report@09:15 by 09:30, hold report@09:30
        09:31  complete hog@09:10
        09:31  poll                  -> admit report@09:30
        09:32  poll                  -> offer report@09:30
    """)


def test_a_timely_occurrence_supersedes_an_older_candidate_and_is_admitted() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:10
        09:00  create report cron="*/15 * * * *"
        09:10  poll                  -> admit hog@09:10
        09:10  start hog@09:10
        09:15  poll                  -> hold report@09:15
        09:29  complete hog@09:10
        09:30  poll                  -> supersede report@09:15 by 09:30, admit report@09:30
    """)


def test_what_is_missed_under_skip_is_a_misfire_with_a_slot_and_a_capacity_skip_without() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:20
        09:00  create report cron="*/15 * * * *" misfire=skip
        09:17  poll                  -> skip report@09:15 misfire
        09:20  poll                  -> admit hog@09:20
        09:20  start hog@09:20
        09:32  poll                  -> skip report@09:30 capacity
        09:33  complete hog@09:20
        09:33  poll                  -> nothing
    """)


def test_what_is_missed_under_latest_gives_way_to_the_newest_due_instant() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" misfire=latest
        09:50  poll                  -> supersede report@09:15 by 09:45, supersede report@09:30 by 09:45
                                     -> admit report@09:45
        09:51  poll                  -> offer report@09:45
    """)


def test_the_newest_missed_instant_alone_is_made_up_for() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" misfire=latest
        09:29  poll                  -> admit report@09:15
        09:29  start report@09:15
        09:29  complete report@09:15
        09:30  poll                  -> admit report@09:30
    """)


def test_an_unknown_target_is_a_preflight_skip() -> None:
    check("""
        09:00  open targets=backup
        09:00  create report cron="*/15 * * * *" target=backup
        09:10  host targets=other
        09:15  poll                  -> skip report@09:15 preflight detail=yes
        09:20  host targets=backup
        09:21  poll                  -> nothing
        09:30  poll                  -> admit report@09:30
    """)


def test_a_target_that_left_its_pinned_revision_is_a_preflight_skip() -> None:
    check("""
        09:00  open targets=backup@r1
        09:00  create report cron="*/15 * * * *" target=backup pin=r1
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:15  complete report@09:15
        09:20  host targets=backup@r2
        09:30  poll                  -> skip report@09:30 preflight detail=yes
    """)


def test_the_recheck_comes_before_the_overlap() -> None:
    check("""
        09:00  open targets=backup
        09:00  create report cron="*/15 * * * *" target=backup
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:20  host targets=other
        09:30  poll                  -> skip report@09:30 preflight
        09:40  host targets=backup
        09:45  poll                  -> skip report@09:45 overlap blocked_by=report@09:15
    """)


def test_a_busy_schedule_skips_the_occurrence_for_good() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=skip misfire=skip
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:30  poll                  -> skip report@09:30 overlap blocked_by=report@09:15
        09:31  complete report@09:15
        09:32  poll                  -> nothing
        09:32  reopen
        09:33  poll                  -> nothing
        09:45  poll                  -> admit report@09:45
    """)


def test_parallel_runs_stop_at_their_limit() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel limit=2
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:30  poll                  -> admit report@09:30
        09:30  start report@09:30
        09:45  poll                  -> skip report@09:45 overlap blocked_by=report@09:15
        09:50  complete report@09:15
        10:00  poll                  -> admit report@10:00
    """)


def test_the_overlap_comes_before_the_capacity() -> None:
    check("""
        09:00  open slots=1
        09:00  create report cron="*/15 * * * *" overlap=skip misfire=latest
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:30  poll                  -> skip report@09:30 overlap
        09:31  complete report@09:15
        09:31  poll                  -> nothing
    """)


def test_without_a_slot_skip_waits_undecided_and_runs_once_a_slot_is_free() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:10
        09:00  create report cron="*/15 * * * *" misfire=skip lateness=5m
        09:10  poll                  -> admit hog@09:10
        09:10  start hog@09:10
        09:15  poll next=09:20:00.000001  -> nothing
        09:15  occurrence report@09:15 disposition=waiting
        09:17  complete hog@09:10
        09:18  poll                  -> admit report@09:15
    """)


def test_behind_a_waiting_instant_the_later_ones_wait_too() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:10
        09:10  poll                  -> admit hog@09:10
        09:10  start hog@09:10
        09:12  create report cron="* * * * *" misfire=skip lateness=5m overlap=parallel
        09:14  poll                  -> nothing
        09:18:30  poll               -> skip report@09:13 capacity
        09:18:30  complete hog@09:10
        09:18:30  poll               -> admit report@09:14
        09:18:30  occurrence report@09:13 disposition=skipped reason=capacity
        09:18:30  occurrence report@09:14 disposition=admitted run_state=pending
        09:18:30  occurrence report@09:15 disposition=waiting
    """)


def test_without_a_slot_latest_holds_one_candidate_until_a_slot_is_free() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:10
        09:00  create report cron="*/15 * * * *" misfire=latest
        09:10  poll                  -> admit hog@09:10
        09:10  start hog@09:10
        09:15  poll                  -> hold report@09:15
        09:15  schedule report candidate=09:15
        09:15  occurrence report@09:15 disposition=held
        09:25  poll                  -> nothing
        09:26  complete hog@09:10
        09:26  poll                  -> admit report@09:15
        09:26  schedule report candidate=none
    """)


def test_a_refusing_preflight_skips_and_invents_no_run() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:10  host refuse=report
        09:15  poll                  -> skip report@09:15 preflight detail=yes
        09:20  host accept=report
        09:20  poll                  -> nothing
        09:30  poll                  -> admit report@09:30
    """)


def test_a_preflight_that_raises_skips_its_schedule_and_no_other() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:00  create solid cron="*/15 * * * *"
        09:10  host break=report
        09:15  poll                  -> skip report@09:15 preflight detail=yes, admit solid@09:15
    """)


def test_the_capacity_comes_before_the_preflight() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:10
        09:00  create report cron="*/15 * * * *"
        09:10  poll                  -> admit hog@09:10
        09:10  start hog@09:10
        09:12  host refuse=report
        09:15  poll                  -> hold report@09:15
        09:16  complete hog@09:10
        09:16  poll                  -> skip report@09:15 preflight
    """)


def test_schedules_take_turns_after_the_one_that_was_admitted_last() -> None:
    check("""
        09:00  open slots=1
        09:00  create a cron="*/15 * * * *"
        09:00  create b cron="*/15 * * * *"
        09:00  create c cron="*/15 * * * *"
        09:15  poll                  -> admit a@09:15, hold b@09:15, hold c@09:15
        09:15  start a@09:15
        09:15  complete a@09:15
        09:16  poll                  -> admit b@09:15
        09:16  start b@09:15
        09:16  complete b@09:15
        09:30  poll                  -> supersede c@09:15 by 09:30, admit c@09:30, hold a@09:30, hold b@09:30
        09:30  start c@09:30
        09:30  complete c@09:30
        09:31  poll                  -> admit a@09:30
    """)


def test_each_round_admits_one_of_every_schedule_before_the_next() -> None:
    check("""
        09:00  open slots=3
        09:00  create a cron="*/15 * * * *" overlap=parallel misfire=skip lateness=1h
        09:00  create b cron="*/15 * * * *" overlap=parallel misfire=skip lateness=1h
        09:30  poll                  -> admit a@09:15, admit b@09:15, admit a@09:30
        09:31  poll                  -> offer a@09:15, offer b@09:15, offer a@09:30
        09:31  start a@09:15 b@09:15 a@09:30
        09:32  complete a@09:15
        09:32  poll                  -> admit b@09:30
    """)
