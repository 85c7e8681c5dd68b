"""`duly doctor`: what ails a journal, each with the command that mends it.

Rule kept here: the troubles are `duly.tools.doctoring`'s; nothing is written, and no remedy is executed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import cast

import click
import msgspec

from duly.scheduler.clock import SystemClock
from duly.tools.doctoring import LONG_RUN, Trouble, examine
from duly.tools.exit_codes import BAD, FINE, NEEDS_HELP
from duly.tools.moments import parse_duration
from duly.tools.now_option import now_option
from duly.tools.options import Parsed, journal_argument, output_options
from duly.tools.output import Output, working

STYLES = {"note": "", "bad": "bold red", "help": "bold red"}


@click.command(short_help="What ails it, each trouble with its remedy.")
@journal_argument
@click.option(
    "--long-run",
    type=Parsed("duration", parse_duration),
    metavar="DURATION",
    help="A run is long after this. [default: 1d]",
)
@now_option
@output_options
@click.pass_context
def doctor(context: click.Context, journal: str, long_run: object, now: datetime | None, output: Output) -> None:
    """Look for what is wrong with a journal, its schedules, clock and disk, and print the command that mends each.

    The exit code is 4 if a schedule is starving or blocked, else 1 if something else is wrong; notes are no trouble.

    \b
    Example: duly doctor state/
    """
    with working("examining"):
        longest = LONG_RUN if long_run is None else cast("timedelta", long_run)
        found = examine(journal, now or SystemClock().now(), long_run=longest)
    if output.for_people:
        for trouble in found:
            output.line(f"{trouble.code}: {trouble.text}", style=STYLES[trouble.gravity])
            output.line(f"    {trouble.remedy}")
        if all(trouble.gravity == "note" for trouble in found):
            output.line("nothing is wrong", style="green")
    else:
        output.rows("duly.doctor/1", {"path": journal}, "troubles", (msgspec.to_builtins(one) for one in found))
    context.exit(_exit_code(found))


def _exit_code(found: tuple[Trouble, ...]) -> int:
    gravities = {trouble.gravity for trouble in found}
    if "help" in gravities:
        return NEEDS_HELP
    return BAD if "bad" in gravities else FINE
