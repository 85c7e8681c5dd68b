"""The record, read once before a what-if replays it: what each run did, and what the host answered.

Rules: facts only; a run is known by its occurrence, since its id is a sequence of this record alone; what an operator
or the end of a process did to a run is no step of its own life.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import msgspec

from duly.journal.entries import (
    AttemptCleared,
    ClockRegressed,
    Entry,
    EntryLost,
    JournalOpened,
    Json,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    ResumeMarked,
    RunAbandoned,
    RunAdmittedManually,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunNoted,
    RunStarted,
    ScheduleCreated,
    ScheduleEdited,
    SourceRule,
)
from duly.scheduler.engine import is_poll

Line: TypeAlias = tuple[int, Sequence[Entry]]
"""A batch: its first sequence, and its entries."""
Key: TypeAlias = tuple[str, datetime] | int
"""What a run is known by in every world: its occurrence, or the recorded sequence of a run by hand."""
Lived: TypeAlias = RunStarted | RunNoted | RunCompleted | RunFailed | RunInterrupted | ResumeMarked | AttemptCleared
"""What a run does by itself, or its host with it."""
LIVED: Final = (RunStarted, RunNoted, RunCompleted, RunFailed, RunInterrupted, ResumeMarked, AttemptCleared)


class Step(msgspec.Struct, frozen=True):
    """One thing that a run did, `gap` after the one before; `sequence` is that of the recorded entry, 0 for none."""

    gap: timedelta
    entry: Lived
    sequence: int = 0


class RecordedRun(msgspec.Struct):
    """A run as it is recorded. `ended` is whether it came to an end of its own."""

    key: Key
    schedule_id: str | None
    admitted_at: datetime
    last_at: datetime
    started_at: datetime | None = None
    steps: list[Step] = msgspec.field(default_factory=list[Step])
    ended: bool = False


class Record:
    """What a record says, by run and by occurrence."""

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self.schedule_ids: list[str] = []
        self.runs: dict[Key, RecordedRun] = {}
        self.keys: dict[int, Key] = {}
        self.refusals: dict[Key, str] = {}
        self.pins: dict[Key, tuple[str | None, Json]] = {}
        self.durations: dict[str, list[timedelta]] = {}
        self.sources: dict[str, str] = {}
        """The host's own triggers by name, each with a schedule that has it."""
        self.polled: set[int] = set()
        """The sequences of the openings after which there is a poll on record: the owner was no mere visitor."""
        self.last_sequence = 0
        self._opening = 0
        for first, entries in lines:
            self._read(first, entries)

    def _read(self, first: int, entries: Sequence[Entry]) -> None:
        for sequence, entry in enumerate(entries, first):
            if isinstance(entry, JournalOpened):
                self._opening = sequence
            self._note(sequence, entry)
        self.last_sequence = first + len(entries) - 1
        if is_poll(entries) or any(isinstance(entry, ClockRegressed) for entry in entries):
            self.polled.add(self._opening)

    def _note(self, sequence: int, entry: Entry) -> None:
        match entry:
            case ScheduleCreated() | ScheduleEdited():
                if isinstance(entry, ScheduleCreated):
                    self.schedule_ids.append(entry.schedule_id)
                if isinstance(entry.definition.trigger, SourceRule):
                    self.sources.setdefault(entry.definition.trigger.source, entry.schedule_id)
            case OccurrenceAdmitted():
                self._begin(sequence, (entry.schedule_id, entry.scheduled_at), entry)
            case RunAdmittedManually():
                self._begin(sequence, sequence, entry)
            case OccurrenceSkipped(reason="preflight"):
                self.refusals[entry.schedule_id, entry.scheduled_at] = entry.detail
            case _ if isinstance(entry, LIVED):
                self._step(sequence, entry)
            case _:
                pass

    def _begin(self, sequence: int, key: Key, entry: OccurrenceAdmitted | RunAdmittedManually) -> None:
        self.keys[sequence] = key
        self.runs[key] = RecordedRun(key, entry.schedule_id, entry.at, entry.at)
        if entry.target_revision is not None or entry.environment is not None:
            self.pins[key] = entry.target_revision, entry.environment

    def _step(self, sequence: int, entry: Lived) -> None:
        run = self.run(entry.run_id)
        if run is None:
            return
        run.steps.append(Step(max(entry.at - run.last_at, timedelta()), entry, sequence))
        run.last_at = entry.at
        if isinstance(entry, RunStarted):
            run.started_at = entry.at
        if isinstance(entry, RunCompleted | RunFailed):
            run.ended = True
            resumed = any(isinstance(step.entry, RunInterrupted) for step in run.steps)
            if run.started_at is not None and not resumed and entry.at >= run.started_at and run.schedule_id:
                self.durations.setdefault(run.schedule_id, []).append(entry.at - run.started_at)

    def run(self, run_id: int) -> RecordedRun | None:
        """The run of this recorded id, or None."""
        key = self.keys.get(run_id)
        return None if key is None else self.runs.get(key)


def reading_of(entries: Sequence[Entry]) -> datetime | None:
    """The clock reading that a batch was decided by; None if only salvage has one."""
    return next((entry.at for entry in entries if not isinstance(entry, EntryLost)), None)


def is_end_of_process(entry: Entry) -> bool:
    """Whether the entry ends a run because its process had ended."""
    return isinstance(entry, RunAbandoned) and entry.cause != "operator"
