"""Replay: a journal's entries, folded into state, by whoever may read the file.

Rules: no lock, no write, no clock, no calendar; it works on a live journal. A replayed state is what the owner's state
was after the same entry, and has the same digest.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime
from pathlib import Path

from duly.journal.errors import Error, JournalArchived, JournalCorrupt, UnconfirmedGone
from duly.journal.judgement import SALVAGE
from duly.journal.reader import Line, Reader, read
from duly.projections.fold import fold_entries
from duly.projections.history import History, Page, page_of
from duly.projections.readings import is_until
from duly.projections.state import NotRecorded, State


def replay(path: Path | str, *, until: int | datetime | None = None, confirmed: bool = False) -> ReplayedState:
    """The state of the journal at `path`.

    `until` is a sequence, or an aware instant, which means the last entry whose `at` is not later. With `confirmed`,
    entries that HEAD does not prove durable yet are left out. Raises NaiveInstant, and the journal's errors.
    """
    through = None if until is None else last_sequence(path, until)
    state = ReplayedState(Path(path))
    try:
        state.read_on(through=through, confirmed=confirmed)
    except UnconfirmedGone:
        # A crash took the end while it was read, and the next owner went on without it: what was folded is no record.
        state = ReplayedState(Path(path))
        state.read_on(through=through, confirmed=confirmed)
    return state


class NaiveInstant(Error, ValueError):
    """A datetime without a time zone was given where an instant is needed."""


class ReplayedState(State):
    """A state that was read from a journal's files, and can read on."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.unconfirmed = 0
        self._begin_reading()
        # The very last store: whoever is interrupted on the way here begins anew the next time, too.
        self._broken_off = False

    def catch_up(self) -> int:
        """Folds in what has become durable since, and returns how many entries that were.

        It never holds an entry that could still vanish: if the state was replayed with unconfirmed entries in it, it
        is built anew once. So it is after a reading that was interrupted, which may have left half of an entry in it.
        """
        before = self.sequence
        if self.unconfirmed or self._broken_off:
            self._begin_anew()
        try:
            self.read_on(through=None, confirmed=True)
        except JournalArchived:
            # What it stopped in was moved away; the journal has the state to go on from.
            self._begin_anew()
            self.read_on(through=None, confirmed=True)
        except UnconfirmedGone:
            # It was not folded in. All that was is durable, and still there.
            self.read_on(through=None, confirmed=True)
        return self.sequence - before

    def occurrences(self, schedule_id: str, *, after: str | None = None, limit: int = 100) -> Page:
        """What became of the schedule's occurrences up to this state; what is due and undecided is not among them, as
        that takes a calendar. Raises NotRecorded, BadCursor."""
        from duly.projections.indexed import IndexedJournal, entries_about

        if schedule_id not in self.by_id:
            raise NotRecorded(f"there is no schedule {schedule_id!r} after entry {self.sequence}")
        history = History(schedule_id)
        for sequence, entry in entries_about(IndexedJournal(self.path), schedule_id, through=self.sequence):
            history.apply(sequence, entry)
        return page_of(history.table(), after, limit)

    def read_on(self, *, through: int | None, confirmed: bool) -> None:
        """Folds in the entries after `sequence`, up to and including `through`, going on where it stopped reading."""
        self._broken_off = True
        try:
            self._read_on(through, confirmed)
        except Error:  # it comes from the reader, between two lines
            self._broken_off = False
            raise
        self._broken_off = False
        if self.founding and self.sequence != through:
            raise JournalCorrupt("the state that the journal goes on from is not whole", path=self.path, hint=SALVAGE)

    def _read_on(self, through: int | None, confirmed: bool) -> None:
        reader, waiting = self._reader, self._waiting
        try:
            for line in reader.lines(self.sequence):
                if confirmed and (waiting or not line.confirmed):
                    waiting.append(line)
                    self._fold_waiting(through)
                else:
                    folded = self._fold(line, through)
                    self.unconfirmed += 0 if line.confirmed else folded
                if self.sequence == through:
                    break
            else:
                self._fold_waiting(through)
        except UnconfirmedGone:
            self._begin_reading()
            raise
        if self.sequence == through:
            # In the middle of a line, maybe.
            self._begin_reading()

    def _begin_anew(self) -> None:
        self._broken_off = True
        self.__init__(self.path)  # type: ignore[misc]  # begins again as an empty state of the same journal

    def _begin_reading(self) -> None:
        self._reader = Reader(self.path, partial=True)
        self._waiting: deque[Line] = deque()
        """What was read and is not folded in: it may still vanish."""

    def _fold_waiting(self, through: int | None) -> None:
        waiting, durable = self._waiting, self._reader.durable
        while waiting and self.sequence != through and waiting[0].first + len(waiting[0].entries) - 1 <= durable:
            self._fold(waiting.popleft(), through)

    def _fold(self, line: Line, through: int | None) -> int:
        """How many of the line's entries were folded in."""
        before, entries = self.sequence, line.entries
        last = line.first + len(entries) - 1
        if line.first <= before or (through is not None and last > through):
            # In the middle of a line.
            end = last if through is None else min(last, through)
            entries = entries[max(0, before + 1 - line.first) : max(0, end + 1 - line.first)]
        fold_entries(self, max(line.first, before + 1), entries)
        return self.sequence - before


def last_sequence(path: Path | str, until: int | datetime) -> int:
    """The sequence that `until` means: itself, or of an instant the last entry whose reading is not later, 0 if none
    is. Clocks go back, so that an entry before it may well have a later `at`. Raises NaiveInstant."""
    if isinstance(until, int):
        return until
    if until.utcoffset() is None:
        raise NaiveInstant(f"until: {until!r} is naive: it names no instant. Give it a time zone, UTC for example.")
    return max((record.sequence for record in read(path) if is_until(record.entry, until)), default=0)
