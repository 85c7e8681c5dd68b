"""A run's life as data: its states, the entries that are legal in each, and where they lead.

Rules: `TRANSITIONS` is the one table of the life of a run; the fold, the checks of the API and the diagram in the docs
all come from it. An ACTIVE attempt is `attempt_id`; it is ACTIVE from its resume-mark to its attempt-clear.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal, TypeAlias, cast, get_args

import msgspec
from msgspec.structs import replace

from duly.journal.entries import (
    AbandonCause,
    AttemptCleared,
    Entry,
    ErrorInfo,
    Json,
    OccurrenceAdmitted,
    ResumeMarked,
    RunAbandoned,
    RunAdmittedManually,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunNoted,
    RunStarted,
)

RunState: TypeAlias = Literal["pending", "started", "interrupted", "completed", "failed", "abandoned"]
RunEntry: TypeAlias = (
    RunStarted | RunNoted | RunCompleted | RunFailed | RunInterrupted | ResumeMarked | AttemptCleared | RunAbandoned
)

RUN_ENTRIES: Final[frozenset[type[Entry]]] = frozenset(get_args(RunEntry))

ENDED: Final[frozenset[RunState]] = frozenset({"completed", "failed", "abandoned"})

TRANSITIONS: Final[dict[RunState, dict[type[RunEntry], RunState]]] = {
    "pending": {
        RunStarted: "started",
        RunFailed: "failed",
        RunAbandoned: "abandoned",
        RunNoted: "pending",
    },
    "started": {
        RunCompleted: "completed",
        RunFailed: "failed",
        RunInterrupted: "interrupted",
        RunAbandoned: "abandoned",
        RunNoted: "started",
    },
    "interrupted": {
        ResumeMarked: "started",
        AttemptCleared: "interrupted",
        RunAbandoned: "abandoned",
        RunNoted: "interrupted",
    },
    "completed": {AttemptCleared: "completed"},
    "failed": {AttemptCleared: "failed"},
    "abandoned": {AttemptCleared: "abandoned"},
}


# Not tracked by the garbage collector: it holds JSON at most, which has no cycles, and there are very many.
class Run(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An admitted occurrence's life, or a manual run's; `id` is the sequence of its admission.

    All instants are UTC. `attempt_id` is the ACTIVE attempt or None. `scheduled_at`, `occurrence_id` are None for a
    manual run; `schedule_id` is None for a manual run that belongs to no schedule.
    """

    id: int
    schedule_id: str | None
    scheduled_at: datetime | None
    state: RunState
    target: str
    target_revision: str | None
    environment: Json
    input: dict[str, Json]
    limits: dict[str, Json]
    admitted_at: datetime
    revision: int | None
    manual: bool = False
    attempt_id: int | None = None
    checkpoint: Json = None
    result: Json = None
    error: ErrorInfo | None = None
    abandoned: AbandonCause | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    notes: tuple[Json, ...] = ()

    @property
    def occurrence_id(self) -> str | None:
        """`<schedule_id>@<YYYY-MM-DDTHH:MM:SSZ>`, or None for a manual run."""
        if self.schedule_id is None or self.scheduled_at is None:
            return None
        return occurrence_id(self.schedule_id, self.scheduled_at)

    @property
    def ended(self) -> bool:
        """Whether the run has its last result."""
        return self.state in ENDED


def admitted_run(sequence: int, entry: OccurrenceAdmitted | RunAdmittedManually) -> Run:
    """The run that an admission begins; its id is the admission's sequence."""
    # Not `isinstance`: where it says no of a struct, it takes as long as all the rest of this.
    return Run(
        id=sequence,
        schedule_id=entry.schedule_id,
        scheduled_at=entry.scheduled_at if type(entry) is OccurrenceAdmitted else None,
        state="pending",
        target=entry.target,
        target_revision=entry.target_revision,
        environment=entry.environment,
        input=entry.input,
        limits=entry.limits,
        admitted_at=entry.at,
        revision=entry.revision,
        manual=type(entry) is RunAdmittedManually,
    )


def recorded_run(entries: Iterable[tuple[int, Entry]], run_id: int) -> Run | None:
    """The run as these entries have it, however long ago it ended, or None if none of them admits it."""
    run: Run | None = None
    for sequence, entry in entries:
        if sequence == run_id and isinstance(entry, OccurrenceAdmitted | RunAdmittedManually):
            run = admitted_run(sequence, entry)
        elif run is not None and isinstance(entry, RunEntry) and entry.run_id == run_id:
            run = run if contradiction(run, entry) else advanced(run, sequence, entry)
    return run


def occurrence_id(schedule_id: str, scheduled_at: datetime) -> str:
    """The derived name of an occurrence; `scheduled_at` is UTC."""
    return f"{schedule_id}@{scheduled_at:%Y-%m-%dT%H:%M:%SZ}"


def contradiction(run: Run, entry: RunEntry) -> str:
    """Why the entry cannot follow on the run's state, or "" where it can."""
    if entry.schedule_id != run.schedule_id:
        return f"run {run.id} belongs to {run.schedule_id}, not to {entry.schedule_id}"
    return objection(run.id, run.state, run.attempt_id, type(entry), getattr(entry, "attempt_id", None))


def objection(run_id: int, state: RunState, active: int | None, kind: type[RunEntry], given: int | None) -> str:
    """Why an entry of this kind, about the attempt `given`, cannot follow where `active` is the ACTIVE attempt."""
    if kind not in TRANSITIONS[state]:
        return f"run {run_id} is {state}"
    if kind is RunStarted or kind is RunNoted or kind is RunAbandoned:
        return ""
    if kind is ResumeMarked:
        return f"run {run_id} still has the ACTIVE attempt {active}" if active is not None else ""
    return "" if given == active else f"run {run_id} has the ACTIVE attempt {active}, not {given}"


def advanced(run: Run, sequence: int, entry: RunEntry) -> Run:  # noqa: PLR0911 - one return for each kind
    """The run after the entry, which must not contradict it."""
    state = TRANSITIONS[run.state][type(entry)]
    match entry:
        case RunStarted():
            return replace(run, state=state, started_at=entry.at)
        case RunCompleted():
            return replace(run, state=state, result=entry.result, ended_at=entry.at)
        case RunFailed():
            return replace(run, state=state, error=entry.error, ended_at=entry.at)
        case RunInterrupted():
            return replace(run, state=state, checkpoint=entry.checkpoint)
        case ResumeMarked():
            return replace(run, state=state, attempt_id=sequence)
        case AttemptCleared():
            return replace(run, attempt_id=None)
        case RunAbandoned():
            return replace(run, state=state, abandoned=entry.cause, ended_at=entry.at)
        case RunNoted():
            return replace(run, notes=_kept((*run.notes, entry.data)))


MOST_NOTES: Final = 16
"""So many notes of a run stay in memory, the newest, and as many of those before them that name a process; all of them
stay in the journal."""


def names_a_process(note: Json) -> bool:
    """Whether a note has what a process is known by, its id and its start. It is evidence of what still runs."""
    if not isinstance(note, dict):
        return False
    told = cast("dict[str, Json]", note)
    return type(told.get("process")) is int and isinstance(told.get("started"), str)


def _kept(notes: tuple[Json, ...]) -> tuple[Json, ...]:
    older = [note for note in notes[:-MOST_NOTES] if names_a_process(note)]
    return (*older[-MOST_NOTES:], *notes[-MOST_NOTES:])
