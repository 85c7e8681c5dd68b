"""`duly schedules`, `duly show` and `duly runs`: what there is, as the record has it.

Rules kept here: what is shown is the folded state, and the next due instant asked of the trigger; a schedule that this
machine cannot evaluate is shown with the reason; nothing is written.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
import msgspec

from duly.journal.entries import TriggerRule
from duly.projections import Run, Schedule, State
from duly.projections import replay as replayed
from duly.scheduler.decisions.occurrences import next_instant
from duly.scheduler.errors import TriggerError
from duly.scheduler.instants import describe_instant
from duly.scheduler.triggers import trigger_of
from duly.scheduler.unknown import unknown_schedule
from duly.scheduler.zones import zone_of
from duly.tools.describe import describe_error, describe_trigger
from duly.tools.given import command_of, cut, describe_inputs, describe_limits
from duly.tools.moments import describe_duration, describe_span
from duly.tools.options import journal_argument, journal_option, output_options
from duly.tools.output import Output, working

LONGEST_CELL = 40
STATES = ("pending", "started", "interrupted", "completed", "failed", "abandoned")


@click.command(short_help="The schedules there are.")
@journal_argument
@click.option("--deleted", is_flag=True, help="The deleted ones too.")
@output_options
def schedules(journal: str, deleted: bool, output: Output) -> None:
    """Print every schedule: when it runs, what, in which state it is, and what is next to be decided.

    \b
    Example: duly schedules state/
    """
    with working("replaying"):
        state = replayed(journal)
    found = state.schedules(deleted=deleted)
    if not output.for_people:
        output.rows("duly.schedules/1", {}, "schedules", (_schedule_row(state, one) for one in found))
    elif found:
        rows = [(one.id, describe_trigger(one.trigger), _runs(one), _states(one), _next(state, one)) for one in found]
        output.table(("schedule", "when", "runs", "state", "next (UTC)"), rows)
    else:
        output.line("there are no schedules")


@click.command(short_help="One schedule, with all that is known of it.")
@click.argument("schedule")
@journal_option
@output_options
def show(schedule: str, journal: str, output: Output) -> None:
    """Print SCHEDULE: its definition, its state, what it holds, and what is next.

    \b
    Example: duly show nightly -j state/
    """
    with working("replaying"):
        state = replayed(journal)
    found = state.find(schedule)
    if found is None:
        raise unknown_schedule(schedule, state.by_id)
    if output.for_people:
        output.grid(((name, text), "") for name, text in _facts(state, found).items() if text)
    else:
        output.document("duly.show/1", _schedule_row(state, found))


@click.command(short_help="The runs that are open, and those that ended lately.")
@journal_argument
@click.option("-s", "--schedule", "wanted", multiple=True, metavar="ID", help="Only this schedule; can be repeated.")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Only these; can be repeated.")
@click.option("-n", "--last", type=click.IntRange(min=0), metavar="N", help="Only the last N of them.")
@output_options
def runs(journal: str, wanted: tuple[str, ...], states: tuple[str, ...], last: int | None, output: Output) -> None:
    """Print runs, oldest first: of which occurrence, in which state, since when, and what went wrong.

    \b
    Example: duly runs state/ --state started
    """
    with working("replaying"):
        state = replayed(journal)
    for schedule_id in wanted:
        if schedule_id not in state.by_id:
            raise unknown_schedule(schedule_id, state.by_id)
    found = [
        run for run in state.runs() if (not wanted or run.schedule_id in wanted) and (not states or run.state in states)
    ]
    if last is not None:
        found = found[max(len(found) - last, 0) :]
    if not output.for_people:
        output.rows("duly.runs/1", {}, "runs", map(_run_row, found))
    elif found:
        columns = ("run", "schedule", "scheduled", "state", "started", "took", "error")
        output.table(columns, map(_run_cells, found), right=("run",), whole=("scheduled", "state", "started"))
    else:
        output.line("there are no runs")


def _next_due(state: State, schedule: Schedule[TriggerRule]) -> datetime | None:
    """The first instant that is to be decided, or None. Raises TriggerError."""
    if schedule.deleted or schedule.exhausted:
        return None
    found = state.by_id[schedule.id]
    return next_instant(trigger_of(schedule.trigger), found.consumed_through, found.kept)


def _next(state: State, schedule: Schedule[TriggerRule]) -> str:
    try:
        due = _next_due(state, schedule)
    except TriggerError as error:
        return f"cannot be evaluated: {error}"
    return describe_instant(due) if due is not None else "-"


def _runs(schedule: Schedule[TriggerRule]) -> str:
    """What it runs: the command where its input says one, else the target."""
    command = command_of(schedule.input)
    return cut(command, LONGEST_CELL) if command else schedule.target


def _states(schedule: Schedule[TriggerRule]) -> str:
    states = {
        "deleted": schedule.deleted,
        "BLOCKED": schedule.blocked is not None,
        "paused": schedule.paused,
        "disabled": schedule.disabled,
        "exhausted": schedule.exhausted,
        "held": schedule.candidate is not None,
        f"{len(schedule.active_runs)} active": bool(schedule.active_runs),
    }
    return ", ".join(name for name, holds in states.items() if holds)


def _facts(state: State, schedule: Schedule[TriggerRule]) -> dict[str, str]:
    most = f", at most {schedule.max_active_runs} at once" if schedule.max_active_runs is not None else ""
    blocked = schedule.blocked
    following = _next(state, schedule)
    try:
        due = _next_due(state, schedule)
        if due is not None:
            zone = zone_of(getattr(schedule.trigger, "zone", None) or "UTC")
            following += f", {zone.local(due):%a %Y-%m-%d %H:%M %Z}"
    except TriggerError:
        pass  # `following` says why
    pinned = f" at revision {schedule.target_revision}" if schedule.target_revision is not None else ""
    return {
        "schedule": schedule.id,
        "revision": str(schedule.revision),
        "when": describe_trigger(schedule.trigger),
        "target": f"{schedule.target}{pinned}",
        "command": command_of(schedule.input),
        "input": describe_inputs(schedule.input),
        "limits": describe_limits(schedule.limits),
        "overlap": f"{schedule.overlap}{most}",
        "misfire": schedule.misfire,
        "lateness": describe_duration(schedule.lateness),
        "state": _states(schedule) or "live",
        "blocked": f"since #{blocked.sequence}, by {blocked.cause}: {blocked.reason}" if blocked is not None else "",
        "held": describe_instant(schedule.candidate) if schedule.candidate is not None else "",
        "active runs": ", ".join(map(str, schedule.active_runs)),
        "created": describe_instant(schedule.created_at),
        "decided": f"through {describe_instant(schedule.consumed_through)}",
        "next": following,
    }


def _schedule_row(state: State, schedule: Schedule[TriggerRule]) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(schedule)
    try:
        due = _next_due(state, schedule)
        row |= {"next_due": describe_instant(due) if due is not None else None, "fault": ""}
    except TriggerError as error:
        row |= {"next_due": None, "fault": str(error)}
    return row


def _run_row(run: Run) -> dict[str, Any]:
    row: dict[str, Any] = {"id": run.id, "occurrence_id": run.occurrence_id}
    row.update(msgspec.to_builtins(run))
    return row


def _run_cells(run: Run) -> tuple[object, ...]:
    abandoned = run.state == "abandoned"
    error = describe_error(run.error) if run.error is not None else ""
    return (
        run.id,
        run.schedule_id or "-",
        describe_instant(run.scheduled_at) if run.scheduled_at is not None else "by hand",
        run.state,
        describe_instant(run.started_at) if run.started_at is not None else "",
        "" if abandoned else describe_span(run.started_at, run.ended_at),
        error,
    )
