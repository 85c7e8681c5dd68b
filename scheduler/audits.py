"""Audits of one schedule: its history, and who changed what, when and why.

Rules: one pass over the record, which is only read; changes are told by the entries that made them, and the fields of
an edit are compared with the revision before, never with what is now.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from duly.journal.entries import (
    CalendarChanged,
    Definition,
    Entry,
    ExternalRunRecorded,
    RunAbandoned,
    RunAdmittedManually,
    ScheduleBlocked,
    ScheduleCreated,
    ScheduleDeleted,
    ScheduleDisabled,
    ScheduleEdited,
    ScheduleEnabled,
    SchedulePaused,
    ScheduleRebaselined,
    ScheduleUnblocked,
    ScheduleUnpaused,
)
from duly.projections.history import History, Row
from duly.scheduler.lookups import Record, about
from duly.scheduler.sources import SourceFactory
from duly.scheduler.triggers import trigger_of
from duly.scheduler.waiting import waiting_rows, waiting_span

_CHANGES: Final = (
    ScheduleCreated,
    ScheduleEdited,
    SchedulePaused,
    ScheduleUnpaused,
    ScheduleDisabled,
    ScheduleEnabled,
    ScheduleDeleted,
    ScheduleBlocked,
    ScheduleUnblocked,
    ScheduleRebaselined,
    ExternalRunRecorded,
    CalendarChanged,
    RunAdmittedManually,
)


class FieldChange(msgspec.Struct, frozen=True):
    """One field of a definition, before an edit and after it."""

    name: str
    was: Any
    now: Any


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a schedule, or something that somebody had done with it: the entry, and whom it names.

    `revision` is the schedule's after it; `fields` are what an edit changed.
    """

    sequence: int
    at: datetime
    kind: str
    actor: str
    note: str
    revision: int
    fields: tuple[FieldChange, ...]
    entry: Entry


def occurrences_of(
    journal: Record,
    schedule_id: str,
    *,
    now: datetime | None = None,
    sources: Mapping[str, SourceFactory] | None = None,
) -> tuple[Row, ...]:
    """What became of the schedule's occurrences, in the order of their instants; with `now` also what waits then, and
    where that is too much to be told one by one, the newest of it, and a span (`detail` "waiting") for the others.

    Raises UnknownSchedule, and the journal's errors.
    """
    history = History(schedule_id)
    for sequence, entry in about(journal, schedule_id):
        history.apply(sequence, entry)
    rows = history.table()
    if now is not None and history.schedule is not None:
        rows += waiting_rows(history.schedule, now, lambda rule: trigger_of(rule, sources))
        span = waiting_span(history.schedule, now, lambda rule: trigger_of(rule, sources))
        rows += () if span is None else (span,)
    return tuple(sorted(rows, key=lambda row: row.key))


def abandonments_of(journal: Record, schedule_id: str) -> dict[int, RunAbandoned]:
    """The entries that gave up runs of the schedule, by the run's id. Raises UnknownSchedule, and the journal's
    errors."""
    return {entry.run_id: entry for _, entry in about(journal, schedule_id) if isinstance(entry, RunAbandoned)}


def changes_of(journal: Record, schedule_id: str) -> tuple[Change, ...]:
    """Who changed the schedule, or had something done with it, in the order of the record.

    Raises UnknownSchedule, and the journal's errors.
    """
    changes: list[Change] = []
    before: Definition | None = None
    revision = 0
    for sequence, entry in about(journal, schedule_id):
        if getattr(entry, "schedule_id", None) != schedule_id or not is_change(entry):
            continue
        fields: tuple[FieldChange, ...] = ()
        if isinstance(entry, ScheduleCreated | ScheduleEdited):
            fields = _compared(before, entry.definition)
            before = entry.definition
            revision = entry.revision if isinstance(entry, ScheduleEdited) else 1
        changes.append(
            Change(
                sequence=sequence,
                at=entry.at,
                kind=str(entry.__struct_config__.tag),
                actor=getattr(entry, "actor", ""),
                note=getattr(entry, "note", ""),
                revision=revision,
                fields=fields,
                entry=entry,
            )
        )
    return tuple(changes)


def is_change(entry: Entry) -> bool:
    """Whether the entry is something that somebody did to a schedule, or had done with it."""
    return isinstance(entry, _CHANGES) or (isinstance(entry, RunAbandoned) and entry.cause == "operator")


def _compared(before: Definition | None, after: Definition) -> tuple[FieldChange, ...]:
    if before is None:
        return ()
    return tuple(
        FieldChange(name, getattr(before, name), getattr(after, name))
        for name in Definition.__struct_fields__
        if getattr(before, name) != getattr(after, name)
    )
