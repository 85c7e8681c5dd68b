"""`duly archive`: the old segments of a stopped journal, moved elsewhere.

Rule kept here: everything is `duly.projections.archiving`'s.
"""

from __future__ import annotations

from datetime import datetime

import click

from duly.projections.archiving import archive as archived
from duly.scheduler.clock import SystemClock
from duly.tools.options import POSITION, archived_journal_argument, output_options
from duly.tools.output import Output, working


@click.command(short_help="Move old segments to a folder. Writes PATH and FOLDER.")
@archived_journal_argument
@click.option("--to", required=True, metavar="FOLDER", help="Where to. It is made if it is not there.")
@click.option(
    "--before",
    type=POSITION,
    metavar="SEQ|INSTANT",
    help="Only what is older than the newest state that an earlier `duly archive` wrote up to there.",
)
@output_options
def archive(journal: str, to: str, before: int | datetime | None, output: Output) -> None:
    """Verify a stopped journal, let it go on from its present state in a new segment, and move all older segments.

    Nothing is deleted, no number changes, and whoever reads the journal reads the archive with it, as long as that
    stays where it was put. Broken off, it is done again by the same command.

    \b
    Example: duly archive state/ --to /mnt/archive/state
    """
    with working("archiving"):
        found = archived(journal, to, now=SystemClock().now(), before=before)
    if output.for_people:
        output.line(str(found))
        return
    output.document(
        "duly.archive/1",
        {"path": str(found.path), "archive": str(found.archive), "moved": list(found.moved), "first": found.first},
    )
