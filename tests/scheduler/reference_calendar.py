"""The calendar of generated histories, as data: for a few triggers all instants of many years, worked out without any
of the code that they judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import overload
from zoneinfo import ZoneInfo

FIRST, LAST = date(2016, 1, 1), date(2046, 1, 1)


class Regular(Sequence[datetime]):
    """Every `step` from `start`, up to LAST: a list that need not be written down."""

    def __init__(self, start: datetime, step: timedelta) -> None:
        self._start, self._step = start, step
        self._count = (datetime(LAST.year, LAST.month, LAST.day, tzinfo=UTC) - start) // step

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> datetime: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[datetime]: ...
    def __getitem__(self, index: int | slice) -> datetime | Sequence[datetime]:
        if isinstance(index, slice):
            return [self[position] for position in range(self._count)[index]]
        if not 0 <= index < self._count:
            raise IndexError(index)
        return self._start + self._step * index


@dataclass(frozen=True)
class Cadence:
    """A trigger as a timeline writes it, and what the model makes of it."""

    options: tuple[tuple[str, str], ...]
    instants: Sequence[datetime]
    kind: str = "recurring"


def one_shot(at: datetime) -> Cadence:
    return Cadence((("once", at.isoformat().replace("+00:00", "Z")),), (at,), "one_shot")


def _days(zone: str, *, weekday: int | None = None, day: int | None = None) -> tuple[datetime, ...]:
    """Local midnights, of one weekday or day of the month alone if asked for; the zones here have no gap there."""
    found: list[datetime] = []
    for ordinal in range(FIRST.toordinal(), LAST.toordinal()):
        local = date.fromordinal(ordinal)
        if weekday in (None, local.weekday()) and day in (None, local.day):
            midnight = datetime(local.year, local.month, local.day, tzinfo=ZoneInfo(zone))
            found.append(midnight.astimezone(UTC))
    return tuple(found)


def _cron(expression: str, offset: timedelta, step: timedelta) -> Cadence:
    return Cadence((("cron", expression),), Regular(datetime(FIRST.year, 1, 1, tzinfo=UTC) + offset, step))


def _once_per(period: str, zone: str, instants: tuple[datetime, ...]) -> Cadence:
    return Cadence((("once_per", period), ("zone", zone)), instants, "once_per")


CADENCES = (
    _cron("* * * * *", timedelta(), timedelta(minutes=1)),
    _cron("*/15 * * * *", timedelta(), timedelta(minutes=15)),
    _cron("7 * * * *", timedelta(minutes=7), timedelta(hours=1)),
    _cron("30 6 * * *", timedelta(hours=6, minutes=30), timedelta(days=1)),
    _once_per("day", "UTC", _days("UTC")),
    _once_per("day", "Europe/Berlin", _days("Europe/Berlin")),
    _once_per("week", "UTC", _days("UTC", weekday=0)),
    _once_per("month", "UTC", _days("UTC", day=1)),
)
