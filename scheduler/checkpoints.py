"""When an owner's checkpoints are made: in the background every so many entries, and when it closes in good order.

Rules:
- Nothing here is waited for by a decision, and nothing that goes wrong here is more than a warning.
- In the background the journal's files are followed, as by any reader (`duly.projections.checkpoints`): the working
  state is not touched and the decision lock is not taken.
- Making one costs as much as reading the state and the entries since. So it is made the more rarely the more schedules
  there are, and not at all at a close after few entries: reading these again is quicker than two fsyncs.
"""

from __future__ import annotations

import logging
from threading import Thread
from typing import Final

from duly.journal import Disk, Journal
from duly.journal.entries import Entry
from duly.journal.errors import Error
from duly.projections import State
from duly.projections.checkpoints import Abandoned, follow_checkpoint, save_checkpoint

EVERY: Final = 100_000
"""Entries between two checkpoints: reading so many again takes about half a second."""
AT_CLOSE: Final = 1_000
"""A close makes one if there were so many entries since the last one: reading them takes some milliseconds."""

_log = logging.getLogger("duly.scheduler")


class Checkpoints:
    """The checkpoints of one owner. `note` and `close` never raise."""

    def __init__(self, journal: Journal, disk: Disk, every: int | None) -> None:
        """`every` how many entries one is made; None: never."""
        self._journal, self._disk = journal, disk
        self._every = every
        self._last = journal.recovery.checkpoint
        self._thread: Thread | None = None
        self._leaving = False

    def note(self, state: State) -> None:
        """Begins to make one in the background if it is time. Quick: called after every command and poll."""
        if self._every is None or state.sequence - self._last < self._every:
            return
        if state.sequence - self._last < len(state.by_id) or self._thread is not None:
            return
        thread = Thread(target=self._follow, name="duly-checkpoint", daemon=True)
        self._thread = thread
        try:
            thread.start()
        except RuntimeError as error:  # there can be no more threads
            self._thread = None
            self._last = state.sequence
            self._warn(error)

    def _follow(self) -> None:
        try:
            self._last = follow_checkpoint(self._disk, self._journal.path, go_on=lambda: not self._leaving)
        except Abandoned:
            return
        except (Error, OSError) as error:
            # Not again at once: whatever it is, it will not be gone.
            self._last = self._journal.durable_sequence
            self._warn(error)
        self._thread = None

    def _warn(self, error: Exception) -> None:
        _log.warning("%s: no checkpoint was made, so the next opening reads more: %s", self._journal.path, error)

    def leave(self) -> None:
        """Breaks off what is being made in the background, and waits for that."""
        self._leaving = True
        if self._thread is not None:
            self._thread.join()

    def close(self, state: State, sequence: int, last: Entry) -> None:
        """Makes one of the state after the last entry, if it is worth it. Everything must be durable by now, and the
        journal still owned."""
        since = sequence - self._last
        if self._every is None or since < min(AT_CLOSE, self._every) or since < len(state.by_id) // 100:
            return
        if sequence != state.sequence + 1:
            return  # an interrupt left the state behind the journal
        journal = self._journal
        try:
            state.apply(sequence, last)
            save_checkpoint(self._disk, journal.path, journal.journal_id, journal.position, state)
        except (Error, OSError, ValueError) as error:
            self._warn(error)
