"""The agenda: which schedules have something due, found through an index and never by looking at all of them.

Rules: it is a cache of what the state and the calendar say, rebuilt at open and never recorded; a schedule is looked
at again after an entry about it and after each of its turns; what it calls due is decided by admission alone, so that
a stale line in it costs one look and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final

from duly.journal.entries import OncePerRule, OneShotRule, TriggerRule
from duly.projections.schedules import ScheduleState
from duly.scheduler.decisions.occurrences import next_instant
from duly.scheduler.decisions.plans import Waiting
from duly.scheduler.errors import TriggerError
from duly.scheduler.roster import Roster
from duly.scheduler.sources import OccurrenceSource

_STALE: Final = 64
"""How many ids that moved on a queue keeps at least where they were, before it is built anew."""

_ALIKE: Final = 7
"""How many instants that schedules are decided up to are known for each rule, beside the newest."""


class Queue:
    """Schedules by instant, with lazy removal. Those of one instant share a place in the heap, so that a change costs
    O(log of the different instants), and so does the next.

    An interrupt between two steps may leave a place in the heap without a line, and an id in a line that it no longer
    holds for; never an instant without its line, nor a line without its place.
    """

    def __init__(self) -> None:
        self._heap: list[datetime] = []
        self._lines: dict[datetime, list[str]] = {}
        self._ordered: set[datetime] = set()
        self._standing = 0
        self._instants: dict[str, datetime] = {}

    def __len__(self) -> int:
        return len(self._instants)

    def __contains__(self, schedule_id: str) -> bool:
        return schedule_id in self._instants

    def place(self, schedule_id: str, instant: datetime) -> None:
        """Sets the schedule's instant, in place of the one it had."""
        if self._instants.get(schedule_id) == instant:
            return
        if self._standing > 2 * len(self._instants) + _STALE:
            self._rebuild()
        line = self._lines.get(instant)
        if line is None:
            heappush(self._heap, instant)
            self._lines[instant] = [schedule_id]
        else:
            if self._ordered:
                self._ordered.discard(instant)
            line.append(schedule_id)
        self._standing += 1
        self._instants[schedule_id] = instant

    def fill(self, instants: Mapping[str, datetime]) -> None:
        """Sets the instants of many schedules at once."""
        lines = self._lines
        for schedule_id, instant in instants.items():
            line = lines.get(instant)
            if line is None:
                heappush(self._heap, instant)
                lines[instant] = [schedule_id]
            else:
                line.append(schedule_id)
        self._ordered.clear()
        self._standing += len(instants)
        self._instants.update(instants)

    def _rebuild(self) -> None:
        lines: dict[datetime, list[str]] = {}
        for schedule_id, instant in self._instants.items():
            lines.setdefault(instant, []).append(schedule_id)
        heap = list(lines)
        heapify(heap)
        self._ordered = set()
        self._lines = lines
        self._heap = heap
        self._standing = len(self._instants)

    def drop(self, schedule_id: str) -> None:
        """Takes the schedule out."""
        self._instants.pop(schedule_id, None)

    def first(self) -> datetime | None:
        """The earliest instant, or None."""
        while self._heap:
            instant = self._heap[0]
            line = self._lines.get(instant)
            while line:
                if self._instants.get(line[-1]) == instant:
                    return instant
                line.pop()
                self._standing -= 1
            self._forget_first()
        return None

    def _forget_first(self) -> None:
        instant = self._heap[0]
        self._ordered.discard(instant)
        self._standing -= len(self._lines.pop(instant, ()))
        heappop(self._heap)

    def is_due(self, now: datetime) -> bool:
        """Whether `due` may have something."""
        return bool(self._heap) and self._heap[0] <= now

    def due(self, now: datetime) -> Iterator[tuple[str, datetime]]:
        """The schedules with an instant ≤ `now`, the earliest first; each is taken out when the next one is asked for,
        so that whoever is interrupted may find it here again, and never loses it."""
        instants = self._instants
        while self._heap and self._heap[0] <= now:
            instant = self._heap[0]
            for schedule_id in self._lines.get(instant, ()):
                if instants.get(schedule_id) == instant:
                    yield schedule_id, instant
                    instants.pop(schedule_id, None)
            self._forget_first()

    def soonest(self, limit: int, wanted: Callable[[str, datetime], bool]) -> list[tuple[datetime, str]]:
        """The `limit` earliest that are wanted, in order, without changing anything: looks at O(limit + others)."""
        found: list[tuple[datetime, str]] = []
        heap = self._heap
        frontier: list[tuple[datetime, int]] = [(heap[0], 0)] if heap else []
        before: datetime | None = None
        while frontier and len(found) < limit:
            instant, at = heappop(frontier)
            if instant != before:
                found += islice(self._wanted_at(instant, wanted), limit - len(found))
                before = instant
            for child in (2 * at + 1, 2 * at + 2):
                if child < len(heap):
                    heappush(frontier, (heap[child], child))
        return found

    def _wanted_at(self, instant: datetime, wanted: Callable[[str, datetime], bool]) -> Iterator[tuple[datetime, str]]:
        line = self._lines.get(instant, [])
        if instant not in self._ordered:
            line.sort()
            self._ordered.add(instant)
        before: str | None = None
        for schedule_id in line:
            if schedule_id != before and self._instants.get(schedule_id) == instant:
                before = schedule_id
                if wanted(schedule_id, instant):
                    yield instant, schedule_id


class Agenda:
    """What is due and what comes next, for all schedules of one state.

    A schedule stands in `coming` with its next undecided instant; in `due` once that has come, until it is decided; in
    `queued` while it holds a candidate, or waits for a slot, so that nothing but a slot, a newer instant or its
    deadline can change anything about it.
    """

    def __init__(self, source_of: Callable[[TriggerRule], OccurrenceSource]) -> None:
        self._source_of = source_of
        self._coming = Queue()
        self._deadlines = Queue()
        self._due = Roster()
        self._quiet: set[str] = set()
        self._queued = Roster()
        self._now: datetime | None = None

    @property
    def queued(self) -> Roster:
        """What waits for a slot alone: held candidates, and what `wait` was told of."""
        return self._queued

    def fill(self, schedules: Iterable[ScheduleState]) -> None:
        """Looks at all schedules of a state, for the first time."""
        instants: dict[str, datetime] = {}
        known: dict[int, list[tuple[datetime, datetime | None]]] = {}
        for schedule in schedules:
            if schedule.candidate is not None:
                self.refresh(schedule)
            elif _is_looked_at(schedule):
                instant = self._next_of(schedule, known)
                if instant is not None:
                    instants[schedule.id] = instant
        self._coming.fill(instants)

    def _next_of(
        self, schedule: ScheduleState, known: dict[int, list[tuple[datetime, datetime | None]]]
    ) -> datetime | None:
        """As `_next`, from what is known of others: many go by one rule and are decided up to one instant, and then
        what comes next is the same."""
        if schedule.kept and schedule.kept[-1][1] > schedule.consumed_through:  # something is decided ahead
            return self._next(schedule)
        through = schedule.consumed_through
        alike = known.setdefault(id(schedule.definition.trigger), [])
        # Compared, and not looked up: to hash an instant takes longer.
        for like, instant in alike:
            if like == through:
                return instant
        instant = self._next(schedule)
        alike[_ALIKE:] = [(through, instant)]
        return instant

    def refresh(self, schedule: ScheduleState) -> None:
        """Looks at one schedule anew, after an entry about it."""
        self.changed(schedule, self._next(schedule) if _is_looked_at(schedule) else None)

    def changed(self, schedule: ScheduleState, instant: datetime | None) -> None:
        """Takes note of an entry about a schedule whose next undecided instant is known."""
        self.place(schedule, instant)
        if schedule.candidate is not None and schedule.live and isinstance(schedule.definition.trigger, OncePerRule):
            # The entry may have spent the candidate's period, and that is decided without a slot.
            self._quiet.add(schedule.id)
            self._due.add(schedule.id, schedule.candidate)

    def place(self, schedule: ScheduleState, instant: datetime | None) -> None:
        """Takes note of the next undecided instant of a schedule that a poll has looked at."""
        schedule_id = schedule.id
        if schedule.candidate is not None and schedule.live:
            self._queued.add(schedule_id, schedule.candidate)
        else:
            self._queued.drop(schedule_id)
        if instant is None or not _is_looked_at(schedule):
            self._coming.drop(schedule_id)
        else:
            self._coming.place(schedule_id, instant)
        self._due.drop(schedule_id)
        if self._quiet:
            self._quiet.discard(schedule_id)
        self._deadlines.drop(schedule_id)

    def due(self, now: datetime) -> Roster:
        """The schedules that may have something to decide at `now`, with a slot or without."""
        if self._now is None or now < self._now:
            self._give_back(now)
        self._now = now
        if self._coming.is_due(now):
            for schedule_id, instant in self._coming.due(now):
                self._due.add(schedule_id, instant)
                self._quiet.discard(schedule_id)
        if self._deadlines.is_due(now):
            for schedule_id, deadline in self._deadlines.due(now):
                instant = self._due.instants.get(schedule_id) or self._queued.instants.get(schedule_id, deadline)
                self._due.add(schedule_id, instant)
                self._quiet.discard(schedule_id)
        return self._due

    def _give_back(self, now: datetime) -> None:
        """What was due, held or waiting before the clock stepped back may be still to come; the rest of what is queued
        is looked at again, since what comes next has changed."""
        for schedule_id, instant in self._queued.instants.items():
            if schedule_id not in self._due:
                self._quiet.add(schedule_id)
                self._due.add(schedule_id, instant)
        for schedule_id, instant in list(self._due.instants.items()):
            if instant > now:
                self._coming.place(schedule_id, instant)
                self._due.drop(schedule_id)
                self._quiet.discard(schedule_id)

    def wait(self, waiting: Iterable[Waiting], *, looking: bool) -> None:
        """Notes until when schedules wait that a poll has left undecided. With `looking`, each poll looks at them
        again, as the host's answers may change."""
        for one in waiting:
            self._deadlines.place(one.schedule_id, one.until)
            if looking:
                self._quiet.add(one.schedule_id)
                self._due.add(one.schedule_id, one.instant)
            else:
                self._queued.add(one.schedule_id, one.instant)
                self._due.drop(one.schedule_id)
                self._quiet.discard(one.schedule_id)
            self._coming.drop(one.schedule_id)

    def next_due(self) -> datetime | None:
        """When there will be something to decide, or None if never; in the past if something is left undecided."""
        first, deadline = self._coming.first(), self._deadlines.first()
        if deadline is not None and (first is None or deadline < first):
            first = deadline
        if len(self._due) > len(self._quiet):
            left = min(instant for one, instant in self._due.instants.items() if one not in self._quiet)
            return left if first is None or left < first else first
        return first

    def coming_after(self, now: datetime) -> datetime | None:
        """When something will come due after `now`, or cease to wait; what is left undecided is passed over."""
        self.due(now)
        first = (self._coming.first(), self._deadlines.first())
        return min((instant for instant in first if instant is not None and instant > now), default=None)

    def soonest(self, limit: int, wanted: Callable[[str, datetime], bool]) -> list[tuple[datetime, str]]:
        """The next `limit` wanted schedules by their next instant; what is due comes first."""
        undecided = {**self._queued.instants, **self._due.instants}
        due = sorted((instant, one) for one, instant in undecided.items() if wanted(one, instant))
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
