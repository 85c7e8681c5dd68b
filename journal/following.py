"""Reading a journal on and on, while its owner writes it.

Rules kept here:
- what was read once is not read again: a look at a journal in which nothing happened costs a handful of system calls,
  however long the journal is;
- nothing is handed on before it is known to be durable. What was read and is not waits here; if a crash took it and
  another line came to stand in its place, it is dropped, and the journal is read anew;
- entries that were archived in the meantime are read where they are archived.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator

from duly.journal.disk import Disk
from duly.journal.errors import JournalArchived, UnconfirmedGone
from duly.journal.reader import Line, Reader, Record


class Following:
    """The entries of the journal at `path` above `after`, each once, as they become durable."""

    def __init__(self, path: str | os.PathLike[str], *, after: int = 0, disk: Disk | None = None) -> None:
        self._path, self._disk = path, disk
        self.sequence = after
        """The highest sequence that was handed on, or is not wanted."""
        self._reader = Reader(path, disk=disk)
        self._waiting: deque[Line] = deque()

    def records(self) -> Iterator[Record]:
        """What has become durable since the last call."""
        try:
            yield from self._look()
        except (UnconfirmedGone, JournalArchived):  # a new reader knows the archive
            self._waiting.clear()
            self._reader = Reader(self._path, disk=self._disk)
            yield from self._look()

    def _look(self) -> Iterator[Record]:
        for line in self._reader.lines(self.sequence):
            self._waiting.append(line)
            yield from self._confirmed()
        yield from self._confirmed()

    def _confirmed(self) -> Iterator[Record]:
        durable = self._reader.durable
        while self._waiting and self._waiting[0].first + len(self._waiting[0].entries) - 1 <= durable:
            line = self._waiting.popleft()
            for sequence, entry in enumerate(line.entries, line.first):
                if sequence > self.sequence:
                    self.sequence = sequence
                    yield Record(sequence, entry, confirmed=True, segment=line.segment, offset=line.offset)
