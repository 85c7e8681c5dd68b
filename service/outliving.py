"""Commands that outlive their host: what is noted of each, how the next host knows it again, and how it is watched.

Rules: a note is believed only if it is of this attempt and names a start; a process that lives is never taken for
finished, and one that has ended is never taken for successful.
"""

from __future__ import annotations

import logging
import signal
from abc import abstractmethod
from contextlib import suppress
from pathlib import Path
from socket import socket, socketpair
from threading import Thread
from typing import Final, cast

from duly.journal.entries import Json
from duly.projections.runs import names_a_process
from duly.service.keeper import Keeper
from duly.service.output import RunFiles
from duly.service.processes import Process, age_of, end_group_after, is_alive, signal_group_of, wait_for_end
from duly.service.work import Activity, Report, Work

_log: Final = logging.getLogger("duly.service")


class OutlivedItsHost(Exception):
    """A command whose host died before it, so that nobody saw how it ended."""


class GroupActivity(Activity):
    """A command in a process group of its own."""

    killable = True

    def ask_to_stop(self) -> None:
        """SIGTERM to the group."""
        super().ask_to_stop()
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the group."""
        super().kill()
        self._signal(signal.SIGKILL)

    @abstractmethod
    def _signal(self, number: signal.Signals) -> None:
        """Sends it to the group, if the group is still the command's."""


class AdoptedActivity(GroupActivity):
    """A command that a dead host began, and that still runs."""

    adopted = True

    def __init__(self, work: Work, report: Report, process: Process, log: Path | None, keeper: Keeper) -> None:
        super().__init__(work, report)
        self.elapsed = age_of(process)
        self._process = process
        # The path was noted, and a note may hold anything: nothing but a log of this run is cut.
        self._log = log if log is not None and log.name == f"{work.run.id}.log" else None
        self._keeper = keeper
        self._leaving: socket | None = None

    def begin(self) -> None:
        """Watches it, in a thread. Where that cannot be, its run stays as it is until the journal is opened again."""
        try:
            self._leaving, left = socketpair()
            name = f"duly run {self.work.run.id}"
            Thread(target=self._watch, args=(self._leaving, left), name=name, daemon=True).start()
        except (OSError, RuntimeError):
            _log.exception("run %s outlived its host, and its process cannot be watched", self.work.run.id)

    def leave(self) -> None:
        """Ends the watching."""
        super().leave()
        if self._leaving is not None:
            self._leaving.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(OSError):  # whether it is alive cannot be told now
            signal_group_of(self._process, number)

    def _watch(self, leaving: socket, left: socket) -> None:
        if self._log is not None:
            self._keeper.watch(self._log)
        with left, leaving:
            ended = wait_for_end(self._process, left.fileno())
        if ended and self.work.stopping:
            end_group_after(self._process)
        if self._log is not None:
            self._keeper.leave(self._log, self._process.pid)
        if ended:
            self._end()

    def _end(self) -> None:
        if self._log is not None:
            RunFiles(self._log.parent, self._log.name.removesuffix(".log")).clean()
        self.report(self.work.failed(OutlivedItsHost("it outlived its host, and has ended; nobody saw its exit code")))


def note_of(pid: int, process: Process | None, attempt_id: int | None, log: Path) -> dict[str, Json]:
    """What is noted of a command's process."""
    return {
        "process": pid,
        "group": pid,
        "started": None if process is None else process.started,
        "attempt": attempt_id,
        "output": str(log.absolute()),
    }


def noted(notes: tuple[Json, ...], attempt_id: int | None) -> tuple[Process, Path | None] | None:
    """The living process that the newest note of this attempt tells of, and where its output goes."""
    for note in reversed(notes):
        if not names_a_process(note):
            continue
        told = cast("dict[str, Json]", note)
        process = Process(cast("int", told["process"]), cast("str", told["started"]))
        if told.get("attempt") == attempt_id and is_alive(process):
            output = told.get("output")
            return process, Path(output) if isinstance(output, str) else None
    return None
