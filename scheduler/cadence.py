"""The arithmetic of Every: the k-th occurrence is counted from the anchor, never from the one before it.

Rules kept here:
- minutes and hours are elapsed time; days, weeks, months and years are dates on the wall, at one time of day;
- a month that lacks the anchor's day is clamped to its last one, and the next month is counted from the anchor again,
  so that nothing drifts; nothing lies before the anchor, whose own instant counts;
- gaps and folds follow the two rules of the zone, as cron does.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import MAXYEAR, date, datetime
from itertools import count as count_from

import msgspec

from duly.journal.entries import EveryRule, Fold
from duly.scheduler.zones import DAY, Zone, zone_of

SECONDS_IN = {"minute": 60, "hour": 3_600}
DAYS_IN = {"day": 1, "week": 7}
MONTHS_IN = {"month": 1, "year": 12}
FIRST_DAY = date(1970, 1, 1).toordinal()
LAST_DAY = date.max.toordinal()


def cadence_of(rule: EveryRule) -> Elapsed | OnTheWall:
    """The arithmetic of a rule whose fields were checked."""
    if rule.unit in SECONDS_IN:
        anchor = datetime.fromisoformat(rule.anchor)
        return Elapsed(int(anchor.timestamp()), rule.count * SECONDS_IN[rule.unit])
    hours, minutes = (rule.at or "00:00").split(":")
    return OnTheWall(
        date.fromisoformat(rule.anchor),
        rule.count * (MONTHS_IN.get(rule.unit) or DAYS_IN[rule.unit]),
        rule.unit in MONTHS_IN,
        int(hours) * 3_600 + int(minutes) * 60,
        zone_of(rule.zone or "UTC"),
        rule.fold,
    )


class Elapsed(msgspec.Struct, frozen=True):
    """Every `step` seconds from the instant `anchor`."""

    anchor: int
    step: int

    def after(self, stamp: int) -> int | None:
        """The first occurrence strictly after the Unix time `stamp`."""
        return self.anchor + max(0, (stamp - self.anchor) // self.step + 1) * self.step

    def before(self, stamp: int) -> int | None:
        """The last occurrence strictly before the Unix time `stamp`, or None before the anchor."""
        steps = (stamp - self.anchor - 1) // self.step
        return self.anchor + steps * self.step if steps >= 0 else None


class OnTheWall(msgspec.Struct, frozen=True):
    """Every `step` days or months from the date `anchor`, `at` seconds after the midnight that the wall shows."""

    anchor: date
    step: int
    months: bool
    at: int
    zone: Zone
    fold: Fold

    def after(self, stamp: int) -> int | None:
        """The first occurrence strictly after the Unix time `stamp`."""
        for k in count_from(max(0, self._steps_to(stamp) - 2)):
            instants = self._occurrences(k)
            if instants is None:
                return None
            for instant in instants:
                if instant > stamp:
                    return instant
        return None

    def before(self, stamp: int) -> int | None:
        """The last occurrence strictly before the Unix time `stamp`, or None before the anchor."""
        for k in self._steps_down_from(stamp):
            for instant in reversed(self._occurrences(k) or ()):
                if instant < stamp:
                    return instant
        return None

    def _steps_down_from(self, stamp: int) -> Iterator[int]:
        return iter(range(self._steps_to(stamp) + 2, -1, -1))

    def _steps_to(self, stamp: int) -> int:
        """How many steps lie between the anchor and the local date of `stamp`; two more either way are out of the reach
        of gaps and folds."""
        today = date.fromordinal(self.zone.wall_at(stamp) // DAY + FIRST_DAY)
        if self.months:
            return ((today.year - self.anchor.year) * 12 + today.month - self.anchor.month) // self.step
        return (today.toordinal() - self.anchor.toordinal()) // self.step

    def _occurrences(self, k: int) -> tuple[int, ...] | None:
        """The instants of the k-th date, or None where the calendar ends."""
        day = self._day(k)
        return None if day is None else self.zone.occurrences_of((day - FIRST_DAY) * DAY + self.at, self.fold)

    def _day(self, k: int) -> int | None:
        if not self.months:
            day = self.anchor.toordinal() + k * self.step
            return day if day <= LAST_DAY else None
        years, month = divmod(self.anchor.year * 12 + self.anchor.month - 1 + k * self.step, 12)
        if years > MAXYEAR:
            return None
        return date(years, month + 1, min(self.anchor.day, monthrange(years, month + 1)[1])).toordinal()
