"""What `duly replay --engine-check` prints: the recorded polls that this version of duly decides otherwise.

Rules kept here: the check is `duly.scheduler.engine`'s; what cannot be compared is counted and is nothing wrong.
"""

from __future__ import annotations

from typing import Any

import msgspec

from duly.journal.entries import Entry
from duly.scheduler.engine import EngineCheck, engine_check
from duly.tools.describe import describe_entry
from duly.tools.exit_codes import BAD, FINE
from duly.tools.output import Format, Output, working
from duly.tools.wording import counted

MOST_LISTED = 20
"""How many divergences a table lists; JSON has them all."""


def show_engine_check(journal: str, output: Output) -> int:
    """Checks the journal, prints what was found, and returns the exit code."""
    with working("deciding anew"):
        found = engine_check(journal)
    if output.for_people:
        _show(output, found)
    elif output.format is Format.JSONL and not found.ok:
        output.rows("duly.engine_check/1", {}, "divergences", _rows(found))
    else:
        output.document("duly.engine_check/1", {**_summary(found), "divergences": _rows(found)})
    return FINE if found.ok else BAD


def _show(output: Output, found: EngineCheck) -> None:
    for one in found.divergences[:MOST_LISTED]:
        output.line(f"the poll of entry {one.sequence} comes out otherwise:", style="bold")
        for name, entries in (("recorded", one.recorded), ("decided", one.decided)):
            other = one.decided if name == "recorded" else one.recorded
            telling = [entry for entry in entries if entry not in other]
            for entry in telling:
                output.line(f"  {name:<8}  {getattr(entry, 'schedule_id', None) or '-'}  {describe_entry(entry)}")
            if not telling:
                output.line(f"  {name:<8}  {'nothing else' if entries else 'nothing'}")
    if len(found.divergences) > MOST_LISTED:
        output.line(f"and {len(found.divergences) - MOST_LISTED:,} more: see --json")
    if found.incomparable:
        polls = counted(found.incomparable, "poll")
        output.line(f"{polls} cannot be compared: of another engine, behind lost entries, or of a host's own trigger")
    verdict = f"{counted(found.polls, 'poll')} compared, {len(found.divergences):,} decided otherwise"
    output.line(verdict, style="green" if found.ok else "bold red")


def _summary(found: EngineCheck) -> dict[str, Any]:
    return {"ok": found.ok, "polls": found.polls, "incomparable": found.incomparable}


def _rows(found: EngineCheck) -> list[dict[str, Any]]:
    return [
        {"sequence": one.sequence, "recorded": _entries(one.recorded), "decided": _entries(one.decided)}
        for one in found.divergences
    ]


def _entries(entries: tuple[Entry, ...]) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(entry) for entry in entries]
