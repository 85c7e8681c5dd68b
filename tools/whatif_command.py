"""`duly whatif`: the record, replayed under another policy, as a diff of its decisions.

Rules kept here: the replay is `duly.scheduler.whatif`'s; what rests on a duration that is not on record is called an
estimate wherever it is shown; nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import click
import msgspec

from duly.scheduler.instants import describe_instant
from duly.scheduler.whatif import Difference, WhatIf
from duly.scheduler.whatif import whatif as replayed_under
from duly.tools.exit_codes import BAD, FINE
from duly.tools.moments import describe_duration
from duly.tools.options import Parsed, journal_argument, output_options
from duly.tools.output import Output, working
from duly.tools.supposing import (
    describe_fate,
    describe_value,
    durations_option,
    fate_row,
    joined_durations,
    joined_suppositions,
    parse_supposition,
)
from duly.tools.wording import counted, lost_entries

MOST_TOTALS = 40
"""How many rows of totals a table has; JSON has them all."""
MOST_NAMED = 8


@click.command(short_help="The record replayed under another policy, as a decision diff.")
@journal_argument
@click.option(
    "--set",
    "suppositions",
    type=Parsed("supposition", parse_supposition),
    multiple=True,
    metavar="SCHEDULE.FIELD=VALUE",
    help="Another policy, or a setting such as task_slots=2; * is every schedule. May be given again.",
)
@durations_option
@click.option("-n", "--count", type=click.IntRange(0), default=50, show_default=True, help="How many rows to show.")
@output_options
@click.pass_context
def whatif(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    journal: str,
    suppositions: tuple[tuple[str, object], ...],
    durations: tuple[dict[str, timedelta], ...],
    count: int,
    output: Output,
) -> None:
    """Replay the recorded polls, results and commands with the fields and settings of --set, and say which occurrences
    are decided otherwise. Without --set the record must come out as it is; the exit code is 1 if it does not.

    Fields: misfire, lateness, overlap, max_active_runs, cron, zone, fold. Settings: task_slots, batch, clock_tolerance.

    \b
    Example: duly whatif state/ --set nightly.misfire=skip --set task_slots=2
    """
    changes = joined_suppositions(suppositions)
    with working("replaying under another policy"):
        found = replayed_under(journal, changes, durations=joined_durations(durations))
    if output.for_people:
        _show(output, found, count)
    else:
        output.rows("duly.whatif/1", _document(found), "differences", (_row(one) for one in found.differences))
    context.exit(BAD if not changes and not found.identical else FINE)


def _show(output: Output, found: WhatIf, count: int) -> None:
    if found.differences and count:
        rows = [_cells(one) for one in found.differences[:count]]
        output.table(("scheduled", "schedule", "recorded", "what if", "rests on"), rows, whole=("schedule",))
        if len(found.differences) > count:
            output.line(f"and {len(found.differences) - count:,} more: see --count, or --json")
        output.line()
    _show_totals(output, found)
    for text in _remarks(found):
        output.line(text)
    for text in _warnings(found):
        output.line(text, style="bold red")
    output.line(_verdict(found), style="bold")


def _show_totals(output: Output, found: WhatIf) -> None:
    rows = [row for total in found.totals for row in _changed(total.schedule_id, total.recorded, total.now)]
    if len({schedule_id for schedule_id, *_ in rows}) > 1:
        recorded, now = Counter[str](), Counter[str]()
        for total in found.totals:
            recorded.update(total.recorded)
            now.update(total.now)
        rows = [*_changed("all schedules", recorded, now), *rows]
    if not rows:
        return
    output.table(("schedule", "became", "recorded", "what if"), rows[:MOST_TOTALS], right=("recorded", "what if"))
    if len(rows) > MOST_TOTALS:
        output.line(f"and {len(rows) - MOST_TOTALS:,} more: see --json")
    output.line()


def _changed(name: str, recorded: Counter[str], now: Counter[str]) -> list[tuple[str, str, str, str]]:
    kinds = sorted(kind for kind in {*recorded, *now} if recorded[kind] != now[kind])
    return [(name, kind, f"{recorded[kind]:,}", f"{now[kind]:,}") for kind in kinds]


def _cells(one: Difference) -> tuple[str, ...]:
    was, now = (describe_fate(fate, when=one.moved) for fate in (one.recorded, one.now))
    rests = "estimate" if one.estimate else "record"
    return describe_instant(one.scheduled_at), one.schedule_id, was, now, rests


def _remarks(found: WhatIf) -> Iterator[str]:
    polls = f"{counted(found.polls, 'recorded poll')} replayed"
    yield f"{polls}, and {found.assumed_polls:,} more where the record does not rule one out"
    if found.shifted_runs:
        yield f"{counted(found.shifted_runs, 'run')} began at another time and took as long as recorded"
    if found.estimated_runs:
        yield f"{counted(found.estimated_runs, 'run')} that never ended on record: an estimate, {_taken(found)}"


def _taken(found: WhatIf) -> str:
    told = [(name, duration) for name, duration in found.durations.items() if duration is not None]
    taken = ", ".join(f"{name} {describe_duration(duration)}" for name, duration in told[:MOST_NAMED])
    taken += f" and {len(told) - MOST_NAMED} more" if len(told) > MOST_NAMED else ""
    unknown = len(found.durations) - len(told)
    parts = [f"taken to last {taken}"] if told else []
    parts += [f"of unknown length for {counted(unknown, 'schedule')}"] if unknown else []
    return "; ".join(parts)


def _warnings(found: WhatIf) -> Iterator[str]:
    for one in found.refused:
        yield f"{one.schedule_id}: entry {one.sequence} ({one.kind}) would be refused: {one.why}"
    if found.lost:
        yield f"{lost_entries(found.lost)} before this journal was salvaged: nothing can be said of what they did"
    check = found.check
    if check.divergences:
        part = (
            f"{len(check.divergences):,} of {check.polls:,} recorded polls come out otherwise by this version of duly"
        )
        yield f"{part}: see duly replay --engine-check; what is shown holds that, too"
    if check.incomparable:
        yield f"{counted(check.incomparable, 'recorded poll')} cannot be checked: see duly replay --engine-check"


def _verdict(found: WhatIf) -> str:
    if not found.changes:
        return "the record comes out the same, entry for entry" if found.identical else "the record comes out otherwise"
    supposed = ", ".join(f"{name}={describe_value(value)}" for name, value in found.changes.items())
    if not found.differences:
        return f"with {supposed} every occurrence is decided as it is recorded"
    moved = sum(one.moved for one in found.differences)
    others = len(found.differences) - moved
    estimates = sum(one.estimate for one in found.differences)
    parts = [f"{counted(others, 'occurrence')} decided otherwise"]
    parts += [f"{moved:,} admitted at another time"] if moved else []
    parts += [f"{estimates:,} of these by estimate"] if estimates else []
    return f"with {supposed}: {', '.join(parts)}"


def _document(found: WhatIf) -> dict[str, Any]:
    durations: dict[str, str | None] = msgspec.to_builtins(dict(found.durations))
    return {
        "changes": {name: describe_value(value) for name, value in found.changes.items()},
        "identical": found.identical,
        "different": sum(not one.moved for one in found.differences),
        "moved": sum(one.moved for one in found.differences),
        "estimates": sum(one.estimate for one in found.differences),
        "polls": found.polls,
        "assumed_polls": found.assumed_polls,
        "shifted_runs": found.shifted_runs,
        "estimated_runs": found.estimated_runs,
        "durations": durations,
        "refused": [msgspec.to_builtins(one) for one in found.refused],
        "engine_check": {
            "polls": found.check.polls,
            "incomparable": found.check.incomparable,
            "divergences": len(found.check.divergences),
        },
        "lost": found.lost,
        "until": describe_instant(found.until) if found.until is not None else None,
        "totals": [
            {
                "schedule_id": one.schedule_id,
                "recorded": dict(sorted(one.recorded.items())),
                "now": dict(sorted(one.now.items())),
            }
            for one in found.totals
        ],
    }


def _row(one: Difference) -> dict[str, Any]:
    return {
        "schedule_id": one.schedule_id,
        "scheduled_at": describe_instant(one.scheduled_at),
        "occurrence_id": one.occurrence_id,
        "recorded": fate_row(one.recorded),
        "now": fate_row(one.now),
        "moved": one.moved,
        "estimate": one.estimate,
    }
