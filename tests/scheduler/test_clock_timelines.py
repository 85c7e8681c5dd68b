"""Clocks that step: nothing is admitted twice, nothing storms, nothing starves (SPEC section 9)."""

from __future__ import annotations

from tests.scheduler.timeline import check


def test_an_early_wake_up_decides_nothing_before_its_instant() -> None:
    check("""
        19:59:59.8  create report cron="0 20 * * *"
        19:59:59.9  poll             -> nothing
        20:00:00.01  poll            -> admit report@20:00
        20:00:00.02  poll            -> offer report@20:00
    """)


def test_a_second_back_changes_nothing() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:15  complete report@09:15
        09:14:59  poll               -> nothing
        09:15  poll                  -> nothing
        09:30  poll                  -> admit report@09:30
    """)


def test_a_repeated_leap_second_admits_once() -> None:
    check("""
        23:59:58  create report cron="0 0 * * *"
        2026-03-03T00:00:00.5Z  poll  -> admit report@00:00
        2026-03-02T23:59:59.5Z  poll  -> offer report@2026-03-03T00:00Z
        2026-03-03T00:00:00.5Z  poll  -> offer report@00:00
    """)


def test_a_step_back_of_exactly_the_tolerance_is_no_regression() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" misfire=skip
        09:32  poll                  -> skip report@09:15 misfire, skip report@09:30 misfire
        09:27  poll                  -> nothing
        09:26:59.999999  poll        -> regress
        09:30  poll                  -> nothing
        09:31  poll                  -> nothing
    """)


def test_an_hour_back_keeps_what_was_admitted_and_decides_the_rest_anew() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel
        09:15  poll                  -> admit report@09:15
        10:15  poll                  -> supersede report@09:30 by 10:15, supersede report@09:45 by 10:15
                                     -> supersede report@10:00 by 10:15, admit report@10:15, offer report@09:15
        10:15  start report@09:15 report@10:15
        09:20  poll                  -> regress
        09:21  poll                  -> nothing
        09:30  poll                  -> admit report@09:30
        10:15  poll                  -> supersede report@09:45 by 10:00, admit report@10:00, offer report@09:30
        10:30  poll                  -> admit report@10:30, offer report@09:30, offer report@10:00
    """)


def test_skips_for_overlap_and_preflight_are_kept_and_misfires_are_not() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" misfire=skip
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:30  poll                  -> skip report@09:30 overlap
        09:31  complete report@09:15
        09:40  host refuse=report
        09:45  poll                  -> skip report@09:45 preflight
        09:46  host accept=report
        10:05  poll                  -> skip report@10:00 misfire
        09:10  poll                  -> regress
        09:15  poll                  -> nothing
        09:30  poll                  -> nothing
        09:45  poll                  -> nothing
        10:00  poll                  -> admit report@10:00
    """)


def test_one_reading_ten_years_ahead_costs_one_early_run_and_nothing_else() -> None:
    check("""
        09:00  create report cron="0 12 * * *" misfire=latest
        12:00  poll                  -> admit report@12:00
        12:00  start report@12:00
        12:01  complete report@12:00
        2036-03-02T12:30Z  clock
        12:30  poll                  -> jump, interval report@2026-03-02T12:00Z..12:00 superseded at_least=100
                                     -> admit report@12:00
        12:30  start report@2036-03-02T12:00Z
        12:31  complete report@2036-03-02T12:00Z
        2026-03-02T13:00Z  poll      -> regress
        13:01  poll                  -> nothing
        2026-03-03T12:00Z  poll      -> admit report@12:00
        12:00  start report@12:00
        12:01  complete report@12:00
        2026-03-04T12:00Z  poll      -> admit report@12:00
    """)


def test_a_journal_stamped_in_the_future_starves_nobody_at_start() -> None:
    check("""
        2027-03-01T06:00Z  create report cron="0 0 * * *" lateness=1h
        2027-03-02T00:00Z  poll      -> admit report@00:00
        00:00  start report@00:00
        00:01  complete report@00:00
        00:02  reopen
        2026-03-02T12:00Z  reopen
        12:00  poll                  -> regress
        12:01  poll                  -> nothing
        2026-03-03T00:00Z  poll      -> admit report@00:00
    """)


def test_a_candidate_above_a_regression_is_void_and_its_instant_comes_again() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:05
        09:00  create report cron="0 * * * *"
        09:05  poll                  -> admit hog@09:05
        09:05  start hog@09:05
        10:00  poll                  -> hold report@10:00
        09:10  poll                  -> regress
        09:10  schedule report candidate=none
        09:11  complete hog@09:05
        09:12  poll                  -> nothing
        10:00  poll                  -> admit report@10:00
    """)


def test_a_candidate_below_a_regression_stays_held() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:05
        09:00  create report cron="0 * * * *"
        09:05  poll                  -> admit hog@09:05
        09:05  start hog@09:05
        10:00  poll                  -> hold report@10:00
        10:50  external report at=10:40
        10:20  poll                  -> regress
        10:20  schedule report candidate=10:00
        10:21  complete hog@09:05
        10:21  poll                  -> admit report@10:00
    """)


def test_a_candidate_just_ahead_of_a_small_step_back_waits_for_its_instant() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:05
        09:00  create report cron="0 * * * *"
        09:05  poll                  -> admit hog@09:05
        09:05  start hog@09:05
        10:00  poll                  -> hold report@10:00
        10:00  complete hog@09:05
        09:58  poll                  -> nothing
        10:00  poll                  -> admit report@10:00
    """)


def test_a_one_shot_passed_over_by_a_wrong_clock_runs_in_its_time_and_an_admitted_one_does_not_again() -> None:
    check("""
        09:00  create missed once=10:00 misfire=skip
        09:00  create ran once=10:00 misfire=latest
        12:00  poll                  -> skip missed@10:00 misfire exhausts=yes, admit ran@10:00 exhausts=yes
        12:00  start ran@10:00
        12:00  complete ran@10:00
        09:30  poll                  -> regress
        09:30  schedule missed exhausted=no next=10:00
        09:30  schedule ran next=none
        10:00  poll                  -> admit missed@10:00
    """)


def test_a_one_shot_whose_candidate_an_operator_passed_over_stays_decided() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:05
        09:00  create once once=10:00 misfire=latest
        09:05  poll                  -> admit hog@09:05
        09:05  start hog@09:05
        10:00  poll                  -> hold once@10:00
        10:30  rebaseline once through=10:20  -> skip once@10:00 operator
        10:31  complete hog@09:05
        09:10  poll                  -> regress
        09:10  schedule once exhausted=yes next=none
        10:00  poll                  -> nothing
    """)


def test_an_interval_that_straddles_the_regression_is_clipped() -> None:
    missed = ", ".join(f"skip report@{10 + count // 60}:{count % 60:02} misfire" for count in range(32, 119))
    check(f"""
        09:00  create report cron="* * * * *" misfire=skip
        12:00  poll                  -> interval report@09:00..12:00 backlog, admit report@12:00
        12:00  start report@12:00
        12:00  complete report@12:00
        10:30:30  poll               -> regress
        10:31  poll                  -> admit report@10:31
        10:31  start report@10:31
        10:31  complete report@10:31
        12:00  poll                  -> {missed}, admit report@11:59
    """)


def test_paused_and_blocked_schedules_go_back_too() -> None:
    check("""
        09:00  create paused cron="*/15 * * * *"
        09:00  create blocked cron="*/15 * * * *" misfire=skip
        09:05  pause paused
        11:02  poll                  -> skip blocked@09:15 misfire, skip blocked@09:30 misfire
                                     -> skip blocked@09:45 misfire, skip blocked@10:00 misfire
                                     -> skip blocked@10:15 misfire, skip blocked@10:30 misfire
                                     -> skip blocked@10:45 misfire, skip blocked@11:00 misfire
        11:03  unpause paused
        11:04  pause paused
        11:05  block blocked
        09:40  poll                  -> regress
        09:40  schedule paused consumed_through=09:40
        09:40  schedule blocked consumed_through=09:40
        09:41  unpause paused
        09:41  unblock blocked
        09:45  poll                  -> admit blocked@09:45, admit paused@09:45
    """)


def test_a_schedule_within_the_tolerance_keeps_its_watermark() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" misfire=skip
        09:17  poll                  -> skip report@09:15 misfire
        09:40  poll                  -> skip report@09:30 misfire
        09:28  poll                  -> regress
        09:28  schedule report consumed_through=09:30
        09:30  poll                  -> nothing
    """)


def test_a_spent_period_stays_spent_after_a_regression() -> None:
    check("""
        10:00  create daily once_per=day
        2026-03-03T10:00Z  poll      -> supersede daily@2026-03-02T00:00Z by 00:00, admit daily@00:00
        10:00  start daily@00:00
        10:00  complete daily@00:00
        2026-03-02T10:05Z  poll      -> regress
        2026-03-03T00:00Z  poll      -> nothing
        2026-03-04T00:00Z  poll      -> admit daily@00:00
    """)


def test_a_forward_jump_yields_one_make_up_at_most() -> None:
    check("""
        10:00  create latest cron="* * * * *" overlap=parallel misfire=latest lateness=30s
        10:00  create skip cron="* * * * *" overlap=parallel misfire=skip lateness=5s
        10:00  poll                  -> nothing
        11:50:30  clock
        11:50:30  poll               -> jump, interval latest@10:00..11:50 superseded, admit latest@11:50
                                     -> interval skip@10:00..11:50 backlog, skip skip@11:50 misfire
        11:51  poll                  -> admit skip@11:51, admit latest@11:51, offer latest@11:50
    """)


def test_a_forward_step_within_the_tolerance_is_no_jump() -> None:
    check("""
        10:00  create report cron="0 * * * *"
        10:00  poll                  -> nothing
        10:05  clock
        10:05  poll                  -> nothing
    """)


def test_outside_the_supported_range_nothing_is_decided_and_results_are_recorded() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel
        09:15  poll                  -> admit report@09:15
        09:30  poll                  -> admit report@09:30, offer report@09:15
        1970-01-01T00:00Z  poll      -> warn
        00:01  pause report          raises=ClockUnusable
        00:01  edit report cron="* * * * *"  raises=ClockUnusable
        00:01  create other cron="* * * * *"  raises=ClockUnusable
        00:01  run_now report        raises=ClockUnusable
        00:01  rebaseline report through=1975-01-01T00:00Z  raises=ClockUnusable
        00:02  start report@2026-03-02T09:15Z
        00:03  interrupt report@2026-03-02T09:15Z
        00:04  resume report@2026-03-02T09:15Z
        00:05  complete report@2026-03-02T09:15Z  -> clear report@2026-03-02T09:15Z
        2026-03-02T09:45Z  poll      -> admit report@09:45, offer report@09:30
        09:45  schedule report blocked=no exhausted=no
    """)


def test_a_reading_beyond_the_range_does_not_count_as_the_highest() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        2150-01-01T00:00Z  poll      -> warn
        00:00  start report@2026-03-02T09:15Z
        00:00  complete report@2026-03-02T09:15Z
        2026-03-02T09:30Z  poll      -> admit report@09:30
    """)


def test_the_last_supported_year_counts_like_any_other() -> None:
    check("""
        2100-06-01T09:00Z  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:15  complete report@09:15
        2026-03-02T09:00Z  poll      -> regress
        09:15  poll                  -> admit report@09:15
    """)


def test_two_regressions_in_a_row_keep_every_admission() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel misfire=skip
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        10:15  poll                  -> skip report@09:30 misfire, skip report@09:45 misfire
                                     -> skip report@10:00 misfire, admit report@10:15
        10:15  start report@10:15
        09:40  poll                  -> regress
        09:45  poll                  -> admit report@09:45
        09:45  start report@09:45
        09:10  poll                  -> regress
        09:30  poll                  -> admit report@09:30
        09:30  start report@09:30
        10:00  poll                  -> admit report@10:00
        10:00  start report@10:00
        10:15  poll                  -> nothing
        10:30  poll                  -> admit report@10:30
    """)
