"""The readings of the clock in a record: when somebody owned the journal, and where it was set back.

Rules: one pass; a step back that an entry tells of is left to that entry; what may grow without end is kept as its
newest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from duly.journal.entries import ClockRegressed, Entry, JournalOpened
from duly.scheduler.reports import Downtime

NOTICEABLE: Final = timedelta(seconds=1)
"""A smaller step back is how clocks are kept right."""
_MOST_SPANS: Final = 1_000


class Readings:
    """What the readings of a record tell, entry by entry."""

    def __init__(self) -> None:
        self.steps_back = 0
        self.largest_step_back = timedelta()
        self._owned: deque[tuple[datetime, datetime]] = deque(maxlen=_MOST_SPANS)
        self._before = (0, timedelta())

    def apply(self, entry: Entry) -> None:
        """Takes in the next reading."""
        since, last = self._owned[-1] if self._owned else (entry.at, entry.at)
        if isinstance(entry, ClockRegressed):
            self._take_back()
        elif last - entry.at >= NOTICEABLE:
            self._before = self.steps_back, self.largest_step_back
            self.steps_back += 1
            self.largest_step_back = max(self.largest_step_back, last - entry.at)
        elif isinstance(entry, JournalOpened):
            self._before = self.steps_back, self.largest_step_back
        if isinstance(entry, JournalOpened) or entry.at < last or not self._owned:
            self._owned.append((entry.at, entry.at))
        else:
            self._owned[-1] = since, entry.at

    def _take_back(self) -> None:
        """The entry that tells of a step follows the reading that shows it."""
        self.steps_back, self.largest_step_back = self._before

    def unowned(self, downtimes: Iterable[Downtime]) -> Iterator[Downtime]:
        """The parts of the downtimes in which no reading shows an owner either: a clock that was set back passes over
        the same time again."""
        owned = sorted(span for span in self._owned if span[0] < span[1])
        for down in downtimes:
            since = down.since
            for begin, end in owned:
                if begin >= down.until:
                    break
                if end <= since:
                    continue
                if begin > since:
                    yield msgspec.structs.replace(down, since=since, until=begin)
                since = end
            if since < down.until:
                yield msgspec.structs.replace(down, since=since)
