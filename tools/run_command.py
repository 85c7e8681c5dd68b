"""`duly run`: keep the schedules of a file, execute them, report back. A cron replacement in the foreground.

Rule kept here: what executes is loaded only when it is asked for, so that no other command pays for it.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import cast

import click

from duly.scheduler.zones import zone_of
from duly.tools.extras import need_service_extra
from duly.tools.localzone import local_zone
from duly.tools.moments import parse_duration
from duly.tools.options import Parsed, journal_option, output_options
from duly.tools.output import Output
from duly.tools.run_settings import LogFormat, Settings

DURATION = Parsed("duration", parse_duration)


@click.command("run", short_help="Execute the schedules of a crontab or a TOML file. Writes.")
@click.argument("file", type=click.Path(path_type=Path))
@journal_option
@click.option("--once", is_flag=True, help="Poll once, execute what is due, and say how each schedule stands.")
@click.option("--dry-run", is_flag=True, help="Only say what the file would change, and what would not be caught up.")
@click.option("--slots", type=click.IntRange(1, 1_000), default=8, show_default=True, help="How many runs at once.")
@click.option(
    "--drain-grace",
    type=DURATION,
    default="30s",
    show_default=True,
    help="How long runs may go on after SIGTERM or Ctrl-C.",
)
@click.option("--resume", is_flag=True, help="Resume what was interrupted (exit code 75) when it starts.")
@click.option("--output", "outputs", type=click.Path(path_type=Path), help="Where commands print. [PATH-output]")
@click.option("--zone", metavar="ZONE", help="Where times are meant that say no zone. [default: this machine's zone]")
@click.option("--system/--user-form", "system", default=None, help="A crontab with or without users.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How it says what it does.",
)
@click.option("--serve", metavar="ADDR", help="Serve clients and metrics at HOST:PORT, :PORT or unix:PATH.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="With --serve: the token that clients need; made if it is not there. Without it, none administers.",
)
@click.option(
    "--schedule-labels",
    type=click.IntRange(0, 10_000),
    default=0,
    show_default=True,
    help="With --serve: how many schedules have metrics of their own.",
)
@output_options
@click.pass_context
def run(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    file: Path,
    journal: str,
    once: bool,
    dry_run: bool,
    slots: int,
    drain_grace: timedelta,
    resume: bool,
    outputs: Path | None,
    zone: str | None,
    system: bool | None,
    log_format: str,
    serve: str | None,
    token_file: Path | None,
    schedule_labels: int,
    output: Output,
) -> None:
    """Keep the schedules of FILE, a crontab or a .toml file, in the journal, and execute them until SIGTERM or Ctrl-C.

    A second signal ends everything at once; SIGHUP reads FILE again, and a bad file changes nothing.

    \b
    Example: duly run crontab --journal state/
    """
    if once and dry_run:
        raise click.UsageError("--once and --dry-run contradict each other: keep one.")
    if serve is not None and (once or dry_run):
        raise click.UsageError("--serve is for a host that stays: leave out --once and --dry-run.")
    if serve is None and (token_file is not None or schedule_labels):
        raise click.UsageError("--token-file and --schedule-labels go with --serve ADDR.")
    if not (once or dry_run or output.for_people):
        raise click.UsageError("--json goes with --once and --dry-run; for the log there is --log-format json.")
    if serve is not None:
        need_service_extra("--serve")
    used = zone_of(zone or local_zone()).name
    settings = Settings(
        file,
        Path(journal),
        used,
        system,
        slots,
        drain_grace,
        outputs,
        resume,
        serve=serve,
        token_file=token_file,
        schedule_labels=schedule_labels,
    )
    if dry_run:
        from duly.tools.run_plan import show_plan

        context.exit(show_plan(settings, output))
    from duly.tools.running import run_on, run_once

    context.exit(run_once(settings, output) if once else run_on(settings, cast("LogFormat", log_format)))
