"""One readable line per entry: what was decided and why, from the entry alone.

Rules kept here: pure; every kind of entry has its sentence (`assert_never` holds that); texts of the host appear as
they are, so whoever prints a line to a terminal makes it printable first.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TypeAlias, assert_never

from duly.journal.entries import (
    AttemptCleared,
    CalendarChanged,
    CandidateHeld,
    Checkpoint,
    ClockJumped,
    ClockRegressed,
    CronRule,
    Definition,
    Entry,
    EntryLost,
    ErrorInfo,
    EveryRule,
    ExternalRunRecorded,
    IntervalSkipped,
    JournalClosed,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    OncePerRule,
    OneShotRule,
    ResumeMarked,
    RunAbandoned,
    RunAdmittedManually,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunNoted,
    RunStarted,
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
    SourceRule,
    TriggerRule,
)
from duly.scheduler.instants import describe_instant
from duly.tools.given import LONGEST_COMMAND, as_json, command_of, cut, describe_limits
from duly.tools.moments import describe_duration, describe_roughly

REASONS: dict[SkipReason, str] = {
    "misfire": "too late",
    "backlog": "backlog",
    "overlap": "a run of it is not over",
    "capacity": "no free task slot",
    "preflight": "refused by preflight",
    "spent": "its period is spent",
    "paused": "paused",
    "edited": "the schedule was edited",
    "deleted": "the schedule was deleted",
    "disabled": "disabled",
    "operator": "by an operator",
}
LONGEST_VALUE = 80
Moving: TypeAlias = (
    ScheduleCreated
    | ScheduleEdited
    | SchedulePaused
    | ScheduleUnpaused
    | ScheduleDisabled
    | ScheduleEnabled
    | ScheduleDeleted
)
"""The entries that move a schedule's watermark by themselves."""


def describe_entry(entry: Entry) -> str:  # noqa: PLR0911, PLR0912 - one case for each kind
    """What this entry records, in one line without its sequence, its clock reading and its schedule."""
    match entry:
        case ScheduleCreated(definition=definition):
            return f"created: {describe_definition(definition)}{_moved(entry)}{_by(entry)}"
        case ScheduleEdited(definition=definition, revision=revision, changed=changed):
            what = f" ({', '.join(changed)})" if changed else ""
            return f"edited to revision {revision}{what}: {describe_definition(definition)}{_moved(entry)}{_by(entry)}"
        case SchedulePaused():
            return f"paused{_moved(entry)}{_by(entry)}"
        case ScheduleUnpaused():
            return f"unpaused{_moved(entry)}{_by(entry)}"
        case ScheduleDisabled():
            return f"disabled{_moved(entry)}{_by(entry)}"
        case ScheduleEnabled():
            return f"enabled{_moved(entry)}{_by(entry)}"
        case ScheduleDeleted():
            return f"deleted{_moved(entry)}{_by(entry)}"
        case ScheduleBlocked(cause=cause, reason=reason):
            return f"BLOCKED ({cause}): {reason}{_by(entry)}"
        case ScheduleUnblocked():
            return f"unblocked{_by(entry)}"
        case ScheduleRebaselined(through=through, regressed=regressed):
            way = "moved back" if regressed else "moved"
            covered = _covered(entry.covers_after, through)
            return f"watermark {way} to {describe_instant(through)}{covered}{_ending(entry.exhausts)}{_by(entry)}"
        case ExternalRunRecorded(started_at=started_at):
            return f"external run recorded, started {describe_instant(started_at)}{_by(entry)}"
        case CalendarChanged(was=was, next=next_one):
            then = describe_instant(next_one) if next_one is not None else "never"
            return f"calendar changed: {describe_instant(was)} is no longer an occurrence; the next one: {then}"
        case OccurrenceAdmitted(scheduled_at=scheduled_at):
            return f"admitted {describe_instant(scheduled_at)}{_late(entry.at, scheduled_at)}{_ending(entry.exhausts)}"
        case OccurrenceSkipped(scheduled_at=scheduled_at):
            return f"skipped {describe_instant(scheduled_at)}: {_skip_reason(entry)}{_ending(entry.exhausts)}"
        case OccurrenceSuperseded(scheduled_at=scheduled_at, by=by):
            return f"superseded {describe_instant(scheduled_at)} by {describe_instant(by)}"
        case IntervalSkipped(after=after, before=before, at_least=at_least, reason=reason):
            between = f"between {describe_instant(after)} and {describe_instant(before)}"
            why = f"superseded by {describe_instant(before)}" if reason == "superseded" else "skipped: backlog"
            return f"at least {at_least} occurrences {between} {why}"
        case CandidateHeld(scheduled_at=scheduled_at):
            return f"held {describe_instant(scheduled_at)} until a task slot is free"
        case RunAdmittedManually(target=target):
            return f"manual run of {target} admitted{_by(entry)}"
        case RunStarted(run_id=run_id):
            return f"run {run_id} started"
        case RunNoted(run_id=run_id, data=data):
            return f"run {run_id} noted: {_value(data)}"
        case RunCompleted(run_id=run_id, result=result):
            return f"run {run_id} completed{_of(entry.attempt_id)}{_with(result)}"
        case RunFailed(run_id=run_id, error=error):
            return f"run {run_id} failed{_of(entry.attempt_id)}: {describe_error(error)}"
        case RunInterrupted(run_id=run_id, checkpoint=checkpoint):
            return f"run {run_id} interrupted, can be resumed{_of(entry.attempt_id)}{_with(checkpoint)}"
        case ResumeMarked(run_id=run_id):
            return f"run {run_id} resumed by a new attempt"
        case AttemptCleared(run_id=run_id, attempt_id=attempt_id):
            return f"attempt {attempt_id} of run {run_id} is done"
        case RunAbandoned(run_id=run_id):
            return f"run {run_id} abandoned{_of(entry.attempt_id)}: {describe_abandonment(entry)}"
        case JournalOpened() | JournalClosed():
            return _ownership(entry)
        case ClockRegressed(highest=highest, tolerance=tolerance):
            back = describe_duration(highest - entry.at)
            return f"CLOCK went back {back} from {describe_instant(highest)} (tolerance {describe_duration(tolerance)})"
        case ClockJumped(ahead=ahead):
            return f"CLOCK ran ahead by {describe_duration(ahead)}"
        case Checkpoint(part=part, parts=parts, through=through):
            return f"checkpoint of everything through entry {through}, part {part} of {parts}"
        case EntryLost():
            return "LOST: an entry stood here that salvage could not read"
        case _:
            assert_never(entry)


def describe_error(error: ErrorInfo) -> str:
    """Why a run failed: the error's type, where one was reported, and its message."""
    return ": ".join(part for part in (error.type, error.message) if part) or "no reason was given"


def describe_abandonment(entry: RunAbandoned) -> str:
    """Why a run was given up."""
    match entry.cause:
        case "crash":
            reason = "its process died; external effects may have happened; it is never retried"
        case "ambiguous":
            reason = "the outcome of its attempt cannot be told; it is never retried"
        case "operator":
            reason = "by an operator"
        case _:
            assert_never(entry.cause)
    return f"{entry.detail or reason}{_signed(entry.actor, entry.note)}"


def describe_definition(definition: Definition) -> str:
    """When, what and by which policies; policies that are the default are left out."""
    parts = [f"{describe_trigger(definition.trigger)} -> {definition.target}"]
    command = command_of(definition.input)
    if command:
        parts.append(as_json(cut(command, LONGEST_COMMAND)))
    if definition.target_revision is not None:
        parts.append(f"revision={definition.target_revision}")
    if definition.overlap != "skip":
        parts.append(f"overlap={definition.overlap} max={definition.max_active_runs}")
    if definition.misfire != "latest":
        parts.append(f"misfire={definition.misfire}")
    if definition.lateness.total_seconds() != 60:
        parts.append(f"lateness={describe_duration(definition.lateness)}")
    if definition.limits:
        parts.append(describe_limits(definition.limits))
    return " ".join(parts)


def describe_trigger(rule: TriggerRule) -> str:
    """The rule as it would be written down."""
    match rule:
        case CronRule(expression=expression, zone=zone, fold=fold):
            return f"{expression} {zone}" + (f" fold={fold}" if fold != "both" else "")
        case OneShotRule(at=at):
            return f"once at {describe_instant(at)}"
        case OncePerRule(period=period, zone=zone):
            return f"once per {period} {zone}"
        case EveryRule(count=count, unit=unit, at=at, zone=zone, anchor=anchor):
            when = f" at {at} {zone}" if at is not None else ""
            return f"every {count} {unit}{'s' if count != 1 else ''}{when} from {anchor}"
        case SourceRule(source=source):
            return f"source {source}"
        case _:
            assert_never(rule)


def _skip_reason(entry: OccurrenceSkipped) -> str:
    parts = [REASONS[entry.reason] if entry.blocking_run is None else f"run {entry.blocking_run} is not over"]
    if entry.by is not None:
        parts.append(f"by entry {entry.by}")
    if entry.detail:
        parts.append(entry.detail)
    if entry.reason in ("misfire", "capacity"):
        parts.append(f"{describe_roughly(entry.at - entry.scheduled_at)} late")
    return ", ".join(parts)


def _ownership(entry: JournalOpened | JournalClosed) -> str:
    by = f" by {entry.actor}" if entry.actor else ""
    match entry:
        case JournalOpened(host=host, pid=pid, duly=duly, torn=torn):
            cut = "".join(f"; torn tail of {tail.size} bytes kept in {tail.kept}" for tail in torn)
            return f"journal opened{by} on {host}, process {pid}, duly {duly}, {entry.task_slots} task slots{cut}"
        case JournalClosed():
            return f"journal closed{by}"
        case _:
            assert_never(entry)


def _late(at: datetime, scheduled_at: datetime) -> str:
    late = at - scheduled_at
    return f", {describe_roughly(late)} late" if late.total_seconds() >= 1 else ""


def _moved(entry: Moving) -> str:
    """What the entry covered, and whether anything is still to come."""
    return f"{_covered(entry.covers_after, entry.covers_through)}{_ending(entry.exhausts)}"


def _ending(exhausts: bool) -> str:
    return "; there are no more" if exhausts else ""


def _covered(after: datetime | None, through: datetime) -> str:
    if after is None or after == through:
        return ""
    return f"; what lay after {describe_instant(after)} through {describe_instant(through)} does not run"


def _of(attempt_id: int | None) -> str:
    return f" in attempt {attempt_id}" if attempt_id is not None else ""


def _with(value: object) -> str:
    return f": {_value(value)}" if value is not None else ""


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _by(entry: Entry) -> str:
    return _signed(getattr(entry, "actor", ""), getattr(entry, "note", ""))


def _signed(actor: str, note: str) -> str:
    said = ": ".join(part for part in (f"by {actor}" if actor else "", note) if part)
    return f" ({said})" if said else ""
