"""Handlers: what a target's name stands for, and which activity executes it.

Rules: a handler is a function, a coroutine function, a `Command`, or a `CommandOf`; its kind alone decides how it is
executed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import TypeAlias

from duly.scheduler.decisions.questions import Target
from duly.service.callables import (
    CoroutineActivity,
    CoroutineFunction,
    Function,
    LoopThread,
    ThreadActivity,
    is_coroutine_function,
)
from duly.service.commands import CAN_RUN_COMMANDS, Command, CommandActivity, CommandFailed, CommandOf, Note
from duly.service.keeper import Keeper
from duly.service.output import Outputs
from duly.service.work import Activity, Report, Work

Handler: TypeAlias = Function | CoroutineFunction | Command | CommandOf


class UnknownTarget(LookupError):
    """The host has no handler for a run's target."""


class Workshop:
    """Makes an activity of each work."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        outputs: Outputs,
        report: Report,
        note: Note,
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self.handlers = dict(handlers)
        self.outputs = outputs
        self.keeper = Keeper(outputs)
        self._report = report
        self._note = note
        self._own_loop = LoopThread()
        self._loop: Callable[[], asyncio.AbstractEventLoop] = self._own_loop if loop is None else lambda: loop

    def target(self, name: str) -> Target | None:
        """What the scheduler asks before it admits a run: whether there is a handler."""
        return Target(name) if name in self.handlers else None

    def activity(self, work: Work, at_work: set[int]) -> Activity:
        """The activity that executes this work. Raises UnknownTarget, CommandFailed."""
        handler = self.handlers.get(work.run.target)
        if handler is None:
            raise UnknownTarget(f"this host has no handler for the target {work.run.target!r}")
        if isinstance(handler, Command | CommandOf):
            return self._command(work, handler, at_work)
        if is_coroutine_function(handler):
            return CoroutineActivity(work, self._report, handler, self._loop)
        return ThreadActivity(work, self._report, handler)

    def close(self) -> None:
        """Ends the event loop, if it was the host's own, and the keeping of logs."""
        self._own_loop.close()
        self.keeper.close()

    def _command(self, work: Work, handler: Command | CommandOf, at_work: set[int]) -> Activity:
        if not CAN_RUN_COMMANDS:
            raise CommandFailed(f"commands need process groups, which {os.name} does not have")
        build = handler.build if isinstance(handler, CommandOf) else _always(handler)
        files = self.outputs.files_of(work.run)
        self.outputs.prune(files, at_work | self.keeper.runs)
        return CommandActivity(work, self._report, build, files, self.keeper, self._note)


def _always(command: Command) -> Callable[[Work], Command]:
    def build(_work: Work) -> Command:
        return command

    return build
