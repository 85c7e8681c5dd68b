"""What APScheduler's triggers answer, beside what duly's answer: the facts of docs/explanation/apscheduler.md."""

import inspect
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice

import pytest

from duly import Cron, DefinitionError, Every
from tests.evidence.peer import cron, fire_times, instants, trigger_class
from tests.scheduler.calendar.oracle import zone

pytestmark = pytest.mark.evidence


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ours(trigger: Cron | Every, after: datetime, until: datetime) -> list[datetime]:
    found: list[datetime] = []
    while (instant := trigger.next_after(found[-1] if found else after)) is not None and instant <= until:
        found.append(instant)
    return found


@pytest.mark.parametrize(
    ("zone_name", "noon_before", "first_after_the_gap", "next_midnight"),
    [
        ("America/Havana", "2025-03-08T17:00", "2025-03-09T05:00", "2025-03-10T04:00"),
        ("Africa/Cairo", "2025-04-24T10:00", "2025-04-24T22:00", "2025-04-25T21:00"),
        ("Asia/Beirut", "2025-03-29T10:00", "2025-03-29T22:00", "2025-03-30T21:00"),
    ],
)
def test_where_midnight_is_skipped_the_daily_run_of_that_day_is_lost(
    zone_name: str, noon_before: str, first_after_the_gap: str, next_midnight: str
):
    window = utc(noon_before), utc(next_midnight)
    assert instants(cron("0 0 * * *", zone_name), *window) == [utc(next_midnight)]
    assert ours(Cron("0 0 * * *", zone_name), *window) == [utc(first_after_the_gap), utc(next_midnight)]


def test_a_time_in_a_gap_fires_when_the_clock_shows_another_hour():
    evening, end = utc("2025-03-08T20:00"), utc("2025-03-09T20:00")
    [found] = islice(fire_times(cron("30 2 * * *", "America/New_York"), evening), 1)
    assert found.replace(tzinfo=None) == datetime(2025, 3, 9, 2, 30)  # noqa: DTZ001 - what it says is on the wall
    assert found.astimezone(UTC) == utc("2025-03-09T07:30")
    assert found.astimezone(UTC).astimezone(zone("America/New_York")).time() == time(3, 30)
    assert ours(Cron("30 2 * * *", "America/New_York"), evening, end) == [utc("2025-03-09T07:00")]  # 03:00, the first


def test_two_times_of_one_rule_can_be_the_same_instant_twice():
    evening, end = utc("2025-03-08T20:00"), utc("2025-03-09T20:00")
    assert instants(cron("30 2,3 * * *", "America/New_York"), evening, end) == [utc("2025-03-09T07:30")] * 2
    assert ours(Cron("30 2,3 * * *", "America/New_York"), evening, end) == [
        utc("2025-03-09T07:00"),
        utc("2025-03-09T07:30"),
    ]


def test_a_job_for_every_quarter_is_silent_for_an_hour_where_the_clocks_go_back_to_a_quarter():
    # Chatham: at 14:00Z the clocks go from 03:45 back to 02:45, so that 02:45 … 03:30 come a second time.
    window = utc("2025-04-05T13:10"), utc("2025-04-05T15:10")
    quarters = [utc("2025-04-05T13:15") + timedelta(minutes=15) * n for n in range(8)]
    silent = {utc("2025-04-05T14:00") + timedelta(minutes=15) * n for n in range(4)}
    assert instants(cron("*/15 * * * *", "Pacific/Chatham"), *window) == [q for q in quarters if q not in silent]
    assert ours(Cron("*/15 * * * *", "Pacific/Chatham"), *window) == quarters


@pytest.mark.parametrize(
    ("zone_name", "expression", "start", "passes"),
    [
        ("America/New_York", "30 1 * * *", "2025-11-01T20:00", ["2025-11-02T05:30", "2025-11-02T06:30"]),
        ("Europe/Berlin", "30 2 * * *", "2025-10-25T20:00", ["2025-10-26T00:30", "2025-10-26T01:30"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2025-04-05T08:00", ["2025-04-05T14:45", "2025-04-05T15:15"]),
    ],
)
def test_both_fire_twice_where_an_hour_or_half_an_hour_is_repeated(
    zone_name: str, expression: str, start: str, passes: list[str]
):
    begin, twice = utc(start), [utc(text) for text in passes]
    end = begin + timedelta(hours=20)
    assert instants(cron(expression, zone_name), begin, end) == twice
    assert ours(Cron(expression, zone_name), begin, end) == twice
    assert ours(Cron(expression, zone_name, fold="first"), begin, end) == twice[:1]


def test_the_second_pass_is_missed_where_two_hours_are_repeated():
    begin, end = utc("2025-10-25T20:00"), utc("2025-10-26T12:00")  # Troll
    assert instants(cron("30 1 * * *", "Antarctica/Troll"), begin, end) == [utc("2025-10-25T23:30")]
    assert ours(Cron("30 1 * * *", "Antarctica/Troll"), begin, end) == [
        utc("2025-10-25T23:30"),
        utc("2025-10-26T01:30"),
    ]


def test_there_is_no_option_for_what_comes_twice():
    parameters = set(inspect.signature(trigger_class("cron").__init__).parameters)
    assert parameters == {"self", "year", "month", "day", "week", "day_of_week", "hour", "minute", "second"} | {
        "start_date",
        "end_date",
        "timezone",
        "jitter",
    }


def test_the_numbers_of_weekdays_are_others_than_those_of_cron():
    begin, end = utc("2026-03-02T00:00"), utc("2026-03-08T23:59")  # from a Monday to a Sunday
    assert [found.strftime("%a") for found in instants(cron("0 12 * * 0", "UTC"), begin, end)] == ["Mon"]
    assert [found.strftime("%a") for found in instants(cron("0 12 * * sun", "UTC"), begin, end)] == ["Sun"]
    with pytest.raises(ValueError, match="higher than the maximum"):
        cron("0 12 * * 7", "UTC")
    for text in ("0", "7", "sun"):
        assert [found.strftime("%a") for found in ours(Cron(f"0 12 * * {text}", "UTC"), begin, end)] == ["Sun"]


def test_two_day_fields_mean_and_where_cron_means_or():
    begin, end = utc("2026-09-01T00:00"), utc("2026-11-30T00:00")
    assert instants(cron("0 12 13 * fri", "UTC"), begin, end) == [utc("2026-11-13T12:00")]
    assert len(ours(Cron("0 12 13 * fri", "UTC"), begin, end)) == 15  # 13 Fridays, and two 13ths that are none


def test_what_never_fires_is_accepted():
    assert list(fire_times(cron("0 0 30 2 *", "UTC"), utc("2026-01-01T00:00"))) == []
    with pytest.raises(DefinitionError, match="never fires"):
        Cron("0 0 30 2 *", "UTC")


def test_an_interval_of_a_day_leaves_its_time_of_day_and_a_calendar_interval_leaves_out_a_day():
    berlin = zone("Europe/Berlin")
    begin = datetime(2026, 3, 27, 0, tzinfo=berlin)
    elapsed = trigger_class("interval")(days=1, start_date=begin.replace(hour=9), timezone=berlin)
    assert [found.hour for found in islice(fire_times(elapsed, begin), 4)] == [9, 9, 10, 10]
    wall = trigger_class("calendarinterval")(days=1, hour=2, minute=30, start_date=begin.date(), timezone=berlin)
    assert [found.day for found in islice(fire_times(wall, begin), 3)] == [27, 28, 30]
    daily = Every(1, "day", at="02:30", anchor=date(2026, 3, 27), zone="Europe/Berlin")
    found = ours(daily, begin.astimezone(UTC), utc("2026-03-30T12:00"))
    assert [f"{one.astimezone(berlin):%d %H:%M}" for one in found] == ["27 02:30", "28 02:30", "29 03:00", "30 02:30"]


def test_a_monthly_calendar_interval_leaves_out_the_months_that_lack_its_day():
    monthly = trigger_class("calendarinterval")(months=1, hour=9, start_date=date(2026, 1, 31), timezone=UTC)
    assert [found.month for found in islice(fire_times(monthly, utc("2026-01-30T00:00")), 3)] == [1, 3, 5]
    same = Every(1, "month", at="09:00", anchor=date(2026, 1, 31), zone="UTC")
    found = ours(same, utc("2026-01-30T00:00"), utc("2026-04-30T12:00"))
    assert [f"{one:%d %b}" for one in found] == ["31 Jan", "28 Feb", "31 Mar", "30 Apr"]


def test_no_trigger_can_be_asked_for_the_time_before():
    base = inspect.getmembers(trigger_class("cron"), callable)
    assert {name for name, _ in base if name.startswith("get_")} == {"get_next_fire_time"}
