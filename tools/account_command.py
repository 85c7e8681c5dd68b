"""`duly account`: does every occurrence that came due have exactly one disposition?

Rules kept here: the counting is `duly.scheduler.accounting`'s; what is wrong is listed, and where the calendar changed
the versions are named; nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click
import msgspec

from duly.scheduler.accounting import Account, ScheduleAccount
from duly.scheduler.accounting import account as counted
from duly.scheduler.cron import croniter_version
from duly.scheduler.instants import describe_instant
from duly.scheduler.zones import tzdata_version
from duly.tools.exit_codes import BAD, FINE
from duly.tools.options import INSTANT, journal_argument, output_options
from duly.tools.output import Output, working
from duly.tools.wording import lost_entries

MOST_LISTED = 20
"""How many instants of one kind a table lists; JSON has them all."""


@click.command(short_help="Does every occurrence have exactly one disposition?")
@journal_argument
@click.option("--since", type=INSTANT, metavar="INSTANT", help="Only the occurrences from this instant on.")
@output_options
@click.pass_context
def account(context: click.Context, journal: str, since: datetime | None, output: Output) -> None:
    """Compute every schedule's occurrences anew from its trigger's history, and match them with the record.

    The exit code is 1 if any is unaccounted for, was decided twice, or was decided without being an occurrence,
    or if entries of the record are lost: schedules may be among them.

    \b
    Example: duly account state/ --since 2026-03-01T00:00:00Z
    """
    with working("counting"):
        found = counted(journal, since=since)
    if output.for_people:
        _show(output, found)
    else:
        output.document("duly.account/1", _document(found, since))
    context.exit(FINE if found.balanced else BAD)


def _show(output: Output, found: Account) -> None:
    if found.schedules:
        columns = ("schedule", "due", "admitted", "skipped", "superseded", "held", "waiting", "covered")
        wrong = ("unaccounted", "double", "foreign")
        rows = [[_cell(cell) for cell in _figures(one)] for one in found.schedules]
        output.table((*columns, *wrong), rows, right=(*columns[1:], *wrong), dispensable=(*columns[3:], *wrong))
        output.line()
    for one in found.schedules:
        for name, instants in _wrong(one):
            listed = ", ".join(describe_instant(instant) for instant in instants[:MOST_LISTED])
            more = f" and {len(instants) - MOST_LISTED} more" if len(instants) > MOST_LISTED else ""
            output.line(f"{one.schedule_id}: {name}: {listed}{more}", style="bold red")
        if one.fault:
            output.line(f"{one.schedule_id}: cannot be counted: {one.fault}", style="bold red")
        if not one.balanced and one.calendar_changed is not None:
            changed = one.calendar_changed
            versions = f"croniter {changed.croniter}, tzdata {changed.tzdata}"
            output.line(f"{one.schedule_id}: calendar changed at {describe_instant(changed.at)}, with {versions}")
        if not one.exact:
            output.line(f"{one.schedule_id}: a long span, or much that waits, was not counted to its end")
    if not found.balanced:
        used = (croniter_version(), tzdata_version())
        if any(calendar != used for calendar in found.calendars):
            had = "; ".join(f"croniter {croniter}, tzdata {tzdata}" for croniter, tzdata in found.calendars)
            output.line(
                f"the record was made with {had}; this machine counts with croniter {used[0]}, tzdata {used[1]}"
            )
    if found.lost:
        lost = f"{lost_entries(found.lost)} before this journal was salvaged"
        output.line(f"{lost}, and schedules may be among them: those are not counted", style="bold red")
    double = sum(len(one.double) for one in found.schedules)
    foreign = sum(len(one.foreign) for one in found.schedules)
    ending = f", as of {describe_instant(found.now)}" if found.now is not None else ""
    style = "green" if found.balanced else "bold red"
    output.line(f"unaccounted: {found.unaccounted}, double: {double}, foreign: {foreign}{ending}", style=style)


def _figures(one: ScheduleAccount) -> list[object]:
    counts = one.counts
    skipped = counts["skipped"] + counts["interval:backlog"]
    superseded = counts["superseded"] + counts["interval:superseded"]
    decided = [one.due, counts["admitted"], skipped, superseded, counts["held"], counts["waiting"]]
    covered = counts["covered"] + counts["kept"]
    return [one.schedule_id, *decided, covered, len(one.unaccounted), len(one.double), len(one.foreign)]


def _cell(value: object) -> object:
    return value if isinstance(value, str) else f"{value:,}"


def _wrong(one: ScheduleAccount) -> Iterator[tuple[str, list[datetime]]]:
    for name, instants in (
        ("unaccounted", one.unaccounted),
        ("decided twice", one.double),
        ("decided, though it is no occurrence", one.foreign),
    ):
        if instants:
            yield name, instants


def _document(found: Account, since: datetime | None) -> dict[str, Any]:
    return {
        "balanced": found.balanced,
        "now": describe_instant(found.now) if found.now is not None else None,
        "since": describe_instant(since) if since is not None else None,
        "unaccounted": found.unaccounted,
        "double": sum(len(one.double) for one in found.schedules),
        "foreign": sum(len(one.foreign) for one in found.schedules),
        "lost": found.lost,
        "calendars": [{"croniter": croniter, "tzdata": tzdata} for croniter, tzdata in found.calendars],
        "counted_with": {"croniter": croniter_version(), "tzdata": tzdata_version()},
        "schedules": [_row(one) for one in found.schedules],
    }


def _row(one: ScheduleAccount) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(one)
    row["counts"] = dict(sorted(one.counts.items()))
    return row
