"""Administration of schedules: the commands of an operator or a program.

Rules: a command checks everything before it records anything; it is ordered with polls by the decision lock, so that
the very next poll sees it; repeating one that has taken effect records nothing; a `request` key makes a retried
creating command take effect once, also across restarts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Unpack, cast

import msgspec

from duly.journal.entries import (
    Definition,
    Entry,
    ExternalRunRecorded,
    OneShotRule,
    RunAdmittedManually,
    ScheduleCreated,
    ScheduleEdited,
)
from duly.projections import Run, Schedule
from duly.projections.schedules import ScheduleState
from duly.scheduler.copies import run_copy
from duly.scheduler.decisions.administration import (
    Command,
    Switch,
    changed_fields,
    decide_block,
    decide_create,
    decide_edit,
    decide_external_run,
    decide_rebaseline,
    decide_switch,
    decide_unblock,
)
from duly.scheduler.decisions.manual import decide_manual_run
from duly.scheduler.decisions.runs import require_unblocked
from duly.scheduler.definitions import (
    DefinitionFields,
    PolicyFields,
    check_schedule_id,
    check_words,
    parse_definition,
    parse_limits,
    parse_target,
)
from duly.scheduler.errors import DefinitionError, DuplicateSchedule, SchedulerClosed, TriggerError
from duly.scheduler.inputs import parse_input
from duly.scheduler.inspection import Inspection
from duly.scheduler.instants import in_range, require_aware
from duly.scheduler.repeats import (
    EarlierRun,
    check_same_definition,
    check_same_stamp,
    earlier_run,
    took_effect,
)
from duly.scheduler.sources import OccurrenceSource


class Administration(Inspection):
    """The administrative part of the Scheduler."""

    def create(  # noqa: PLR0913 - a schedule's parts
        self,
        schedule_id: str,
        trigger: OccurrenceSource,
        *,
        target: str,
        actor: str = "",
        note: str = "",
        request: str = "",
        **policy: Unpack[PolicyFields],
    ) -> Schedule[OccurrenceSource]:
        """Begins a schedule; nothing before now will run.

        Raises DefinitionError for what cannot be meant, DuplicateSchedule for an id that was ever used,
        ClockUnusable. With a `request` key that has taken effect before, returns that schedule.
        """
        check_schedule_id(schedule_id)
        definition = parse_definition({"trigger": trigger, "target": target, **policy})

        def decide() -> Schedule[OccurrenceSource]:
            command = self._command(actor, note, request, now=self._usable_now())
            if took_effect(self._state, command, schedule_id, ScheduleCreated):
                check_same_definition(self._state, command, self._state.by_id[schedule_id], definition)
            else:
                self._record(self._created(schedule_id, definition, command), command.at)
                self.wake()
            return self._shown(self._state.by_id[schedule_id])

        return self._exclusively(decide)

    def create_many(
        self, schedules: Iterable[Mapping[str, Any]], *, actor: str = "", note: str = "", request: str = ""
    ) -> tuple[Schedule[OccurrenceSource], ...]:
        """Begins many schedules, each given as a mapping of `create`'s arguments; all are checked before the first is
        recorded. They are written in chunks, each atomic; a crash between chunks leaves whole chunks, and a retry with
        the same `request` key creates the rest. Raises as `create` does."""
        parsed: list[tuple[str, Definition]] = []
        known: dict[bytes, Definition] = {}
        for one in schedules:
            if not isinstance(one, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all typed
                raise DefinitionError("schedules", one, "is no mapping", "Give mappings of create()'s arguments.")
            fields = dict(one)
            schedule_id = check_schedule_id(fields.pop("schedule_id", None))
            definition = parse_definition(cast("DefinitionFields", fields))
            # Equal ones are one object here already, as in the state: half of the memory that a million take meanwhile.
            parsed.append((schedule_id, known.setdefault(msgspec.json.encode(definition), definition)))

        def decide() -> tuple[Schedule[OccurrenceSource], ...]:
            command = self._command(actor, note, request, now=self._usable_now())
            seen: set[str] = set()
            absent: list[tuple[str, Definition, Command]] = []
            for schedule_id, definition in parsed:
                if schedule_id in seen:
                    raise _duplicate(schedule_id, "stands twice in this call")
                seen.add(schedule_id)
                own = msgspec.structs.replace(command, request=f"{request}/{schedule_id}") if request else command
                if took_effect(self._state, own, schedule_id, ScheduleCreated):
                    check_same_definition(self._state, own, self._state.by_id[schedule_id], definition)
                else:
                    self._created(schedule_id, definition, own)
                    absent.append((schedule_id, definition, own))
            # Made a second time as they are written: a million entries need not be held at once.
            self._record_in_chunks((entry for one in absent for entry in self._created(*one)), command.at)
            self.wake()
            return tuple(self._shown(self._state.by_id[schedule_id]) for schedule_id, _ in parsed)

        return self._exclusively(decide)

    def declare(  # noqa: PLR0913 - a schedule's parts
        self,
        schedule_id: str,
        trigger: OccurrenceSource,
        *,
        target: str,
        actor: str = "",
        note: str = "",
        request: str = "",
        **policy: Unpack[PolicyFields],
    ) -> Schedule[OccurrenceSource]:
        """Makes the schedule be as it is declared: creates it if it is absent, edits it if it differs, and records
        nothing if it is so already. A finished one-shot that is declared again stays as it is, and a disabled schedule
        stays disabled. Raises as `create` does; DuplicateSchedule for a deleted id."""
        check_schedule_id(schedule_id)
        definition = parse_definition({"trigger": trigger, "target": target, **policy})

        def decide() -> Schedule[OccurrenceSource]:
            found = self._state.by_id.get(schedule_id)
            if found is not None and not found.deleted and is_as_declared(found, definition):
                return self._shown(found)
            command = self._command(actor, note, request, now=self._usable_now())
            repeated = took_effect(self._state, command, schedule_id, ScheduleCreated, ScheduleEdited)
            if repeated and found is not None:
                check_same_definition(self._state, command, found, definition)
            else:
                if found is None or found.deleted:
                    entries = self._created(schedule_id, definition, command)
                else:
                    self._check_evaluable(definition)
                    entries = decide_edit(found, definition, found.revision, command, self._source_of)
                self._record(entries, command.at)
                self.wake()
            return self._shown(self._state.by_id[schedule_id])

        return self._exclusively(decide)

    def edit(
        self,
        schedule_id: str,
        *,
        expected_revision: int,
        actor: str = "",
        note: str = "",
        **changes: Unpack[DefinitionFields],
    ) -> Schedule[OccurrenceSource]:
        """Changes a schedule from now on: never retroactively, and never a run that was admitted.

        Raises RevisionConflict if it is not at `expected_revision`, DefinitionError, UnknownSchedule, ClockUnusable.
        """

        def decide() -> Schedule[OccurrenceSource]:
            schedule = self._living(schedule_id)
            command = self._command(actor, note, now=self._usable_now())
            definition = parse_definition(changes, schedule.definition)
            if "trigger" in changes:
                self._check_evaluable(definition)
            self._record(decide_edit(schedule, definition, expected_revision, command, self._source_of), command.at)
            self.wake()
            return self._shown(schedule)

        return self._exclusively(decide)

    def pause(self, schedule_id: str, *, actor: str = "", note: str = "") -> Schedule[OccurrenceSource]:
        """Excludes what is due and not decided, and what comes due, until `unpause`.

        Raises UnknownSchedule, ClockUnusable.
        """
        return self._switch(schedule_id, "pause", actor, note)

    def unpause(self, schedule_id: str, *, actor: str = "", note: str = "") -> Schedule[OccurrenceSource]:
        """Ends a pause; what lay in it does not run. Raises UnknownSchedule, ClockUnusable."""
        return self._switch(schedule_id, "unpause", actor, note)

    def disable(self, schedule_id: str, *, actor: str = "", note: str = "") -> Schedule[OccurrenceSource]:
        """Switches the schedule off, apart from any pause. Raises UnknownSchedule, ClockUnusable."""
        return self._switch(schedule_id, "disable", actor, note)

    def enable(self, schedule_id: str, *, actor: str = "", note: str = "") -> Schedule[OccurrenceSource]:
        """Switches the schedule on; what it missed meanwhile does not run. Raises UnknownSchedule, ClockUnusable."""
        return self._switch(schedule_id, "enable", actor, note)

    def delete(self, schedule_id: str, *, actor: str = "", note: str = "") -> Schedule[OccurrenceSource]:
        """Ends the schedule for good. Its history stays, its runs go on, its id is never used again.

        Raises UnknownSchedule (also if it is deleted already), ClockUnusable.
        """
        return self._switch(schedule_id, "delete", actor, note)

    def block(self, schedule_id: str, reason: str, *, actor: str = "", note: str = "") -> Schedule[OccurrenceSource]:
        """Stops all deciding, offering and starting for the schedule until `unblock`; what comes due waits."""
        check_words("reason", reason)

        def decide() -> Schedule[OccurrenceSource]:
            schedule = self._living(schedule_id)
            command = self._command(actor, note)
            self._record(decide_block(schedule, reason, command), command.at)
            self.wake()
            return self._shown(schedule)

        return self._exclusively(decide)

    def unblock(self, schedule_id: str, *, actor: str = "", note: str = "") -> Schedule[OccurrenceSource]:
        """Ends a block; the misfire policy deals with what came due meanwhile. Raises UnknownSchedule."""

        def decide() -> Schedule[OccurrenceSource]:
            schedule = self._living(schedule_id)
            command = self._command(actor, note)
            self._record(decide_unblock(schedule, command), command.at)
            self.wake()
            return self._shown(schedule)

        return self._exclusively(decide)

    def rebaseline(
        self, schedule_id: str, through: datetime, *, actor: str = "", note: str = ""
    ) -> Schedule[OccurrenceSource]:
        """Moves the watermark to `through`, an instant up to now: forward covers what lies between, back makes it due
        again, but for what was admitted or skipped for good. Raises DefinitionError, UnknownSchedule, ClockUnusable."""
        moment = _instant("through", through)

        def decide() -> Schedule[OccurrenceSource]:
            schedule = self._living(schedule_id)
            command = self._command(actor, note, now=self._usable_now())
            self._record(decide_rebaseline(schedule, moment, command, self._source_of), command.at)
            self.wake()
            return self._shown(schedule)

        return self._exclusively(decide)

    def record_external_run(
        self, schedule_id: str, started_at: datetime, *, actor: str = "", note: str = "", request: str = ""
    ) -> Schedule[OccurrenceSource]:
        """Records a run that happened outside, at any time past or future; it spends its calendar period."""
        moment = _instant("started_at", started_at)

        def decide() -> Schedule[OccurrenceSource]:
            command = self._command(actor, note, request)
            if took_effect(self._state, command, schedule_id, ExternalRunRecorded):
                schedule = self._state.by_id[schedule_id]
                check_same_stamp(self._state, command, schedule, moment)
                return self._shown(schedule)
            schedule = self._living(schedule_id)
            self._record(decide_external_run(schedule, moment, command), command.at)
            self.wake()
            return self._shown(schedule)

        return self._exclusively(decide)

    def run_now(  # noqa: PLR0913 - the parts of an invocation
        self,
        schedule_id: str | None = None,
        *,
        target: str | None = None,
        input: Mapping[str, object] | None = None,  # noqa: A002 - the field's name everywhere
        limits: Mapping[str, object] | None = None,
        actor: str = "",
        note: str = "",
        request: str = "",
    ) -> Run:
        """Admits a run by hand: of a schedule, or of a target alone. It moves no watermark, and needs no slot until it
        is started; the next poll offers it.

        With a `request` key that has taken effect before, returns the run of then. Raises DefinitionError for a
        target, input, limit or preflight that refuses, and for a key that was used for something else; Blocked,
        UnknownSchedule, SchedulerClosed after `stop_admitting`, ClockUnusable.
        """
        named = None if target is None else parse_target(target)
        bindings = None if input is None else parse_input(input)
        checked = None if limits is None else parse_limits(limits)

        def decide() -> Run | EarlierRun:
            command = self._command(actor, note, request, now=self._usable_now())
            if took_effect(self._state, command, schedule_id, RunAdmittedManually):
                return earlier_run(self._state, command, schedule_id)
            if not self._admitting:
                raise SchedulerClosed("the scheduler admits no more runs", hint="Reopen it, then run_now() again")
            schedule = None if schedule_id is None else self._living(schedule_id)
            require_unblocked(self._state, schedule_id)
            entry = self._answers.drive(decide_manual_run(schedule, named, bindings, checked, command))
            run_id = self._record((entry,), command.at)
            self.wake()
            return run_copy(self._state.runs_open[run_id])

        outcome = self._exclusively(decide)
        if isinstance(outcome, Run):
            return outcome
        run = self.run(outcome.run_id)
        outcome.check_same(run, named, bindings, checked)
        return run

    def _switch(self, schedule_id: str, switch: Switch, actor: str, note: str) -> Schedule[OccurrenceSource]:
        def decide() -> Schedule[OccurrenceSource]:
            schedule = self._living(schedule_id)
            command = self._command(actor, note, now=self._usable_now())
            self._record(decide_switch(schedule, switch, command, self._source_of), command.at)
            self.wake()
            return self._shown(schedule)

        return self._exclusively(decide)

    def _created(self, schedule_id: str, definition: Definition, command: Command) -> tuple[Entry, ...]:
        found = self._state.by_id.get(schedule_id)
        if found is not None:
            raise _duplicate(schedule_id, "is deleted, and an id is never used again" if found.deleted else "exists")
        self._check_evaluable(definition)
        return decide_create(schedule_id, definition, command, self._source_of)

    def _check_evaluable(self, definition: Definition) -> None:
        try:
            self._source_of(definition.trigger)
        except TriggerError as error:
            raise DefinitionError(
                "trigger", definition.trigger, f"cannot be used: {error.message}", error.hint
            ) from error


def is_as_declared(schedule: ScheduleState, definition: Definition) -> bool:
    """Whether declaring this definition changes nothing: it is equal, or of a one-shot that is finished."""
    if not changed_fields(schedule.definition, definition):
        return True
    finished = schedule.exhausted and isinstance(definition.trigger, OneShotRule)
    return finished and "trigger" not in changed_fields(schedule.definition, definition)


def _duplicate(schedule_id: str, why: str) -> DuplicateSchedule:
    hint = "Take another id" if "deleted" in why else "Take another id, or edit() the one there is"
    return DuplicateSchedule(f"schedule {schedule_id!r} {why}", schedule_id=schedule_id, hint=hint)


def _instant(field: str, instant: datetime) -> datetime:
    require_aware(instant, field)
    if not in_range(instant):
        raise DefinitionError(field, instant, "lies outside of what is supported", "Give an instant in 1972 to 2100.")
    return instant.astimezone(UTC)
