"""`duly demo`: the main job in ten seconds."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path

import click

from duly.scheduler.zones import zone_of
from duly.tools.demo import BEGIN, END, Progress, new_folder, play
from duly.tools.demo_findings import find_out, findings_document
from duly.tools.demo_report import print_findings
from duly.tools.exit_codes import BAD, FINE
from duly.tools.localzone import local_zone
from duly.tools.options import output_options
from duly.tools.output import Output, counting_bar
from duly.tools.schedule_file import read_text


@click.command(short_help="The main job in ten seconds: two weeks, a downtime, a kill.")
@click.argument("crontab", required=False)
@click.option("--keep", metavar="DIR", help="Where to leave the journal. [default: a new temporary folder]")
@click.option("--zone", metavar="ZONE", help="Where times without CRON_TZ are meant. [default: this machine's zone]")
@click.option("--system", is_flag=True, help="The crontab has a user before each command.")
@output_options
@click.pass_context
def demo(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context, crontab: str | None, keep: str | None, zone: str | None, system: bool, output: Output
) -> None:
    """Keep the schedules of CRONTAB (default: one that comes with duly) in a new journal for two simulated weeks, with
    changes of the clocks, a downtime, and a kill of the process that owns the journal. Nothing is executed.

    \b
    Example: duly demo --keep demo/
    """
    if crontab is None:
        text, source = files("duly.tools").joinpath("samples/crontab").read_text(encoding="utf-8"), "samples/crontab"
    else:
        text, source = read_text(crontab)
    used_zone = zone_of(zone or local_zone()).name
    folder = _empty_folder(keep) if keep is not None else new_folder()
    with ExitStack() as stack:
        stack.enter_context(_emptied_if_it_fails(folder))
        progress = _progress(stack)
        story = play(text, folder, source=source, zone=used_zone, system=system, progress=progress)
    found = find_out(story)
    if output.for_people:
        print_findings(output, story, found)
    else:
        output.document("duly.demo/1", findings_document(story, found))
    context.exit(FINE if found.right else BAD)


def _empty_folder(name: str) -> Path:
    folder = Path(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise click.UsageError(f"{name} is there already and not empty: name a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


@contextmanager
def _emptied_if_it_fails(folder: Path) -> Generator[None]:
    """So that a demo that was broken off can be repeated with the same --keep."""
    try:
        yield
    except BaseException:
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        raise


def _progress(stack: ExitStack) -> Progress | None:
    if not sys.stderr.isatty():
        return None
    bar = stack.enter_context(counting_bar())
    task = bar.add_task("two weeks go by", total=round((END - BEGIN) / timedelta(days=1)))

    def show(at: datetime) -> None:
        bar.update(task, completed=round((at - BEGIN) / timedelta(days=1)))

    return show
