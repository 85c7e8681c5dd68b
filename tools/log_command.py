"""`duly log`: the decisions, one a line, oldest first.

Rules kept here: it reads a live journal as well as a closed one; what is followed is shown once it is confirmed
durable, because only that cannot vanish any more; `--until` ends where a replay with the same `--until` ends.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

import click
import msgspec

from duly.journal import Record, read
from duly.journal.entries import ENTRY_CLASSES, OccurrenceAdmitted, RunAdmittedManually, kind_of
from duly.journal.following import Following
from duly.projections.readings import is_since
from duly.projections.replay import last_sequence
from duly.scheduler.instants import describe_instant
from duly.scheduler.unknown import unknown_schedule
from duly.tools.describe import describe_entry
from duly.tools.log_index import Wanted, found_by_index
from duly.tools.options import POSITION, journal_argument, output_options, until_option
from duly.tools.output import Format, Output, awaited, working

LOOK_AGAIN = 0.5
"""Seconds between two looks at a journal that is followed."""
SCHEMA = "duly.log/1"
ADMISSIONS = (OccurrenceAdmitted, RunAdmittedManually)
"""The entries whose sequences are the ids of runs."""


class Kinds(click.Choice[str]):
    """The kinds of entries; another word is refused with those that it may stand for."""

    def __init__(self) -> None:
        super().__init__([kind_of(kind) for kind in ENTRY_CLASSES])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices:
            return str(value)
        word = str(value).lower()
        near = [kind for kind in self.choices if word and word in kind.lower()]
        near = near or get_close_matches(str(value), self.choices, n=3)
        hint = f"The nearest: {', '.join(near)}" if near else f"There are: {', '.join(self.choices)}"
        raise click.BadParameter(f"{value!r} is no kind of entry. {hint}.", ctx, param)


KINDS = Kinds()


@click.command(short_help="The decisions, one per line, readable.")
@journal_argument
@click.option("-s", "--schedule", "schedules", multiple=True, metavar="ID", help="Only this schedule; can be repeated.")
@click.option(
    "--since",
    type=POSITION,
    metavar="SEQ|INSTANT",
    help="Begin at this sequence, or with the first entry at or after it.",
)
@until_option
@click.option("--kind", "kinds", multiple=True, type=KINDS, metavar="KIND", help="Only this kind; can be repeated.")
@click.option("--run", "run_id", type=int, metavar="ID", help="Only what is about this run, from its admission on.")
@click.option("-n", "--last", type=click.IntRange(min=0), metavar="N", help="Only the last N of them.")
@click.option("-f", "--follow", is_flag=True, help="Stay and show what is decided from now on, until Ctrl-C.")
@output_options
def log(  # noqa: PLR0913, PLR0917 - one parameter for each option
    journal: str,
    schedules: tuple[str, ...],
    since: int | datetime | None,
    until: int | datetime | None,
    kinds: tuple[str, ...],
    run_id: int | None,
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
    if schedules and not follow and run_id is None:
        # What is counted from the end is counted after the kinds were chosen.
        wanted = Wanted(frozenset(schedules), since, until, None if kinds else last)
        with working("reading"):
            found = found_by_index(journal, wanted)
        if found is not None:
            fitting = [record for record in found if not kinds or kind_of(record.entry) in kinds]
            shown = fitting if last is None else fitting[max(len(fitting) - last, 0) :]
            _show(output, iter(shown), journal)
            return
    with working("reading"):
        require_known(journal, schedules, run_id)
    begin = since if isinstance(since, datetime) else None
    choice = Choice(frozenset(schedules), begin, frozenset(kinds), run_id)
    after = max(since - 1, 0) if isinstance(since, int) else 0
    following = Following(journal, after=after)
    chosen = choice.of(following.records() if follow else recorded(journal, after, until))
    if last is not None:
        with working("reading"):
            chosen = iter(deque(chosen, maxlen=last))
    _show(output, awaited(chosen), "" if follow else journal)
    while follow:
        output.flush()
        time.sleep(LOOK_AGAIN)
        _show(output, choice.of(following.records()))


def require_known(journal: str, schedules: tuple[str, ...], run_id: int | None) -> None:
    """Refuses a schedule or a run that the record never names: silence would say that nothing happened to it. Reads
    only as far as all of them are found."""
    missing, ids, runs = set(schedules), set[str](), set[int]()
    if not missing and run_id is None:
        return
    for record in read(journal):
        named = getattr(record.entry, "schedule_id", None)
        if named is not None:
            ids.add(named)
            missing.discard(named)
        run = record.sequence if isinstance(record.entry, ADMISSIONS) else getattr(record.entry, "run_id", None)
        if run is not None:
            runs.add(run)
        if not missing and (run_id is None or run_id in runs):
            return
    for schedule_id in schedules:
        if schedule_id in missing:
            raise unknown_schedule(schedule_id, ids)
    if run_id is not None:
        near = ", ".join(map(str, sorted(sorted(runs, key=lambda one: abs(one - run_id))[:3])))
        raise click.UsageError(f"there is no run {run_id}. {f'The nearest: {near}' if near else 'There are no runs'}.")


def recorded(journal: str, after: int, until: int | datetime | None) -> Iterator[Record]:
    """The entries above `after`, up to where `replay` would stop for the same `until`."""
    through = None if until is None else last_sequence(journal, until)
    for record in read(journal, after=after):
        if through is not None and record.sequence > through:
            return
        yield record


@dataclass
class Choice:
    """Which entries are shown: those of some schedules and kinds (of all, if none is named), or about one run, from the
    first one on that is not earlier than `begin`. What follows that one is shown even where the clock went back."""

    schedules: frozenset[str]
    begin: datetime | None
    kinds: frozenset[str] = frozenset()
    run_id: int | None = None

    def of(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            if self.begin is not None and not is_since(record.entry, self.begin):
                continue
            self.begin = None
            if self._is_wanted(record):
                yield record

    def _is_wanted(self, record: Record) -> bool:
        if self.schedules and getattr(record.entry, "schedule_id", None) not in self.schedules:
            return False
        if self.kinds and kind_of(record.entry) not in self.kinds:
            return False
        # A run's id is the sequence of its admission.
        named = getattr(record.entry, "run_id", record.sequence)
        return self.run_id is None or named == self.run_id


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


def _show(output: Output, records: Iterator[Record], journal: str = "") -> None:
    """Prints the records; that there are none is told of a `journal`, if one is named."""
    if output.for_people:
        shown = False
        for record in records:
            output.line(describe_record(record))
            shown = True
        if journal and not shown:
            output.line(_nothing(journal))
    else:
        output.rows(SCHEMA, {}, "entries", (record_row(record) for record in records))


def _nothing(journal: str) -> str:
    entries = read(journal)
    first = next(entries, None)
    if first is None:
        return "the record has no entries"
    [last] = deque(entries, maxlen=1) or [first]
    begin, end = (
        f"entry {one.sequence}, {describe_instant(one.entry.at.replace(microsecond=0))}" for one in (first, last)
    )
    return f"no entry fits. The record goes from {begin}, to {end}"
