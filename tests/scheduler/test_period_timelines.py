"""`OncePer`: once in every calendar period, whatever spends it and however the clock and the owner behave."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from duly import ManualClock, OncePer, Scheduler
from tests.scheduler.memory_disk import MemoryDisk
from tests.scheduler.timeline import check
from tests.scheduler.watch import utc


@pytest.mark.parametrize(
    ("period", "first", "following"),
    [
        ("day", "2026-03-04T00:00Z", "2026-03-05T00:00Z"),
        ("week", "2026-03-02T00:00Z", "2026-03-09T00:00Z"),
        ("month", "2026-03-01T00:00Z", "2026-04-01T00:00Z"),
    ],
)
def test_a_schedule_declared_in_the_middle_of_a_period_runs_in_it_once(period: str, first: str, following: str) -> None:
    check(f"""
        2026-03-04T10:00Z  create report once_per={period}
        10:00  poll next={following}  -> admit report@{first}
        10:00  start report@{first}
        10:01  complete report@{first}
        10:02  poll                  -> nothing
        {following.removesuffix("00:00Z")}07:00Z  poll  -> admit report@{following}
    """)


def test_a_period_is_timely_to_its_last_moment_and_missed_from_the_next_ones_first_instant() -> None:
    check("""
        10:00  create skip once_per=day misfire=skip
        23:59:59.999999  poll        -> admit skip@00:00
        2026-03-03T10:00Z  start skip@2026-03-02T00:00Z
        10:00  complete skip@2026-03-02T00:00Z
        2026-03-04T00:00Z  poll      -> skip skip@2026-03-03T00:00Z misfire, admit skip@00:00
    """)


def test_missed_periods_give_way_to_the_current_one() -> None:
    check("""
        10:00  create report once_per=day misfire=latest
        2026-03-05T10:00Z  poll      -> supersede report@2026-03-02T00:00Z by 00:00
                                     -> supersede report@2026-03-03T00:00Z by 00:00
                                     -> supersede report@2026-03-04T00:00Z by 00:00, admit report@00:00
    """)


def test_a_candidate_whose_period_was_spent_is_spent_also_where_all_that_follows_is_decided_at_once() -> None:
    check("""
        09:00  open slots=1
        09:00  create busy once=09:30
        09:00  create report once_per=day
        09:30  poll                  -> admit busy@09:30, hold report@00:00
        09:30  start busy@09:30
        09:40  run_now report        -> admit report#1
        2026-09-01T09:00Z  poll      -> skip report@2026-03-02T00:00Z spent
                                     -> interval report@2026-03-02T00:00Z..00:00 superseded, hold report@00:00
    """)


def test_a_period_begins_at_local_midnight() -> None:
    check("""
        2026-03-28T12:00Z  create report once_per=day zone=Europe/Berlin
        12:00  poll next=23:00       -> admit report@2026-03-27T23:00Z
        12:00  start report@2026-03-27T23:00Z
        12:00  complete report@2026-03-27T23:00Z
        23:00  poll next=2026-03-29T22:00Z  -> admit report@23:00
    """)


def test_a_stamp_ten_years_ahead_neither_storms_nor_starves() -> None:
    polls = "\n".join(f"        {10 + count // 12}:{5 * (count % 12):02}:30  poll  -> nothing" for count in range(100))
    check(f"""
        10:00  create report once_per=day
        10:00  external report at=2036-03-02T10:00Z
        10:00  poll                  -> admit report@00:00
        10:00  start report@00:00
        10:00  complete report@00:00
{polls}
        2026-03-03T09:00Z  poll      -> admit report@00:00
    """)


def test_three_hundred_polls_in_a_day_admit_once_and_once_more_on_the_next() -> None:
    clock = ManualClock(utc("2026-03-02T00:00Z"))
    with Scheduler.open(Path("/journal"), clock=clock, disk=MemoryDisk()) as scheduler:
        scheduler.create("report", OncePer("day", zone="UTC"), target="work")
        scheduler.record_external_run("report", utc("2036-03-02T10:00Z"))
        admitted = 0
        for _ in range(300):
            poll = scheduler.poll(start=True)
            admitted += len(poll.admitted)
            for run in poll.offered:
                scheduler.complete(run.id)
            clock.advance(timedelta(minutes=4, seconds=47))
        assert admitted == 1
        clock.advance(timedelta(minutes=10))
        assert [run.scheduled_at for run in scheduler.poll().admitted] == [utc("2026-03-03T00:00Z")]


LONG_YEARS = [year for year in range(1990, 2061) if date(year, 12, 28).isocalendar().week == 53]


def test_every_week_53_is_a_week_of_its_own() -> None:
    assert LONG_YEARS[0] == 1992
    clock = ManualClock(utc("1990-01-01T12:00Z"))
    with Scheduler.open(Path("/journal"), clock=clock, disk=MemoryDisk()) as scheduler:
        scheduler.create("report", OncePer("week", zone="UTC"), target="work", misfire="skip")
        for year in LONG_YEARS:
            admitted: list[datetime | None] = []
            mondays: list[datetime] = []
            clock.advance(utc(f"{year}-12-20T12:00Z") - clock.now())
            for _ in range(21):
                poll = scheduler.poll(start=True)
                while poll.more:
                    poll = scheduler.poll(start=True)
                admitted += [run.scheduled_at for run in poll.offered]
                mondays.append(clock.now() - timedelta(days=clock.now().weekday(), hours=12))
                for run in poll.offered:
                    scheduler.complete(run.id)
                clock.advance(timedelta(days=1))
            assert admitted == sorted(set(mondays))
            assert datetime.combine(date.fromisocalendar(year, 53, 1), datetime.min.time(), UTC) in admitted


def test_a_stamp_in_another_past_period_spends_that_one_alone() -> None:
    check("""
        10:00  create report once_per=day
        10:00  external report at=2026-02-28T10:00Z
        10:00  poll                  -> admit report@00:00
    """)


def test_a_future_stamp_spends_its_period_when_its_time_comes() -> None:
    check("""
        10:00  create report once_per=day
        10:00  external report at=2026-03-03T20:00Z
        10:00  poll                  -> admit report@00:00
        10:00  start report@00:00
        10:00  complete report@00:00
        2026-03-03T00:00Z  poll      -> skip report@00:00 spent spent_by=external
        2026-03-04T00:00Z  poll      -> admit report@00:00
    """)


def test_the_success_of_a_run_does_not_matter() -> None:
    check("""
        10:00  create report once_per=day
        10:00  poll                  -> admit report@00:00
        10:00  start report@00:00
        10:01  fail report@00:00
        10:02  poll                  -> nothing
        10:03  run_now report        -> admit report#1
        10:04  poll                  -> offer report#1
    """)


def test_a_manual_run_counts_in_the_period_of_its_admission() -> None:
    check("""
        23:50  create report once_per=day
        23:50  poll                  -> admit report@00:00
        23:50  start report@00:00
        23:51  complete report@00:00
        23:59  run_now report        -> admit report#1
        2026-03-03T00:01Z  start report#1
        00:02  complete report#1
        00:03  poll                  -> admit report@00:00
    """)


def test_an_edit_to_a_longer_period_never_fires_retroactively() -> None:
    check("""
        2026-03-04T10:00Z  create report once_per=day
        10:00  pause report
        10:00  external report at=2026-03-03T08:00Z
        10:01  edit report once_per=week
        10:02  unpause report
        10:02  poll                  -> nothing
        2026-03-09T00:00Z  poll      -> admit report@00:00
    """)


def test_a_weekly_period_that_a_daily_stamp_lies_in_is_spent() -> None:
    check("""
        2026-03-04T10:00Z  create report once_per=week
        10:00  external report at=2026-03-02T00:00Z
        10:01  poll                  -> skip report@2026-03-02T00:00Z spent spent_by=external
    """)


def test_other_schedules_do_not_mind_stamps() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:00  external report at=09:15
        09:15  poll                  -> admit report@09:15
    """)
