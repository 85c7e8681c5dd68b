"""Calendar periods, and OncePer: days, ISO weeks and months, each known by its first instant."""

from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise, takewhile

import pytest

from duly.journal.entries import OncePerRule, Period
from duly.scheduler.errors import DefinitionError, TriggerError
from duly.scheduler.periods import next_period_start, period_end, period_start, previous_period_start
from duly.scheduler.triggers import OncePer
from duly.scheduler.zones import zone_of
from tests.scheduler.calendar.test_pins import backward, forward, utc

ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "America/Havana", "Pacific/Apia", "America/St_Johns", "Asia/Gaza")


def wall(instant: datetime, zone: str) -> str:
    return f"{zone_of(zone).local(instant):%Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("period", "start", "end"),
    [
        ("day", "2026-05-06 00:00", "2026-05-07 00:00"),
        ("week", "2026-05-04 00:00", "2026-05-11 00:00"),
        ("month", "2026-05-01 00:00", "2026-06-01 00:00"),
    ],
)
def test_a_period_begins_at_local_midnight(period: Period, start: str, end: str):
    instant = utc("2026-05-06T10:00")
    assert wall(period_start(instant, period, "Europe/Berlin"), "Europe/Berlin") == start
    assert wall(period_end(instant, period, "Europe/Berlin"), "Europe/Berlin") == end


@pytest.mark.parametrize("period", ["day", "week", "month"])
@pytest.mark.parametrize("zone", ZONES)
def test_a_start_belongs_to_its_own_period(period: Period, zone: str):
    tick = timedelta(microseconds=1)
    start = period_start(utc("2026-05-06T10:00"), period, zone)
    end = period_end(start, period, zone)
    assert period_start(start, period, zone) == start
    assert period_start(end - tick, period, zone) == start
    assert period_start(end, period, zone) == end
    assert next_period_start(start, period, zone) == end
    assert next_period_start(start - tick, period, zone) == start
    assert previous_period_start(end, period, zone) == start
    assert previous_period_start(end + tick, period, zone) == end


@pytest.mark.parametrize("year", [year for year in range(1990, 2061) if date(year, 12, 28).isocalendar().week == 53])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_the_53rd_week_is_a_week_like_any_other(year: int, zone: str):
    starts = [
        datetime.combine(date.fromisocalendar(*week, 1), datetime.min.time(), zone_of(zone).tzinfo).astimezone(UTC)
        for week in ((year, 52), (year, 53), (year + 1, 1), (year + 1, 2))
    ]
    assert list(islice(forward(OncePer("week", zone), starts[0] - timedelta(hours=1)), 4)) == starts
    for start, end in pairwise(starts):
        for hours in range(0, 168, 13):
            instant = start + timedelta(hours=hours)
            assert (period_start(instant, "week", zone), period_end(instant, "week", zone)) == (start, end)


def test_there_were_53_weeks_in_thirteen_of_these_years():
    years = [year for year in range(1990, 2061) if date(year, 12, 28).isocalendar().week == 53]
    assert (len(years), years[:3]) == (13, [1992, 1998, 2004])


def test_a_midnight_that_is_skipped_begins_after_the_gap():
    gap = period_start(utc("2018-11-04T12:00"), "day", "America/Sao_Paulo")
    assert wall(gap, "America/Sao_Paulo") == "2018-11-04 01:00"
    assert gap == utc("2018-11-04T03:00")
    assert period_end(utc("2018-11-03T12:00"), "day", "America/Sao_Paulo") == gap


def test_a_midnight_that_comes_twice_begins_with_the_first():
    first = utc("2024-11-03T04:00")  # Havana sets 01:00 back to 00:00 at 05:00Z
    for minutes in (0, 30, 60, 90, 600):
        assert period_start(first + timedelta(minutes=minutes), "day", "America/Havana") == first
    assert period_end(first, "day", "America/Havana") == utc("2024-11-04T05:00")
    assert previous_period_start(utc("2024-11-03T05:30"), "day", "America/Havana") == first


def test_an_evening_that_comes_twice_after_midnight_belongs_to_the_new_day():
    """St John's set 00:01 back to 23:01 of the day before."""
    zone = "America/St_Johns"
    start = utc("2006-10-29T02:30")
    assert wall(start, zone) == "2006-10-29 00:00"
    assert [wall(start + timedelta(minutes=1 + 60 * k), zone) for k in (0, 1)] == [
        "2006-10-28 23:01",
        "2006-10-29 00:01",
    ]
    for minutes in (0, 1, 30, 59, 60, 61):
        assert period_start(start + timedelta(minutes=minutes), "day", zone) == start
        assert period_end(start + timedelta(minutes=minutes), "day", zone) == utc("2006-10-30T03:30")
    assert list(islice(forward(OncePer("day", zone), start), 1)) == [utc("2006-10-30T03:30")]
    assert list(islice(backward(OncePer("day", zone), utc("2006-10-30T03:30")), 2)) == [start, utc("2006-10-28T02:30")]


def test_a_day_that_a_zone_never_had_is_no_period():
    starts = list(islice(forward(OncePer("day", "Pacific/Apia"), utc("2011-12-28T12:00")), 4))
    assert [wall(start, "Pacific/Apia") for start in starts] == [
        "2011-12-29 00:00",
        "2011-12-31 00:00",
        "2012-01-01 00:00",
        "2012-01-02 00:00",
    ]
    assert list(islice(backward(OncePer("day", "Pacific/Apia"), starts[-1]), 3)) == starts[2::-1]


@pytest.mark.parametrize("period", ["day", "week", "month"])
@pytest.mark.parametrize("zone", ZONES)
def test_the_periods_divide_time(period: Period, zone: str):
    """Twelve years of starts: rising, the same in both directions, and each the start of every instant in it."""
    begin, end = utc("2000-01-01"), utc("2012-06-01")
    starts = list(takewhile(lambda start: start < end, forward(OncePer(period, zone), begin)))
    assert all(earlier < later for earlier, later in pairwise(starts))
    assert list(islice(backward(OncePer(period, zone), starts[-1]), len(starts) - 1)) == starts[-2::-1]
    longest = {"day": 26, "week": 8 * 24, "month": 32 * 24}[period]
    assert max(later - earlier for earlier, later in pairwise(starts)) <= timedelta(hours=longest)
    for earlier, later in pairwise(starts[:: max(1, len(starts) // 200)]):
        middle = earlier + (later - earlier) / 3
        found = period_start(middle, period, zone)
        assert found <= middle < period_end(middle, period, zone)
        assert found in starts


def test_a_period_trigger_records_its_rule():
    assert OncePer("day", zone="Europe/Berlin").rule == OncePerRule("day", "Europe/Berlin")
    assert OncePer("day", "UTC").next_after(utc("2026-05-05T12:00")) == utc("2026-05-06T00:00")


def test_what_is_no_period_is_refused():
    with pytest.raises(DefinitionError) as caught:
        OncePer("year", "UTC")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - it is what is refused
    assert caught.value.field == "period"
    with pytest.raises(DefinitionError, match=r"^zone: "):
        OncePer("day", "Mars/Olympus")
    with pytest.raises(DefinitionError, match="is naive"):
        period_start(datetime(2026, 1, 1), "day", "UTC")  # noqa: DTZ001 - it is what is refused
    with pytest.raises(TriggerError, match="outside the supported range"):
        period_start(utc("2101-01-01"), "day", "UTC")
