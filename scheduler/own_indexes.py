"""The indexes that an owner keeps of its own journal.

Rules: one question at a time; the reading machinery is loaded by the first question, as most programs ask none.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from duly.scheduler.errors import SchedulerError

if TYPE_CHECKING:
    from duly.projections.indexed import IndexedJournal


class OwnIndexes:
    """The indexes of the owner's own journal, kept from question to question, and written where a segment is complete.

    One question is answered at a time. After one that failed or was interrupted they are made anew.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._journal: IndexedJournal | None = None

    @contextmanager
    def lent(self) -> Generator[IndexedJournal]:
        """The indexed journal, for one question."""
        with self._lock:
            journal, self._journal = self._journal, None
            if journal is None:
                from duly.projections.indexed import IndexedJournal

                journal = IndexedJournal(self._path, keep=True)
            try:
                yield journal
            except SchedulerError:
                self._journal = journal
                raise
            self._journal = journal
