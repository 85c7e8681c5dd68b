"""Repeated commands: whether one with a `request` key took effect before, and whether it is the very same command.

Rules: a key answers for nothing but the command that it was used for: another kind, schedule or content is refused,
because it would be answered as done and never was; what cannot be compared any more, because the schedule has changed
since, is let pass; a creation is known by its schedule for good, every other key as long as it is remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from duly.journal.entries import Definition, Entry, Expression, Json, ScheduleCreated, kind_of
from duly.projections import Run, State
from duly.projections.facts import key_hash
from duly.projections.schedules import ScheduleState
from duly.scheduler.decisions.administration import Command, changed_fields
from duly.scheduler.errors import DefinitionError
from duly.scheduler.inputs import InputUnresolved, resolve_unbound

_REMEDY: Final = "Take another key for another command."


class EarlierRun(msgspec.Struct, frozen=True):
    """The run that a key admitted before, and the schedule that the command is about, as it is now."""

    request: str
    run_id: int
    revision: int | None
    definition: Definition | None

    def check_same(
        self,
        run: Run,
        target: str | None,
        bindings: Mapping[str, Expression] | None,
        limits: Mapping[str, Json] | None,
    ) -> None:
        """Raises DefinitionError if the run that was admitted is of another target, input or limits. What is left to
        the schedule is compared as long as it is at the revision of then."""
        if self.definition is not None and self.revision == run.revision:
            target = self.definition.target if target is None else target
            bindings = self.definition.input if bindings is None else bindings
            limits = self.definition.limits if limits is None else limits
        elif self.definition is None:
            bindings, limits = bindings or {}, limits or {}
        changed = {
            "target": target is not None and target != run.target,
            "input": bindings is not None and _resolved(bindings) != run.input,
            "limits": limits is not None and limits != run.limits,
        }
        if any(changed.values()):
            others = ", ".join(field for field, differs in changed.items() if differs)
            raise DefinitionError("request", self.request, f"admitted run {run.id} with another {others}", _REMEDY)


def took_effect(state: State, command: Command, schedule_id: str | None, *kinds: type[Entry]) -> bool:
    """Whether this very command took effect before, by its key. Raises DefinitionError if another did."""
    if not command.request:
        return False
    if ScheduleCreated in kinds and schedule_id is not None:
        created_with = state.creations.get(schedule_id)
        if created_with is not None and created_with == key_hash(command.request):
            return True
    known = state.requests.get(command.request)
    if known is None:
        return False
    if known.schedule_id == schedule_id and known.kind in [kind_of(kind) for kind in kinds]:
        return True
    problem = f"was used by entry #{known.sequence} ({known.kind}) for something else"
    raise DefinitionError("request", command.request, problem, _REMEDY)


def check_same_definition(state: State, command: Command, schedule: ScheduleState, definition: Definition) -> None:
    """Raises DefinitionError if the schedule that the key made was another one, and has not been edited since."""
    known = state.requests.get(command.request)
    made = known.revision if known is not None and known.revision else 1
    changed = changed_fields(schedule.definition, definition)
    if changed and schedule.revision == made:
        verb = "created" if made == 1 else "edited"
        problem = f"{verb} schedule {schedule.id!r} with another {', '.join(changed)}"
        raise DefinitionError("request", command.request, problem, "Take another key, or edit() the schedule.")


def check_same_stamp(state: State, command: Command, schedule: ScheduleState, stamp: object) -> None:
    """Raises DefinitionError if the external run that the key recorded began at another time."""
    sequence = state.requests[command.request].sequence
    recorded = next((at for at, one in schedule.spent or () if one == sequence), stamp)
    if recorded != stamp:
        problem = f"recorded a run of {schedule.id!r} that began at {recorded}"
        raise DefinitionError("request", command.request, problem, _REMEDY)


def earlier_run(state: State, command: Command, schedule_id: str | None) -> EarlierRun:
    """The run that the key admitted."""
    run_id = state.requests[command.request].sequence
    if schedule_id is None:
        return EarlierRun(command.request, run_id, None, None)
    schedule = state.by_id[schedule_id]
    return EarlierRun(command.request, run_id, schedule.revision, schedule.definition)


def _resolved(bindings: Mapping[str, Expression]) -> dict[str, Json] | None:
    try:
        return resolve_unbound(bindings)
    except InputUnresolved:
        return None
