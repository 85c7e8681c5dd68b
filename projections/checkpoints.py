"""Checkpoints of a journal's state: what an owner opens with, and how one is made beside a running owner.

Rules:
- A checkpoint is a cache. What is folded from one and the entries after it is what is folded from all entries.
- Whoever makes one beside an owner follows the journal's files, as any reader does: it takes no lock, stops no decision
  and folds a state of its own, from the last checkpoint on, which is gone again when the file is written. Only what is
  durable is folded in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from duly.journal.checkpoint import CheckpointDoubted, Position, find_checkpoint
from duly.journal.checkpointing import write_checkpoint
from duly.journal.disk import Disk
from duly.journal.entries import Entry
from duly.journal.errors import Error, JournalCorrupt
from duly.journal.judgement import SALVAGE
from duly.journal.reader import Reader
from duly.projections.facts import Facts
from duly.projections.snapshot import encode_state, load_state
from duly.projections.state import State


class StateFolding:
    """Folds a journal into `state` while it is opened or read."""

    def __init__(self) -> None:
        self.state = State()

    def begin(self) -> None:
        """From an empty state."""
        self.state = State()

    def load(self, lines: Iterator[bytes]) -> None:
        """From the state that these lines hold. CheckpointDoubted if they hold none."""
        load_state(self.state, lines)

    def fold(self, first: int, entries: tuple[Entry, ...]) -> None:
        """Folds the entries of a line in."""
        self.state.apply_all(first, entries)

    def whole(self, folder: Path) -> State:
        """The state. JournalCorrupt if the journal goes on from a state of which parts are missing."""
        if self.state.founding:
            raise JournalCorrupt("the state that the journal goes on from is not whole", path=folder, hint=SALVAGE)
        return self.state


class Abandoned(Error):
    """The making of a checkpoint was broken off."""


def save_checkpoint(disk: Disk, folder: Path, journal_id: str, position: Position, state: Facts) -> None:
    """Writes the state of an owner whose journal is durable up to `position`. OSError if it cannot be written."""
    if position.place.next != state.sequence + 1:
        raise ValueError(f"the state is that after {state.sequence}, and not that before {position.place.next}")
    write_checkpoint(disk, folder, journal_id, position, encode_state(state))


def follow_checkpoint(disk: Disk, folder: Path, *, go_on: Callable[[], bool] = lambda: True) -> int:
    """Makes a checkpoint of what is durable by now, beside a running owner; returns its last entry.

    It is asked again and again whether to go on; Abandoned if not. Raises the journal's errors, and OSError.
    """
    folding = StateFolding()
    reader = _begun(disk, folder, folding)
    position: Position | None = None
    for line in reader.lines():
        if not go_on():
            raise Abandoned("the owner leaves")
        if not line.confirmed:
            break
        folding.fold(line.first, line.entries)
        position = reader.position
    if position is not None:
        lines = _while(go_on, encode_state(folding.state))
        write_checkpoint(disk, folder, reader.journal_id, position, lines)
    return folding.state.sequence


def _begun(disk: Disk, folder: Path, folding: StateFolding) -> Reader:
    """A reader that goes on after the last checkpoint, if there is a good one."""
    try:
        found = find_checkpoint(disk, folder)
        if found is not None:
            found.load(folding)
            return Reader(folder, disk=disk, start=found.position)
    except CheckpointDoubted:
        folding.begin()  # the owner was told when it opened the journal
    return Reader(folder, disk=disk, partial=True)


def _while(go_on: Callable[[], bool], lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        if not go_on():
            raise Abandoned("the owner leaves")
        yield line
