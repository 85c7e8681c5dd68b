"""The coming occurrences of a trigger, with what the zone's clocks do to them.

Rules kept here: pure; the instants are the trigger's own, and the remarks come from the zone's list of changes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from duly.scheduler.instants import in_range
from duly.scheduler.triggers import OccurrenceSource
from duly.scheduler.zones import Zone


@dataclass(frozen=True, slots=True)
class Upcoming:
    """One coming occurrence: the instant, what the zone's wall shows then, and what is special about it."""

    scheduled_at: datetime
    local: datetime
    remark: str


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of a zone's offset: the wall went from `before` to `after` at the instant `at`."""

    at: datetime
    before: datetime
    after: datetime
    name: str

    @property
    def forward(self) -> bool:
        return self.after > self.before

    def __str__(self) -> str:
        way = "forward" if self.forward else "back"
        return f"clocks go {way} {self.before:%H:%M} -> {self.after:%H:%M} ({self.name})"


def upcoming(source: OccurrenceSource, zone: Zone, after: datetime, count: int) -> Iterator[Upcoming]:
    """The next `count` occurrences strictly after `after`; fewer if there are no more in the years that duly knows."""
    previous, instant = after, source.next_after(after)
    while instant is not None and count > 0 and in_range(instant):
        yield Upcoming(instant, zone.local(instant), describe_change(zone, previous, instant))
        previous, instant, count = instant, source.next_after(instant), count - 1


def goes_on(source: OccurrenceSource, after: datetime) -> bool:
    """Whether occurrences follow after `after`, be it beyond the years that duly knows."""
    return source.next_after(after) is not None


def clock_changes(zone: Zone, after: datetime, through: datetime) -> list[ClockChange]:
    """The changes of the zone's offset in (`after`, `through`]."""
    first = bisect_right(zone.starts, after.timestamp())
    last = bisect_right(zone.starts, through.timestamp())
    return [_change(zone, position) for position in range(max(first, 1), last)]


def describe_change(zone: Zone, previous: datetime, instant: datetime) -> str:
    """What is special about `instant`: a repeated wall time, or clocks that changed since the `previous` one."""
    local = zone.local(instant)
    changes = clock_changes(zone, previous, instant)
    remarks = [str(change) for change in changes]
    if changes and changes[-1].at == instant and changes[-1].forward:
        remarks.append("skipped times fire now")
    if is_repeated(zone, instant):
        remarks.append(f"{'second' if local.fold else 'first'} {local:%H:%M} of two")
    return "; ".join(remarks)


def is_repeated(zone: Zone, instant: datetime) -> bool:
    """Whether the wall shows this time twice."""
    local = zone.local(instant)
    other = local.replace(fold=1 - local.fold)
    # Of two datetimes of one zone Python compares the wall times alone, so both are taken to UTC.
    return other.astimezone(UTC) != instant and other.utcoffset() != local.utcoffset() and _exists(zone, other)


def _exists(zone: Zone, local: datetime) -> bool:
    there_and_back = zone.local(local.astimezone(UTC))
    return there_and_back.replace(tzinfo=None) == local.replace(tzinfo=None)


def _change(zone: Zone, position: int) -> ClockChange:
    at = datetime.fromtimestamp(zone.starts[position], UTC)
    wall = at.replace(tzinfo=None)
    return ClockChange(
        at,
        wall + timedelta(seconds=zone.offsets[position - 1]),
        wall + timedelta(seconds=zone.offsets[position]),
        zone.local(at).tzname() or "",
    )
