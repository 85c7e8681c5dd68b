"""Copies of what is handed out, so that nobody outside can change the state by what was given to him.

Rules: what holds no JSON of the host is handed out as it is, since it cannot be changed; the rest goes once through the
encoder and back, which is exact for what a journal can hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import TypeVar, cast

import msgspec

from duly.journal.entries import Entry, OccurrenceAdmitted
from duly.projections import Run

S = TypeVar("S", bound=msgspec.Struct)


def run_copy(run: Run) -> Run:
    """The run, sharing nothing with the state that can be changed."""
    free = (run.environment, run.input, run.limits, run.checkpoint, run.result, run.notes)
    return run if not any(_is_changeable(value) for value in free) else round_trip(run)


def run_copies(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The runs, each sharing nothing with the state that can be changed."""
    return tuple(run_copy(run) for run in runs)


def entry_copy(entry: Entry) -> Entry:
    """The entry of a poll, sharing nothing with the state that can be changed."""
    if not isinstance(entry, OccurrenceAdmitted):
        return entry
    free = (entry.environment, entry.input, entry.limits)
    return entry if not any(_is_changeable(value) for value in free) else round_trip(entry)


def round_trip(value: S) -> S:
    """The value, encoded and decoded again."""
    return msgspec.json.decode(msgspec.json.encode(value), type=type(value))


def _is_changeable(value: object) -> bool:
    return isinstance(value, dict | list | tuple) and len(cast("Sized", value)) > 0
