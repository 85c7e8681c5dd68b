"""Lives: what runs do by themselves in a world that nobody records, each step some time after the one before.

Rules: a start and a resume are decided by the shipped decision functions; one that finds no task slot, or a blocked
schedule, waits and is tried again when something has changed; a step that contradicts what became of the run ends the
life. Nothing here decides an occurrence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import TypeAlias

import msgspec

from duly.journal.entries import AttemptCleared, Entry, ResumeMarked, RunCompleted, RunNoted, RunStarted
from duly.projections import Run, State
from duly.projections.runs import RunEntry, contradiction
from duly.scheduler.decisions.runs import decide_resume, decide_start
from duly.scheduler.errors import Blocked, NoTaskSlot, SchedulerError
from duly.scheduler.recorded import Step

Write: TypeAlias = Callable[[Sequence[Entry]], object]
"""Takes what a life records, as one batch."""


class Lives:
    """The steps that are still to come, by run."""

    def __init__(self, state: State, task_slots: Callable[[], int], write: Write) -> None:
        self._state = state
        self._task_slots = task_slots
        self._write = write
        self._steps: dict[int, list[Step]] = {}
        self._due: list[tuple[datetime, int, int]] = []
        self._turns: dict[int, int] = {}
        self._stalled: dict[int, None] = {}
        self._count = 0

    def __contains__(self, run_id: int) -> bool:
        return run_id in self._steps

    @property
    def running(self) -> tuple[int, ...]:
        """The runs that have steps to come."""
        return tuple(self._steps)

    def begin(self, run_id: int, steps: Sequence[Step], at: datetime) -> None:
        """Lets the run take these steps from `at` on, in place of those that it had."""
        self._stalled.pop(run_id, None)
        if not steps:
            self.end(run_id)
            return
        self._steps[run_id] = list(reversed(steps))
        self._place(run_id, at)

    def end(self, run_id: int) -> None:
        """Takes all steps from the run."""
        self._steps.pop(run_id, None)
        self._stalled.pop(run_id, None)
        self._turns.pop(run_id, None)

    def next_at(self) -> datetime | None:
        """When the next step is due, or None."""
        while self._due:
            at, turn, run_id = self._due[0]
            if self._turns.get(run_id) == turn:
                return at
            heappop(self._due)
        return None

    def advance(self, now: datetime) -> None:
        """Takes every step that is due at `now`, in the order of their instants; then what found no slot before."""
        at = self.next_at()
        if at is None or at > now:
            return
        while at is not None and at <= now:
            _, _, run_id = heappop(self._due)
            self._take(run_id, now)
            at = self.next_at()
        self.retry(now)

    def retry(self, now: datetime) -> None:
        """Tries again what found no slot or a block."""
        for run_id in tuple(self._stalled):
            self._take(run_id, now)

    def shift(self, by: timedelta) -> None:
        """Moves all that is to come, after the clock was stepped by so much."""
        self._due = [(at + by, turn, run_id) for at, turn, run_id in self._due]
        heapify(self._due)

    def _place(self, run_id: int, at: datetime) -> None:
        self._count += 1
        self._turns[run_id] = self._count
        heappush(self._due, (at + self._steps[run_id][-1].gap, self._count, run_id))

    def _take(self, run_id: int, now: datetime) -> None:
        run = self._state.runs_open.get(run_id)
        if run is None:
            self.end(run_id)
            return
        self._turns.pop(run_id, None)
        try:
            entries = step_taken(self._state, run, self._steps[run_id][-1].entry, self._task_slots(), now)
        except (NoTaskSlot, Blocked):
            self._stalled[run_id] = None
            return
        except SchedulerError:
            entries = ()
        self._stalled.pop(run_id, None)
        if not entries:
            self.end(run_id)
            return
        self._steps[run_id].pop()
        self._write(entries)
        if self._steps.get(run_id):
            self._place(run_id, now)
        else:
            self.end(run_id)


def step_taken(state: State, run: Run, entry: RunEntry, task_slots: int, now: datetime) -> tuple[Entry, ...]:
    """The step as this world records it, or nothing where the run is past it.

    Raises NoTaskSlot, Blocked, WrongRunState.
    """
    if isinstance(entry, RunStarted):
        return decide_start(state, [run.id], task_slots, now)
    if isinstance(entry, ResumeMarked):
        return decide_resume(state, run.id, task_slots, now)
    taken = _of_run(run, entry, now)
    return () if contradiction(run, taken) else (taken,)


def _of_run(run: Run, entry: RunEntry, now: datetime) -> RunEntry:
    """The entry as it is about this world's run and its ACTIVE attempt."""
    if isinstance(entry, RunNoted):
        return msgspec.structs.replace(entry, at=now, run_id=run.id)
    if isinstance(entry, AttemptCleared):
        return msgspec.structs.replace(entry, at=now, run_id=run.id, attempt_id=run.attempt_id or 0)
    if isinstance(entry, RunStarted | ResumeMarked):
        return msgspec.structs.replace(entry, at=now, run_id=run.id)
    return msgspec.structs.replace(entry, at=now, run_id=run.id, attempt_id=run.attempt_id)


def imagined(run: Run, duration: timedelta, *, started: bool) -> list[Step]:
    """The life of a run that nobody saw: it starts at once, and completes after the duration."""
    start = Step(timedelta(), RunStarted(at=run.admitted_at, run_id=run.id, schedule_id=run.schedule_id))
    done = Step(duration, RunCompleted(at=run.admitted_at, run_id=run.id, schedule_id=run.schedule_id))
    return [done] if started else [start, done]
