"""Rosters: schedules that have something to decide, and the order in which they take their turns.

Rules: adding and removing cost O(1); the order is made when it is read, from what was in order before. An interrupt
between two bytecodes may leave an id in the order twice, or one that is no member any more; neither is ever shown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from heapq import merge
from itertools import islice, takewhile
from typing import Final

_STALE: Final = 64
"""How many removed ids an order keeps at least, before it is made anew."""


class Roster:
    """Schedule ids, each with an instant of its own."""

    __slots__ = ("_fresh", "_listed", "_ordered", "instants")

    def __init__(self, instants: Iterable[tuple[str, datetime]] = ()) -> None:
        self.instants: dict[str, datetime] = dict(instants)
        self._ordered: list[str] = []
        self._listed: set[str] = set(self.instants)
        self._fresh: list[str] = list(self.instants)

    def __len__(self) -> int:
        return len(self.instants)

    def __contains__(self, schedule_id: str) -> bool:
        return schedule_id in self.instants

    def add(self, schedule_id: str, instant: datetime) -> None:
        """Takes the schedule in, or gives it another instant."""
        if schedule_id not in self._listed:
            self._fresh.append(schedule_id)
            self._listed.add(schedule_id)
        self.instants[schedule_id] = instant

    def drop(self, schedule_id: str) -> None:
        """Takes the schedule out."""
        self.instants.pop(schedule_id, None)

    def members(self, after: str | None = None, through: str | None = None) -> Iterator[str]:
        """The ids in order, those behind `after`, up to and including `through`.

        What is taken out on the way is not shown; what is added is shown next time.
        """
        self._settle()
        ordered = self._ordered
        first = 0 if after is None else bisect_right(ordered, after)
        last = len(ordered) if through is None else bisect_right(ordered, through)
        before: str | None = None
        for schedule_id in islice(ordered, first, last):
            if schedule_id != before and schedule_id in self.instants:
                before = schedule_id
                yield schedule_id

    def _settle(self) -> None:
        if len(self._ordered) > 2 * len(self.instants) + _STALE:
            self._ordered, self._fresh = sorted(self.instants), []
            self._listed = set(self.instants)
        elif self._fresh:
            self._ordered = sorted(self._ordered + self._fresh)
            self._fresh = []


class Ordering:
    """The ids of a dict that only grows, in order: what is new is put in its place when the order is asked for."""

    __slots__ = ("_ordered",)

    def __init__(self) -> None:
        self._ordered: list[str] = []

    def behind(self, after: str | None, ids: Mapping[str, object]) -> Iterator[str]:
        """The ids in order, those behind `after`."""
        known = len(self._ordered)
        if known < len(ids):
            # Two runs, one of them in order already: sorting merges them.
            self._ordered = sorted([*self._ordered, *sorted(islice(ids, known, None))])
        first = 0 if after is None else bisect_right(self._ordered, after)
        return islice(self._ordered, first, None)


def turn_order(
    due: Roster, queued: Roster, newest_admission: str | None, slot_is_free: Callable[[], bool]
) -> Iterator[str]:
    """The schedules by id, beginning after the one that was admitted last; of those that are queued for a slot only as
    many as there are slots for, as it is known when their turn comes."""
    if newest_admission is None:
        yield from _merged(due, queued, None, None, slot_is_free)
        return
    yield from _merged(due, queued, newest_admission, None, slot_is_free)
    yield from _merged(due, queued, None, newest_admission, slot_is_free)


def _merged(
    due: Roster, queued: Roster, after: str | None, through: str | None, slot_is_free: Callable[[], bool]
) -> Iterator[str]:
    if not queued:
        return due.members(after, through)
    served = takewhile(lambda _: slot_is_free(), queued.members(after, through))
    return merge(due.members(after, through), (one for one in served if one not in due))
