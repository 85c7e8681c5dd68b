"""How each schedule stands after `duly run --once`: one line each, that says why it ran, or why it did not.

Rules kept here: from the record and what this invocation has seen; a healthy wait, a failure and a schedule that needs
help never share a line, nor the exit code.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

from duly.journal import read
from duly.journal.entries import (
    Entry,
    ExternalRunRecorded,
    IntervalSkipped,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    OncePerRule,
    Period,
)
from duly.projections import Run, State
from duly.projections.indexed import IndexedJournal
from duly.projections.runs import RunState
from duly.projections.schedules import ScheduleState
from duly.scheduler.decisions.occurrences import due_instants, next_instant
from duly.scheduler.errors import TriggerError
from duly.scheduler.explaining import explain
from duly.scheduler.instants import describe_instant
from duly.scheduler.periods import period_end, period_start
from duly.scheduler.triggers import trigger_of
from duly.scheduler.zones import zone_of
from duly.tools.describe import describe_entry, describe_error
from duly.tools.doctoring import troubles_of
from duly.tools.exit_codes import BAD, FINE, NEEDS_HELP

Gravity: TypeAlias = Literal["fine", "failed", "help"]
CODES: Final[dict[Gravity, int]] = {"fine": FINE, "failed": BAD, "help": NEEDS_HELP}
WITHIN: Final[dict[Period, str]] = {"day": "today", "week": "this week", "month": "this month"}
ACTIVE: Final[dict[RunState, str]] = {
    "pending": "admitted, waits for a task slot",
    "started": "still running",
    "interrupted": "interrupted, goes on with --resume",
}
UNSEEN: Final = (
    "its host ended before it did, and nobody saw how it went: look at what it has done before you run it again"
)
SKIPS: Final = (OccurrenceSkipped, OccurrenceSuperseded, IntervalSkipped)


@dataclass(frozen=True, slots=True)
class Standing:
    """What there is to say about a schedule; `run_id` where it is about a run."""

    schedule_id: str
    gravity: Gravity
    text: str
    run_id: int | None = None


@dataclass(frozen=True, slots=True)
class Invocation:
    """What one invocation has seen: the runs that ended in it, the entries that its polls made, and the time."""

    journal: IndexedJournal
    now: datetime
    ended: Sequence[Run]
    decisions: Sequence[Entry]


def standings(state: State, seen: Invocation) -> tuple[Standing, ...]:
    """How every living schedule stands, by id; and the runs that belong to none, or to one that is deleted."""
    living = {name: found for name, found in sorted(state.by_id.items()) if not found.deleted}
    rows = [row for found in living.values() for row in _of(state, found, seen)]
    rows.extend(_of_run(run.schedule_id or "-", run, None) for run in seen.ended if run.schedule_id not in living)
    return tuple(rows)


def exit_code_of(rows: Sequence[Standing]) -> int:
    """The worst of what was found: starving or blocked before failed, failed before fine."""
    gravities = {row.gravity for row in rows}
    worst: Gravity = "help" if "help" in gravities else "failed" if "failed" in gravities else "fine"
    return CODES[worst]


def _of(state: State, found: ScheduleState, seen: Invocation) -> Iterator[Standing]:
    ran = [run for run in seen.ended if run.schedule_id == found.id]
    yield from (_of_run(found.id, run, found) for run in ran)
    place = shlex.quote(str(seen.journal.path))
    troubles = [one for one in troubles_of(found, seen.now, place) if one.gravity == "help"]
    for trouble in troubles:
        word = "BLOCKED" if trouble.code == "blocked" else "STARVING"
        yield Standing(found.id, "help", f"{word}: {trouble.text}. To mend it: {trouble.remedy}")
    if not ran and not troubles:
        text, run_id = _why_not(state, found, seen)
        yield Standing(found.id, "fine", text, run_id)


def _of_run(name: str, run: Run, found: ScheduleState | None) -> Standing:
    what = f"run {run.id}"
    if run.scheduled_at is not None and found is not None:
        what = f"{_local(run.scheduled_at, found, run.ended_at or run.admitted_at)}, run {run.id}"
    match run.state:
        case "completed":
            return Standing(name, "fine", f"ran ({what}): completed", run.id)
        case "interrupted":
            text = f"interrupted ({what}): it can go on, with duly run --resume"
            return Standing(name, "fine", text, run.id)
        case _:
            error = UNSEEN if run.error is None else describe_error(run.error)
            return Standing(name, "failed", f"FAILED ({what}): {error}", run.id)


def _why_not(state: State, found: ScheduleState, seen: Invocation) -> tuple[str, int | None]:
    """Why nothing of it ran in this invocation, and the run that this is about."""
    if found.paused or found.disabled:
        word, sequence = ("paused", found.paused) if found.paused else ("disabled", found.disabled)
        return f"{word} since entry {sequence}", None
    for run_id in found.active:
        run = state.known_run(run_id)
        if run is not None:
            since = _local(run.started_at or run.admitted_at, found, seen.now)
            return f"{ACTIVE[run.state]} (run {run_id}, since {since})", run_id
    waits = _waits(found, seen.now)
    if waits is not None:
        return f"waits for a task slot ({_local(waits, found, seen.now)})", None
    spent = _spent(state, found, seen)
    if spent is not None:
        return spent
    skips = [entry for entry in seen.decisions if isinstance(entry, SKIPS) and entry.schedule_id == found.id]
    return describe_entry(skips[-1]) if skips else _not_due(found), None


def _not_due(found: ScheduleState) -> str:
    if found.exhausted:
        return "finished: there are no more occurrences"
    try:
        coming = next_instant(trigger_of(found.definition.trigger), found.consumed_through, found.kept)
    except TriggerError as error:
        return f"its trigger cannot be evaluated here: {error.message}"
    return "not due: there are no more" if coming is None else f"not due: the next is {describe_instant(coming)}"


def _waits(found: ScheduleState, now: datetime) -> datetime | None:
    if found.candidate is not None:
        return found.candidate
    if found.exhausted:
        return None
    try:
        due = due_instants(trigger_of(found.definition.trigger), found.consumed_through, now, found.kept)
    except TriggerError:
        return None
    return due.instants[0] if due.instants else None


def _spent(state: State, found: ScheduleState, seen: Invocation) -> tuple[str, int | None] | None:
    """What spent the current calendar period of a schedule that runs once in each."""
    rule = found.definition.trigger
    if not isinstance(rule, OncePerRule):
        return None
    start, end = period_start(seen.now, rule.period, rule.zone), period_end(seen.now, rule.period, rule.zone)
    within = WITHIN[rule.period]
    for stamp, sequence in found.spent or ():
        if start <= stamp < end:
            entry = next(read(seen.journal.path, after=sequence - 1)).entry
            if isinstance(entry, ExternalRunRecorded):
                by = f" (entry {sequence}{f', recorded by {entry.actor}' if entry.actor else ''})"
                return f"spent by an external run stamped {stamp:%Y-%m-%d}{by}", None
            by_hand = state.known_run(sequence)
            what = "" if by_hand is None else _unlike_completed(by_hand.state)
            return f"already ran {within}, by hand (run {sequence}, {_local(stamp, found, seen.now)}{what})", sequence
    run = explain(seen.journal, found.id, start, now=seen.now).run
    if run is None:
        return None
    at = _local(run.admitted_at, found, seen.now)
    return f"already ran {within} (run {run.run_id}, {at}{_unlike_completed(run.state)})", run.run_id


def _unlike_completed(state: RunState) -> str:
    if state == "interrupted":
        return "; it is interrupted, and goes on with --resume"
    return "" if state == "completed" else f"; it is {state}"


def _local(instant: datetime, found: ScheduleState, now: datetime) -> str:
    """The instant on the schedule's own wall: the time, and the date where it is another day's."""
    zone = zone_of(getattr(found.definition.trigger, "zone", None) or "UTC")
    there, today = zone.local(instant), zone.local(now)
    return f"{there:%H:%M}" if there.date() == today.date() else f"{there:%Y-%m-%d %H:%M}"
