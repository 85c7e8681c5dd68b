"""Commands: what somebody had done to a schedule, decided again in another world.

Rules: the shipped decision functions decide; a command that has nothing to change there records nothing; one that is
refused there is noted with the refusal, and what follows on it does not happen.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from duly.journal.entries import (
    Entry,
    ExternalRunRecorded,
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
    kind_of,
)
from duly.projections.schedules import ScheduleState, may_block
from duly.scheduler.changes import Changes
from duly.scheduler.decisions.administration import (
    Command,
    Switch,
    decide_block,
    decide_create,
    decide_edit,
    decide_external_run,
    decide_rebaseline,
    decide_switch,
    decide_unblock,
)
from duly.scheduler.errors import SchedulerError
from duly.scheduler.worlds import World

_SWITCHES: Final[dict[type[Entry], Switch]] = {
    SchedulePaused: "pause",
    ScheduleUnpaused: "unpause",
    ScheduleDisabled: "disable",
    ScheduleEnabled: "enable",
    ScheduleDeleted: "delete",
}
_Commanded: TypeAlias = (
    ScheduleCreated
    | ScheduleEdited
    | SchedulePaused
    | ScheduleUnpaused
    | ScheduleDisabled
    | ScheduleEnabled
    | ScheduleDeleted
    | ScheduleBlocked
    | ScheduleUnblocked
    | ScheduleRebaselined
    | ExternalRunRecorded
    | RunAdmittedManually
)


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded command that the other world refuses: its entry's sequence and kind, its schedule, and why."""

    sequence: int
    kind: str
    schedule_id: str
    why: str


class Commands:
    """Decides recorded commands anew, in a world and under its changes."""

    def __init__(self, world: World, changes: Changes) -> None:
        self.refused: list[Refused] = []
        self._world = world
        self._changes = changes

    def decided(self, sequence: int, entry: Entry) -> tuple[Entry, ...] | None:
        """What the recorded entry's command records in this world; None if the entry is no command."""
        if not isinstance(entry, _Commanded):
            return None
        schedule_id = entry.schedule_id
        schedule = self._world.state.by_id.get(schedule_id or "")
        if isinstance(entry, RunAdmittedManually):
            return self._by_hand(entry, schedule)
        if isinstance(entry, ScheduleCreated | ScheduleEdited):
            # What the changes make of it may be no definition at all: that is the asker's error, and no refusal.
            self._changes.definition(entry.schedule_id, entry.definition)
        if not isinstance(entry, ScheduleCreated) and (schedule is None or schedule.deleted):
            return ()
        try:
            return self._again(entry, schedule)
        except SchedulerError as error:
            self.refused.append(
                Refused(sequence=sequence, kind=kind_of(entry), schedule_id=schedule_id or "", why=error.message)
            )
            return ()

    def _again(  # noqa: PLR0911 - one return for each kind
        self, entry: _Commanded, schedule: ScheduleState | None
    ) -> tuple[Entry, ...]:
        command = Command(at=entry.at, actor=entry.actor, note=entry.note, request=entry.request)
        source_of = self._world.source_of
        if isinstance(entry, ScheduleCreated):
            definition = self._changes.definition(entry.schedule_id, entry.definition)
            return decide_create(entry.schedule_id, definition, command, source_of)
        if schedule is None:
            return ()
        match entry:
            case ScheduleEdited():
                definition = self._changes.definition(schedule.id, entry.definition)
                return decide_edit(schedule, definition, schedule.revision, command, source_of)
            case ScheduleBlocked(cause="operator"):
                return decide_block(schedule, entry.reason, command)
            case ScheduleBlocked():
                faulty = entry.cause == "trigger" and self._changes.retimes(schedule.id)
                return (entry,) if may_block(schedule.block) and not faulty else ()
            case ScheduleUnblocked():
                return decide_unblock(schedule, command)
            case ScheduleRebaselined():
                return decide_rebaseline(schedule, entry.through, command, source_of)
            case ExternalRunRecorded():
                return decide_external_run(schedule, entry.started_at, command)
            case _:
                return decide_switch(schedule, _SWITCHES[type(entry)], command, source_of)

    def _by_hand(self, entry: RunAdmittedManually, schedule: ScheduleState | None) -> tuple[Entry, ...]:
        """A run by hand is taken as it is recorded: what its caller gave is resolved, and no policy refuses it."""
        if entry.schedule_id is None:
            return (entry,)
        if schedule is None or schedule.deleted:
            return ()
        return (msgspec.structs.replace(entry, revision=schedule.revision),)
