"""Every: elapsed time and dates on a wall, always counted from the anchor."""

from datetime import UTC, date, datetime, timedelta
from itertools import islice

import pytest

from duly.journal.entries import EveryRule
from duly.scheduler.errors import DefinitionError
from duly.scheduler.triggers import Every
from duly.scheduler.zones import zone_of
from tests.scheduler.calendar.test_pins import backward, forward, utc


def walls(trigger: Every, after: str, count: int) -> list[str]:
    assert trigger.rule.zone is not None
    zone = zone_of(trigger.rule.zone)
    return [f"{zone.local(instant):%Y-%m-%d %H:%M}" for instant in islice(forward(trigger, utc(after)), count)]


def test_minutes_and_hours_are_elapsed_time_from_the_anchor():
    trigger = Every(90, "minute", anchor=utc("2026-10-24T23:00"))
    chain = list(islice(forward(trigger, utc("2026-10-24T23:00")), 20))
    assert chain == [utc("2026-10-24T23:00") + timedelta(minutes=90) * k for k in range(1, 21)]
    assert Every(2, "hour", anchor=utc("2026-01-01T01:30")).next_after(utc("2026-05-05T04:00")) == utc(
        "2026-05-05T05:30"
    )


def test_the_anchor_counts_and_nothing_lies_before_it():
    for trigger in (
        Every(7, "minute", anchor=utc("2026-05-05T12:00")),
        Every(1, "day", at="12:00", zone="UTC", anchor=date(2026, 5, 5)),
        Every(1, "week", at="12:00", zone="UTC", anchor=date(2026, 5, 5)),
        Every(1, "month", at="12:00", zone="UTC", anchor=date(2026, 5, 5)),
        Every(1, "year", at="12:00", zone="UTC", anchor=date(2026, 5, 5)),
    ):
        anchor = utc("2026-05-05T12:00")
        assert trigger.next_after(utc("1999-01-01")) == anchor
        assert trigger.next_after(anchor - timedelta(microseconds=1)) == anchor
        assert trigger.prev_before(anchor + timedelta(microseconds=1)) == anchor
        assert trigger.prev_before(anchor) is None
        assert trigger.prev_before(utc("1999-01-01")) is None
        later = trigger.next_after(anchor)
        assert later is not None
        assert later > anchor
        assert trigger.prev_before(later) == anchor


def test_the_date_of_an_anchor_may_have_passed_when_its_time_of_day_comes():
    trigger = Every(1, "day", at="01:30", zone="Europe/London", anchor=date(2025, 3, 28))
    assert trigger.next_after(utc("2025-03-27T00:00")) == utc("2025-03-28T01:30")


def test_a_daily_cadence_goes_through_the_gap_and_is_not_stuck():
    """A public report: the time after the gap was given back as its own successor, for ever."""
    trigger = Every(1, "day", at="01:30", zone="Europe/London", anchor=date(2025, 3, 28))
    chain = list(islice(forward(trigger, utc("2025-03-28T12:00")), 4))
    assert chain == [utc("2025-03-29T01:30"), utc("2025-03-30T01:00"), utc("2025-03-31T00:30"), utc("2025-04-01T00:30")]
    assert trigger.next_after(utc("2025-03-30T01:00")) == utc("2025-03-31T00:30")
    assert list(islice(backward(trigger, utc("2025-04-01T00:30")), 4)) == [*chain[2::-1], utc("2025-03-28T01:30")]


def test_a_month_end_never_drifts():
    """A public report: from the 31st over February, a monthly cadence stayed on the 28th."""
    trigger = Every(1, "month", at="09:00", zone="Europe/Rome", anchor=date(2020, 12, 31))
    chain = list(islice(forward(trigger, utc("2021-01-01")), 5))
    assert chain == [
        utc("2021-01-31T08:00"),
        utc("2021-02-28T08:00"),
        utc("2021-03-31T07:00"),
        utc("2021-04-30T07:00"),
        utc("2021-05-31T07:00"),
    ]


def test_a_leap_day_comes_back_in_leap_years():
    trigger = Every(1, "year", at="06:00", zone="UTC", anchor=date(2024, 2, 29))
    assert walls(trigger, "2024-03-01", 4) == [
        "2025-02-28 06:00",
        "2026-02-28 06:00",
        "2027-02-28 06:00",
        "2028-02-29 06:00",
    ]


@pytest.mark.parametrize(
    ("count", "unit", "anchor", "expected"),
    [
        (3, "day", date(2026, 1, 1), ["2026-05-04", "2026-05-07"]),
        (2, "week", date(2026, 1, 1), ["2026-05-07", "2026-05-21"]),
        (5, "month", date(2025, 8, 30), ["2026-06-30", "2026-11-30"]),
        (4, "year", date(2020, 2, 29), ["2028-02-29", "2032-02-29"]),
    ],
)
def test_several_units_are_counted_from_the_anchor(count: int, unit: str, anchor: date, expected: list[str]):
    trigger = Every(count, unit, at="00:00", zone="Asia/Tokyo", anchor=anchor)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - from a table
    assert walls(trigger, "2026-05-02", 2) == [f"{day} 00:00" for day in expected]


def test_a_repeated_time_comes_twice_or_once():
    both = Every(1, "day", at="02:30", zone="Europe/Berlin", anchor=date(2026, 1, 1))
    first = Every(1, "day", at="02:30", zone="Europe/Berlin", anchor=date(2026, 1, 1), fold="first")
    night = [utc("2026-10-25T00:30"), utc("2026-10-25T01:30"), utc("2026-10-26T01:30")]
    assert list(islice(forward(both, utc("2026-10-24T12:00")), 3)) == night
    assert list(islice(forward(first, utc("2026-10-24T12:00")), 2)) == [night[0], night[2]]
    assert list(islice(backward(both, utc("2026-10-26T12:00")), 3)) == night[::-1]
    assert list(islice(backward(first, utc("2026-10-26T12:00")), 2)) == [night[2], night[0]]


def test_a_date_may_begin_before_its_eve_has_ended():
    """St John's set 00:01 back to 23:01 of the day before: in that second evening, the next midnight has once been."""
    trigger = Every(1, "day", at="00:00", zone="America/St_Johns", anchor=date(2006, 1, 1))
    first, second = utc("2006-10-29T02:30"), utc("2006-10-29T03:30")
    evening = first + timedelta(minutes=30)
    assert (trigger.prev_before(evening), trigger.next_after(evening)) == (first, second)


def test_a_day_that_a_zone_never_had_collapses_into_the_next():
    trigger = Every(1, "day", at="00:00", zone="Pacific/Apia", anchor=date(2011, 12, 1))
    assert walls(trigger, "2011-12-29T00:00", 3) == ["2011-12-29 00:00", "2011-12-31 00:00", "2012-01-01 00:00"]
    noon = Every(1, "day", at="12:00", zone="Pacific/Apia", anchor=date(2011, 12, 1))
    assert walls(noon, "2011-12-29T12:00", 4) == [
        "2011-12-29 12:00",
        "2011-12-31 00:00",
        "2011-12-31 12:00",
        "2012-01-01 12:00",
    ]


def test_without_a_time_of_day_it_is_midnight():
    trigger = Every(1, "week", zone="UTC", anchor=date(2026, 1, 5))
    assert trigger.rule == EveryRule(1, "week", "2026-01-05", "UTC", "00:00")
    assert trigger == Every(1, "week", at="00:00", zone="UTC", anchor=date(2026, 1, 5))


def test_the_rule_says_where_elapsed_time_is_counted_from():
    berlin = zone_of("Europe/Berlin").tzinfo
    trigger = Every(5, "minute", anchor=datetime(2026, 5, 5, 14, 0, 30, tzinfo=berlin))
    assert trigger.rule == EveryRule(5, "minute", "2026-05-05T12:00:30Z")
    shown = Every(1, "hour", anchor=utc("2026-05-05T12:00"), zone="Europe/Berlin")
    assert shown.rule == EveryRule(1, "hour", "2026-05-05T12:00:00Z", "Europe/Berlin")


def test_a_cadence_that_leaves_the_supported_range_is_exhausted():
    century = Every(100, "year", zone="UTC", anchor=date(2026, 1, 1))
    assert century.next_after(utc("2026-01-01")) is None
    aeon = Every(1_000_000, "year", zone="UTC", anchor=date(2026, 1, 1))
    assert aeon.next_after(utc("2026-01-01")) is None
    days = Every(1_000_000, "week", zone="UTC", anchor=date(2026, 1, 1))
    assert days.next_after(utc("2026-01-01")) is None
    hours = Every(1_000_000, "hour", anchor=utc("2026-01-01"))
    assert hours.next_after(utc("2026-01-01")) is None
    assert hours.prev_before(utc("2100-12-31")) == utc("2026-01-01")


NOON = datetime(2026, 5, 5, 12, tzinfo=UTC)
DAY = date(2026, 5, 5)


@pytest.mark.parametrize(
    ("arguments", "options", "field"),
    [
        ((0, "day"), {"zone": "UTC", "anchor": DAY}, "count"),
        ((True, "day"), {"zone": "UTC", "anchor": DAY}, "count"),
        ((1.5, "day"), {"zone": "UTC", "anchor": DAY}, "count"),
        ((1_000_001, "day"), {"zone": "UTC", "anchor": DAY}, "count"),
        ((1, "second"), {"anchor": NOON}, "unit"),
        ((1, "days"), {"zone": "UTC", "anchor": DAY}, "unit"),
        ((1, "day"), {"anchor": DAY}, "zone"),
        ((1, "day"), {"zone": "Mars/Olympus", "anchor": DAY}, "zone"),
        ((1, "day"), {"zone": "UTC", "anchor": NOON}, "anchor"),
        ((1, "day"), {"zone": "UTC", "anchor": "2026-05-05"}, "anchor"),
        ((1, "day"), {"zone": "UTC", "anchor": date(1971, 12, 31)}, "anchor"),
        ((1, "day"), {"zone": "UTC", "anchor": DAY, "at": "24:00"}, "at"),
        ((1, "day"), {"zone": "UTC", "anchor": DAY, "at": "1:30"}, "at"),
        ((1, "day"), {"zone": "UTC", "anchor": DAY, "at": "01:30:00"}, "at"),
        ((1, "day"), {"zone": "UTC", "anchor": DAY, "at": 130}, "at"),
        ((1, "day"), {"zone": "UTC", "anchor": DAY, "fold": "second"}, "fold"),
        ((1, "hour"), {"anchor": DAY}, "anchor"),
        ((1, "hour"), {"anchor": NOON.replace(tzinfo=None)}, "anchor"),
        ((1, "hour"), {"anchor": NOON.replace(microsecond=1)}, "anchor"),
        ((1, "hour"), {"anchor": NOON.replace(year=2101)}, "anchor"),
        ((1, "hour"), {"anchor": NOON, "at": "12:00"}, "at"),
        ((1, "hour"), {"anchor": NOON, "fold": "first"}, "fold"),
        ((1, "hour"), {"anchor": NOON, "zone": "Mars/Olympus"}, "zone"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_field(
    arguments: tuple[object, object], options: dict[str, object], field: str
):
    with pytest.raises(DefinitionError) as caught:
        Every(*arguments, **options)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - it is what is refused
    assert caught.value.field == field
    assert caught.value.remedy
