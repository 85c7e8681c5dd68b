"""The log of decisions: one record for each entry of the journal, and a formatter that writes records as JSON.

Rules: a decision is logged once it is durable, once, in the order of the record; a record's fields are its data, so
that no text needs to be parsed; nothing that is logged breaks a line.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from duly.journal.entries import kind_of
from duly.journal.reader import Record
from duly.service.watching.record import Growing, Words, decision_of

LOGGER: Final = "duly.decisions"


class DecisionLog:
    """An observer of a host that logs every entry of its journal above `after` to the logger `duly.decisions`.

    The level is INFO. `words` says an entry in words; the entry itself is in the record's attribute `decision`.
    """

    def __init__(self, journal: Path | str, *, after: int = 0, words: Words = kind_of) -> None:
        self._words = words
        self._log = logging.getLogger(LOGGER)
        self._growing = Growing(Path(journal), after=after, words=words)
        self._growing.listen(self._write)

    def __call__(self, *_event: object) -> None:
        """Logs what is new."""
        self._growing.look()

    def _write(self, record: Record) -> None:
        told = decision_of(record, self._words)
        decision = {"sequence": told.sequence, "entry": record.entry}
        text = _printable(told.text)
        self._log.info("#%d %s: %s", told.sequence, told.schedule_id or "-", text, extra={"decision": decision})


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


class JsonFormatter(logging.Formatter):
    """Writes a log record as one line of JSON: `at`, `level`, `logger`, `text`, and a decision's `sequence` and
    `entry`, or an `error`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        row: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": record.getMessage(),
            **getattr(record, "decision", {}),
        }
        if record.exc_info:
            row["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(row, enc_hook=repr).decode("utf-8", "replace")
