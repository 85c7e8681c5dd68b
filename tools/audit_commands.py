"""`duly verify`, `replay`, `dump`, `head`, `salvage`: the journal as an auditor and a debugger read it.

Rules kept here: nothing is locked and nothing of the journal is written (salvage writes a new one); what is shown is
what the library answers; a record that is not intact ends with exit code 1.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import click

from duly import journal as journals
from duly.journal import Verification
from duly.journal.verification import parse_anchor
from duly.projections import PROJECTIONS, State
from duly.projections import dump as dumped
from duly.projections import replay as replayed
from duly.scheduler.clock import SystemClock
from duly.scheduler.instants import describe_instant
from duly.tools.engine_report import show_engine_check
from duly.tools.exit_codes import BAD, FINE
from duly.tools.options import Parsed, journal_argument, output_options, until_option
from duly.tools.output import Format, Output, working
from duly.tools.wording import counted, lost_entries

LONGEST_CELL = 48
FEWEST_COLUMNS = 1
DERIVED = "occurrence_id"
NAMED_VALUES = {"kind", "cause", "message"}


@click.command(short_help="Is the record intact?")
@journal_argument
@click.option(
    "--expect", type=Parsed("anchor", parse_anchor), metavar="S:H", help="An anchor that `duly head` printed before."
)
@output_options
@click.pass_context
def verify(context: click.Context, journal: str, expect: tuple[int, str] | None, output: Output) -> None:
    """Check every line, the chain over all of them, the anchor of --expect, and that no entry contradicts another.

    The exit code is 1 if anything is wrong. An unfinished tail is among that: the record before it is whole, and the
    journal's next owner cuts it off.

    \b
    Example: duly verify state/ --expect "$(cat anchor)"
    """
    with working("verifying"):
        found = journals.verify(journal, expect)
        state = replayed(journal) if found.damage is None else State()
    if output.for_people:
        _show_verification(output, found, state)
        if found.damage is not None:
            output.line(f"    duly salvage {shlex.quote(journal)} --to {shlex.quote(f'{journal}-salvaged')}")
    else:
        output.document("duly.verify/1", _verification_document(found, state))
    context.exit(FINE if found.intact and not state.anomaly_count else BAD)


@click.command(short_help="Rebuild the state at any point; its summary and digest.")
@journal_argument
@until_option
@click.option("--engine-check", is_flag=True, help="Decide every recorded poll anew, and compare: a gate for upgrades.")
@output_options
@click.pass_context
def replay(
    context: click.Context, journal: str, until: int | datetime | None, engine_check: bool, output: Output
) -> None:
    """Fold the entries into the state that their owner had, and sum it up. Equal records give equal digests.

    With --engine-check this version of duly decides every recorded poll anew, from the state before it; the exit code
    is 1 if any comes out otherwise.

    \b
    Example: duly replay state/ --until 2026-03-29T01:00:00Z
    """
    if engine_check:
        if until is not None:
            raise click.UsageError("--engine-check is about the whole record, so it does not go with --until.")
        context.exit(show_engine_check(journal, output))
    with working("replaying"):
        state = replayed(journal, until=until)
    summary = _summary(state)
    if output.for_people:
        output.table(("state", ""), [(name, "-" if value is None else value) for name, value in summary.items()])
        if isinstance(until, int) and until > state.sequence:
            output.line(f"the record ends with entry {state.sequence:,}")
    else:
        output.document("duly.replay/1", summary)


@click.command(short_help="What the projections hold: schedules, runs, candidates, history …")
@journal_argument
@click.option("-p", "--projection", type=click.Choice(list(PROJECTIONS)), help="Only this one. [default: all]")
@until_option
@output_options
def dump(journal: str, projection: str | None, until: int | datetime | None, output: Output) -> None:
    """Print the projections of the state, all or one, as they are after the last entry or after --until.

    \b
    Example: duly dump state/ --projection runs --json
    """
    with working("replaying"):
        state = replayed(journal, until=until)
    content = dumped(state, projection)
    if output.format is Format.JSON:
        output.document("duly.dump/1", {"sequence": state.sequence, **content})
    elif output.format is Format.JSONL:
        rows = ({"projection": name, "row": row} for name, found in content.items() for row in found)
        output.rows("duly.dump/1", {}, "rows", rows)
    else:
        for name, found in content.items():
            output.line(f"{name}: {len(found) or 'none'}", style="bold")
            if found:
                columns = _columns(found)
                output.table(columns, [[_cell(row.get(column)) for column in columns] for row in found])
                output.line()


@click.command(short_help="The anchor: what to keep elsewhere as proof of the record so far.")
@journal_argument
@output_options
def head(journal: str, output: Output) -> None:
    """Print the last durable sequence with the chain there, as S:H. Whoever keeps it can tell later, with
    `duly verify --expect S:H`, whether the record up to there is still the same.

    \b
    Example: duly head state/ > anchor
    """
    with working("reading"):
        found = journals.head(journal)
    if output.for_people:
        output.line(str(found))
    else:
        document = {"journal_id": found.journal_id, "sequence": found.sequence, "h": found.h, "anchor": str(found)}
        output.document("duly.head/1", document)


@click.command(short_help="Copy what is valid of a damaged journal into a new one. Writes NEW.")
@journal_argument
@click.option(
    "--to", required=True, metavar="NEW", help="The folder of the new journal; it must not exist or be empty."
)
@output_options
@click.pass_context
def salvage(context: click.Context, journal: str, to: str, output: Output) -> None:
    """Copy every valid entry into a new journal with a new id. What is lost is marked, so that sequences and run ids
    keep their meaning. The damaged journal is only read. The exit code is 1 if anything was lost.

    \b
    Example: duly salvage state/ --to state-salvaged/
    """
    with working("salvaging"):
        found = journals.salvage(journal, to, SystemClock().now())
    if output.for_people:
        output.line(str(found))
        if found.lost:
            output.table(("first lost", "last lost"), [(lost.first, lost.last) for lost in found.lost])
    else:
        document = {
            "source": str(found.source),
            "path": str(found.path),
            "journal_id": found.journal_id,
            "copied": found.copied,
            "lost": [{"first": lost.first, "last": lost.last} for lost in found.lost],
        }
        output.document("duly.salvage/1", document)
    context.exit(BAD if found.lost else FINE)


def _show_verification(output: Output, found: Verification, state: State) -> None:
    output.line(str(found), style="green" if found.intact else "bold red")
    if found.damage is not None:
        place = {"file": found.damage.path, "offset": found.damage.offset, "sequence": found.damage.sequence}
        output.table(("damage", ""), [(name, value) for name, value in place.items() if value is not None])
    for anomaly in state.anomalies:
        output.line(
            f"entry {anomaly.sequence} ({anomaly.kind}) contradicts the record: {anomaly.text}", style="bold red"
        )
    if state.lost:
        output.line(f"{lost_entries(state.lost)} before this journal was salvaged", style="yellow")
    size = f"{counted(found.lines, 'line')} in {counted(found.segments, 'segment')}, {counted(found.bytes, 'byte')}"
    output.line(f"{size}, journal {found.journal_id or 'unknown'}")


def _verification_document(found: Verification, state: State) -> dict[str, Any]:
    damage = found.damage
    unfinished = found.unfinished
    return {
        "intact": found.intact and not state.anomaly_count,
        "verdict": str(found),
        "path": str(found.path),
        "journal_id": found.journal_id,
        "segments": found.segments,
        "lines": found.lines,
        "entries": found.entries,
        "bytes": found.bytes,
        "sequence": found.sequence,
        "h": found.h,
        "unconfirmed": found.unconfirmed,
        "lost": state.lost,
        "expected": found.expected,
        "anomalies": [
            {"sequence": one.sequence, "kind": one.kind, "schedule_id": one.schedule_id, "text": one.text}
            for one in state.anomalies
        ],
        "unfinished": unfinished
        and {
            "path": str(unfinished.path),
            "offset": unfinished.offset,
            "size": unfinished.size,
            "fault": unfinished.fault,
        },
        "damage": damage
        and {
            "path": str(damage.path),
            "offset": damage.offset,
            "sequence": damage.sequence,
            "reason": damage.reason,
            "remedy": damage.remedy,
        },
    }


def _summary(state: State) -> dict[str, Any]:
    schedules = state.schedules(deleted=True)
    runs = Counter(run.state for run in state.runs())
    return {
        "sequence": state.sequence,
        "at": describe_instant(state.last_at) if state.last_at is not None else None,
        "schedules": sum(not one.deleted for one in schedules),
        "deleted": sum(one.deleted for one in schedules),
        "paused": sum(one.paused for one in schedules),
        "disabled": sum(one.disabled for one in schedules),
        "blocked": sum(one.blocked is not None for one in schedules),
        "exhausted": sum(one.exhausted for one in schedules),
        "candidates": sum(one.candidate is not None for one in schedules),
        "pending": runs["pending"],
        "started": runs["started"],
        "interrupted": runs["interrupted"],
        "anomalies": state.anomaly_count,
        "lost": state.lost,
        "digest": state.digest(),
    }


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that say something in at least one row and fit a cell; JSON shows the others too."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    telling = [name for name in names if name != DERIVED and any(_cell(row.get(name)) for row in rows)]
    return telling or names[:FEWEST_COLUMNS]


def _cell(value: object) -> str:
    """A value as a cell: what is nested is left to JSON, but for triggers, errors and blocks, which are named."""
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value)
        if not NAMED_VALUES & set(parts):
            return ""
        text = " ".join(str(part) for name, part in parts.items() if name != "kind")
    elif isinstance(value, list | tuple) or value is None or value is False:
        return ""
    else:
        text = "yes" if value is True else str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
