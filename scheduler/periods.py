"""The calendar periods of a zone: days, ISO weeks (from Monday) and months, each known by its first instant.

Rules kept here:
- a period begins at local midnight of its first day: where a gap skips that midnight, at the first instant after the
  gap; where a fold repeats it, at the first of the two;
- the periods of a zone divide time without overlap: an instant belongs to the latest period that has begun. (Where
  clocks were set back over midnight, the evening that came twice belongs to the new day.)
- a period that a gap swallows whole does not exist;
- everything is pure: instants in, UTC instants out. Near each other they share one list of starts, which is remembered.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import date, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from duly.journal.entries import Period
from duly.scheduler.instants import instant_at, seconds_through, seconds_until
from duly.scheduler.zones import DAY, Zone, zone_of

REMEMBERED = 4_096  # days, by zone and period
FIRST_DAY = date(1970, 1, 1).toordinal()


def period_start(instant: datetime, period: Period, zone: str | ZoneInfo | Zone) -> datetime:
    """The first instant of the period that contains the aware `instant`."""
    stamp = seconds_through(instant)
    starts = _starts_around(stamp, period, zone_of(zone))
    return instant_at(starts[bisect_right(starts, stamp) - 1])


def period_end(instant: datetime, period: Period, zone: str | ZoneInfo | Zone) -> datetime:
    """The first instant after the period that contains the aware `instant`: the next period's start."""
    stamp = seconds_through(instant)
    starts = _starts_around(stamp, period, zone_of(zone))
    return instant_at(starts[bisect_right(starts, stamp)])


def next_period_start(instant: datetime, period: Period, zone: str | ZoneInfo | Zone) -> datetime:
    """The first period start strictly after the aware `instant`."""
    return period_end(instant, period, zone)


def previous_period_start(instant: datetime, period: Period, zone: str | ZoneInfo | Zone) -> datetime:
    """The last period start strictly before the aware `instant`."""
    stamp = seconds_until(instant)
    starts = _starts_around(stamp, period, zone_of(zone))
    return instant_at(starts[bisect_left(starts, stamp) - 1])


def _starts_around(stamp: int, period: Period, zone: Zone) -> tuple[int, ...]:
    return _starts_near(zone.wall_at(stamp) // DAY, period, zone)


@lru_cache(maxsize=REMEMBERED)
def _starts_near(day: int, period: Period, zone: Zone) -> tuple[int, ...]:
    """The starts of the five periods around the local `day`, ascending: two before, two after, so that what a gap
    swallows, or a fold sets back, leaves one on each side."""
    return tuple(zone.occurrences_of(_first_day(day, period, steps) * DAY, "first")[0] for steps in range(-2, 3))


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
