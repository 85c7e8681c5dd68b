"""`duly run --dry-run`: what a file would change in a journal, and what would not be caught up because of it.

Rules kept here: the journal is only read, also while its owner writes it; nothing that executes is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duly.projections import State, replay
from duly.scheduler.instants import describe_instant
from duly.tools.converging import Change, described, plan, provenance
from duly.tools.crontab import Problem
from duly.tools.exit_codes import BAD, FINE
from duly.tools.output import Output
from duly.tools.run_settings import Settings, refuse, tell_notices
from duly.tools.schedule_file import ScheduleFile


def show_plan(settings: Settings, output: Output) -> int:
    """Prints what the file would change; the exit code."""
    file = settings.read()
    there = settings.journal.exists()
    state = replay(settings.journal) if there else State()
    now = settings.clock.now()
    changes: tuple[Change, ...] = ()
    refused: tuple[Problem, ...] = ()
    if not file.problems:
        origin = provenance(settings.journal if there else None, file.source)
        changes, refused = plan(state, file, origin, now)
    problems = (*file.problems, *refused)
    if output.for_people:
        _show_changes(output, file, changes)
        tell_notices(file)
        if problems:
            refuse(problems)
    else:
        output.document("duly.run-plan/1", _plan_document(file, changes, problems))
    return BAD if problems else FINE


def _show_changes(output: Output, file: ScheduleFile, changes: Sequence[Change]) -> None:
    output.line("dry run: nothing is written, nothing runs")
    when = {one.schedule_id: (one.when, one.zone) for one in file.entries}
    rows = [
        (
            change.line or "-",
            change.schedule_id,
            *when.get(change.schedule_id, ("-", "-")),
            f"{change.outcome} ({', '.join(change.changed)})" if change.changed else change.outcome,
            _discarded(change),
        )
        for change in changes
    ]
    if rows:
        output.table(("line", "schedule", "when", "zone", "outcome", "will not be caught up"), rows, right=("line",))
    output.line(described(changes))


def _discarded(change: Change) -> str:
    shown = [describe_instant(instant) for instant in change.discards[-3:]]
    before = len(change.discards) - len(shown)
    earlier = [f"{'at least ' if change.more else ''}{before} before"] if before or change.more else []
    return ", ".join([*earlier, *shown])


def _plan_document(file: ScheduleFile, changes: Sequence[Change], problems: Sequence[Problem]) -> dict[str, Any]:
    return {
        "source": file.source,
        "zone": file.zone,
        "changes": [
            {
                "schedule_id": change.schedule_id,
                "line": change.line or None,
                "outcome": change.outcome,
                "changed": list(change.changed),
                "discards": [describe_instant(instant) for instant in change.discards],
                "more_discards": change.more,
            }
            for change in changes
        ],
        "problems": [
            {"line": one.line, "column": one.column, "message": one.message, "remedy": one.remedy} for one in problems
        ],
        "notices": list(file.notices),
    }
