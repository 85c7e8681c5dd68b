"""A host's hold on its journal: the scheduler as it is now, and how to get it again when it has failed.

Rules: only the first opening may make a journal, and every later one must find that very journal; what fails is tried
again after 0.1, 0.2, 0.4 … 30 seconds, and the pauses begin anew only after it has held for a while; only the host's
thread changes anything here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeAlias

from duly.journal import Disk, ForeignJournal
from duly.journal.mark import read_mark
from duly.scheduler.embedded import Scheduler

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 30.0
"""Seconds between two attempts to open a journal that failed."""
HELD: Final = 30.0
"""Seconds after which a reopened journal counts as mended."""

Open: TypeAlias = Callable[[bool], Scheduler]
"""Opens the journal; told whether it is opened again, and must be there."""


class Tenure:
    """The hold; opening it takes the journal. Raises what `Scheduler.open` raises."""

    def __init__(self, open_scheduler: Open, disk: Disk) -> None:
        self._open = open_scheduler
        self._disk = disk
        self._pause = FIRST_PAUSE
        self._retry_at = 0.0
        self.scheduler: Scheduler = open_scheduler(False)
        self.failure: Exception | None = None
        """Why the journal is out of reach, or None."""
        self._journal_id = self._found_id()
        self._opened_at = time.monotonic()

    def fail(self, error: Exception) -> float:
        """Gives up the scheduler, which failed; seconds until it is tried again."""
        if time.monotonic() - self._opened_at >= HELD:
            self._pause = FIRST_PAUSE
        pause = self._put_off(error)
        self.scheduler.close()  # last: whoever finds it closed finds the reason, too
        return pause

    def hasten(self) -> None:
        """Lets a journal that is out of reach be tried again at once, and soon again after that."""
        self._pause = FIRST_PAUSE
        self._retry_at = time.monotonic()

    def retry_in(self) -> float | None:
        """Seconds until the journal is to be opened again; None if it is held."""
        return None if self.failure is None else max(self._retry_at - time.monotonic(), 0.0)

    def reopen(self) -> float | None:
        """Takes the journal again; seconds until the next attempt, if that fails."""
        try:
            self._check_identity()
            scheduler = self._open(True)
        except Exception as error:  # whatever it is: what is at work goes on, and is to be recorded one day
            return self._put_off(error)
        self.scheduler = scheduler
        self._opened_at = time.monotonic()
        self.failure = None
        return None

    def _put_off(self, error: Exception) -> float:
        pause = self._pause
        self._pause = min(2 * pause, LONGEST_PAUSE)
        self._retry_at = time.monotonic() + pause
        self.failure = error
        return pause

    def _found_id(self) -> str | None:
        """The id of the journal that lies there; None if its HEAD does not tell."""
        mark = read_mark(self._disk, self.scheduler.path)
        return None if mark is None else mark.journal_id

    def _check_identity(self) -> None:
        found = self._found_id()
        if found is not None and self._journal_id is not None and found != self._journal_id:
            raise ForeignJournal(
                f"another journal lies here now: {found}, and {self._journal_id} was opened",
                path=self.scheduler.path,
                hint="Bring the journal back that the host began with, or stop the host",
            )
