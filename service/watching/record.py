"""The record, as it grows: every new entry is told once to whoever listens, in order.

Rules: what is told is durable and read from the journal, whoever made it; a journal that cannot be read now is read
later, with a warning, and nothing is left out.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Final, TypeAlias

import msgspec

from duly.journal.entries import Entry, kind_of
from duly.journal.errors import JournalError
from duly.journal.following import Following
from duly.journal.reader import Record

Told: TypeAlias = Callable[[Record], object]
Words: TypeAlias = Callable[[Entry], str]
KEPT: Final = 100
_log: Final = logging.getLogger("duly.service")


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One entry, for people: `text` says it in words, if the service has words for entries."""

    sequence: int
    at: datetime
    kind: str
    schedule_id: str | None
    text: str


class Growing:
    """The entries above `after`, told to listeners by `look`; the newest are kept."""

    def __init__(self, journal: Path, *, after: int, words: Words = kind_of) -> None:
        self._following = Following(journal, after=after)
        self._words = words
        self._listeners: list[Told] = []
        self._newest: deque[Decision] = deque(maxlen=KEPT)
        self._lock = Lock()
        self._problem = ""

    def listen(self, listener: Told) -> None:
        """Tells this listener what comes from now on."""
        self._listeners.append(listener)

    def look(self, *_event: object) -> None:
        """Reads what is new, and tells it. An observer of a host may be this."""
        with self._lock:
            try:
                for record in self._following.records():
                    self._newest.append(decision_of(record, self._words))
                    for listener in self._listeners:
                        listener(record)
            except (JournalError, OSError) as error:  # what cannot be read now is read at a later look
                if str(error) != self._problem:
                    _log.warning("the record cannot be followed beyond #%d: %s", self._following.sequence, error)
                self._problem = str(error)
            else:
                self._problem = ""

    def newest(self) -> tuple[Decision, ...]:
        """The newest entries, newest first."""
        self.look()
        with self._lock:
            return tuple(reversed(self._newest))


def decision_of(record: Record, words: Words) -> Decision:
    """An entry, for people."""
    entry = record.entry
    return Decision(
        sequence=record.sequence,
        at=entry.at,
        kind=kind_of(entry),
        schedule_id=getattr(entry, "schedule_id", None),
        text=words(entry),
    )
