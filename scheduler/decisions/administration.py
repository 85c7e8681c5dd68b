"""Administration: what a command about a schedule means for the record.

Rules (the specification's section 6, baselines): create, pause, unpause, disable, enable, edit and delete move the
watermark to now, say what they cover, and skip a held candidate in the same batch, before their own entry; repeating
one journals nothing. Run_now, external runs, block and unblock move no watermark. Nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec

from duly.journal.entries import (
    Definition,
    Entry,
    ExternalRunRecorded,
    OccurrenceSkipped,
    OncePerRule,
    OneShotRule,
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
    SkipReason,
    TriggerRule,
)
from duly.projections.ranges import Ranges
from duly.projections.schedules import ScheduleState, may_block
from duly.scheduler.decisions.occurrences import next_instant
from duly.scheduler.errors import DefinitionError, RevisionConflict, TriggerError
from duly.scheduler.instants import EARLIEST
from duly.scheduler.periods import period_start
from duly.scheduler.sources import OccurrenceSource

SourceOf: TypeAlias = Callable[[TriggerRule], OccurrenceSource]
Switch: TypeAlias = Literal["pause", "unpause", "disable", "enable", "delete"]


class Command(msgspec.Struct, frozen=True):
    """When a command is decided, by whom, why, and its idempotency key."""

    at: datetime
    actor: str = ""
    note: str = ""
    request: str = ""

    def fields(self) -> dict[str, Any]:
        """What every administrative entry carries of it."""
        return {"at": self.at, "actor": self.actor, "note": self.note, "request": self.request}


_SWITCHES: Final[dict[Switch, tuple[type, SkipReason]]] = {
    "pause": (SchedulePaused, "paused"),
    "unpause": (ScheduleUnpaused, "paused"),
    "disable": (ScheduleDisabled, "disabled"),
    "enable": (ScheduleEnabled, "disabled"),
    "delete": (ScheduleDeleted, "deleted"),
}


def decide_create(schedule_id: str, definition: Definition, command: Command, source_of: SourceOf) -> tuple[Entry, ...]:
    """The beginning of a schedule. Raises DefinitionError for a one-shot that is past beyond its lateness."""
    rule = definition.trigger
    _check_not_past(definition, command.at)
    through = _baseline(rule, None, command.at, once=True)
    created = ScheduleCreated(
        schedule_id=schedule_id,
        definition=definition,
        covers_through=through,
        exhausts=_exhausts(rule, through, (), source_of),
        **command.fields(),
    )
    return (created,)


def decide_edit(
    schedule: ScheduleState,
    definition: Definition,
    expected_revision: int,
    command: Command,
    source_of: SourceOf,
) -> tuple[Entry, ...]:
    """The next revision of a schedule, or nothing if nothing changes. Raises RevisionConflict, DefinitionError."""
    if schedule.revision != expected_revision:
        raise RevisionConflict(
            f"schedule {schedule.id!r} is at revision {schedule.revision}, not {expected_revision}",
            schedule_id=schedule.id,
            expected=expected_revision,
            actual=schedule.revision,
            hint="Read it again, and edit what it is now",
        )
    changed = changed_fields(schedule.definition, definition)
    if not changed:
        return ()
    rule = definition.trigger
    if isinstance(rule, OneShotRule) and "trigger" in changed:
        _check_not_past(definition, command.at)
        if rule.at <= schedule.consumed_through:
            raise DefinitionError(
                "trigger",
                rule.at.isoformat(),
                "is decided or covered already",
                "Give an instant that is still to come.",
            )
    through = _baseline(rule, schedule.consumed_through, command.at, once=True)
    edited = ScheduleEdited(
        schedule_id=schedule.id,
        revision=schedule.revision + 1,
        definition=definition,
        changed=changed,
        covers_after=schedule.consumed_through,
        covers_through=through,
        exhausts=_exhausts(rule, through, schedule.kept, source_of),
        **command.fields(),
    )
    return (*_candidate_skipped(schedule, "edited", command.at), edited)


def decide_switch(schedule: ScheduleState, switch: Switch, command: Command, source_of: SourceOf) -> tuple[Entry, ...]:
    """Pause, unpause, disable, enable or delete; nothing if it is so already."""
    if _is_so(schedule, switch):
        return ()
    kind, reason = _SWITCHES[switch]
    rule = schedule.definition.trigger
    if switch == "delete":
        # Nothing will ever decide what is left of the current period.
        through = max(schedule.consumed_through, command.at)
    else:
        through = _baseline(rule, schedule.consumed_through, command.at, once=False)
    exhausts = not schedule.exhausted and _exhausts(rule, through, schedule.kept, source_of)
    entry: Entry = kind(
        schedule_id=schedule.id,
        covers_after=schedule.consumed_through,
        covers_through=through,
        exhausts=exhausts,
        **command.fields(),
    )
    return (*_candidate_skipped(schedule, reason, command.at), entry)


def decide_rebaseline(
    schedule: ScheduleState, through: datetime, command: Command, source_of: SourceOf
) -> tuple[Entry, ...]:
    """The watermark, moved to `through` by an operator. Raises DefinitionError if that is still to come."""
    if through > command.at:
        raise DefinitionError("through", through.isoformat(), "is still to come", "Give an instant up to now.")
    if schedule.consumed_through > through:
        moved = ScheduleRebaselined(schedule_id=schedule.id, through=through, regressed=True, **command.fields())
        return (moved,)
    candidate = schedule.candidate
    skipped = () if candidate is None or candidate > through else _candidate_skipped(schedule, "operator", command.at)
    if schedule.consumed_through == through and not skipped:
        return ()
    moved = ScheduleRebaselined(
        schedule_id=schedule.id,
        through=through,
        covers_after=schedule.consumed_through,
        exhausts=not schedule.exhausted and _exhausts(schedule.definition.trigger, through, schedule.kept, source_of),
        **command.fields(),
    )
    return (*skipped, moved)


def decide_block(schedule: ScheduleState, reason: str, command: Command) -> tuple[Entry, ...]:
    """A block by an operator; nothing if the schedule is blocked already, other than by its trigger."""
    if not may_block(schedule.block):
        return ()
    return (ScheduleBlocked(schedule_id=schedule.id, cause="operator", reason=reason, **command.fields()),)


def decide_unblock(schedule: ScheduleState, command: Command) -> tuple[Entry, ...]:
    """The end of a block; nothing if there is none."""
    if schedule.block is None:
        return ()
    return (ScheduleUnblocked(schedule_id=schedule.id, **command.fields()),)


def decide_external_run(schedule: ScheduleState, started_at: datetime, command: Command) -> tuple[Entry, ...]:
    """A run that happened elsewhere, at any time."""
    return (ExternalRunRecorded(schedule_id=schedule.id, started_at=started_at, **command.fields()),)


def changed_fields(before: Definition, after: Definition) -> tuple[str, ...]:
    """The fields that differ as they are recorded: 1 and true are equal to Python, and not to JSON."""
    encode = msgspec.json.encode
    return tuple(
        name for name in Definition.__struct_fields__ if encode(getattr(before, name)) != encode(getattr(after, name))
    )


def _check_not_past(definition: Definition, now: datetime) -> None:
    rule = definition.trigger
    if isinstance(rule, OneShotRule) and now > rule.at + definition.lateness:
        raise DefinitionError(
            "trigger", rule.at.isoformat(), "is past, beyond the lateness", "Give a later instant, or more lateness."
        )


def _is_so(schedule: ScheduleState, switch: Switch) -> bool:
    match switch:
        case "pause":
            return schedule.paused > 0
        case "unpause":
            return schedule.paused == 0
        case "disable":
            return schedule.disabled > 0
        case "enable":
            return schedule.disabled == 0
        case "delete":
            return schedule.deleted > 0


def _candidate_skipped(schedule: ScheduleState, reason: SkipReason, at: datetime) -> tuple[Entry, ...]:
    if schedule.candidate is None:
        return ()
    skipped = OccurrenceSkipped(
        at=at,
        schedule_id=schedule.id,
        scheduled_at=schedule.candidate,
        revision=schedule.revision,
        reason=reason,
    )
    return (skipped,)


def _baseline(rule: TriggerRule, consumed_through: datetime | None, now: datetime, *, once: bool) -> datetime:
    """Where the watermark goes: to now, but behind what a new one-shot or the current period still has to do."""
    target = now
    if isinstance(rule, OneShotRule) and once:
        target = min(now, rule.at - datetime.resolution)
    elif isinstance(rule, OncePerRule):
        target = _before_period(rule, now)
    return target if consumed_through is None else max(consumed_through, target)


def _before_period(rule: OncePerRule, now: datetime) -> datetime:
    try:
        return max(period_start(now, rule.period, rule.zone) - datetime.resolution, EARLIEST)
    except (TriggerError, DefinitionError):
        # A zone that this machine does not have: nothing can be said about periods, so that now is all there is.
        return now


def _exhausts(rule: TriggerRule, through: datetime, kept: Ranges, source_of: SourceOf) -> bool:
    try:
        return next_instant(source_of(rule), through, kept) is None
    except (TriggerError, DefinitionError):
        return False
