"""What `duly run` says while it runs: one line for each decision in the journal, and for what befalls the host.

Rules kept here: a decision is shown once it is durable, once, in the order of the record, whoever made it; JSON lines
carry their schema; nothing here stops the host.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from threading import Lock
from typing import Any

from duly.journal.errors import JournalError
from duly.journal.following import Following
from duly.scheduler.clock import Clock
from duly.service import Closed, Draining, Event, JournalFailed, Opened, Warned
from duly.tools.log_command import describe_record, record_row
from duly.tools.printable import printable
from duly.tools.run_settings import LogFormat
from duly.tools.wording import counted

SCHEMA = "duly.run/1"


class RunLog:
    """An observer that prints. `after` is the last entry that is not shown."""

    def __init__(self, journal: Path, form: LogFormat, clock: Clock, *, after: int) -> None:
        self._form = form
        self._clock = clock
        self._following = Following(journal, after=after)
        self._lock = Lock()

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
        at = self._clock.now().astimezone(UTC)
        if self._form == "json":
            row = {"event": event, "at": f"{at.replace(tzinfo=None).isoformat()}Z", "text": text}
            self._write(json.dumps({"schema": SCHEMA, **row}))
        else:
            self._write(printable(f"{'-':>7}  {at:%Y-%m-%d %H:%M:%SZ}  {'-':<20}  {event}: {text}"))

    def _decisions(self) -> None:
        with suppress(JournalError, OSError):  # it is out of reach: what is missing is shown when it is back
            for record in self._following.records():
                if self._form == "json":
                    row: dict[str, Any] = {"event": "decision", **record_row(record)}
                    self._write(json.dumps({"schema": SCHEMA, **row}))
                else:
                    self._write(printable(describe_record(record)))

    def _write(self, line: str) -> None:
        with self._lock, suppress(OSError):  # whoever read it has left: the schedules have not
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


class LogLines(logging.Handler):
    """Brings what the library logs into the same lines."""

    def __init__(self, log: RunLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Prints the record."""
        self._log.say(record.levelname.lower(), self.format(record))
