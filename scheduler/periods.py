"""The calendar periods of a zone: days, ISO weeks (from Monday) and months, each known by its first instant.

Rules kept here:
- a period begins at local midnight of its first day: where a gap skips that midnight, at the first instant after the
  gap; where a fold repeats it, at the first of the two;
- the periods of a zone divide time without overlap: an instant belongs to the latest period that has begun. (Where
  clocks were set back over midnight, the evening that came twice belongs to the new day.)
- a period that a gap swallows whole does not exist;
- everything is pure: instants in, UTC instants out, nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from zoneinfo import ZoneInfo

from duly.journal.entries import Period
from duly.scheduler.instants import instant_at, seconds_through, seconds_until
from duly.scheduler.zones import DAY, Zone, zone_of

FIRST_DAY = date(1970, 1, 1).toordinal()


def period_start(instant: datetime, period: Period, zone: str | ZoneInfo | Zone) -> datetime:
    """The first instant of the period that contains the aware `instant`."""
    stamp = seconds_through(instant)
    return instant_at(_last(start for start in _starts_around(stamp, period, zone_of(zone)) if start <= stamp))


def period_end(instant: datetime, period: Period, zone: str | ZoneInfo | Zone) -> datetime:
    """The first instant after the period that contains the aware `instant`: the next period's start."""
    stamp = seconds_through(instant)
    return instant_at(next(start for start in _starts_around(stamp, period, zone_of(zone)) if start > stamp))


def next_period_start(instant: datetime, period: Period, zone: str | ZoneInfo | Zone) -> datetime:
    """The first period start strictly after the aware `instant`."""
    return period_end(instant, period, zone)


def previous_period_start(instant: datetime, period: Period, zone: str | ZoneInfo | Zone) -> datetime:
    """The last period start strictly before the aware `instant`."""
    stamp = seconds_until(instant)
    return instant_at(_last(start for start in _starts_around(stamp, period, zone_of(zone)) if start < stamp))


def _last(starts: Iterator[int]) -> int:
    *_, last = starts
    return last


def _starts_around(stamp: int, period: Period, zone: Zone) -> Iterator[int]:
    """The starts of the five periods around `stamp`, ascending: two before, two after, whatever a gap swallows."""
    day = zone.wall_at(stamp) // DAY
    for steps in range(-2, 3):
        yield zone.occurrences_of(_first_day(day, period, steps) * DAY, "first")[0]


def _first_day(day: int, period: Period, steps: int) -> int:
    """The first day of the period `steps` after the one that holds `day`, both counted from 1970-01-01."""
    match period:
        case "day":
            return day + steps
        case "week":
            return day - (day + 3) % 7 + 7 * steps  # 1970-01-01 was a Thursday
        case "month":
            held = date.fromordinal(day + FIRST_DAY)
            months = held.year * 12 + held.month - 1 + steps
            return date(months // 12, months % 12 + 1, 1).toordinal() - FIRST_DAY
