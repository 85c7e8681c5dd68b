"""The projections as plain JSON-able data, for debugging and for the command line.

Rules: keys come in a fixed order; instants are ISO text in UTC; what is dumped is what the fold holds and nothing is
computed from a calendar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from duly.journal.errors import Error
from duly.projections.runs import Run
from duly.projections.schedules import Schedule
from duly.projections.state import State


class UnknownProjection(Error, LookupError):
    """There is no projection of that name."""


def dump(state: State, name: str | None = None) -> dict[str, Any]:
    """All projections by name, or the one named, as data that JSON can hold. Raises UnknownProjection."""
    if name is None:
        return {one: project(state) for one, project in PROJECTIONS.items()}
    if name not in PROJECTIONS:
        raise UnknownProjection(f"there is no projection {name!r}; there are: {', '.join(PROJECTIONS)}")
    return {name: PROJECTIONS[name](state)}


def _schedules(state: State) -> list[dict[str, Any]]:
    return [_schedule_row(one) for one in state.schedules(deleted=True)]


def _schedule_row(schedule: Schedule[Any]) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(schedule)
    return row


def _consumed(state: State) -> list[dict[str, Any]]:
    return [
        {
            "schedule_id": key,
            "consumed_through": msgspec.to_builtins(one.consumed_through),
            "kept": [[msgspec.to_builtins(start), msgspec.to_builtins(end)] for start, end in one.kept],
            "exhausted": one.exhausted,
        }
        for key, one in sorted(state.by_id.items())
    ]


def _candidates(state: State) -> list[dict[str, Any]]:
    return [
        {"schedule_id": key, "candidate": msgspec.to_builtins(one.candidate)}
        for key, one in sorted(state.by_id.items())
        if one.candidate is not None
    ]


def _runs(state: State) -> list[dict[str, Any]]:
    return [_run_row(state.runs_open[run_id]) for run_id in sorted(state.runs_open)]


def _run_row(run: Run) -> dict[str, Any]:
    row: dict[str, Any] = {"id": run.id, "occurrence_id": run.occurrence_id}
    row.update(msgspec.to_builtins(run))
    return row


def _attempts(state: State) -> list[dict[str, Any]]:
    return [
        {"run_id": run.id, "attempt_id": run.attempt_id, "state": run.state}
        for _, run in sorted(state.runs_open.items())
        if run.attempt_id is not None
    ]


def _pending(state: State) -> list[dict[str, Any]]:
    return [_run_row(state.runs_open[run_id]) for run_id in state.pending]


def _history(state: State) -> list[dict[str, Any]]:
    return [_run_row(run) for run in state.runs_recent.values()]


def _anomalies(state: State) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(one) for one in state.anomalies]


PROJECTIONS: Final[dict[str, Callable[[State], list[dict[str, Any]]]]] = {
    "schedules": _schedules,
    "consumed": _consumed,
    "candidates": _candidates,
    "runs": _runs,
    "attempts": _attempts,
    "pending": _pending,
    "history": _history,
    "anomalies": _anomalies,
}
"""Every projection by its name."""
