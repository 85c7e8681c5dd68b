"""`duly export`: a small journal that replays as the original does, to send with a bug report.

Rule kept here: what goes into it, and under which names, is `duly.scheduler.exporting`'s; the original is only read.
"""

from __future__ import annotations

import re
from datetime import datetime

import click
import msgspec

from duly.scheduler.clock import SystemClock
from duly.scheduler.exporting import Export
from duly.scheduler.exporting import export as exported
from duly.tools.exit_codes import BAD, FINE
from duly.tools.options import POSITION, Parsed, journal_argument, output_options, until_option
from duly.tools.output import Output, working
from duly.tools.wording import counted

SLICE = re.compile(r"(\d+):(\d+)")


def parse_slice(text: str) -> tuple[int, int]:
    """`1200:1300`, two sequences, both included. Raises ValueError."""
    found = SLICE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no slice; write FIRST:LAST, two sequences, for example 1200:1300")
    first, last = int(found[1]), int(found[2])
    if not 1 <= first <= last:
        raise ValueError(f"{text!r} holds no entry; the first sequence of a journal is 1, and FIRST comes before LAST")
    return first, last


@click.command(short_help="A small journal for a bug report, redacted if you like. Writes NEW.")
@journal_argument
@click.option(
    "--to", required=True, metavar="NEW", help="The folder of the new journal; it must not exist or be empty."
)
@click.option(
    "--slice", "ends", type=Parsed("slice", parse_slice), metavar="FIRST:LAST", help="Only these entries, by sequence."
)
@click.option(
    "--since", type=POSITION, metavar="SEQ|INSTANT", help="Begin with this sequence, or not before this instant."
)
@until_option
@click.option("-s", "--schedule", "schedules", multiple=True, metavar="ID", help="Only this schedule. May be repeated.")
@click.option(
    "--redact", is_flag=True, help="Replace all names, inputs, results and notes; keep triggers and instants."
)
@output_options
@click.pass_context
def export(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    journal: str,
    to: str,
    ends: tuple[int, int] | None,
    since: int | datetime | None,
    until: int | datetime | None,
    schedules: tuple[str, ...],
    redact: bool,
    output: Output,
) -> None:
    """Copy a slice of the journal, with the earlier entries that it rests on, into a new journal with a new id, in
    which every decision comes out as it did. Whole batches are copied; where decisions hung on other schedules or on
    more of the past, that is copied too, and said.

    With --redact everything that a host or a person put in (ids, targets, inputs, results, errors, notes, names of
    people and hosts) gets another name, the same for the same value. Kept are instants, policies, and the triggers:
    cron expressions, zones, and the parameters of a source of your own. The table of names is printed for you alone.

    The exit code is 1 if the copy is not decided as the original was.

    \b
    Example: duly export state/ --to bug/ --slice 1200:1300 --redact
    """
    if ends is not None and (since is not None or until is not None):
        raise click.UsageError("--slice does not go with --since and --until: keep one of the two.")
    first, last = ends if ends is not None else (since, until)
    with working("exporting"):
        found = exported(journal, to, SystemClock().now(), since=first, until=last, schedules=schedules, redact=redact)
    if output.for_people:
        _show(output, found, set(schedules))
    else:
        output.document("duly.export/1", msgspec.to_builtins(found, enc_hook=str))
    context.exit(FINE if found.faithful else BAD)


def _show(output: Output, found: Export, asked: set[str]) -> None:
    output.line(f"{counted(found.entries, 'entry', 'entries')} written to {found.path}")
    output.line(f"the slice is entries {found.first:,} to {found.last:,}, and begins with entry {found.begins:,} there")
    if asked and set(found.kept) != asked:
        output.line(
            "all schedules are in it: decisions hung on the task slots and turns that they share", style="yellow"
        )
    if found.whole_past and found.first > 1:
        output.line(
            "everything before the slice is in it: decisions hung on it, or the record is not sound", style="yellow"
        )
    if found.faithful:
        output.line(f"decided anew: {counted(found.polls, 'poll')}, as the original", style="green")
    else:
        output.line("decided anew, it differs from the original", style="bold red")
    if found.redacted:
        output.table(("your schedule", "its name there"), list(found.names.items()))
        output.line("triggers are not redacted: look at them before you send it. Keep this table to yourself.")
