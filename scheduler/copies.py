"""Copies of what is handed out, so that nobody outside can change the state by what was given to him.

Rules: what holds JSON of the host goes once through the encoder and back, which is exact for what a journal can hold;
what holds none only gets empty dicts of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from duly.journal.entries import Entry, OccurrenceAdmitted
from duly.projections import Run

S = TypeVar("S", bound=msgspec.Struct)
_CHANGEABLE: Final = (dict, list)


def run_copy(run: Run) -> Run:
    """The run, sharing nothing with the state that can be changed."""
    if run.input or run.limits or run.notes or isinstance(run.environment, _CHANGEABLE):
        return round_trip(run)
    if isinstance(run.checkpoint, _CHANGEABLE) or isinstance(run.result, _CHANGEABLE):
        return round_trip(run)
    return msgspec.structs.replace(run, input={}, limits={})


def run_copies(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The runs, each sharing nothing with the state that can be changed."""
    return tuple(run_copy(run) for run in runs)


def entry_copy(entry: Entry) -> Entry:
    """The entry of a poll, sharing nothing with the state that can be changed."""
    if not isinstance(entry, OccurrenceAdmitted):
        return entry
    if entry.input or entry.limits or isinstance(entry.environment, _CHANGEABLE):
        return round_trip(entry)
    return msgspec.structs.replace(entry, input={}, limits={})


def round_trip(value: S) -> S:
    """The value, encoded and decoded again."""
    return msgspec.json.decode(msgspec.json.encode(value), type=type(value))
