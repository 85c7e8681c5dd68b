"""What was handed to a journal and what it acknowledged: the oracle of every storage proof.

Rules, checked by `recovered` on what a reopened journal holds:
- nothing that was acknowledged (or was ever visible) is missing, changed or elsewhere;
- nothing is there that was never appended, and everything stands in the order in which it was queued;
- a batch is there whole or not at all;
- sequences are dense, from 1.

The oracle knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from duly.journal.entries import Entry, RunNoted
from tests.journal.simulated_disk import Root

START = datetime(2026, 1, 1, tzinfo=UTC)
JOURNAL: Path = Root / "journal"


class Ledger:
    """The entries by sequence, where batches end, and how far the journal has answered for them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.ends: list[int] = [0]
        self.floor = 0
        self.number = 0
        self.shown: Callable[[], int] = lambda: 0
        """How much the open journal says is durable, at this moment."""

    def copy(self) -> Ledger:
        """The same ledger for another future."""
        other = Ledger()
        other.entries = list(self.entries)
        other.ends = list(self.ends)
        other.floor = self.floor
        other.number = self.number
        return other

    @property
    def now(self) -> datetime:
        """The clock reading that goes with the newest entry."""
        return START + timedelta(seconds=self.number)

    def fresh(self, sizes: Sequence[int]) -> list[Entry]:
        """New entries, each unlike every other, padded to these sizes."""
        made: list[Entry] = []
        for size in sizes:
            self.number += 1
            made.append(RunNoted(at=self.now, run_id=self.number, data="x" * size))
        return made

    def queued(self, first: int, entries: Iterable[Entry]) -> None:
        """The journal took these entries as one batch that begins at `first`."""
        assert first == len(self.entries) + 1, "sequences are dense"
        self.entries.extend(entries)
        self.ends.append(len(self.entries))

    def expect(self, entries: Sequence[Entry]) -> int:
        """A batch is about to be handed over; returns the sequence that it must get."""
        first = len(self.entries) + 1
        self.queued(first, entries)
        return first

    def acknowledged(self, through: int) -> None:
        """The journal says that all up to `through` is durable, or shows it."""
        assert through <= len(self.entries), "acknowledged what was never appended"
        self.floor = max(self.floor, through)

    def check(self, found: Sequence[tuple[int, Entry]]) -> None:
        """What a journal holds, against what it may hold."""
        assert [sequence for sequence, _ in found] == list(range(1, len(found) + 1)), "sequences are dense, from 1"
        entries = [entry for _, entry in found]
        assert len(entries) >= self.floor, f"acknowledged entries are lost: {self.floor} were, {len(entries)} are left"
        assert entries == self.entries[: len(entries)], "an entry was changed, or was never appended"
        assert len(entries) in self.ends, "half a batch is there"

    def recovered(self, found: Sequence[tuple[int, Entry]]) -> None:
        """A reopened journal holds this; from now on all of it counts as acknowledged."""
        self.check(found)
        end = len(found)
        del self.entries[end:]
        self.ends = [each for each in self.ends if each <= end]
        self.floor = end
