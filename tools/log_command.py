"""`duly log`: the decisions, one a line, oldest first.

Rules kept here: it reads a live journal as well as a closed one; what is followed is shown once it is confirmed
durable, because only that cannot vanish any more.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click
import msgspec

from duly.journal import Record, read
from duly.tools.describe import describe_entry
from duly.tools.options import POSITION, after_position, journal_argument, output_options, until_option
from duly.tools.output import Format, Output

LOOK_AGAIN = 0.5
"""Seconds between two looks at a journal that is followed."""
SCHEMA = "duly.log/1"


@click.command(short_help="The decisions, one per line, readable.")
@journal_argument
@click.option("-s", "--schedule", "schedules", multiple=True, metavar="ID", help="Only this schedule; can be repeated.")
@click.option("--since", type=POSITION, metavar="SEQ|INSTANT", help="Begin at this sequence or instant.")
@until_option
@click.option("-n", "--last", type=click.IntRange(min=0), metavar="N", help="Only the last N of them.")
@click.option("-f", "--follow", is_flag=True, help="Stay and show what is decided from now on, until Ctrl-C.")
@output_options
def log(  # noqa: PLR0913, PLR0917 - one parameter for each option
    journal: str,
    schedules: tuple[str, ...],
    since: int | datetime | None,
    until: int | datetime | None,
    last: int | None,
    follow: bool,
    output: Output,
) -> None:
    """Print what was decided, one entry per line: sequence, clock reading, schedule, decision.

    \b
    Example: duly log state/ --schedule nightly-backup --since 2026-03-29T00:00:00Z
    """
    if follow and until is not None:
        raise click.UsageError("--follow has no end, so it does not go with --until.")
    if follow and output.format is Format.JSON:
        raise click.UsageError("A document that never ends is no JSON: use --format jsonl with --follow.")
    reading = Reading(journal)
    chosen: Iterator[Record] = (
        record
        for record in reading.records(since, until, only_confirmed=follow)
        if _is_wanted(record, schedules, since, until)
    )
    if last is not None:
        chosen = iter(deque(chosen, maxlen=last))
    _show(output, chosen)
    while follow:
        output.flush()
        time.sleep(LOOK_AGAIN)
        _show(output, (one for one in reading.records(None, None, only_confirmed=True) if _is_wanted(one, schedules)))


class Reading:
    """A journal that is read on from where the last look ended."""

    def __init__(self, journal: str) -> None:
        self.journal = journal
        self.sequence = 0

    def records(
        self, since: int | datetime | None, until: int | datetime | None, *, only_confirmed: bool
    ) -> Iterator[Record]:
        """What was not seen yet. A sequence to begin or to end at spares the reading of what lies outside."""
        if isinstance(since, int):
            self.sequence = max(self.sequence, since - 1)
        for record in read(self.journal, after=self.sequence):
            if (only_confirmed and not record.confirmed) or (isinstance(until, int) and record.sequence > until):
                return
            self.sequence = record.sequence
            yield record


def describe_record(record: Record) -> str:
    """One line: sequence, clock reading, schedule, decision."""
    schedule = getattr(record.entry, "schedule_id", None) or "-"
    mark = "" if record.confirmed else "  (unconfirmed)"
    at = f"{record.entry.at:%Y-%m-%d %H:%M:%SZ}"
    return f"{record.sequence:>7}  {at}  {schedule:<20}  {describe_entry(record.entry)}{mark}"


def record_row(record: Record) -> dict[str, Any]:
    """The record as a JSON object."""
    return {
        "sequence": record.sequence,
        "confirmed": record.confirmed,
        "text": describe_entry(record.entry),
        "entry": msgspec.to_builtins(record.entry),
    }


def _is_wanted(
    record: Record,
    schedules: tuple[str, ...],
    since: int | datetime | None = None,
    until: int | datetime | None = None,
) -> bool:
    if schedules and getattr(record.entry, "schedule_id", None) not in schedules:
        return False
    if isinstance(since, datetime) and record.entry.at < since:
        return False
    return not after_position(record.sequence, record.entry.at, until)


def _show(output: Output, records: Iterator[Record]) -> None:
    if output.for_people:
        for record in records:
            output.line(describe_record(record))
    else:
        output.rows(SCHEMA, {}, "entries", (record_row(record) for record in records))
