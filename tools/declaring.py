"""From a crontab entry to a schedule: what an entry is declared as.

Rules kept here: one mapping for the import, the demo and every other keeper of a crontab; what the entry does not say
is left to the scheduler's defaults; the target of every entry is `command`, and its input says what to run.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, TypeAlias

from duly.scheduler.definitions import DefinitionFields
from duly.scheduler.embedded import Scheduler
from duly.scheduler.errors import DuplicateSchedule
from duly.scheduler.triggers import Cron
from duly.tools.crontab import CrontabEntry

TARGET = "command"

Outcome: TypeAlias = Literal["created", "edited", "unchanged"]


def definition_of(entry: CrontabEntry) -> DefinitionFields:
    """The arguments of `Scheduler.declare` for this entry, apart from its id."""
    options = entry.options
    said = {"command": entry.command, "stdin": entry.stdin, "user": entry.user}
    given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    if entry.environment:
        given["environment"] = dict(entry.environment)
    fields: DefinitionFields = {
        "trigger": Cron(entry.expression, zone=entry.zone, fold=options.fold or "both"),
        "target": TARGET,
        "input": given,
    }
    if options.misfire is not None:
        fields["misfire"] = options.misfire
    if options.lateness is not None:
        fields["lateness"] = options.lateness
    if options.overlap is not None:
        fields["overlap"] = options.overlap
    if options.max_active_runs is not None:
        fields["max_active_runs"] = options.max_active_runs
    if options.timeout is not None:
        fields["limits"] = {"timeout": options.timeout / timedelta(seconds=1)}
    return fields


def check_not_deleted(schedule_id: str, *, deleted: bool) -> None:
    """Raises DuplicateSchedule if an entry's schedule was deleted: it does not come back by itself."""
    if deleted:
        raise DuplicateSchedule(
            f"schedule {schedule_id!r} was deleted, and an id is never used again",
            schedule_id=schedule_id,
            hint="Give the entry another id (in a crontab: # duly: id=… above it), or take it out",
        )


def declare_entry(scheduler: Scheduler, entry: CrontabEntry, *, actor: str = "", note: str = "") -> Outcome:
    """Declare the entry's schedule, and say what that changed."""
    before = scheduler.find(entry.schedule_id)
    scheduler.declare(entry.schedule_id, **definition_of(entry), actor=actor, note=note)
    after = scheduler.find(entry.schedule_id)
    if before is None:
        return "created"
    return "unchanged" if after is not None and after.revision == before.revision else "edited"
