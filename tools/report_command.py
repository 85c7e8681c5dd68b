"""`duly report`: a journal as one page that can be opened anywhere, shown around and kept.

Rules kept here:
- the journal is only read, and nothing is written into its folder;
- the page is there as a whole or not at all: it is written beside its place and then put there;
- a report that is there already is replaced, any other file only if that was asked for.
"""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import datetime
from pathlib import Path

import click

from duly.journal.ownership import is_journal
from duly.scheduler.instants import describe_instant
from duly.scheduler.reporting import report_data
from duly.scheduler.reports import OUTCOMES, Report
from duly.tools.exit_codes import FINE
from duly.tools.options import INSTANT, journal_argument, output_options
from duly.tools.output import Output, ReaderLeft, working
from duly.tools.wording import counted

SCHEMA = "duly.report/1"
STANDARD_OUTPUT = "-"
_LOOKED_AT = 4_096
"""Bytes in which a report says that it is one."""


@click.command(short_help="The whole record as one page, for a browser.")
@journal_argument
@click.option("-o", "--output", "target", metavar="FILE", required=True, help="The page; - for standard output.")
@click.option("--since", type=INSTANT, metavar="INSTANT", help="Only the occurrences from this instant on.")
@click.option("--until", type=INSTANT, metavar="INSTANT", help="Only the occurrences up to this instant.")
@click.option("-s", "--schedule", "schedules", metavar="ID", multiple=True, help="Only this schedule; may be repeated.")
@click.option("--now", type=INSTANT, metavar="INSTANT", help="What time it is. [default: that of the last entry]")
@click.option("--force", is_flag=True, help="Replace a file that is no report.")
@output_options
@click.pass_context
def report(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    journal: str,
    target: str,
    since: datetime | None,
    until: datetime | None,
    schedules: tuple[str, ...],
    now: datetime | None,
    force: bool,
    output: Output,
) -> None:
    """Write one self-contained HTML page: a timeline of every schedule, a calendar, what needs attention, and the
    explanation of each occurrence.

    What is too much to be shown one by one is counted; --since, --until and --schedule look closer. Without --now it is
    as late as the record's last clock reading. A report that is there already is replaced.

    \b
    Example: duly report state/ -o report.html
    """
    if target == STANDARD_OUTPUT and not output.for_people:
        raise click.UsageError("-o - writes the page to standard output: there is no room for JSON beside it.")
    if target != STANDARD_OUTPUT:
        check_target(Path(target), Path(journal), force=force)
    if since is not None and until is not None and until < since:
        raise click.UsageError("--until lies before --since: swap the two.")
    # The template engine is loaded by this command alone.
    from duly.tools.report_page import render_page

    with working("reading"):
        found = report_data(journal, since=since, until=until, schedules=schedules or None, now=now)
        page = render_page(found, journal)
    if target == STANDARD_OUTPUT:
        _print(page)
    else:
        size = write_whole(Path(target), page)
        _show(output, found, target, size)
    context.exit(FINE)


def check_target(target: Path, journal: Path, *, force: bool) -> None:
    """Raises a usage error where the page must not be written."""
    place = target.absolute().parent.resolve()
    folder = journal.resolve()
    if place == folder or folder in place.parents:
        raise click.UsageError(f"{target} lies in the journal's folder: name a file elsewhere.")
    if place.is_dir() and is_journal([path.name for path in place.iterdir()]):
        raise click.UsageError(f"{target} lies in the folder of a journal: name a file elsewhere.")
    if target.is_dir():
        raise click.UsageError(f"{target} is a folder: name a file in it.")
    if not force and target.is_file() and not _is_report(target):
        raise click.UsageError(f"{target} is there already and is no report: name another file, or say --force.")


def write_whole(target: Path, page: str) -> int:
    """Writes the page beside its place and puts it there; returns its bytes."""
    content = page.encode()
    special = target.exists() and not target.is_file()
    if special:  # a pipe, or /dev/null: there is nothing to replace
        target.write_bytes(content)
        return len(content)
    real = target.resolve()
    descriptor, name = tempfile.mkstemp(prefix=f".{real.name[:100]}-", suffix=".part", dir=real.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _share(name)
        Path(name).replace(real)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return len(content)


def _share(name: str) -> None:
    """Gives the file the permissions that any new file has: a temporary one is its owner's alone."""
    mask = os.umask(0)
    os.umask(mask)
    Path(name).chmod(0o666 & ~mask)


def _is_report(target: Path) -> bool:
    from duly.tools.report_page import GENERATOR

    with target.open("rb") as file:
        head = file.read(_LOOKED_AT)
    return not head or f'name="generator" content="{GENERATOR}'.encode() in head


def _print(page: str) -> None:
    try:
        sys.stdout.flush()
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:
            sys.stdout.write(page)
        else:
            buffer.write(page.encode())
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderLeft from None


def _show(output: Output, found: Report, target: str, size: int) -> None:
    if not output.for_people:
        output.document(SCHEMA, _document(found, target, size))
        return
    if found.narrowed and not found.occurrences:
        output.line(f"no occurrence lies in this window, as of {describe_instant(found.now.replace(microsecond=0))}")
    told = f"{counted(found.schedules_total, 'schedule')}, {counted(found.occurrences, 'occurrence')}"
    rest = "" if found.shown == found.occurrences else f", {found.shown:,} of them one by one"
    output.line(
        f"{target}: {told}{rest}, {describe_instant(found.since)} to {describe_instant(found.until)}, {size:,} bytes"
    )


def _document(found: Report, target: str, size: int) -> dict[str, object]:
    return {
        "file": target,
        "bytes": size,
        "journal_id": found.journal_id,
        "anchor": found.anchor,
        "entries": found.entries,
        "lost": found.lost,
        "since": describe_instant(found.since),
        "until": describe_instant(found.until),
        "now": describe_instant(found.now),
        "schedules": found.schedules_total,
        "occurrences": found.occurrences,
        "shown": found.shown,
        "counts": {outcome: found.counts[outcome] for outcome in OUTCOMES},
        "anomalies": found.anomaly_count,
        "clock_regressions": found.regressions,
    }
