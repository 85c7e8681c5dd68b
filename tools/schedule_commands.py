"""`duly import` and `duly next`: schedules brought into a journal, and when they come due.

Rules kept here: an import declares, so that repeating it changes nothing; what is refused is reported with its line,
and the rest is imported; only `import` writes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from duly.projections import State, replay
from duly.scheduler.clock import SystemClock
from duly.scheduler.decisions.administration import changed_fields
from duly.scheduler.definitions import parse_definition
from duly.scheduler.errors import SchedulerError, UnknownSchedule
from duly.scheduler.instants import describe_instant, in_range
from duly.scheduler.triggers import Cron, OccurrenceSource, trigger_of
from duly.scheduler.zones import Zone, zone_of
from duly.tools.crontab import Crontab, CrontabEntry, Problem, is_system_crontab, parse_crontab
from duly.tools.declaring import check_not_deleted, declare_entry, definition_of
from duly.tools.exit_codes import BAD, FINE
from duly.tools.localzone import local_zone
from duly.tools.options import INSTANT, journal_option, optional_journal, output_options
from duly.tools.output import Output, terminal, working
from duly.tools.printable import printable
from duly.tools.schedule_file import read_text
from duly.tools.upcoming import Upcoming, goes_on
from duly.tools.upcoming import upcoming as coming
from duly.tools.visiting import acting, open_as_visitor


@click.command("import", short_help="Keep the schedules of a crontab in a journal. Writes.")
@click.argument("crontab")
@journal_option
@click.option("--zone", metavar="ZONE", help="Where times without CRON_TZ are meant. [default: this machine's zone]")
@click.option("--system/--user-form", "system", default=None, help="With or without a user before each command.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--actor", help="Who imports, for the record. [default: the user]")
@output_options
@click.pass_context
def import_crontab(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    crontab: str,
    journal: str,
    zone: str | None,
    system: bool | None,
    dry_run: bool,
    actor: str | None,
    output: Output,
) -> None:
    """Declare each entry of CRONTAB (- for standard input) as a schedule of the journal, which is made if need be.

    A line that is not understood is reported, the others are imported, and the exit code is 1.

    \b
    Example: crontab -l | duly import - --journal state/ --zone Europe/Berlin
    """
    text, source = read_text(crontab)
    used_zone = zone_of(zone or local_zone()).name
    as_system = is_system_crontab(Path(crontab).resolve()) if system is None else system
    parsed = parse_crontab(text, source=source, system=as_system, zone=used_zone)
    refused = list(parsed.problems)
    outcomes = _preview(parsed, journal, refused) if dry_run else _declare(parsed, journal, acting(actor), refused)
    problems = sorted(refused, key=lambda one: (one.line, one.column))
    if output.for_people:
        if dry_run:
            output.line("dry run: nothing is written")
        _show_import(output, parsed, outcomes, problems)
    else:
        output.document("duly.import/1", {"dry_run": dry_run, **_import_document(parsed, outcomes, problems)})
    context.exit(BAD if problems else FINE)


@click.command("next", short_help="The coming occurrences, in UTC and local time.")
@click.argument("schedule", required=False)
@optional_journal
@click.option("--cron", metavar="EXPR", help="A cron expression, instead of a schedule of a journal.")
@click.option("--zone", metavar="ZONE", help="Where the times of --cron are meant, such as Europe/Berlin.")
@click.option("-n", "--count", type=click.IntRange(1, 10_000), default=5, show_default=True, help="How many.")
@click.option("--after", type=INSTANT, metavar="INSTANT", help="Strictly after this instant. [default: now]")
@output_options
def upcoming(  # noqa: PLR0913, PLR0917 - one parameter for each option
    schedule: str | None,
    journal: str | None,
    cron: str | None,
    zone: str | None,
    count: int,
    after: datetime | None,
    output: Output,
) -> None:
    """Print when SCHEDULE, or the expression of --cron, comes due next, and what a change of the clocks does to it.

    \b
    Example: duly next --cron "30 2 * * *" --zone Europe/Berlin -n 3
    """
    if after is not None and not in_range(after):
        raise click.UsageError(f"--after {describe_instant(after)} lies outside of 1972 … 2100, the years duly knows.")
    if cron is not None and schedule is None:
        if zone is None:
            raise click.UsageError("An expression needs a zone: add --zone, for example --zone UTC.")
        source: OccurrenceSource = Cron(cron, zone=zone)
        where, remark, subject = zone_of(zone), "", {"expression": cron}
    elif schedule is not None and cron is None:
        if zone is not None:
            raise click.UsageError("--zone goes with --cron; a schedule has its own zone.")
        if not journal:
            raise click.UsageError("A schedule is looked up in a journal: add --journal, or set $DULY_JOURNAL.")
        source, where, remark = _schedule_in(journal, schedule)
        subject = {"schedule_id": schedule}
    else:
        raise click.UsageError("Name either a SCHEDULE of a journal or an expression with --cron.")
    begin = after or SystemClock().now()
    found = list(coming(source, where, begin, count))
    if len(found) < count and goes_on(source, found[-1].scheduled_at if found else begin):
        remark = "; ".join(filter(None, (remark, "what lies beyond 2100 is not shown: duly knows 1972 … 2100")))
    _show_upcoming(output, {**subject, "zone": where.name, "remark": remark}, found)


def _schedule_in(journal: str, schedule_id: str) -> tuple[OccurrenceSource, Zone, str]:
    with working("replaying"):
        state = replay(journal)
    found = state.find(schedule_id)
    if found is None:
        near = get_close_matches(schedule_id, [one.id for one in state.schedules()], n=3)
        hint = f"The nearest: {', '.join(near)}" if near else "`duly dump --projection schedules` lists what there is"
        raise UnknownSchedule(
            f"there is no schedule {schedule_id!r} in {journal}", schedule_id=schedule_id, hint=f"{hint}."
        )
    states = {
        "deleted": found.deleted,
        "paused": found.paused,
        "disabled": found.disabled,
        "blocked": found.blocked is not None,
        "exhausted": found.exhausted,
    }
    marks = [name for name, holds in states.items() if holds]
    remark = f"{schedule_id} is {' and '.join(marks)}: these are its trigger's instants" if marks else ""
    return trigger_of(found.trigger), zone_of(getattr(found.trigger, "zone", None) or "UTC"), remark


def _declare(parsed: Crontab, journal: str, actor: str, refused: list[Problem]) -> dict[str, str]:
    """What became of each entry, by id. Without entries no journal is made."""
    outcomes: dict[str, str] = {}
    if not parsed.entries:
        return outcomes
    with open_as_visitor(journal, actor=actor, create=True) as scheduler:
        for entry in parsed.entries:
            try:
                found = scheduler.find(entry.schedule_id)
                check_not_deleted(entry.schedule_id, deleted=found is not None and found.deleted)
                note = f"{parsed.source} line {entry.line}"
                outcomes[entry.schedule_id] = declare_entry(scheduler, entry, actor=actor, note=note)
            except SchedulerError as error:  # about this entry: what ails the journal is a JournalError
                refused.append(Problem(parsed.source, entry.line, 1, error.message, error.hint))
    return outcomes


def _preview(parsed: Crontab, journal: str, refused: list[Problem]) -> dict[str, str]:
    """What would become of each entry, by id."""
    state = replay(journal) if Path(journal).exists() else State()
    outcomes: dict[str, str] = {}
    for entry in parsed.entries:
        found = state.by_id.get(entry.schedule_id)
        try:
            check_not_deleted(entry.schedule_id, deleted=found is not None and found.deleted > 0)
            wanted = parse_definition(definition_of(entry))
        except SchedulerError as error:
            refused.append(Problem(parsed.source, entry.line, 1, error.message, error.hint))
            continue
        if found is None:
            outcomes[entry.schedule_id] = "created"
        else:
            changed = changed_fields(found.definition, wanted)
            outcomes[entry.schedule_id] = "edited" if changed else "unchanged"
    return outcomes


def _show_import(output: Output, parsed: Crontab, outcomes: dict[str, str], problems: Sequence[Problem]) -> None:
    imported = [entry for entry in parsed.entries if entry.schedule_id in outcomes]
    rows = [(one.line, one.schedule_id, one.expression, one.zone, outcomes[one.schedule_id]) for one in imported]
    if rows:
        output.table(("line", "schedule", "when", "zone", "outcome"), rows, right=("line",))
    output.line(f"{len(imported)} imported, {len(problems)} refused; times without CRON_TZ are meant in {parsed.zone}")
    output.flush()
    to_stderr = terminal(sys.stderr)
    for text in (*map(str, problems), *parsed.notices):
        to_stderr.print(printable(text), soft_wrap=True)


def _import_document(parsed: Crontab, outcomes: dict[str, str], problems: Sequence[Problem]) -> dict[str, Any]:
    return {
        "source": parsed.source,
        "zone": parsed.zone,
        "problems": [
            {"line": one.line, "column": one.column, "message": one.message, "remedy": one.remedy} for one in problems
        ],
        "notices": list(parsed.notices),
        "entries": [
            _entry_row(entry, outcomes[entry.schedule_id]) for entry in parsed.entries if entry.schedule_id in outcomes
        ],
    }


def _entry_row(entry: CrontabEntry, outcome: str) -> dict[str, Any]:
    return {
        "line": entry.line,
        "schedule_id": entry.schedule_id,
        "expression": entry.expression,
        "zone": entry.zone,
        "command": entry.command,
        "outcome": outcome,
    }


def _show_upcoming(output: Output, subject: dict[str, str], found: list[Upcoming]) -> None:
    if not output.for_people:
        rows = (
            {
                "scheduled_at": describe_instant(one.scheduled_at),
                "local": one.local.isoformat(),
                "abbreviation": one.local.tzname(),
                "remark": one.remark,
            }
            for one in found
        )
        output.rows("duly.next/1", subject, "occurrences", rows)
        return
    if subject["remark"]:
        output.line(subject["remark"])
    if not found:
        output.line("there are no more occurrences")
        return
    rows_table = [
        (f"{one.scheduled_at:%a %Y-%m-%d %H:%M:%SZ}", f"{one.local:%a %Y-%m-%d %H:%M %Z}", one.remark) for one in found
    ]
    output.table(("UTC", subject["zone"], "clocks"), rows_table)
