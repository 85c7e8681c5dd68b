"""Making a journal be as a file says: what is declared, what has vanished, what has come back.

Rules kept here:
- only what the file once brought is touched: a schedule is the file's if `duly run` declared it, or an import of the
  same file did; what others made stays as it is;
- what has vanished is disabled, never deleted; it is enabled again when it comes back, unless somebody else has
  disabled it;
- a file is taken whole or not at all, and one that says nothing does not disable everything;
- a plan is pure: the same functions decide that will decide when it is carried out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias

from duly.journal import read
from duly.journal.entries import (
    Entry,
    OccurrenceSkipped,
    ScheduleCreated,
    ScheduleDisabled,
    ScheduleEdited,
    ScheduleEnabled,
)
from duly.projections import State
from duly.projections.schedules import ScheduleState
from duly.scheduler.administration import is_as_declared
from duly.scheduler.decisions.administration import Command, decide_create, decide_edit, decide_switch
from duly.scheduler.decisions.occurrences import SCAN_CAP, due_instants
from duly.scheduler.definitions import parse_definition
from duly.scheduler.embedded import Scheduler
from duly.scheduler.errors import SchedulerError, TriggerError
from duly.scheduler.triggers import trigger_of
from duly.tools.crontab import Problem
from duly.tools.declaring import check_not_deleted
from duly.tools.schedule_file import Declared, ScheduleFile

ACTOR = "duly run"
VANISHED = "it is no longer in"

Outcome: TypeAlias = Literal["created", "edited", "unchanged", "disabled", "enabled", "edited and enabled", "refused"]


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one schedule; `changed` are the fields that an edit changes, `discards` the instants that were
    due, or held, and will not run because of it (`more`: there are more than these)."""

    schedule_id: str
    line: int
    outcome: Outcome
    changed: tuple[str, ...] = ()
    discards: tuple[datetime, ...] = ()
    more: bool = False


@dataclass(slots=True)
class Provenance:
    """Where schedules come from, and who switched them off, from the record."""

    source: str
    ours: set[str] = field(default_factory=set[str])
    disabled_by_us: set[str] = field(default_factory=set[str])

    def apply(self, entry: Entry) -> None:
        """Takes note of an entry."""
        match entry:
            case ScheduleCreated() | ScheduleEdited():
                if entry.actor == ACTOR or entry.note.startswith(f"{self.source} line "):
                    self.ours.add(entry.schedule_id)
            case ScheduleDisabled():
                if entry.actor == ACTOR:
                    self.disabled_by_us.add(entry.schedule_id)
            case ScheduleEnabled():
                self.disabled_by_us.discard(entry.schedule_id)
            case _:
                pass


def provenance(journal: Path | None, source: str) -> Provenance:
    """What the whole record says, if there is one. Raises the journal's errors."""
    found = Provenance(source)
    for record in () if journal is None else read(journal):
        found.apply(record.entry)
    return found


def converge(scheduler: Scheduler, file: ScheduleFile, now: datetime) -> tuple[tuple[Change, ...], tuple[Problem, ...]]:
    """Declares what the file says, disables what it no longer says; what was done. A file that is refused in part is
    refused whole: then nothing is done, and the second is why."""
    known = {schedule.id: schedule for schedule in scheduler.schedules()}
    declared = {one.schedule_id for one in file.entries}
    # The record is read only if it can matter: where something has vanished, or has come back.
    in_doubt = any(one.disabled if one.id in declared else not one.disabled for one in known.values())
    origin = provenance(scheduler.path, file.source) if in_doubt else Provenance(file.source)
    vanished = [one for one in sorted((known.keys() & origin.ours) - declared) if not known[one].disabled]
    refused = [*_refused(file, vanished), *_unfit(scheduler, file, Command(now, ACTOR))]
    if refused:
        return (), tuple(refused)
    changes: list[Change] = []
    for one in file.entries:
        try:
            changes.append(_declare(scheduler, file, one, origin))
        except SchedulerError as error:  # somebody else was quicker
            refused.append(_refusal(file, one, error))
    for schedule_id in vanished:
        scheduler.disable(schedule_id, actor=ACTOR, note=f"{VANISHED} {file.source}")
        changes.append(Change(schedule_id, 0, "disabled"))
    return tuple(changes), tuple(refused)


def _refused(file: ScheduleFile, vanished: Sequence[str]) -> Iterator[Problem]:
    """A file that says nothing is more likely a fault than a wish: half written, or never mounted."""
    if vanished and not file.entries:
        would = f"there is no schedule in it, and that would disable all {len(vanished)} that it brought"
        yield Problem(file.source, 1, 1, would, "If that is meant: duly ctl disable them")


def _unfit(scheduler: Scheduler, file: ScheduleFile, command: Command) -> Iterator[Problem]:
    """The entries that cannot be declared."""
    for one in file.entries:
        try:
            found = scheduler.find(one.schedule_id)
            check_not_deleted(one.schedule_id, deleted=found is not None and found.deleted)
            wanted = parse_definition(one.fields)
            if found is None or getattr(found.trigger, "rule", None) != wanted.trigger:
                decide_create(one.schedule_id, wanted, command, trigger_of)
        except SchedulerError as error:
            yield _refusal(file, one, error)


def _declare(scheduler: Scheduler, file: ScheduleFile, one: Declared, origin: Provenance) -> Change:
    before = scheduler.find(one.schedule_id)
    note = file.note(one.line)
    after = scheduler.declare(one.schedule_id, **one.fields, actor=ACTOR, note=note)
    if before is None:
        return Change(one.schedule_id, one.line, "created")
    edited = after.revision != before.revision
    if before.disabled and one.schedule_id in origin.disabled_by_us:
        scheduler.enable(one.schedule_id, actor=ACTOR, note=note)
        return Change(one.schedule_id, one.line, "edited and enabled" if edited else "enabled")
    return Change(one.schedule_id, one.line, "edited" if edited else "unchanged")


def plan(
    state: State, file: ScheduleFile, origin: Provenance, now: datetime
) -> tuple[tuple[Change, ...], tuple[Problem, ...]]:
    """What `converge` would do to a journal in this state at `now`, and which catch-ups that discards."""
    changes: list[Change] = []
    declared = {one.schedule_id for one in file.entries}
    living = {name: one for name, one in state.by_id.items() if not one.disabled and not one.deleted}
    vanished = sorted((living.keys() & origin.ours) - declared)
    refused = list(_refused(file, vanished))
    for one in file.entries:
        try:
            changes.append(_planned(state.by_id.get(one.schedule_id), one, origin, Command(now, ACTOR)))
        except SchedulerError as error:
            refused.append(_refusal(file, one, error))
    for schedule_id in vanished:
        entries = decide_switch(living[schedule_id], "disable", Command(now, ACTOR), trigger_of)
        changes.append(Change(schedule_id, 0, "disabled", (), *_discards(living[schedule_id], entries, now)))
    return tuple(changes), tuple(refused)


def _planned(found: ScheduleState | None, one: Declared, origin: Provenance, command: Command) -> Change:
    check_not_deleted(one.schedule_id, deleted=found is not None and found.deleted > 0)
    wanted = parse_definition(one.fields)
    if found is None:
        decide_create(one.schedule_id, wanted, command, trigger_of)
        return Change(one.schedule_id, one.line, "created")
    same = is_as_declared(found, wanted)
    entries = () if same else decide_edit(found, wanted, found.revision, command, trigger_of)
    changed = next((entry.changed for entry in entries if isinstance(entry, ScheduleEdited)), ())
    returned = bool(found.disabled) and one.schedule_id in origin.disabled_by_us
    if returned:
        entries += decide_switch(found, "enable", command, trigger_of)
    outcome: Outcome = "unchanged"
    if entries:
        outcome = "edited and enabled" if changed and returned else "edited" if changed else "enabled"
    return Change(one.schedule_id, one.line, outcome, changed, *_discards(found, entries, command.at))


def _discards(found: ScheduleState, entries: Sequence[Entry], now: datetime) -> tuple[tuple[datetime, ...], bool]:
    """The instants that these entries take, and whether there are more."""
    taken = [entry.scheduled_at for entry in entries if isinstance(entry, OccurrenceSkipped)]
    spans = [
        (entry.covers_after, entry.covers_through)
        for entry in entries
        if isinstance(entry, ScheduleEdited | ScheduleEnabled | ScheduleDisabled)
    ]
    if not spans or found.exhausted:
        return tuple(taken), False
    try:
        due = due_instants(trigger_of(found.definition.trigger), found.consumed_through, now, found.kept)
    except TriggerError:
        return tuple(taken), False
    through = max(through for _, through in spans)
    taken.extend(instant for instant in due.instants if instant <= through)
    return tuple(sorted(taken)), due.capped and bool(due.instants) and due.seen + 1 >= SCAN_CAP


def _refusal(file: ScheduleFile, one: Declared, error: SchedulerError) -> Problem:
    return Problem(file.source, one.line, 1, f"{one.schedule_id}: {error.message}", error.hint)


def described(changes: Iterable[Change]) -> str:
    """The changes in a few words."""
    counts: dict[str, int] = {}
    for change in changes:
        counts[change.outcome] = counts.get(change.outcome, 0) + 1
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items()) or "no schedules"
