"""Running a file of schedules: in the foreground until it is stopped, or once.

Rules kept here: a file with a problem is refused whole, at the start and at a reload, so that no line vanishes by a
mistake; what runs is never stopped by a file; the record has every decision, and the log shows it.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from duly.journal import Disk
from duly.journal.entries import Entry, RunAbandoned
from duly.projections import replay
from duly.projections.indexed import IndexedJournal
from duly.service import Command, CommandOf, Event, Host, Opened, Outputs, Polled, Work, stopped_by_signals
from duly.tools.converging import converge, described
from duly.tools.crontab import VARIABLE
from duly.tools.declaring import TARGET
from duly.tools.exit_codes import FINE, UNREADABLE
from duly.tools.output import Output
from duly.tools.reloading import Reload, hangups_noted
from duly.tools.run_log import LogLines, RunLog
from duly.tools.run_settings import LogFormat, Settings, refuse, tell_notices
from duly.tools.standing import Invocation, Standing, exit_code_of, standings

if TYPE_CHECKING:
    from duly.tools.run_serving import Serving


def open_host(settings: Settings, disk: Disk | None = None) -> Host:
    """A host whose handler executes what the file's entries say. Raises what `Scheduler.open` raises."""
    folder = Path(f"{settings.journal}-output") if settings.outputs is None else settings.outputs
    return Host.open(
        settings.journal,
        {TARGET: CommandOf(command_of)},
        outputs=Outputs(folder),
        drain_grace=settings.drain_grace,
        resume_at_start=settings.resume,
        task_slots=settings.slots,
        clock=settings.clock,
        disk=disk,
        actor="duly run",
    )


def command_of(work: Work) -> Command:
    """The command that an entry of a file stands for, as it was frozen when its run was admitted."""
    given: dict[str, Any] = dict(work.run.input)
    told = cast("dict[str, str]", given.get("environment", {}))
    environment = {name: value for name, value in told.items() if VARIABLE.fullmatch(name) is not None}
    line: str | list[str] = given["command"]
    return Command(
        line if isinstance(line, str) else tuple(line),
        environment=environment,
        stdin=given.get("stdin"),
        user=given.get("user"),
        shell=environment.get("SHELL", "/bin/sh"),
    )


# In the foreground


def run_on(settings: Settings, form: LogFormat) -> int:
    """Runs until it is stopped; the exit code."""
    file = settings.read()
    if file.problems:
        return refuse(file.problems)
    with (
        hangups_noted() as hangups,
        _listening(settings) as serving,
        open_host(settings, None if serving is None else serving.disk) as host,
    ):
        log = RunLog(settings.journal, form, settings.clock, after=host.scheduler.recovery.replayed)
        reload = Reload(settings, host, log)
        with _logged(log), stopped_by_signals(host, reload=reload.now):
            changes, refused = converge(host.scheduler, file, settings.clock.now())
            if refused:
                return refuse(refused)
            host.observe(log)
            host.observe(reload)
            log.say("file", f"{file.source}: {described(changes)}")
            for notice in file.notices:
                log.say("notice", notice)
            if hangups:
                host.call(reload.now)
            with serving.of(host, log) if serving else nullcontext():
                host.run()
    return FINE if host.failure is None else UNREADABLE


@contextmanager
def _listening(settings: Settings) -> Generator[Serving | None]:
    """Listens while the block runs, if that was asked for."""
    if settings.serve is None:
        yield None
        return
    from duly.tools.run_serving import listening

    with listening(settings, settings.serve) as serving:
        yield serving


@contextmanager
def _logged(log: RunLog) -> Generator[None]:
    """Brings the library's warnings into the log while the block runs."""
    handler = LogLines(log)
    logger = logging.getLogger("duly")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        log.close()


# Once


class _Seen:
    """What happens in one invocation."""

    def __init__(self) -> None:
        self.decisions: list[Entry] = []
        self.abandoned: list[int] = []

    def __call__(self, event: Event) -> None:
        match event:
            case Opened(recovery):
                self.abandoned.extend(one.run_id for _, one in recovery.decisions if isinstance(one, RunAbandoned))
            case Polled(poll):
                self.decisions.extend(entry for _, entry in poll.decisions)
            case _:
                pass


def run_once(settings: Settings, output: Output) -> int:
    """Polls once, executes what is offered, and prints how each schedule stands; the exit code."""
    file = settings.read()
    if file.problems:
        return refuse(file.problems)
    tell_notices(file)
    seen = _Seen()
    with open_host(settings) as host:
        _, refused = converge(host.scheduler, file, settings.clock.now())
        if refused:
            return refuse(refused)
        host.observe(seen)
        with stopped_by_signals(host):
            ended = list(host.once())
    state = replay(settings.journal)
    ended.extend(run for run_id in seen.abandoned if (run := state.known_run(run_id)) is not None)
    now = settings.clock.now()
    rows = standings(state, Invocation(IndexedJournal(settings.journal), now, ended, seen.decisions))
    _show_standings(output, rows)
    return exit_code_of(rows)


def _show_standings(output: Output, rows: Sequence[Standing]) -> None:
    if output.for_people:
        width = max((len(row.schedule_id) for row in rows), default=0)
        for row in rows:
            output.line(f"{row.schedule_id:<{width}}  {row.text}")
        if not rows:
            output.line("there are no schedules")
        return
    shown = (
        {"schedule_id": row.schedule_id, "gravity": row.gravity, "text": row.text, "run_id": row.run_id} for row in rows
    )
    output.rows("duly.run-once/1", {"exit_code": exit_code_of(rows)}, "schedules", shown)
