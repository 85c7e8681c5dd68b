"""`duly ctl`: administration of a stopped host's journal, or through the service of a host that runs.

Rules kept here: to a journal, it comes as a visitor, who decides what was asked and leaves the host's runs and faults
to the host; a journal that is owned is refused in one line; who and why are recorded with what was done; a command that
has nothing to change records nothing and says so.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from duly.journal import head, read
from duly.journal.entries import JournalClosed, JournalOpened
from duly.scheduler.clock import SystemClock
from duly.scheduler.embedded import Scheduler
from duly.scheduler.instants import describe_instant
from duly.tools.asking import ask_for_a_command
from duly.tools.ctl_service import chosen_address, connect_options, resume, status, tell
from duly.tools.describe import describe_entry
from duly.tools.options import INSTANT, Command, Parsed, optional_journal, output_options
from duly.tools.output import Output
from duly.tools.visiting import acting, open_as_visitor, refuse_unknown

Action = Callable[[Scheduler, str, str], object]
"""What to do, given who does it and why."""


@click.group(
    short_help="Administer a host, running or stopped. Writes.",
    invoke_without_command=True,
    no_args_is_help=False,
)
@click.pass_context
def ctl(context: click.Context) -> None:
    """Pause, unblock, delete … schedules, and end runs: in the journal of a host that is not running, or, with
    --connect, through the service of one that is.

    What was asked is recorded, and nothing else: runs that were at work stay as they are until the host comes back.

    \b
    Example: duly ctl pause nightly -j state/ --note "until the disk is replaced"
    Example: duly ctl pause nightly --connect 127.0.0.1:8080 --token-file token
    """
    ask_for_a_command(context)


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{text!r} is not JSON: {error}") from None


def _doing(command: Command) -> Command:
    """The options and the way of a command: the given function tells what to do, and this does it."""
    return connect_options(_doing_here(command, connects=True))


def _doing_here(command: Command, *, connects: bool = False) -> Command:
    """The same, without a way to a host that runs, unless it gets one."""

    @optional_journal
    @click.option("--actor", help="Who does it, for the record. [default: the user]")
    @click.option("--note", default="", help="Why, for the record.")
    @output_options
    @functools.wraps(command)
    def done(  # noqa: PLR0913 - one parameter for each option
        *args: Any,
        journal: str | None,
        actor: str | None,
        note: str,
        output: Output,
        connect: str | None = None,
        token_file: Path | None = None,
        **kwargs: Any,
    ) -> None:
        action: Action = command(*args, **kwargs)
        address = chosen_address(connect, journal)
        if address is not None:
            tell(address, token_file, action, acting(actor), note, output)
            return
        if journal is None:
            another = ", or a running host with --connect" if connects else ""
            raise click.UsageError(f"Which journal? Name it with -j PATH or $DULY_JOURNAL{another}.")
        refuse_unknown(journal, kwargs.get("schedule"), kwargs.get("run"))
        before = head(journal).sequence
        with open_as_visitor(journal, actor="ctl", create=False) as scheduler:
            action(scheduler, acting(actor), note)
        _show(output, journal, before)

    return done


def _show(output: Output, journal: str, before: int) -> None:
    visit = (JournalOpened, JournalClosed)
    recorded = [record for record in read(journal, after=before) if not isinstance(record.entry, visit)]
    if not output.for_people:
        rows = (
            {
                "sequence": record.sequence,
                "text": describe_entry(record.entry),
                "entry": msgspec.to_builtins(record.entry),
            }
            for record in recorded
        )
        output.rows("duly.ctl/1", {}, "recorded", rows)
        return
    for record in recorded:
        schedule = getattr(record.entry, "schedule_id", None) or "-"
        output.line(f"{record.sequence:>7}  {schedule}  {describe_entry(record.entry)}")
    if not recorded:
        output.line("nothing to change: it is so already")


def _on_schedule(name: str, told: str, act: Callable[[Scheduler, str, str, str], object]) -> click.Command:
    """A command about one schedule that needs nothing else."""

    def command(schedule: str) -> Action:
        return lambda scheduler, actor, note: act(scheduler, schedule, actor, note)

    command.__doc__ = f"""{told}

    \b
    Example: duly ctl {name} nightly -j state/ --actor ann --note "why"
    """
    return ctl.command(name, short_help=told)(click.argument("schedule")(_doing(command)))


_on_schedule("pause", "What comes due from now on does not run.", lambda s, i, a, n: s.pause(i, actor=a, note=n))
_on_schedule("unpause", "End a pause; what lay in it does not run.", lambda s, i, a, n: s.unpause(i, actor=a, note=n))
_on_schedule("disable", "Switch a schedule off.", lambda s, i, a, n: s.disable(i, actor=a, note=n))
_on_schedule("enable", "Switch a schedule on again.", lambda s, i, a, n: s.enable(i, actor=a, note=n))
_on_schedule("delete", "End a schedule for good; its history stays.", lambda s, i, a, n: s.delete(i, actor=a, note=n))
_on_schedule(
    "unblock",
    "A fault is mended: decide again, by the misfire policy.",
    lambda s, i, a, n: s.unblock(i, actor=a, note=n),
)


@ctl.command(short_help="Decide nothing of a schedule until it is unblocked.")
@click.argument("schedule")
@click.argument("reason")
@_doing
def block(schedule: str, reason: str) -> Action:
    """Decide nothing of SCHEDULE, for REASON, until it is unblocked.

    \b
    Example: duly ctl block nightly "the disk is full" -j state/
    """
    return lambda scheduler, actor, note: scheduler.block(schedule, reason, actor=actor, note=note)


@ctl.command(short_help="Move a schedule's watermark.")
@click.argument("schedule")
@click.argument("through", type=INSTANT)
@_doing
def rebaseline(schedule: str, through: datetime) -> Action:
    """Move the watermark of SCHEDULE to THROUGH, which is not in the future: forward, what is passed over does not run;
    back, what was passed over is decided anew, and what ran does not run again.

    \b
    Example: duly ctl rebaseline nightly 2026-03-29T00:00:00Z -j state/
    """
    if through > SystemClock().now():
        raise click.UsageError(f"THROUGH lies ahead, at {describe_instant(through)}: give an instant that is past.")
    return lambda scheduler, actor, note: scheduler.rebaseline(schedule, through, actor=actor, note=note)


@ctl.command("record-external-run", short_help="Say that a run happened outside of duly.")
@click.argument("schedule")
@click.argument("started_at", type=INSTANT)
@_doing
def record_external_run(schedule: str, started_at: datetime) -> Action:
    """Record that SCHEDULE ran at STARTED_AT outside of duly: it spends its calendar period.

    \b
    Example: duly ctl record-external-run tally 2026-03-29T04:00:00Z -j state/
    """
    return lambda scheduler, actor, note: scheduler.record_external_run(schedule, started_at, actor=actor, note=note)


@ctl.command("run-now", short_help="Ask for a run; the host executes it when it comes back.")
@click.argument("schedule", required=False)
@click.option("--target", metavar="NAME", help="What to run, if no schedule says it.")
@click.option("--input", "given", type=Parsed("json", _parse_json), metavar="JSON", help="The run's input, an object.")
@_doing
def run_now(schedule: str | None, target: str | None, given: dict[str, Any] | None) -> Action:
    """Admit a manual run of SCHEDULE, or of --target. It is no occurrence, and takes no occurrence's place.

    \b
    Example: duly ctl run-now nightly -j state/ --actor ann
    """
    if schedule is None and target is None:
        raise click.UsageError("Name a SCHEDULE, or what to run with --target.")
    return lambda scheduler, actor, note: scheduler.run_now(
        schedule, target=target, input=given, actor=actor, note=note
    )


@ctl.command(short_help="Give up a run.")
@click.argument("run", type=int)
@_doing
def abandon(run: int) -> Action:
    """End RUN, which is pending, started or interrupted, without a result. It is never retried.

    \b
    Example: duly ctl abandon 30 -j state/ --note "its machine is gone"
    """
    return lambda scheduler, actor, note: scheduler.abandon(run, actor=actor, note=note)


@ctl.command(short_help="Put a journal in order, and change nothing.")
@_doing_here
def settle() -> Action:
    """Own the journal for a moment: a torn tail is cut off, with a copy kept, and what was read is proven durable.

    \b
    Example: duly ctl settle -j state/
    """
    return lambda _scheduler, _actor, _note: None


ctl.add_command(resume)
ctl.add_command(status)
