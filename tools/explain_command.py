"""`duly explain`: why did it, or did it not, run then?

Rules kept here: what is told comes from `duly.scheduler.explaining`; a local time is meant in the schedule's own zone,
and what a change of the clocks does to it is said; nothing is written.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import click
import msgspec

from duly.journal.entries import ScheduleCreated, ScheduleEdited, TriggerRule
from duly.projections.indexed import IndexedJournal
from duly.scheduler.clock import SystemClock
from duly.scheduler.errors import DefinitionError
from duly.scheduler.explaining import explain_all
from duly.scheduler.explanations import Explanation, RunFacts, SlotTaken
from duly.scheduler.instants import describe_instant, in_range
from duly.scheduler.lookups import Record, about
from duly.scheduler.unknown import unknown_schedule
from duly.scheduler.zones import WALL_EPOCH, Zone, zone_of
from duly.tools.describe import describe_definition, describe_entry, describe_error
from duly.tools.exit_codes import BAD, FINE
from duly.tools.moments import describe_duration, describe_roughly, parse_instant
from duly.tools.now_option import now_option
from duly.tools.options import journal_option, output_options
from duly.tools.output import Output, working
from duly.tools.upcoming import clock_changes, describe_change
from duly.tools.wording import command_about

BAD_ANSWERS = frozenset({"none", "unknown", "unaccounted"})
SCHEMA = "duly.explain/1"
HEADLINES = {
    "covered": "does not run",
    "kept": "counts as decided",
    "projected": "lies ahead (projected)",
    "ended": "never comes due",
    "none": "is no occurrence",
    "unknown": "cannot be told",
    "unaccounted": "is UNACCOUNTED for",
}


@click.command(short_help="What became of one occurrence, and why.")
@click.argument("schedule")
@click.argument("instant")
@journal_option
@now_option
@output_options
@click.pass_context
def explain(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context, schedule: str, instant: str, journal: str, now: datetime | None, output: Output
) -> None:
    """Tell what became of the occurrence of SCHEDULE at INSTANT: by which rule, which revision, at which clock reading.

    INSTANT is an ISO date and time; without an offset it is local time in the schedule's zone. The exit code is 1 if
    there is no occurrence then, or if it cannot be told.

    \b
    Example: duly explain nightly "2026-03-08 02:30" -j state/
    """
    with working("reading"):
        record = IndexedJournal(journal)
        zone = zone_in(record, schedule)
        instants, remark = parse_moment(instant, zone)
        found = explain_all(record, schedule, instants, now=now or SystemClock().now())
    if output.for_people:
        if remark:
            output.line(remark)
        for one in found:
            show_explanation(output, one, zone, journal)
    else:
        rows = (explanation_row(one, zone) for one in found)
        subject = {"schedule_id": schedule, "asked": instant, "zone": zone.name, "remark": remark}
        output.rows(SCHEMA, subject, "explanations", rows)
    context.exit(BAD if any(one.disposition in BAD_ANSWERS for one in found) else FINE)


def zone_in(journal: Record, schedule_id: str) -> Zone:
    """The zone that a schedule's times are meant in: that of its newest revision, UTC if this machine does not know it.

    Raises UnknownSchedule.
    """
    rule: TriggerRule | None = None
    for _, entry in about(journal, schedule_id):
        if isinstance(entry, ScheduleCreated | ScheduleEdited) and entry.schedule_id == schedule_id:
            rule = entry.definition.trigger
    if rule is None:
        raise unknown_schedule(schedule_id, ())
    return zone_of_rule(rule)


def zone_of_rule(rule: TriggerRule) -> Zone:
    """The zone that a trigger's times are meant in, UTC if it has none or this machine does not know it."""
    try:
        return zone_of(getattr(rule, "zone", None) or "UTC")
    except DefinitionError:
        return zone_of("UTC")


def parse_moment(text: str, zone: Zone) -> tuple[list[datetime], str]:
    """The instants that a text stands for, and what a change of the clocks does to a local time."""
    try:
        local = datetime.fromisoformat(text.strip())
    except ValueError:
        raise click.UsageError(
            f"{text!r} is not an instant: write it as 2026-03-29T01:00:00Z, or as local time, 2026-03-29 02:30."
        ) from None
    try:
        instants, remark = ([parse_instant(text)], "") if local.tzinfo is not None else _of_wall(local, zone)
    except ValueError as error:
        raise click.UsageError(f"{error}: duly knows 1972 … 2100.") from None
    if not all(in_range(instant) for instant in instants):
        raise click.UsageError(f"{text!r} lies outside of 1972 … 2100, the years duly knows.")
    return instants, remark


def _of_wall(local: datetime, zone: Zone) -> tuple[list[datetime], str]:
    if not 1971 <= local.year <= 2101:
        raise click.UsageError(f"{local} lies outside of 1972 … 2100, the years duly knows.")
    whole = local.replace(microsecond=0)
    stamps = zone.occurrences_of(round((whole - WALL_EPOCH).total_seconds()))
    instants = [datetime.fromtimestamp(stamp, UTC).replace(microsecond=local.microsecond) for stamp in stamps]
    if len(instants) == 2:
        passes = " and ".join(describe_instant(instant) for instant in instants)
        return instants, f"{local:%Y-%m-%d %H:%M} comes twice in {zone.name}: {passes}"
    shown = zone.local(instants[0])
    if shown.replace(tzinfo=None) == local:
        return instants, ""
    instants = [datetime.fromtimestamp(stamps[0], UTC)]
    [change] = clock_changes(zone, instants[0] - datetime.resolution, instants[0])
    there = f"{local:%H:%M} does not exist in {zone.name} on {local:%Y-%m-%d}: {change}"
    return instants, f"{there}; skipped times fire at {describe_instant(instants[0])}"


def explanation_row(one: Explanation, zone: Zone) -> dict[str, Any]:
    """The explanation as a JSON object."""
    row: dict[str, Any] = msgspec.to_builtins(one)
    row["local"] = zone.local(one.scheduled_at).isoformat()
    row["clocks"] = describe_change(zone, one.scheduled_at - datetime.resolution, one.scheduled_at)
    for step, told in zip(row["steps"], one.steps, strict=True):
        step["text"] = describe_entry(told.entry)
    return row


def show_explanation(output: Output, one: Explanation, zone: Zone, journal: str) -> None:
    """The explanation for people."""
    output.line(f"{one.occurrence_id} {headline(one)}", style="bold")
    output.grid((("", name, text), "") for name, text in explanation_lines(one, zone, journal))


def headline(one: Explanation) -> str:
    """What became of the occurrence, in a few words."""
    reason = f" ({one.reason})" if one.reason and one.disposition == "skipped" else ""
    return f"{HEADLINES.get(one.disposition, one.disposition)}{reason}"


def explanation_lines(one: Explanation, zone: Zone, journal: str) -> Iterator[tuple[str, str]]:
    """The explanation, line by line: what each is about, and its text as it is, so that whoever shows it makes it
    printable first."""
    yield "why", one.rule
    if one.detail and one.detail not in one.rule:
        yield "detail", one.detail
    clocks = describe_change(zone, one.scheduled_at - datetime.resolution, one.scheduled_at)
    yield "local", f"{zone.local(one.scheduled_at):%a %Y-%m-%d %H:%M:%S %Z} in {zone.name}{clocks and f'; {clocks}'}"
    yield from _decision(one)
    if one.revision is not None:
        made = one.revision
        by = f" by {made.actor}" if made.actor else ""
        note = f": {made.note}" if made.note else ""
        yield "revision", f"{made.revision}, made{by} at {describe_instant(made.at)} (entry {made.sequence}){note}"
        yield "schedule", describe_definition(made.definition)
    if one.superseded_by is not None:
        yield "gave way to", describe_instant(one.superseded_by)
    if one.run is not None:
        yield "run", describe_run(one.run)
    if one.blocking_run is not None:
        yield "blocked by", describe_run(one.blocking_run)
    if one.slots:
        yield "task slots", f"{one.task_slots}, taken from then on by:"
        for slot in one.slots:
            yield "", _slot(slot)
    for void in one.voided:
        was = f"{void.disposition} (entry {void.sequence})"
        yield "void", f"it was {was} before the clock went back: entry {void.by}, {describe_instant(void.at)}"
    for name, step in zip(["record", *[""] * len(one.steps)], one.steps, strict=False):
        yield name, f"{step.sequence}  {describe_instant(step.entry.at)}  {describe_entry(step.entry)}"
    if one.nearest:
        yield "nearest", " and ".join(describe_instant(instant) for instant in one.nearest)
    if one.remark:
        yield "remark", one.remark
    yield "more", way_on(one, journal)


def _decision(one: Explanation) -> Iterator[tuple[str, str]]:
    allowance = "its whole period is allowed"
    if one.allowance is not None:
        allowance = f"{describe_duration(one.allowance)} allowed"
    if one.decided_at is not None:
        late = ""
        if one.lateness is not None:
            late = f", {describe_roughly(one.lateness)} after its time ({allowance})"
        yield "decided", f"{describe_instant(one.decided_at)}{late}, entry {one.sequence}"
    elif one.lateness is not None:
        yield "undecided", f"at {describe_instant(one.now)}, {describe_roughly(one.lateness)} late ({allowance})"
    if one.summarised and one.through is not None:
        after = describe_instant(one.after) if one.after is not None else "the beginning"
        seen = f", at least {one.at_least} occurrences" if one.at_least else ""
        yield "summarised", f"with all after {after} through {describe_instant(one.through)}{seen}"


def describe_run(run: RunFacts) -> str:
    """A run in one line."""
    of = f" of {describe_instant(run.scheduled_at)}" if run.scheduled_at is not None else ", by hand"
    started = f", started {describe_instant(run.started_at)}" if run.started_at is not None else ""
    ended = f" {describe_instant(run.ended_at)}" if run.ended_at is not None else ""
    error = f": {describe_error(run.error)}" if run.error is not None else ""
    state = "still at work" if run.state == "started" else run.state
    return f"run {run.run_id}{of}{started}, {state}{ended}{error}"


def _slot(slot: SlotTaken) -> str:
    until = f"until {describe_instant(slot.until)}" if slot.until is not None else "and still then"
    return f"run {slot.run_id} of {slot.schedule_id or '-'}, since {describe_instant(slot.since)}, {until}"


def way_on(one: Explanation, journal: str) -> str:
    """The command that shows the entries behind an explanation."""
    place = shlex.quote(journal)
    if one.sequence is None or one.disposition == "none":
        return command_about(one.schedule_id, "history", place)
    sequences = [one.sequence, *[step.sequence for step in one.steps]]
    first, last = min(sequences), max(sequences)
    narrowed = f" -s {one.schedule_id}" if any(later - earlier > 1 for earlier, later in pairwise(sequences)) else ""
    return f"duly log -j {place}{narrowed} --since {first} --until {last}"
