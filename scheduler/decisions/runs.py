"""Runs: starting, results, resuming, giving up.

Rules (the specification's section 7): a start is recorded before the host executes, all or none; a result names the
ACTIVE attempt or is refused; what is refused is not recorded; `duly.projections.runs.TRANSITIONS` says what is legal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec

from duly.journal.entries import (
    AttemptCleared,
    Entry,
    ErrorInfo,
    Json,
    ResumeMarked,
    RunAbandoned,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunNoted,
    RunStarted,
)
from duly.projections import Run, State
from duly.projections.runs import TRANSITIONS, RunEntry, advanced
from duly.scheduler.errors import Blocked, NoTaskSlot, StaleAttempt, UnknownRun, WrongRunState
from duly.scheduler.wording import describe_value, error_text


class Completed(msgspec.Struct, frozen=True):
    """A run that succeeded. `attempt_id` is needed where an attempt is ACTIVE."""

    run_id: int
    attempt_id: int | None = msgspec.field(default=None)
    result: Json = None


class Failed(msgspec.Struct, frozen=True):
    """A run that failed; `error` is an exception or words."""

    run_id: int
    attempt_id: int | None = None
    error: ErrorInfo | BaseException | str = ""


class Interrupted(msgspec.Struct, frozen=True):
    """A run that stopped with a checkpoint, from which it can be resumed."""

    run_id: int
    attempt_id: int | None = None
    checkpoint: Json = None


class StillRunning(msgspec.Struct, frozen=True):
    """Evidence that a run's work goes on: it outlived its process, or only the journal was reopened."""

    run_id: int


Result: TypeAlias = Completed | Failed | Interrupted

_LAST_WORD: Final = "The journal holds what is recorded of it: see `recorded`"


def error_info(error: ErrorInfo | BaseException | str) -> ErrorInfo:
    """An error in the form that is recorded."""
    if isinstance(error, ErrorInfo):
        return error
    if isinstance(error, BaseException):
        return ErrorInfo(type(error).__qualname__, error_text(error))
    return ErrorInfo("", error)


def decide_start(state: State, run_ids: Sequence[int], task_slots: int, now: datetime) -> tuple[Entry, ...]:
    """The starts of these runs, all or none. Raises UnknownRun, WrongRunState, Blocked, NoTaskSlot."""
    runs = [run_of(state, run_id) for run_id in dict.fromkeys(run_ids)]
    for run in runs:
        require_legal(run, RunStarted, "started")
        require_unblocked(state, run.schedule_id)
    free = task_slots - len(state.started)
    if len(runs) > free:
        raise NoTaskSlot(
            f"{len(runs)} runs were to start, and {max(free, 0)} of {task_slots} task slots are free",
            hint="Start fewer, or wait for a run to end; what is not started is offered again",
        )
    return tuple(RunStarted(at=now, run_id=run.id, schedule_id=run.schedule_id) for run in runs)


def decide_results(state: State, results: Iterable[Result], now: datetime) -> tuple[Entry, ...]:
    """The entries of these results, all or none; an attempt's end goes with its result.

    Raises UnknownRun, WrongRunState, StaleAttempt.
    """
    entries: list[Entry] = []
    runs: dict[int, Run] = {}
    for result in results:
        run = runs.get(result.run_id) or run_of(state, result.run_id)
        entry = _result_entry(run, result, now)
        require_legal(run, type(entry), "given a result")
        if result.attempt_id != run.attempt_id:
            raise StaleAttempt(
                f"the result of run {run.id} names {_attempt(result.attempt_id)}, and "
                f"{_attempt(run.attempt_id)} is ACTIVE",
                run_id=run.id,
                given=result.attempt_id,
                active=run.attempt_id,
                hint="Nothing was recorded; only the attempt that is ACTIVE may end the run",
            )
        entries.append(entry)
        after = advanced(run, 0, entry)
        for ending in cleared(run, now):
            entries.append(ending)
            after = advanced(after, 0, ending)
        runs[run.id] = after
    return tuple(entries)


def decide_resume(state: State, run_id: int, task_slots: int, now: datetime) -> tuple[Entry, ...]:
    """The resume-mark of a new attempt. Raises UnknownRun, WrongRunState, Blocked, NoTaskSlot."""
    run = run_of(state, run_id)
    require_legal(run, ResumeMarked, "resumed")
    if run.attempt_id is not None:
        raise _wrong_state(run, "resumed", f"its attempt {run.attempt_id} is not cleared")
    require_unblocked(state, run.schedule_id)
    if len(state.started) >= task_slots:
        raise NoTaskSlot(
            f"run {run_id} cannot be resumed: all {task_slots} task slots are taken",
            run_id=run_id,
            hint="Wait for a run to end; it stays resumable",
        )
    return (ResumeMarked(at=now, run_id=run_id, schedule_id=run.schedule_id),)


def decide_abandon(state: State, run_id: int, *, actor: str, note: str, now: datetime) -> tuple[Entry, ...]:
    """The end of a run by an operator's word. Raises UnknownRun, WrongRunState."""
    run = run_of(state, run_id)
    require_legal(run, RunAbandoned, "abandoned")
    abandoned = RunAbandoned(
        at=now,
        run_id=run_id,
        schedule_id=run.schedule_id,
        attempt_id=run.attempt_id,
        cause="operator",
        actor=actor,
        note=note,
    )
    return (abandoned, *cleared(run, now))


def decide_note(state: State, run_id: int, data: Json, now: datetime) -> tuple[Entry, ...]:
    """JSON of the host about a run. Raises UnknownRun, WrongRunState."""
    run = run_of(state, run_id)
    require_legal(run, RunNoted, "noted upon")
    return (RunNoted(at=now, run_id=run_id, schedule_id=run.schedule_id, data=data),)


def run_of(state: State, run_id: int) -> Run:
    """The run. Raises UnknownRun."""
    run = state.known_run(run_id) if type(run_id) is int else None
    if run is None:
        raise unknown_run(run_id)
    return run


def unknown_run(run_id: int) -> UnknownRun:
    """That there is no such run."""
    return UnknownRun(f"there is no run {describe_value(run_id)}", run_id=run_id, hint="See runs() for what there is")


def require_legal(run: Run, kind: type[RunEntry], verb: str) -> None:
    """Raises WrongRunState where the table of transitions does not know the kind in this run's state."""
    if kind not in TRANSITIONS[run.state] or (run.ended and kind is not AttemptCleared):
        raise _wrong_state(run, verb, f"it is {run.state}")


def require_unblocked(state: State, schedule_id: str | None) -> None:
    """Raises Blocked if the schedule is."""
    block = state.blocking(schedule_id)
    if block is None or schedule_id is None:
        return
    raise Blocked(
        f"schedule {schedule_id!r} is blocked since {block.sequence}: {block.reason}",
        schedule_id=schedule_id,
        reason=block.reason,
        sequence=block.sequence,
        hint="Mend the cause, then unblock() it",
    )


def _result_entry(run: Run, result: Result, now: datetime) -> RunCompleted | RunFailed | RunInterrupted:
    common: dict[str, Any] = {
        "at": now,
        "run_id": run.id,
        "schedule_id": run.schedule_id,
        "attempt_id": result.attempt_id,
    }
    match result:
        case Completed():
            return RunCompleted(result=result.result, **common)
        case Failed():
            return RunFailed(error=error_info(result.error), **common)
        case Interrupted():
            return RunInterrupted(checkpoint=result.checkpoint, **common)


def cleared(run: Run, now: datetime) -> tuple[AttemptCleared, ...]:
    """The end of the run's ACTIVE attempt, or nothing."""
    if run.attempt_id is None:
        return ()
    return (AttemptCleared(at=now, run_id=run.id, schedule_id=run.schedule_id, attempt_id=run.attempt_id),)


def _attempt(attempt_id: int | None) -> str:
    return "no attempt" if attempt_id is None else f"attempt {attempt_id}"


def has_ended(run: Run) -> WrongRunState:
    """That the run has ended, with what is recorded of its end."""
    return _wrong_state(run, "changed any more", f"it is {run.state}")


def _wrong_state(run: Run, verb: str, why: str) -> WrongRunState:
    recorded = {"state": run.state, "result": run.result, "error": run.error, "ended_at": run.ended_at}
    return WrongRunState(
        f"run {run.id} cannot be {verb}: {why}; recorded: {_described(run)}",
        run_id=run.id,
        state=run.state,
        recorded=recorded,
        hint=_LAST_WORD,
    )


def _described(run: Run) -> str:
    if run.error is not None:
        return " ".join(("failed with", *filter(None, (run.error.type, run.error.message))))
    if run.state == "completed":
        return f"completed at {run.ended_at} with {run.result!r}"
    return run.state
