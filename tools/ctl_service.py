"""`duly ctl --connect`: the same administration, through the service of a host that runs.

Rules kept here: what speaks HTTP is loaded only when it is asked for; what a command does is the same as for a journal;
the token comes from a file, and is never an argument; a service that does not answer ends with the code of what cannot
be read, and says what may have happened.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
import msgspec

from duly.projections import Run, Schedule
from duly.scheduler.embedded import Scheduler
from duly.scheduler.execution import Attempt
from duly.scheduler.instants import describe_instant
from duly.tools.exit_codes import BAD, FINE, UNREADABLE
from duly.tools.extras import need_service_extra
from duly.tools.moments import describe_duration
from duly.tools.options import Command, output_options
from duly.tools.output import Output

if TYPE_CHECKING:
    from duly.service import Client, Status

SCHEMA = "duly.ctl/1"
PATIENCE = timedelta(seconds=3)
"""How long a person waits for a service that is being restarted."""
_CONNECT = click.option(
    "--connect", envvar="DULY_CONNECT", metavar="ADDR", help="The service of a running host: HOST:PORT or unix:PATH."
)
_TOKEN = click.option(
    "--token-file",
    envvar="DULY_TOKEN_FILE",
    type=click.Path(path_type=Path),
    help="The file with the service's token, which only its owner can read.",
)


def connect_options(command: Command) -> Command:
    """Adds --connect and --token-file."""
    return _CONNECT(_TOKEN(command))


def chosen_address(connect: str | None, journal: str | None) -> str | None:
    """The service to speak to, or None for the journal itself: what was typed beats what the environment names."""
    if connect is None or journal is None:
        return connect
    source = click.get_current_context().get_parameter_source
    typed = [name for name in ("connect", "journal") if source(name) is click.core.ParameterSource.COMMANDLINE]
    if typed == ["connect", "journal"]:
        raise click.UsageError(
            "-j and --connect are two ways, which may lead to two journals: keep -j for a host that is not running, "
            "--connect for one that is."
        )
    return None if typed == ["journal"] else connect


def tell(  # noqa: PLR0913, PLR0917 - what a command was told
    address: str,
    token_file: Path | None,
    action: Callable[[Scheduler, str, str], object],
    actor: str,
    note: str,
    output: Output,
) -> None:
    """Does it through the service, and shows what came of it."""
    with _connected(address, token_file) as client:
        outcome = action(cast("Scheduler", client), actor, note)  # it has the same methods
    if not output.for_people:
        output.document(SCHEMA, {"recorded": [], "outcome": msgspec.to_builtins(outcome, enc_hook=_rule_of)})
        return
    output.line(_described(outcome))


@contextmanager
def _connected(address: str, token_file: Path | None) -> Generator[Client]:
    need_service_extra("--connect")
    from duly.service import Client, ServiceUnreachable, Unauthorized

    try:
        with Client(address, token_file=token_file, patience=PATIENCE) as client:
            yield client
    except ServiceUnreachable as error:
        raise _Unreachable(str(error)) from error
    except Unauthorized as error:
        raise click.ClickException(f"{error}. Name the token's file with --token-file.") from error


class _Unreachable(click.ClickException):
    exit_code = UNREADABLE


def _rule_of(trigger: object) -> object:
    return getattr(trigger, "rule", repr(trigger))


def _described(outcome: object) -> str:
    match outcome:
        case Schedule():
            switches = {
                "paused": outcome.paused,
                "disabled": outcome.disabled,
                "deleted": outcome.deleted,
                "exhausted": outcome.exhausted,
            }
            words = [word for word, holds in switches.items() if holds]
            if outcome.blocked is not None:
                words.append(f"blocked since entry {outcome.blocked.sequence}: {outcome.blocked.reason}")
            return f"{outcome.id}  revision {outcome.revision}, {', '.join(words) or 'live'}"
        case Run():
            return f"{outcome.schedule_id or '-'}  run {outcome.id} of {outcome.target}: {outcome.state}"
        case Attempt(run=run, attempt_id=attempt_id):
            return f"{_described(run)}, attempt {attempt_id}"
        case _:
            return "done"


def _through_the_service(command: Command) -> Command:
    """The options of a command that only a running host can do: it is given a client."""

    @connect_options
    @click.option("-j", "--journal", hidden=True, help="Refused: a running host is asked.")
    @output_options
    @functools.wraps(command)
    def done(
        *args: Any, connect: str | None, token_file: Path | None, journal: str | None, output: Output, **kwargs: Any
    ) -> Any:
        if journal is not None:
            raise click.UsageError("This asks a running host, and no journal: leave -j out, and give --connect ADDR.")
        if connect is None:
            raise click.UsageError("This asks a running host: name its service with --connect ADDR.")
        with _connected(connect, token_file) as client:
            return command(client, output, *args, **kwargs)

    return done


@click.command(short_help="Let a running host go on with an interrupted run.")
@click.argument("run", type=int)
@_through_the_service
def resume(client: Client, output: Output, run: int) -> None:
    """Resume RUN, which was interrupted, from its checkpoint. The host executes it at once.

    \b
    Example: duly ctl resume 30 --connect 127.0.0.1:8080 --token-file token
    """
    outcome = client.resume(run)
    if output.for_people:
        output.line(_described(outcome))
    else:
        output.document(SCHEMA, {"recorded": [], "outcome": msgspec.to_builtins(outcome)})


@click.command(short_help="How a running host is, and what it decided last.")
@click.option("-n", "limit", type=click.IntRange(0, 100), default=10, show_default=True, help="How many decisions.")
@_through_the_service
@click.pass_context
def status(context: click.Context, client: Client, output: Output, limit: int) -> None:
    """Ask the service of a running host how it is. Ends with 1 if it is not ready.

    \b
    Example: duly ctl status --connect 127.0.0.1:8080 --token-file token
    """
    found = client.status()
    if output.for_people:
        _show_status(output, found, limit)
    else:
        shown = msgspec.structs.replace(found, decisions=found.decisions[:limit])
        output.document("duly.ctl-status/1", msgspec.to_builtins(shown))
    context.exit(FINE if found.ready else BAD)


def _show_status(output: Output, found: Status, limit: int) -> None:
    output.line(f"{found.journal}: {'ready' if found.ready else f'not ready: {found.problem}'}")
    if found.poll_age is not None:
        coming = "nothing is due" if found.next_due is None else f"next due {describe_instant(found.next_due)}"
        output.line(f"last poll {found.poll_age:.0f}s ago, {coming}")
    for run in found.runs:
        if run.run_id in found.at_work and run.started_at is not None and found.now is not None:
            age = describe_duration(max(found.now - run.started_at, timedelta()))
            output.line(f"at work: run {run.run_id} of {run.schedule_id or '-'}, for {age} at the last poll")
    for one in reversed(found.decisions[:limit]):
        output.line(f"{one.sequence:>7}  {describe_instant(one.at)}  {one.schedule_id or '-'}  {one.text}")
