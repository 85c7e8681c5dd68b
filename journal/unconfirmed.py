"""What a reader handed on before it was known to be durable, and whether it is still there.

Rules kept here:
- After a failed sync or a power cut an owner may rightly go on without what was never acknowledged. A reader that has
  read it must learn of that, and it is no damage.
- Unsynced lines stand in one segment: it rotates when nothing is unsynced.
- Nothing here reads more than those lines again.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

from duly.journal.codec import decode_outline
from duly.journal.errors import UnconfirmedGone
from duly.journal.scanning import Place, Read, Scan
from duly.journal.segments import Segment


class Unconfirmed:
    """The lines at the end of what was read that are not known to be durable."""

    def __init__(self) -> None:
        self.segment = Segment(1, 1)
        """Where they stand."""
        self._before = Place(1, b"", 0)
        self._after: deque[Place] = deque()
        """Where each of them ends."""

    def __bool__(self) -> bool:
        return bool(self._after)

    def add(self, segment: Segment, before: Place, after: Place) -> None:
        """One more such line was read."""
        if not self._after:
            self.segment, self._before = segment, before
        self._after.append(after)

    def confirm(self, durable: int) -> None:
        """Everything up to this sequence is durable."""
        while self._after and self._after[0].next <= durable + 1:
            self._before = self._after.popleft()

    def still_stand(self, path: Path, read: Read, crc_seed: int) -> bool:
        """Whether the very same lines are still there."""
        end = self._after[-1]
        scan = Scan(path, read, crc_seed, self._before)
        for _ in scan.run(decode_outline):
            if scan.offset >= end.offset:
                break
        return scan.place == end

    def gone(self, folder: Path) -> UnconfirmedGone:
        """The error that tells of it."""
        return UnconfirmedGone(
            f"what was read as unconfirmed, up to sequence {self._after[-1].next - 1}, is gone: it was never "
            "acknowledged, and the record goes on without it",
            path=folder / self.segment.name,
            offset=self._before.offset,
            sequence=self._before.next,
            hint="Read the journal again from its beginning",
        )
