"""What an explanation is: what became of one occurrence, by which rule, and what the record holds about it.

Rules: plain data; everything in it is recorded, but for what lies in the future or was never an occurrence, which is
asked of the calendar and says so; a sentence about a rule names that rule as section 6 of the specification has it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec

from duly.journal.entries import (
    Definition,
    Entry,
    ErrorInfo,
    ExternalRunRecorded,
    OncePerRule,
    RunAdmittedManually,
    SkipReason,
)
from duly.projections.runs import Run, RunState

Became: TypeAlias = Literal[
    "admitted",
    "skipped",
    "superseded",
    "held",
    "waiting",
    "covered",
    "kept",
    "projected",
    "ended",
    "none",
    "unknown",
    "unaccounted",
]
"""What became of an occurrence: the dispositions; `covered` by an administrative entry; `kept` as decided where the
record holds too many decisions ahead to keep them apart; `projected` where it lies ahead; `ended` where its schedule
had ended before; `none` where it is no occurrence; `unknown` where this machine cannot tell; `unaccounted` where the
record has a hole."""


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of a schedule: which entry made it, when, who asked for it and why."""

    revision: int
    sequence: int
    at: datetime
    actor: str
    note: str
    definition: Definition


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A run, as far as an explanation needs it."""

    run_id: int
    schedule_id: str | None
    scheduled_at: datetime | None
    state: RunState
    admitted_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    error: ErrorInfo | None


class SlotTaken(msgspec.Struct, frozen=True, kw_only=True):
    """A task slot that a run held, from its start until it ended or was interrupted; None: it still did."""

    run_id: int
    schedule_id: str | None
    since: datetime
    until: datetime | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that names the occurrence, or the run it became."""

    sequence: int
    entry: Entry


class Voided(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that held once: the entry `by`, a step back of the clock, made it void."""

    disposition: Became
    reason: str | None
    sequence: int
    by: int
    at: datetime


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one occurrence, and why. All instants are UTC.

    `rule` is the rule in words; `sequence`, `decided_at` (the clock reading) and `lateness` are those of the entry that
    decided, None where none did; `allowance` is the lateness allowance in force, None where a whole period is allowed.
    `now` is the reading that it was judged by.
    """

    schedule_id: str
    scheduled_at: datetime
    occurrence_id: str
    disposition: Became
    rule: str
    now: datetime
    reason: SkipReason | str | None = None
    detail: str = ""
    sequence: int | None = None
    decided_at: datetime | None = None
    lateness: timedelta | None = None
    allowance: timedelta | None = None
    revision: Revision | None = None
    run: RunFacts | None = None
    blocking_run: RunFacts | None = None
    superseded_by: datetime | None = None
    spent_by: int | None = None
    summarised: bool = False
    after: datetime | None = None
    through: datetime | None = None
    at_least: int | None = None
    task_slots: int | None = None
    slots: tuple[SlotTaken, ...] = ()
    steps: tuple[Step, ...] = ()
    voided: tuple[Voided, ...] = ()
    nearest: tuple[datetime, ...] = ()
    remark: str = ""


def facts_of(run: Run) -> RunFacts:
    """What an explanation tells of a run."""
    return RunFacts(
        run_id=run.id,
        schedule_id=run.schedule_id,
        scheduled_at=run.scheduled_at,
        state=run.state,
        admitted_at=run.admitted_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        error=run.error,
    )


_SKIPPED: Final[dict[str, str]] = {
    "misfire": "misfire=skip: it was decided later than its allowance, so it does not run",
    "capacity": "misfire=skip: no task slot became free within its allowance, so it does not run",
    "backlog": "misfire=skip: it lay in a backlog too long to be decided one by one, and was skipped with it",
    "preflight": "the host refused it before it became a run",
    "paused": "the schedule was paused while it was held or due, and a pause excludes what lies in it",
    "edited": "the schedule was edited while it was held: an edit takes what the revision before had not run",
    "deleted": "the schedule was deleted while it was held",
    "disabled": "the schedule was disabled while it was held or due",
    "operator": "an operator moved the watermark past it",
}
_COVERED: Final[dict[str, str]] = {
    "ScheduleCreated": "it lies before the schedule began, and nothing is run after the fact",
    "ScheduleEdited": "an edit begins at its own instant: what was due and undecided then does not run",
    "SchedulePaused": "it was due and undecided when the schedule was paused, and a pause excludes it",
    "ScheduleUnpaused": "it lies in a pause, and what lies in a pause does not run, by decision",
    "ScheduleDisabled": "it was due and undecided when the schedule was disabled",
    "ScheduleEnabled": "the schedule was disabled then, and what lies in that time does not run, by decision",
    "ScheduleDeleted": "it was due and undecided when the schedule was deleted",
    "ScheduleRebaselined": "an operator moved the watermark past it",
}


def rule_of_skip(
    reason: str, definition: Definition | None = None, blocking_run: int | None = None, spender: str = ""
) -> str:
    """The rule that skipped an occurrence, in words."""
    if reason == "overlap":
        limit = (definition.max_active_runs if definition is not None else None) or 1
        overlap = definition.overlap if definition is not None else "skip"
        runs = "one active run" if limit == 1 else f"{limit} active runs"
        return f"overlap={overlap}: the schedule may have {runs}, and run {blocking_run} was active"
    if reason == "spent":
        return f"it runs once per period, and its period was spent by {spender}"
    return _SKIPPED[reason]


def rule_of_cover(kind: str) -> str:
    """Why what an administrative entry of this kind covers does not run, in words."""
    return _COVERED[kind]


def spender_in_words(sequence: int | None, entry: Entry | None) -> str:
    """What spent a period, in words."""
    match entry:
        case RunAdmittedManually():
            return f"manual run {sequence}{f' of {entry.actor}' if entry.actor else ''}"
        case ExternalRunRecorded():
            by = f", recorded by {entry.actor}" if entry.actor else ""
            return f"an external run stamped {entry.started_at:%Y-%m-%dT%H:%M:%SZ} (entry {sequence}{by})"
        case _:
            return f"entry {sequence}"


def allowance_of(definition: Definition) -> timedelta | None:
    """The lateness allowance of a definition; None where the whole calendar period is allowed."""
    return None if isinstance(definition.trigger, OncePerRule) else definition.lateness
