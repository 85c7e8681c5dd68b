"""`duly history` and `duly blame`: what became of a schedule's occurrences, and who changed the schedule.

Rules kept here: what is told comes from `duly.scheduler.audits`; a time without an offset is not guessed; nothing is
written.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, cast

import click
import msgspec

from duly.journal.entries import RunAbandoned, TriggerRule
from duly.projections.history import Row
from duly.scheduler.audits import Change, FieldChange, abandonments_of, changes_of, occurrences_of
from duly.scheduler.clock import SystemClock
from duly.scheduler.instants import describe_instant
from duly.scheduler.waiting import WAITING
from duly.tools.describe import describe_abandonment, describe_entry, describe_error, describe_trigger
from duly.tools.given import as_json, cut, cut_apart, plain
from duly.tools.moments import describe_duration, describe_span
from duly.tools.now_option import now_option
from duly.tools.options import INSTANT, journal_option, output_options
from duly.tools.output import Output, working

LONGEST_CELL = 60
COVERED = {
    "ScheduleCreated": "before the schedule began",
    "ScheduleEdited": "due when it was edited",
    "SchedulePaused": "due when it was paused",
    "ScheduleUnpaused": "while it was paused",
    "ScheduleDisabled": "due when it was disabled",
    "ScheduleEnabled": "while it was disabled",
    "ScheduleDeleted": "due when it was deleted",
    "ScheduleRebaselined": "passed over by an operator",
}
"""Why what an entry of this kind covers at once does not run."""


@click.command(short_help="What became of a schedule's occurrences.")
@click.argument("schedule")
@journal_option
@click.option("--since", type=INSTANT, metavar="INSTANT", help="Only occurrences from this instant on.")
@click.option("--until", type=INSTANT, metavar="INSTANT", help="Only occurrences up to this instant.")
@click.option("-n", "--last", type=click.IntRange(min=0), metavar="N", help="Only the last N of them.")
@now_option
@output_options
def history(  # noqa: PLR0913, PLR0917 - one parameter for each option
    schedule: str,
    journal: str,
    since: datetime | None,
    until: datetime | None,
    last: int | None,
    now: datetime | None,
    output: Output,
) -> None:
    """Print the occurrences of SCHEDULE, oldest first: what became of each, why, and the run it became. What one entry
    decided or covered at once is one row; what is due and undecided comes too.

    \b
    Example: duly history nightly -j state/ -n 10
    """
    with working("reading"):
        found = occurrences_of(journal, schedule, now=now or SystemClock().now())
        given_up: Mapping[int, RunAbandoned] = {}
        if output.for_people and any(row.run_state == "abandoned" for row in found):
            given_up = abandonments_of(journal, schedule)
    rows = [row for row in found if _is_wanted(row, since, until)]
    if last is not None:
        rows = rows[max(len(rows) - last, 0) :]
    if not output.for_people:
        output.rows("duly.history/1", {"schedule_id": schedule}, "occurrences", map(_row, rows))
    elif rows:
        columns = ("scheduled", "became", "why", "run", "started", "took", "entry")
        output.table(columns, [_cells(row, given_up) for row in rows], right=("run", "entry"), whole=("became",))
    else:
        output.line("there are no occurrences")


@click.command(short_help="Who changed a schedule, when, and why.")
@click.argument("schedule")
@journal_option
@output_options
def blame(schedule: str, journal: str, output: Output) -> None:
    """Print everything that was done to SCHEDULE, oldest first: by whom, when, why, and what an edit changed.

    \b
    Example: duly blame nightly -j state/
    """
    with working("reading"):
        found = changes_of(journal, schedule)
    if not output.for_people:
        output.rows("duly.blame/1", {"schedule_id": schedule}, "changes", map(_change_row, found))
        return
    columns = ("entry", "at", "by", "rev", "what", "why")
    rows = [
        (one.sequence, f"{one.at:%Y-%m-%d %H:%M:%SZ}", one.actor or "-", one.revision, _what(one), one.note)
        for one in found
    ]
    output.table(columns, rows, right=("rev",), whole=("at", "by"))


def _is_wanted(row: Row, since: datetime | None, until: datetime | None) -> bool:
    begins = row.after if row.disposition == "interval" else row.scheduled_at
    if since is not None and row.scheduled_at < since:
        return False
    return until is None or begins is None or begins <= until


def _cells(row: Row, given_up: Mapping[int, RunAbandoned]) -> tuple[object, ...]:
    abandoned = given_up.get(row.run_id or 0) if row.run_state == "abandoned" else None
    return (
        _scheduled(row),
        _became(row),
        cut(describe_abandonment(abandoned).partition("; ")[0], LONGEST_CELL) if abandoned is not None else _why(row),
        row.run_id if row.run_id is not None else "",
        describe_instant(row.started_at.replace(microsecond=0)) if row.started_at is not None else "",
        "" if row.run_state == "abandoned" else describe_span(row.started_at, row.ended_at),
        row.sequence if row.sequence is not None else "",
    )


def _became(row: Row) -> str:
    if row.disposition == "admitted":
        return row.run_state or "admitted"
    if row.disposition != "interval":
        return row.disposition
    if row.detail == WAITING:
        return WAITING
    return "not run" if row.detail in COVERED else "superseded" if row.reason == "superseded" else "skipped"


def _scheduled(row: Row) -> str:
    if row.disposition != "interval":
        return describe_instant(row.scheduled_at)
    through = describe_instant(row.scheduled_at.replace(microsecond=0))
    return f"... {through}" if row.after is None else f"{describe_instant(row.after)} ... {through}"


def _why(row: Row) -> str:
    if row.error is not None:
        return cut(describe_error(row.error), LONGEST_CELL)
    if row.disposition == "interval" and row.detail in COVERED:
        return COVERED[row.detail]
    seen = f"at least {row.at_least} of them" if row.at_least else ""
    by = f"by {describe_instant(row.superseded_by)}" if row.superseded_by is not None else ""
    detail = "" if row.disposition == "interval" else row.detail
    parts = (row.reason, by, detail, seen)
    return cut(", ".join(part for part in parts if part), LONGEST_CELL)


def _row(row: Row) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.to_builtins(row)
    return content


def _what(change: Change) -> str:
    if change.kind == "ScheduleEdited":
        return f"edited: {'; '.join(_field(one) for one in change.fields) or 'nothing'}"
    said = msgspec.structs.replace(change.entry, **_unsigned(change))
    return describe_entry(said)


def _unsigned(change: Change) -> dict[str, str]:
    """Who and why have columns of their own."""
    return {name: "" for name in ("actor", "note") if hasattr(change.entry, name)}


def _field(change: FieldChange) -> str:
    was, now = _items(change.was), _items(change.now)
    if was is None or now is None:
        return _told(change.name, _value(change.was), _value(change.now))
    names = [name for name in {**was, **now} if name not in was or name not in now or was[name] != now[name]]
    return "; ".join(_told(f"{change.name}.{name}", _item(was, name), _item(now, name)) for name in names)


def _told(name: str, was: str, now: str) -> str:
    return f"{name} {' -> '.join(cut_apart(was, now, LONGEST_CELL))}"


def _items(value: object) -> Mapping[str, object] | None:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def _item(items: Mapping[str, object], name: str) -> str:
    return as_json(plain(items[name])) if name in items else "nothing"


def _value(value: Any) -> str:
    if isinstance(value, timedelta):
        return describe_duration(value)
    if isinstance(value, TriggerRule):
        return describe_trigger(value)
    told = plain(value)
    return told if isinstance(told, str) else as_json(told)


def _change_row(change: Change) -> dict[str, Any]:
    return {
        "sequence": change.sequence,
        "at": describe_instant(change.at),
        "kind": change.kind,
        "actor": change.actor,
        "note": change.note,
        "revision": change.revision,
        "text": describe_entry(change.entry),
        "fields": msgspec.to_builtins(change.fields),
        "entry": msgspec.to_builtins(change.entry),
    }
