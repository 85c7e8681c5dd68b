"""Recovery: the decisions that a crash left open, and only these.

Rules (the specification's section 8): nothing is executed and nothing offered; a result that somebody can prove is
recorded; work that still runs is left alone; what is ambiguous is failed openly, with its reason, and never retried;
doing it again decides nothing. Nothing here reads a clock or asks anybody: the evidence was gathered before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from duly.journal.entries import Entry, RunAbandoned, ScheduleBlocked
from duly.projections import Run, State
from duly.projections.schedules import may_block
from duly.scheduler.decisions.runs import Completed, Failed, Interrupted, Result, StillRunning, cleared, decide_results

AT_OPENING: Final = "found at opening"
"""The note of a block that recovery decided: it tells it from one that a poll decided."""
EFFECTS: Final = "its owner ended while it was under way; external effects may have happened; it is never retried"
AMBIGUOUS: Final = "its attempt's outcome cannot be told; external effects may have happened; it is never retried"


class Unreadable(msgspec.Struct, frozen=True):
    """Evidence that could not be had: the host raised, in these words."""

    detail: str


Evidence: TypeAlias = Result | StillRunning | Unreadable | None


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What was gathered before deciding: evidence by run, strangers (run, schedule) that only the host knows, the
    schedules that this machine cannot evaluate, with the reason, and what could not be had, for people."""

    evidence: Mapping[int, Evidence] = {}
    strangers: tuple[tuple[int, str], ...] = ()
    unevaluable: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()


def open_runs(state: State) -> list[Run]:
    """The runs that evidence is asked about: started ones, also those with an ACTIVE attempt."""
    return [state.runs_open[run_id] for run_id in state.started]


def decide_recovery(state: State, findings: Findings, now: datetime) -> tuple[Entry, ...]:
    """The entries that reconcile the state with what the host knows."""
    entries: list[Entry] = []
    blocked: dict[str, ScheduleBlocked] = {}
    for run_id in sorted(state.runs_open):
        run = state.runs_open[run_id]
        evidence = findings.evidence.get(run_id)
        if isinstance(evidence, Unreadable):
            _block(blocked, run.schedule_id, f"evidence of run {run_id} could not be had: {evidence.detail}", now)
            continue
        entries.extend(_reconciled(state, run, evidence, now))
    for run_id, schedule_id in findings.strangers:
        _block(blocked, schedule_id, f"the host knows run {run_id}, which this journal never admitted", now)
    entries.extend(one for key, one in sorted(blocked.items()) if _blockable(state, key))
    for schedule_id, reason in sorted(findings.unevaluable.items()):
        if schedule_id not in blocked and state.blocking(schedule_id) is None and _blockable(state, schedule_id):
            entries.append(
                ScheduleBlocked(at=now, schedule_id=schedule_id, cause="trigger", reason=reason, note=AT_OPENING)
            )
    return tuple(entries)


def _reconciled(state: State, run: Run, evidence: Evidence, now: datetime) -> tuple[Entry, ...]:
    if run.state != "started":
        return cleared(run, now)
    if isinstance(evidence, StillRunning):
        return ()
    if isinstance(evidence, Completed | Failed | Interrupted) and evidence.attempt_id == run.attempt_id:
        return decide_results(state, (evidence,), now)
    abandoned = RunAbandoned(
        at=now,
        run_id=run.id,
        schedule_id=run.schedule_id,
        attempt_id=run.attempt_id,
        cause="crash" if run.attempt_id is None else "ambiguous",
        detail=EFFECTS if run.attempt_id is None else AMBIGUOUS,
    )
    return (abandoned, *cleared(run, now))


def _block(blocked: dict[str, ScheduleBlocked], schedule_id: str | None, reason: str, now: datetime) -> None:
    if schedule_id is not None:
        block = ScheduleBlocked(at=now, schedule_id=schedule_id, cause="evidence", reason=reason, note=AT_OPENING)
        blocked.setdefault(schedule_id, block)


def _blockable(state: State, schedule_id: str) -> bool:
    schedule = state.by_id.get(schedule_id)
    return schedule is not None and may_block(schedule.block) and not schedule.deleted
