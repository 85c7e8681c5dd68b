"""Reading the file of `duly run` again, while it runs.

Rules kept here: a file that cannot be read, has a problem, or is refused changes nothing and stops nothing, and that is
told; a reload that meets a failing journal is done once the journal is back, and not before.
"""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager

import click

from duly.journal import JournalError, JournalPoisoned
from duly.scheduler.errors import SchedulerError
from duly.service import Event, Host, Opened
from duly.tools.converging import converge, described
from duly.tools.run_log import RunLog
from duly.tools.run_settings import STANDARD_INPUT, Settings


class Reload:
    """What a SIGHUP asks for. An observer of its host, too."""

    def __init__(self, settings: Settings, host: Host, log: RunLog) -> None:
        self._settings = settings
        self._host = host
        self._log = log
        self._is_due = False

    def __call__(self, event: Event) -> None:
        """Reads the file once the journal is back, if that was asked for meanwhile."""
        if isinstance(event, Opened) and event.again and self._is_due:
            self._host.call(self.now)

    def now(self) -> None:
        """Reads the file again. Call it on the host's thread. Raises JournalPoisoned."""
        self._is_due = False
        problems = self._converge()
        for problem in problems:
            self._log.say("reload-refused", f"{problem}; what was declared before goes on")

    def _converge(self) -> tuple[str, ...]:
        """Makes it so; why it is refused, if it is."""
        if str(self._settings.file) == STANDARD_INPUT:
            return ("standard input cannot be read again: name a file, or start duly run anew",)
        try:
            file = self._settings.read()
        except (OSError, click.ClickException) as error:
            return (f"{self._settings.file}: {error}",)
        if file.problems:
            return tuple(map(str, file.problems))
        now = self._settings.clock.now()
        try:
            changes, refused = converge(self._host.scheduler, file, now)
        except JournalPoisoned:
            self._is_due = True
            raise
        except (JournalError, SchedulerError) as error:
            return (str(error),)
        if changes:
            self._log.say("reloaded", f"{file.source}: {described(changes)}")
        return tuple(map(str, refused))


@contextmanager
def hangups_noted() -> Generator[list[int]]:
    """While the block runs, a SIGHUP that nobody else takes is noted in the list, and ends nothing."""
    came: list[int] = []
    if not hasattr(signal, "SIGHUP"):
        yield came
        return
    before = signal.signal(signal.SIGHUP, lambda number, _frame: came.append(number))
    try:
        yield came
    finally:
        signal.signal(signal.SIGHUP, before)
