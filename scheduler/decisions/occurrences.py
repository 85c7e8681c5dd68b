"""Which instants of a schedule are due: enumeration from its watermark, over what is decided ahead.

Rules: strictly after the watermark; an instant inside a kept range is decided and is jumped over; never more than
`SCAN_CAP` instants are looked at, however long nobody looked.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from duly.projections.ranges import Ranges, range_holding
from duly.scheduler.sources import OccurrenceSource, checked_next_after, checked_prev_before

SCAN_CAP: Final = 100


class Due(msgspec.Struct, frozen=True):
    """The due instants of one schedule, ascending.

    If `capped`, `instants` holds only the newest, and `seen` counts those that were seen before it. `upcoming` is the
    first instant that is not due yet, or None if there is none.
    """

    instants: tuple[datetime, ...]
    upcoming: datetime | None
    capped: bool = False
    seen: int = 0


def next_instant(source: OccurrenceSource, after: datetime, kept: Ranges) -> datetime | None:
    """The first instant after `after` that is not decided ahead, or None. Raises TriggerError."""
    instant = checked_next_after(source, after)
    while instant is not None:
        holding = range_holding(kept, instant)
        if holding is None:
            return instant
        instant = checked_next_after(source, holding[1])
    return None


def newest_instant(source: OccurrenceSource, through: datetime, kept: Ranges) -> datetime | None:
    """The last instant up to and including `through` that is not decided ahead, or None. Raises TriggerError."""
    instant = checked_prev_before(source, through + datetime.resolution)
    while instant is not None:
        holding = range_holding(kept, instant)
        if holding is None:
            return instant
        instant = checked_prev_before(source, holding[0])
    return None


def due_instants(source: OccurrenceSource, consumed_through: datetime, now: datetime, kept: Ranges) -> Due:
    """The instants in (consumed_through, now] that are not decided ahead. Raises TriggerError."""
    instants: list[datetime] = []
    after = consumed_through
    while len(instants) < SCAN_CAP:
        instant = next_instant(source, after, kept)
        if instant is None or instant > now:
            return Due(tuple(instants), instant)
        instants.append(instant)
        after = instant
    newest = newest_instant(source, now, kept)
    if newest is None or newest < instants[-1]:
        newest = instants[-1]
    seen = len(instants) - (newest == instants[-1])
    return Due((newest,), next_instant(source, newest, kept), capped=True, seen=seen)
