"""What `duly run` says while it runs: one line for each decision in the journal, and for what befalls the host.

Rules kept here: a decision is shown once it is durable, once, in the order of the record, whoever made it; JSON lines
carry their schema; nothing here stops the host, and a reader that does not read loses lines, of which it is told.
"""

from __future__ import annotations

import json
import logging
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from queue import Full, Queue
from threading import Thread
from typing import Any, Final

from duly.journal.errors import JournalError
from duly.journal.following import Following
from duly.scheduler.clock import Clock
from duly.service import Closed, Draining, Event, JournalFailed, Opened, Warned
from duly.tools.log_command import describe_record, record_row
from duly.tools.printable import printable
from duly.tools.run_settings import LogFormat
from duly.tools.wording import counted

SCHEMA = "duly.run/1"
WAITING: Final = 10_000
"""How many lines may wait for a reader."""
PATIENCE: Final = 2.0
"""Seconds for the last lines to be read."""


class RunLog:
    """An observer that prints. `after` is the last entry that is not shown."""

    def __init__(self, journal: Path, form: LogFormat, clock: Clock, *, after: int) -> None:
        self._form = form
        self._clock = clock
        self._following = Following(journal, after=after)
        self._lines = Lines(self._told_of_loss)

    def __call__(self, event: Event) -> None:
        """Prints what the event tells, after the decisions before it."""
        self._decisions()
        match event:
            case Opened(recovery, again):
                self.say("reopened" if again else "ready", str(recovery).replace("\n", "; "))
            case JournalFailed(error, retry_in):
                text = f"the journal cannot be written, nothing is started: {error}"
                self.say("journal-failed", f"{text} (again in {retry_in.total_seconds():g} s)")
            case Draining(at_work, grace):
                runs = f"{counted(len(at_work), 'run')} may end within {grace.total_seconds():g} s"
                self.say("draining", runs if at_work else "nothing is at work")
            case Closed(unrecorded):
                lost = f"{counted(len(unrecorded), 'result')} could not be recorded"
                self.say("closed", lost if unrecorded else "the journal is closed")
            case Warned(text):
                self.say("warning", text)
            case _:  # what a poll warns of is logged by the library, and comes as a line of that
                pass

    def say(self, event: str, text: str) -> None:
        """One line about the host."""
        self._write(self._line(event, text))

    def _line(self, event: str, text: str) -> str:
        at = self._clock.now().astimezone(UTC)
        if self._form == "json":
            row = {"event": event, "at": f"{at.replace(tzinfo=None).isoformat()}Z", "text": text}
            return json.dumps({"schema": SCHEMA, **row})
        return printable(f"{'-':>7}  {at:%Y-%m-%d %H:%M:%SZ}  {'-':<20}  {event}: {text}")

    def _told_of_loss(self, lost: int) -> str:
        return self._line("warning", f"{counted(lost, 'line')} of this log could not be written: nobody read them")

    def _decisions(self) -> None:
        with suppress(JournalError, OSError):  # it is out of reach: what is missing is shown when it is back
            for record in self._following.records():
                if self._form == "json":
                    row: dict[str, Any] = {"event": "decision", **record_row(record)}
                    self._write(json.dumps({"schema": SCHEMA, **row}))
                else:
                    self._write(printable(describe_record(record)))

    def close(self) -> None:
        """Waits a moment until all is written."""
        self._lines.close()

    def _write(self, line: str) -> None:
        self._lines.put(f"{line}\n")


class Lines:
    """Standard output, written on a thread of its own, since a pipe that nobody empties lets a writer wait for ever."""

    def __init__(self, told_of_loss: Callable[[int], str]) -> None:
        """`told_of_loss` says in a line how many are not there."""
        self._told_of_loss = told_of_loss
        self._waiting: Queue[str | None] = Queue(WAITING)
        self._lost = 0
        self._write = _writer()
        self._thread = Thread(target=self._empty, name="duly log", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        """Writes the line soon, if it can be written."""
        try:
            self._waiting.put_nowait(line)
        except Full:
            self._lost += 1

    def close(self) -> None:
        """Waits until all is written, or for `PATIENCE` seconds."""
        with suppress(Full):
            self._waiting.put(None, timeout=PATIENCE)
            self._thread.join(PATIENCE)

    def _empty(self) -> None:
        while (line := self._waiting.get()) is not None:
            lost, self._lost = self._lost, 0
            with suppress(OSError, ValueError):  # whoever read it has left: the schedules have not
                if lost:
                    self._write(f"{self._told_of_loss(lost)}\n")
                self._write(line)


def _writer() -> Callable[[str], object]:
    """Writes to what standard output is now: past Python's buffer, which would still be full when the process ends."""
    stream = sys.stdout
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # no file

        def write_to_stream(text: str) -> None:
            stream.write(text)
            stream.flush()

        return write_to_stream
    stream.flush()

    def write(text: str) -> None:
        left = text.encode(stream.encoding, "backslashreplace")
        while left:
            try:
                left = left[os.write(descriptor, left) :]
            except BlockingIOError:  # somebody has made it so that a full pipe is an error
                select.select([], [descriptor], [])

    return write


class LogLines(logging.Handler):
    """Brings what the library logs into the same lines."""

    def __init__(self, log: RunLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Prints the record."""
        self._log.say(record.levelname.lower(), self.format(record))
