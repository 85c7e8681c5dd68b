"""`duly diff`: where two journals part, and which occurrences they decided differently.

Rules kept here: the comparing is `duly.scheduler.comparing`'s; equal ends with 0, different with 1; nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from duly.journal.entries import Entry
from duly.scheduler.comparing import DecidedDifferently, Difference
from duly.scheduler.comparing import diff as compared
from duly.scheduler.instants import describe_instant
from duly.tools.describe import describe_entry
from duly.tools.exit_codes import BAD, FINE
from duly.tools.options import output_options
from duly.tools.output import Output, working
from duly.tools.supposing import describe_fate, fate_row
from duly.tools.wording import counted


@click.command(short_help="Where two journals part, and which occurrences they decided differently.")
@click.argument("a")
@click.argument("b")
@click.option("-n", "--count", type=click.IntRange(0), default=50, show_default=True, help="How many rows to show.")
@output_options
@click.pass_context
def diff(context: click.Context, a: str, b: str, count: int, output: Output) -> None:
    """Compare the journals A and B: copies of one journal (a backup, a salvage) entry by entry, those of two hosts by
    what they decided. The exit code is 1 if they differ.

    \b
    Example: duly diff state/ backup/
    """
    with working("comparing"):
        found = compared(a, b)
    if output.for_people:
        _show(output, found, count)
    else:
        output.rows("duly.diff/1", _document(found), "occurrences", (_row(one) for one in found.occurrences))
    context.exit(FINE if found.equal else BAD)


def _show(output: Output, found: Difference, count: int) -> None:
    kinship = "two journals, compared by what they decided"
    if found.same_journal:
        kinship = "the same journal, compared entry by entry"
    elif found.copies:
        kinship = "one journal is a copy of the other, compared entry by entry"
    output.line(kinship)
    for text in _differing(found):
        output.line(text)
    if found.occurrences and count:
        output.line()
        rows = [
            (describe_instant(one.scheduled_at), one.schedule_id, describe_fate(one.a), describe_fate(one.b))
            for one in found.occurrences[:count]
        ]
        output.table(("scheduled", "schedule", "A", "B"), rows, whole=("schedule",))
        if len(found.occurrences) > count:
            output.line(f"and {len(found.occurrences) - count:,} more: see --count, or --json")
        output.line()
    output.line(_verdict(found), style="green" if found.equal else "bold red")


def _differing(found: Difference) -> Iterator[str]:
    for name, lost in (("A", found.lost_a), ("B", found.lost_b)):
        if lost:
            yield f"{name} has lost {counted(len(lost), 'entry', 'entries')} to damage: {_numbers(lost)}"
    for name, only in (("A", found.only_a), ("B", found.only_b)):
        if only:
            yield f"only {name} has: {', '.join(only)}"
    parted = found.divergence
    if parted is None:
        return
    if parted.a is None or parted.b is None:
        shorter, longer, count = ("A", "B", found.entries_b) if parted.a is None else ("B", "A", found.entries_a)
        yield f"{shorter} ends before entry {parted.sequence}; {longer} goes on to entry {count:,}"
        return
    yield f"they part at entry {parted.sequence}:"
    for name, entry in (("A", parted.a), ("B", parted.b)):
        yield f"  {name}  {describe_instant(entry.at)}  {_text(entry)}"


def _verdict(found: Difference) -> str:
    if found.equal:
        return f"equal: {counted(found.entries_a, 'entry', 'entries')}"
    until = f", up to {describe_instant(found.until)}" if found.until is not None else ""
    if not found.occurrences:
        return f"different, and every occurrence that both have was decided alike{until}"
    return f"different: {counted(len(found.occurrences), 'occurrence')} decided differently{until}"


def _text(entry: Entry) -> str:
    schedule = getattr(entry, "schedule_id", None)
    return f"{schedule}  {describe_entry(entry)}" if schedule else describe_entry(entry)


def _numbers(sequences: tuple[int, ...]) -> str:
    """The sequences, runs of them as spans."""
    spans: list[list[int]] = []
    for one in sequences:
        if spans and one == spans[-1][1] + 1:
            spans[-1][1] = one
        else:
            spans.append([one, one])
    return ", ".join(str(first) if first == last else f"{first} … {last}" for first, last in spans)


def _document(found: Difference) -> dict[str, Any]:
    parted = found.divergence
    return {
        "equal": found.equal,
        "decided_alike": found.decided_alike,
        "same_journal": found.same_journal,
        "copies": found.copies,
        "entries_a": found.entries_a,
        "entries_b": found.entries_b,
        "divergence": parted and {"sequence": parted.sequence, "a": _entry(parted.a), "b": _entry(parted.b)},
        "only_a": list(found.only_a),
        "only_b": list(found.only_b),
        "lost_a": list(found.lost_a),
        "lost_b": list(found.lost_b),
        "until": describe_instant(found.until) if found.until is not None else None,
    }


def _entry(entry: Entry | None) -> dict[str, Any] | None:
    return None if entry is None else msgspec.to_builtins(entry)


def _row(one: DecidedDifferently) -> dict[str, Any]:
    return {
        "schedule_id": one.schedule_id,
        "scheduled_at": describe_instant(one.scheduled_at),
        "a": fate_row(one.a),
        "b": fate_row(one.b),
    }
