"""Surveying: a record, folded as far as a report of it needs, before it is known what the report shows.

Rules: one pass, in which only rows inside the window are kept; which decisions hold is taken from the histories, what
contradicts them from the one fold. What may grow without end (acts, moments, runs by hand) is kept as its newest.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec

from duly.journal.entries import (
    ClockRegressed,
    Entry,
    EntryLost,
    JournalClosed,
    JournalOpened,
    RunAdmittedManually,
    ScheduleCreated,
)
from duly.projections.history import History, Row
from duly.projections.ranges import FIRST_INSTANT, LAST_INSTANT
from duly.projections.runs import RunEntry
from duly.projections.schedules import ScheduleState
from duly.projections.state import State
from duly.scheduler.audits import is_change
from duly.scheduler.explanations import Step, facts_of
from duly.scheduler.readings import Readings
from duly.scheduler.reports import LEAST_BESIDE, MOST_BESIDE, MOST_MOMENTS, Downtime, HandRun, names_a_moment
from duly.scheduler.sources import SourceFactory
from duly.scheduler.triggers import trigger_of
from duly.scheduler.waiting import waiting_rows

_MOST_HERE: Final = 200
"""How many acts, and how many runs by hand, are kept of one schedule."""


class Window:
    """The instants that a report is about; None is open."""

    def __init__(self, since: datetime | None, until: datetime | None) -> None:
        self.since = FIRST_INSTANT if since is None else since
        self.until = LAST_INSTANT if until is None else until
        self.narrowed = since is not None or until is not None

    def holds(self, instant: datetime) -> bool:
        return self.since <= instant <= self.until


class Subject:
    """What is kept of one schedule, or of the runs by hand that belong to none."""

    def __init__(self, schedule_id: str, window: Window) -> None:
        self.id = schedule_id
        self.history = History(schedule_id)
        self.acts: deque[Step] = deque(maxlen=_MOST_HERE)
        self.act_count = 0
        self.by_hand: dict[int, HandRun] = {}
        self.by_hand_count = 0
        self._window = window

    @property
    def schedule(self) -> ScheduleState | None:
        return self.history.schedule

    def apply(self, sequence: int, entry: Entry) -> None:
        self.history.apply(sequence, entry)
        instant = getattr(entry, "scheduled_at", None)
        if instant is not None and not self._window.holds(instant):
            self.history.rows.pop(instant, None)
        if is_change(entry) and not isinstance(entry, RunAdmittedManually) and self._window.holds(entry.at):
            self.acts.append(Step(sequence=sequence, entry=entry))
            self.act_count += 1

    def rows(self, now: datetime, sources: Mapping[str, SourceFactory]) -> list[Row]:
        """What was decided one by one, and what waits, in the order of the instants."""
        rows = list(self.history.rows.values())
        if self.schedule is not None:
            waiting = waiting_rows(self.schedule, now, lambda rule: trigger_of(rule, sources))
            rows += [row for row in waiting if self._window.holds(row.scheduled_at)]
        return sorted(rows, key=lambda row: row.scheduled_at)

    def spans(self) -> Iterator[Row]:
        """What was decided or covered at once after the schedule began, and reaches into the window."""
        for span in self.history.spans:
            if span.after is not None and span.after < self._window.until and span.scheduled_at >= self._window.since:
                yield span


class Survey:
    """The fold of a record as far as a report needs it; `wanted` are the schedules, None for all."""

    def __init__(self, window: Window, wanted: Collection[str] | None) -> None:
        self.window = window
        self.state = State()
        self.last_at = FIRST_INSTANT
        self.ids: set[str] = set()
        self.subjects: dict[str, Subject] = {}
        self.moments: deque[Step] = deque(maxlen=MOST_MOMENTS)
        self.moment_counts: Counter[str] = Counter()
        self.downtimes: deque[Downtime] = deque(maxlen=MOST_MOMENTS)
        self.readings = Readings()
        self._wanted = wanted
        self._closed = True

    def apply(self, sequence: int, entry: Entry) -> None:
        """Folds one entry in."""
        self.state.apply(sequence, entry)
        if isinstance(entry, EntryLost):
            return
        self._note_ownership(sequence, entry)
        self.readings.apply(entry)
        if FIRST_INSTANT <= entry.at < LAST_INSTANT:
            self.last_at = entry.at
        if names_a_moment(entry) and self.window.holds(entry.at):
            self.moments.append(Step(sequence=sequence, entry=entry))
            self.moment_counts[type(entry).__name__] += 1
        if isinstance(entry, ScheduleCreated):
            self.ids.add(entry.schedule_id)
        for subject in self._concerned(entry):
            subject.apply(sequence, entry)
        if isinstance(entry, RunAdmittedManually | RunEntry):
            self._note_by_hand(sequence, entry)

    def unowned(self) -> Iterator[Downtime]:
        """The times in which nobody owned the journal."""
        return self.readings.unowned(self.downtimes)

    def _concerned(self, entry: Entry) -> Collection[Subject]:
        if isinstance(entry, ClockRegressed):
            return self.subjects.values()
        schedule_id: str | None = getattr(entry, "schedule_id", None)
        if schedule_id is None or (self._wanted is not None and schedule_id not in self._wanted):
            return ()
        found = self.subjects.get(schedule_id)
        if found is None and isinstance(entry, ScheduleCreated):
            found = self.subjects[schedule_id] = Subject(schedule_id, self.window)
        return () if found is None else (found,)

    def _note_by_hand(self, sequence: int, entry: RunAdmittedManually | RunEntry) -> None:
        key = entry.schedule_id or ""
        if isinstance(entry, RunAdmittedManually):
            if not self.window.holds(entry.at) or (self._wanted is not None and key not in self._wanted):
                return
            run = self.state.known_run(sequence)
            subject = self.subjects.get(key) or (self._of_none() if not key else None)
            if run is None or subject is None:
                return
            subject.by_hand_count += 1
            subject.by_hand[sequence] = HandRun(
                run=facts_of(run), target=entry.target, actor=entry.actor, note=entry.note
            )
            if len(subject.by_hand) > _MOST_HERE:
                del subject.by_hand[next(iter(subject.by_hand))]
            return
        subject = self.subjects.get(key)
        known = subject.by_hand.get(entry.run_id) if subject is not None else None
        run = self.state.known_run(entry.run_id)
        if subject is not None and known is not None and run is not None:
            subject.by_hand[entry.run_id] = msgspec.structs.replace(known, run=facts_of(run))

    def _of_none(self) -> Subject:
        return self.subjects.setdefault("", Subject("", self.window))

    def _note_ownership(self, sequence: int, entry: Entry) -> None:
        if isinstance(entry, JournalOpened) and FIRST_INSTANT < self.last_at < entry.at:
            down = Downtime(since=self.last_at, until=entry.at, sequence=sequence, clean=self._closed)
            if down.until >= self.window.since and down.since <= self.window.until:
                self.downtimes.append(down)
        self._closed = isinstance(entry, JournalClosed)


def most_beside(schedules: int) -> int:
    """How many spans, acts and runs by hand each of so many schedules may show."""
    return max(LEAST_BESIDE, min(_MOST_HERE, MOST_BESIDE // max(1, schedules)))
