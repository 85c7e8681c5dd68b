"""The four policy pairs, each on an ordinary day, after a long downtime, at full capacity and over restarts."""

from __future__ import annotations

from tests.scheduler.timeline import check


def test_skip_and_skip_on_an_ordinary_day() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=skip misfire=skip
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:20  complete report@09:15
        09:30  poll                  -> admit report@09:30
        09:30  start report@09:30
        09:45  poll                  -> skip report@09:45 overlap
        09:50  fail report@09:30
        10:00  poll                  -> admit report@10:00
    """)


def test_skip_and_skip_after_a_long_downtime() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=skip misfire=skip
        09:10  reopen
        10:07  poll                  -> skip report@09:15 misfire, skip report@09:30 misfire
                                     -> skip report@09:45 misfire, skip report@10:00 misfire
        2026-03-09T09:00Z  poll      -> interval report@2026-03-02T10:00Z..09:00 backlog at_least=100
                                     -> admit report@09:00
    """)


def test_skip_and_skip_at_full_capacity() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:10
        09:00  create report cron="*/15 * * * *" overlap=skip misfire=skip
        09:10  poll                  -> admit hog@09:10
        09:10  start hog@09:10
        09:15  poll                  -> nothing
        09:16  poll                  -> nothing
        09:30  poll                  -> skip report@09:15 capacity
        09:30:30  complete hog@09:10
        09:30:30  poll               -> admit report@09:30
    """)


def test_skip_and_skip_over_restarts() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=skip misfire=skip
        09:15  poll                  -> admit report@09:15
        09:16  crash
        09:17  poll                  -> offer report@09:15
        09:17  start report@09:15
        09:18  crash                 -> abandon report@09:15 crash
        09:30  poll                  -> admit report@09:30
        09:30  start report@09:30
        09:31  crash running=report@09:30
        09:45  poll                  -> skip report@09:45 overlap blocked_by=report@09:30
        09:46  reopen                -> abandon report@09:30 crash
        09:47  poll                  -> nothing
    """)


def test_skip_and_latest_on_an_ordinary_day() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=skip misfire=latest
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:30  poll                  -> skip report@09:30 overlap
        09:31  complete report@09:15
        09:44  poll                  -> nothing
        09:45  poll                  -> admit report@09:45
    """)


def test_skip_and_latest_after_a_long_downtime() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=skip misfire=latest
        09:10  reopen
        10:07  poll                  -> supersede report@09:15 by 10:00, supersede report@09:30 by 10:00
                                     -> supersede report@09:45 by 10:00, admit report@10:00
        10:07  start report@10:00
        10:08  complete report@10:00
        2026-03-09T09:05Z  poll      -> interval report@2026-03-02T10:00Z..09:00 superseded, admit report@09:00
        09:15  poll                  -> skip report@09:15 overlap, offer report@09:00
    """)


def test_skip_and_latest_at_full_capacity() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:10
        09:00  create report cron="*/15 * * * *" overlap=skip misfire=latest
        09:10  poll                  -> admit hog@09:10
        09:10  start hog@09:10
        09:40  poll                  -> supersede report@09:15 by 09:30, hold report@09:30
        09:41  poll                  -> nothing
        10:00  poll                  -> supersede report@09:30 by 10:00, supersede report@09:45 by 10:00
                                     -> hold report@10:00
        10:14  complete hog@09:10
        10:14  poll                  -> admit report@10:00
    """)


def test_skip_and_latest_over_restarts() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:10
        09:00  create report cron="*/15 * * * *" overlap=skip misfire=latest
        09:10  poll                  -> admit hog@09:10
        09:10  start hog@09:10
        09:15  poll                  -> hold report@09:15
        09:16  crash                 -> abandon hog@09:10 crash
        09:16  schedule report candidate=09:15
        09:17  poll                  -> admit report@09:15
        09:17  crash
        09:18  poll                  -> offer report@09:15
    """)


def test_parallel_and_skip_on_an_ordinary_day() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel limit=2 misfire=skip
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:30  poll                  -> admit report@09:30
        09:30  start report@09:30
        09:45  poll                  -> skip report@09:45 overlap
        09:46  complete report@09:30
        10:00  poll                  -> admit report@10:00
    """)


def test_parallel_and_skip_after_a_long_downtime() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel limit=2 misfire=skip lateness=40m
        09:10  reopen
        10:07  poll                  -> skip report@09:15 misfire, admit report@09:30, admit report@09:45
                                     -> skip report@10:00 overlap blocked_by=report@09:30
        2026-03-09T09:00Z  poll      -> interval report@2026-03-02T10:00Z..09:00 backlog, skip report@09:00 overlap
                                     -> offer report@2026-03-02T09:30Z, offer report@2026-03-02T09:45Z
    """)


def test_parallel_and_skip_at_full_capacity() -> None:
    check("""
        09:00  open slots=1
        09:00  create report cron="*/15 * * * *" overlap=parallel limit=3 misfire=skip lateness=20m
        09:30  poll                  -> admit report@09:15
        09:30  start report@09:15
        09:45  poll                  -> nothing
        09:51  poll                  -> skip report@09:30 capacity
        10:00  complete report@09:15
        10:00  poll                  -> admit report@09:45
    """)


def test_parallel_and_skip_over_restarts() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel limit=2 misfire=skip
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:30  poll                  -> admit report@09:30
        09:31  crash running=report@09:15
        09:45  poll                  -> skip report@09:45 overlap blocked_by=report@09:15, offer report@09:30
        09:46  crash                 -> abandon report@09:15 crash
        10:00  poll                  -> admit report@10:00, offer report@09:30
    """)


def test_parallel_and_latest_on_an_ordinary_day() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel limit=2 misfire=latest
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:30  poll                  -> admit report@09:30
        09:30  start report@09:30
        09:45  poll                  -> skip report@09:45 overlap
        09:46  interrupt report@09:15
        10:00  poll                  -> skip report@10:00 overlap blocked_by=report@09:15
    """)


def test_parallel_and_latest_after_a_long_downtime() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel limit=5 misfire=latest lateness=20m
        09:10  reopen
        10:07  poll                  -> supersede report@09:15 by 10:00, supersede report@09:30 by 10:00
                                     -> supersede report@09:45 by 10:00, admit report@10:00
        10:08  poll                  -> offer report@10:00
    """)


def test_parallel_and_latest_at_full_capacity() -> None:
    check("""
        09:00  open slots=1
        09:00  create report cron="*/15 * * * *" overlap=parallel limit=3 misfire=latest
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:30  poll                  -> hold report@09:30
        09:45  poll                  -> supersede report@09:30 by 09:45, hold report@09:45
        09:50  complete report@09:15
        09:50  poll                  -> admit report@09:45
    """)


def test_timely_instants_without_a_slot_leave_one_candidate() -> None:
    check("""
        09:00  open slots=1
        09:00  create report cron="*/15 * * * *" overlap=parallel limit=3 misfire=latest lateness=1h
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:45  poll                  -> hold report@09:30, supersede report@09:30 by 09:45, hold report@09:45
        09:46  complete report@09:15
        09:46  poll                  -> admit report@09:45
    """)


def test_parallel_and_latest_over_restarts() -> None:
    check("""
        09:00  open slots=1
        09:00  create report cron="*/15 * * * *" overlap=parallel limit=3 misfire=latest
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:30  poll                  -> hold report@09:30
        09:31  crash running=report@09:15
        09:32  poll                  -> nothing
        09:33  crash slots=2 running=report@09:15
        09:33  poll                  -> admit report@09:30
    """)


def test_lowering_the_limit_stops_new_admissions_and_touches_no_run() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel limit=3
        09:15  poll                  -> admit report@09:15
        09:30  poll                  -> admit report@09:30, offer report@09:15
        09:30  start report@09:15 report@09:30
        09:40  edit report limit=1
        09:45  poll                  -> skip report@09:45 overlap blocked_by=report@09:15
        09:46  complete report@09:15
        10:00  poll                  -> skip report@10:00 overlap blocked_by=report@09:30
        10:01  complete report@09:30
        10:15  poll                  -> admit report@10:15
    """)


def test_manual_runs_and_those_of_other_schedules_never_block() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:00  create other cron="*/15 * * * *"
        09:10  run_now report        -> admit report#1
        09:10  start report#1
        09:15  poll                  -> admit other@09:15, admit report@09:15
        09:15  start other@09:15
        09:16  complete report#1
    """)


def test_an_interrupted_run_counts_against_the_limit_and_holds_no_task_slot() -> None:
    check("""
        09:00  open slots=1
        09:00  create report cron="*/15 * * * *"
        09:00  create other cron="20 9 * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  interrupt report@09:15 value='{"page":3}'
        09:20  poll                  -> admit other@09:20
        09:30  poll                  -> skip report@09:30 overlap blocked_by=report@09:15, offer other@09:20
    """)
