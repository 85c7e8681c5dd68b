"""The indexes that an owner keeps of its own journal, and the history that was asked for last.

Rules: one question at a time; the reading machinery is loaded by the first question, as most programs ask none. A kept
history is the one fold of the same entries, which are durable and never change: it is fed what is new, and answers as
one that is folded from the beginning does.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from duly.projections.history import BadCursor, History
from duly.scheduler.errors import SchedulerError

if TYPE_CHECKING:
    from duly.projections.indexed import IndexedJournal


MOST_KEPT: Final = 20_000
"""A history of more rows is not kept: they take about half a kilobyte each."""


class _Kept(NamedTuple):
    history: History
    through: int


class OwnIndexes:
    """The indexes of the owner's own journal, kept from question to question, and written where a segment is complete.

    One question is answered at a time. After one that failed or was interrupted, and was not refused, they are made
    anew.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._journal: IndexedJournal | None = None
        self._kept: _Kept | None = None

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
            except (SchedulerError, BadCursor):
                self._journal = journal
                raise
            self._journal = journal

    @contextmanager
    def history(self, schedule_id: str, through: int) -> Generator[History]:
        """The schedule's history after the durable entry `through`, for one question. Raises UnknownSchedule, and the
        journal's errors."""
        from duly.scheduler.lookups import about

        with self.lent() as journal:
            # An interrupted fold is not gone on with.
            kept, self._kept = self._kept, None
            if kept is None or kept.history.schedule_id != schedule_id or kept.through > through:
                kept = _Kept(History(schedule_id), 0)
            history = kept.history
            if through > kept.through:
                for sequence, entry in about(journal, schedule_id, after=kept.through, through=through):
                    history.apply(sequence, entry)
            if len(history.rows) + len(history.spans) <= MOST_KEPT:
                self._kept = _Kept(history, through)
            yield history
