"""`duly simulate`: what the schedules of a file would do between two instants.

Rules kept here: the simulating is `duly.scheduler.simulating`'s; nothing is executed, recorded or waited for; a file
with a line that is not understood is simulated without it, and the exit code is 1.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import Any

import click
import msgspec

from duly.journal.entries import Entry
from duly.scheduler.instants import describe_instant
from duly.scheduler.simulating import LIMIT, Simulation
from duly.scheduler.simulating import simulate as simulated
from duly.scheduler.zones import zone_of
from duly.tools.describe import describe_entry
from duly.tools.exit_codes import BAD, FINE
from duly.tools.localzone import local_zone
from duly.tools.moments import describe_duration
from duly.tools.options import INSTANT, output_options
from duly.tools.output import Output, terminal, working
from duly.tools.printable import printable
from duly.tools.schedule_file import ScheduleFile, read_schedule_file
from duly.tools.supposing import durations_option, joined_durations
from duly.tools.wording import counted

COLUMNS = ("admitted", "skipped", "superseded", "held")


@click.command(short_help="What would the schedules of a file do? Nothing is executed.")
@click.argument("file")
@click.option("--from", "start", type=INSTANT, required=True, metavar="INSTANT", help="From this instant on.")
@click.option("--to", "end", type=INSTANT, required=True, metavar="INSTANT", help="Up to this instant, excluded.")
@durations_option
@click.option("--slots", type=click.IntRange(1, 1_000_000), default=8, show_default=True, help="How many runs at once.")
@click.option("--zone", metavar="ZONE", help="Where times without CRON_TZ are meant. [default: this machine's zone]")
@click.option("--system/--user-form", "system", default=None, help="With or without a user before each command.")
@click.option("-n", "--count", type=click.IntRange(0), default=50, show_default=True, help="How many rows to show.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=LIMIT, show_default=True, help="Give up at so many decisions."
)
@output_options
@click.pass_context
def simulate(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    file: str,
    start: datetime,
    end: datetime,
    durations: tuple[dict[str, timedelta], ...],
    slots: int,
    zone: str | None,
    system: bool | None,
    count: int,
    limit: int,
    output: Output,
) -> None:
    """Let the schedules of FILE, a crontab (- for standard input) or a TOML file, live from --from up to --to under a
    host that looks at once, and print what would be decided. Runs end at once where --duration says nothing.

    \b
    Example: duly simulate crontab --from 2026-03-28T00:00:00Z --to 2026-03-30T00:00:00Z --duration "*=10m" --slots 2
    """
    read = read_schedule_file(file, zone=zone_of(zone or local_zone()).name, system=system)
    definitions = {one.schedule_id: one.fields for one in read.entries}
    taken = joined_durations(durations)
    with working("simulating"):
        found = simulated(definitions, start, end, task_slots=slots, durations=taken, limit=limit)
    if output.for_people:
        _show(output, found, count)
        output.flush()
        to_stderr = terminal(sys.stderr)
        for remark in (*read.problems, *read.notices):
            to_stderr.print(printable(str(remark)), soft_wrap=True)
    else:
        rows = (_row(found, sequence, entry) for sequence, entry in found.decisions)
        output.rows("duly.simulate/1", _document(found, read), "decisions", rows)
    context.exit(BAD if read.problems else FINE)


def _show(output: Output, found: Simulation, count: int) -> None:
    if found.decisions and count:
        rows = [_cells(found, sequence, entry) for sequence, entry in found.decisions[:count]]
        output.table(("at", "schedule", "decided", "ends"), rows, whole=("schedule",))
        if len(found.decisions) > count:
            output.line(f"and {len(found.decisions) - count:,} more: see --count, or --json")
        output.line()
    if found.schedules:
        rows_of = [
            (
                one.schedule_id,
                *(f"{one.counts[name]:,}" for name in COLUMNS),
                describe_duration(one.duration),
                describe_duration(one.busy),
            )
            for one in found.schedules
        ]
        columns = ("schedule", *COLUMNS, "a run takes", "at work")
        output.table(columns, rows_of, right=columns[1:])
        output.line()
    slots = f"{counted(found.task_slots, 'task slot')}, {found.peak:,} in use at once at most"
    output.line(f"{slots}; at work {found.utilisation:.1%} of their time")
    span = f"from {describe_instant(found.start)} up to {describe_instant(found.end)}"
    output.line(f"{counted(len(found.decisions), 'decision')} {span}; simulated, nothing is recorded", style="bold")


def _cells(found: Simulation, sequence: int, entry: Entry) -> tuple[str, ...]:
    ended = found.ended.get(sequence)
    end = describe_instant(ended) if ended is not None else ""
    return describe_instant(entry.at), getattr(entry, "schedule_id", ""), describe_entry(entry), end


def _document(found: Simulation, read: ScheduleFile) -> dict[str, Any]:
    return {
        "from": describe_instant(found.start),
        "to": describe_instant(found.end),
        "task_slots": found.task_slots,
        "peak": found.peak,
        "busy": msgspec.to_builtins(found.busy),
        "utilisation": round(found.utilisation, 6),
        "schedules": [
            {**msgspec.to_builtins(one), "counts": dict(sorted(one.counts.items()))} for one in found.schedules
        ],
        "problems": [
            {"line": one.line, "column": one.column, "message": one.message, "remedy": one.remedy}
            for one in read.problems
        ],
        "notices": list(read.notices),
    }


def _row(found: Simulation, sequence: int, entry: Entry) -> dict[str, Any]:
    ended = found.ended.get(sequence)
    return {
        "sequence": sequence,
        "at": describe_instant(entry.at),
        "text": describe_entry(entry),
        "ended_at": describe_instant(ended) if ended is not None else None,
        "entry": msgspec.to_builtins(entry),
    }
