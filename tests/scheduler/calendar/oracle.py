"""An independent calendar: what a cron expression means, found by looking at every UTC minute.

Rules kept here: no croniter and no code of the calendar is used; the zone is read by its own way; a stretch of time is
walked minute by minute, so that nothing is ever skipped; speed does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import NamedTuple
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
NAMES = {
    name: number
    for names, first in (("jan feb mar apr may jun jul aug sep oct nov dec", 1), ("sun mon tue wed thu fri sat", 0))
    for number, name in enumerate(names.split(), first)
}
BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


class Minute(NamedTuple):
    """One UTC minute, the wall minute that it bears, and the wall minutes that were skipped just before it."""

    instant: datetime
    wall: datetime
    second_pass: bool
    skipped: tuple[datetime, ...]


@cache
def zone(name: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def minutes(zone_name: str, start: datetime, end: datetime) -> list[Minute]:
    """Every UTC minute from `start` to `end`, both included."""
    found: list[Minute] = []
    instant = start - MINUTE
    before = naive(instant, zone_name)
    while instant < end:
        instant += MINUTE
        local = instant.astimezone(zone(zone_name))
        wall = local.replace(tzinfo=None, fold=0)
        skipped: list[datetime] = []
        while before + MINUTE < wall:
            before += MINUTE
            skipped.append(before)
        before = wall
        found.append(Minute(instant, wall, local.fold == 1, tuple(skipped)))
    return found


def naive(instant: datetime, zone_name: str) -> datetime:
    return instant.astimezone(zone(zone_name)).replace(tzinfo=None, fold=0)


class Matcher:
    """A cron expression by its meaning: each field a set, days OR-ed when both are restricted."""

    def __init__(self, expression: str) -> None:
        fields = expression.lower().split()
        self.sets = [self._set(text, index) for index, text in enumerate(fields)]
        self.day_free, self.weekday_free = fields[2] in {"*", "*/1"}, fields[4] in {"*", "*/1"}
        self.all_hours = self.sets[1] == set(range(24))

    def matches(self, wall: datetime) -> bool:
        if wall.minute not in self.sets[0] or wall.hour not in self.sets[1] or wall.month not in self.sets[3]:
            return False
        day, weekday = wall.day in self.sets[2], wall.isoweekday() % 7 in self.sets[4]
        if self.day_free or self.weekday_free:
            return (day or self.day_free) and (weekday or self.weekday_free)
        return day or weekday

    def _set(self, text: str, index: int) -> set[int]:
        low, high = BOUNDS[index]
        found: set[int] = set()
        for element in text.split(","):
            match = re.fullmatch(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?", element)
            assert match is not None, element
            first = low if match[1] == "*" else self._number(match[1])
            if match[1] == "*" or (match[2] is None and match[3] is not None):
                last = high
            else:
                last = self._number(match[2] or match[1])
            value = first
            distance = (last - first) % (high - low + 1) if last < first else last - first
            while value - first <= distance:
                found.add((value - low) % (high - low + 1) + low)
                value += int(match[3] or 1)
        return found

    def _number(self, text: str) -> int:
        return NAMES[text] if text in NAMES else int(text)


def occurrences(expression: str, walk: list[Minute], fold: str = "both") -> list[datetime]:
    """Every instant of the walk at which the expression fires, ascending."""
    matcher = Matcher(expression)
    return list(_firing(matcher, walk, fold == "first"))


def _firing(matcher: Matcher, walk: list[Minute], first_only: bool) -> Iterator[datetime]:
    for minute in walk:
        on_time = matcher.matches(minute.wall) and not (first_only and minute.second_pass)
        made_up = not matcher.all_hours and any(map(matcher.matches, minute.skipped))
        if on_time or made_up:
            yield minute.instant


def transitions(zone_name: str, first_year: int, last_year: int) -> list[datetime]:
    """Every minute of these years at which the zone's offset from UTC changes, found by halving days."""
    found: list[datetime] = []
    day = timedelta(days=1)
    earlier = datetime(first_year, 1, 1, tzinfo=UTC)
    while earlier.year <= last_year:
        low, high = earlier, earlier + day
        earlier = high
        old = low.astimezone(zone(zone_name)).utcoffset()
        if high.astimezone(zone(zone_name)).utcoffset() == old:
            continue
        while high - low > MINUTE:
            middle = low + (high - low) // 2 // MINUTE * MINUTE
            if middle.astimezone(zone(zone_name)).utcoffset() == old:
                low = middle
            else:
                high = middle
        found.append(high)
    return found
