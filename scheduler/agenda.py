"""The agenda: which schedules have something due, found through an index and never by looking at all of them.

Rules: it is a cache of what the state and the calendar say, rebuilt at open and never recorded; a schedule is looked
at again after an entry about it and after each of its turns; what it calls due is decided by admission alone, so that
a stale line in it costs one look and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import Final

from duly.journal.entries import OncePerRule, OneShotRule, TriggerRule
from duly.projections.schedules import ScheduleState
from duly.scheduler.decisions.occurrences import next_instant
from duly.scheduler.decisions.plans import Waiting
from duly.scheduler.errors import TriggerError
from duly.scheduler.sources import OccurrenceSource

_STALE: Final = 64
"""How many lines that were replaced a queue keeps at least, before it is built anew."""


class Queue:
    """Schedules by instant, with lazy removal: O(log n) for each change, O(1) for the next."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, str]] = []
        self._instants: dict[str, datetime] = {}

    def __len__(self) -> int:
        return len(self._instants)

    def __contains__(self, schedule_id: str) -> bool:
        return schedule_id in self._instants

    def place(self, schedule_id: str, instant: datetime) -> None:
        """Sets the schedule's instant, in place of the one it had."""
        if self._instants.get(schedule_id) == instant:
            return
        # The heap first: an interrupt may leave a line in it that does not hold, never an instant without its line.
        if len(self._heap) > 2 * len(self._instants) + _STALE:
            heap = [(one, key) for key, one in self._instants.items()]
            heap.append((instant, schedule_id))
            heapify(heap)
            self._heap = heap
        else:
            heappush(self._heap, (instant, schedule_id))
        self._instants[schedule_id] = instant

    def drop(self, schedule_id: str) -> None:
        """Takes the schedule out."""
        self._instants.pop(schedule_id, None)

    def first(self) -> datetime | None:
        """The earliest instant, or None."""
        heap = self._heap
        while heap:
            instant, schedule_id = heap[0]
            if self._instants.get(schedule_id) == instant:
                return instant
            heappop(heap)
        return None

    def move(self, now: datetime, due: dict[str, datetime]) -> None:
        """Moves what is due at `now` over to `due`. An interrupt may leave a line in both, never in neither."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            instant, schedule_id = heap[0]
            if self._instants.get(schedule_id) == instant:
                due[schedule_id] = instant
                del self._instants[schedule_id]
            heappop(heap)

    def soonest(self, limit: int, wanted: Callable[[str, datetime], bool]) -> list[tuple[datetime, str]]:
        """The `limit` earliest that are wanted, in order, without changing anything: looks at O(limit + others)."""
        found: list[tuple[datetime, str]] = []
        heap = self._heap
        frontier: list[tuple[tuple[datetime, str], int]] = [(heap[0], 0)] if heap else []
        seen: set[str] = set()
        while frontier and len(found) < limit:
            (instant, schedule_id), at = heappop(frontier)
            if self._instants.get(schedule_id) == instant and schedule_id not in seen:
                seen.add(schedule_id)
                if wanted(schedule_id, instant):
                    found.append((instant, schedule_id))
            for child in (2 * at + 1, 2 * at + 2):
                if child < len(heap):
                    heappush(frontier, (heap[child], child))
        return found


class Agenda:
    """What is due and what comes next, for all schedules of one state."""

    def __init__(self, source_of: Callable[[TriggerRule], OccurrenceSource]) -> None:
        self._source_of = source_of
        self._coming = Queue()
        self._waiting = Queue()
        self._due: dict[str, datetime] = {}
        self._held: dict[str, datetime] = {}
        self._held_periods: dict[str, datetime] = {}
        self._early: datetime | None = None

    def refresh(self, schedule: ScheduleState) -> None:
        """Looks at one schedule anew, after an entry about it."""
        self.place(schedule, self._next(schedule) if _is_looked_at(schedule) else None)

    def place(self, schedule: ScheduleState, instant: datetime | None) -> None:
        """Takes note of one schedule whose next undecided instant is known."""
        schedule_id = schedule.id
        self._due.pop(schedule_id, None)
        self._waiting.drop(schedule_id)
        self._held.pop(schedule_id, None)
        self._held_periods.pop(schedule_id, None)
        if schedule.candidate is not None and schedule.live:
            self._held[schedule_id] = schedule.candidate
            if isinstance(schedule.definition.trigger, OncePerRule):
                self._held_periods[schedule_id] = schedule.candidate
        if instant is None or not _is_looked_at(schedule):
            self._coming.drop(schedule_id)
        else:
            self._coming.place(schedule_id, instant)

    def due(self, now: datetime, *, slots_free: bool) -> tuple[str, ...]:
        """The schedules that have an undecided instant ≤ now, or a candidate that could be decided."""
        self._coming.move(now, self._due)
        self._give_back(now)
        due = set(self._due)
        self._early = None
        # Without a slot only a candidate whose period may be spent can be decided.
        for one, candidate in (self._held if slots_free else self._held_periods).items():
            if candidate <= now:
                due.add(one)
            else:
                self._early = candidate if self._early is None else min(candidate, self._early)
        return tuple(due)

    def _give_back(self, now: datetime) -> None:
        """What was due before the clock stepped back is still to come."""
        for schedule_id, instant in list(self._due.items()):
            if instant > now:
                self._coming.place(schedule_id, instant)
                self._waiting.drop(schedule_id)
                del self._due[schedule_id]

    def wait(self, waiting: Iterable[Waiting]) -> None:
        """Notes until when schedules wait that have an instant due and no slot."""
        for one in waiting:
            self._due[one.schedule_id] = one.instant
            self._coming.drop(one.schedule_id)
            self._waiting.place(one.schedule_id, one.until)

    def next_due(self) -> datetime | None:
        """When there will be something to decide, or None if never; in the past if something is left undecided."""
        first = (self._coming.first(), self._waiting.first(), self._early)
        instants = [instant for instant in first if instant is not None]
        instants.extend(instant for one, instant in self._due.items() if one not in self._waiting)
        return min(instants, default=None)

    def coming_after(self, now: datetime) -> datetime | None:
        """When something will come due after `now`, or cease to wait; what is left undecided is passed over."""
        self._coming.move(now, self._due)
        first = (self._coming.first(), self._waiting.first(), self._early)
        return min((instant for instant in first if instant is not None and instant > now), default=None)

    def soonest(self, limit: int, wanted: Callable[[str, datetime], bool]) -> list[tuple[datetime, str]]:
        """The next `limit` wanted schedules by their next instant; what is due comes first."""
        due = sorted((instant, one) for one, instant in self._due.items() if wanted(one, instant))
        return (due + self._coming.soonest(limit, wanted))[:limit]

    def _next(self, schedule: ScheduleState) -> datetime | None:
        try:
            source = self._source_of(schedule.definition.trigger)
            return next_instant(source, schedule.consumed_through, schedule.kept)
        except TriggerError:
            # Due at once: the next poll meets the same error and blocks the schedule, which is a decision.
            return schedule.consumed_through


def _is_looked_at(schedule: ScheduleState) -> bool:
    """Whether polls have anything to decide: of what is paused or disabled, only a one-shot whose time passes."""
    if schedule.deleted or schedule.block is not None or schedule.exhausted:
        return False
    return not (schedule.paused or schedule.disabled) or isinstance(schedule.definition.trigger, OneShotRule)
