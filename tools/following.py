"""Reading a journal on and on, while its owner writes it.

Rules kept here:
- what was read once is not read again: a look at a journal in which nothing happened costs a handful of system calls,
  however long the journal is;
- nothing is handed on before it is known to be durable. What was read and is not waits here; if a crash took it and
  another line came to stand in its place, it is dropped, and the journal is read anew.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from duly.journal import Disk, JournalCorrupt, Line, Reader, Record, UnconfirmedGone


class _Waiting(NamedTuple):
    """A line that is not known to be durable, and the chain's hash behind it."""

    last: int
    chain: bytes
    line: Line


class Following:
    """The entries of the journal at `path` above `after`, each once, as they become durable."""

    def __init__(self, path: str | os.PathLike[str], *, after: int = 0, disk: Disk | None = None) -> None:
        self._path, self._disk = path, disk
        self.sequence = after
        """The highest sequence that was handed on, or is not wanted."""
        self._reader = Reader(path, disk=disk)
        self._waiting: deque[_Waiting] = deque()

    def records(self) -> Iterator[Record]:
        """What has become durable since the last call."""
        try:
            yield from self._look()
        except (JournalCorrupt, UnconfirmedGone):
            if not self._waiting:
                raise
            # What was read last was never acknowledged, so that the record may rightly have gone on without it.
            self._waiting.clear()
            self._reader = Reader(self._path, disk=self._disk)
            yield from self._look()

    def _look(self) -> Iterator[Record]:
        for line in self._reader.lines(self.sequence):
            last = line.first + len(line.entries) - 1
            self._waiting.append(_Waiting(last, self._reader.chain, line))
            yield from self._confirmed()
        yield from self._confirmed()

    def _confirmed(self) -> Iterator[Record]:
        self._check_mark()
        durable = self._reader.durable
        while self._waiting and self._waiting[0].last <= durable:
            line = self._waiting.popleft().line
            for sequence, entry in enumerate(line.entries, line.first):
                if sequence > self.sequence:
                    self.sequence = sequence
                    yield Record(sequence, entry, confirmed=True, segment=line.segment, offset=line.offset)

    def _check_mark(self) -> None:
        """HEAD tells where a durable line ends. If none that waits ends there so, the record went on without them."""
        mark, waiting = self._reader.mark, self._waiting
        if mark is None or not waiting or mark.journal_id != self._reader.journal_id:
            return
        if not waiting[0].line.first <= mark.sequence <= waiting[-1].last:
            return
        if not any((one.last, one.chain) == (mark.sequence, mark.h) for one in waiting):
            raise JournalCorrupt(
                "another line stands where an unconfirmed one stood",
                path=self._reader.path,
                sequence=waiting[0].line.first,
                hint="Read the journal anew",
            )
