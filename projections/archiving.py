"""Archiving: the oldest segments of a stopped journal, moved elsewhere, without losing what they say.

Rules:
- First the whole journal is verified; then the whole state is written into a new segment, as `Checkpoint` entries, and
  read back; then segments are moved, oldest first. Nothing is deleted.
- A crash at any moment leaves a journal that opens, and the same command goes on where it was broken off.
- Sequences and run ids do not move. What was decided, what was spent, and which requests were made is in the state.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from duly.journal.archived import begins_with_state, state_of
from duly.journal.disk import Disk
from duly.journal.entries import Checkpoint
from duly.journal.errors import JournalCorrupt, JournalError, UnreadableJournal
from duly.journal.judgement import SALVAGE
from duly.journal.moving import check_archive, move_segments, record_archive
from duly.journal.ownership import canonical
from duly.journal.real_disk import RealDisk
from duly.journal.recovered import recovered_entries
from duly.journal.segments import Segment, listing
from duly.journal.writer import Journal
from duly.projections.checkpoints import save_checkpoint
from duly.projections.snapshot import encode_parts
from duly.projections.state import State

_log = logging.getLogger("duly.projections")


class Archived(NamedTuple):
    """What was archived."""

    path: Path
    archive: Path
    moved: tuple[str, ...]
    """The segments that were moved."""
    first: int
    """The first entry that is left in the journal."""

    def __str__(self) -> str:
        if not self.moved:
            return f"nothing to archive: {self.path} begins at entry {self.first:,}"
        segments = "1 segment" if len(self.moved) == 1 else f"{len(self.moved):,} segments"
        return f"{segments} moved to {self.archive}, which holds the entries before {self.first:,} now"


def archive(
    path: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    now: datetime,
    before: int | datetime | None = None,
    disk: Disk | None = None,
) -> Archived:
    """Moves the sealed segments of a stopped journal to the folder `to`, and lets the journal go on from its state.

    `now` is the clock reading that is recorded. With `before`, a sequence or an aware instant, only segments move that
    are older than the newest state that an earlier call wrote up to there. Raises JournalLocked while it has an owner,
    ForeignJournal if `to` is something else than this journal's archive, and the journal's errors.
    """
    disk = RealDisk() if disk is None else disk
    target = canonical(to)
    with Journal.open(path, now=now, create=False, disk=disk) as journal, _telling(journal.path):
        check_archive(disk, journal.path, target, journal.journal_id)
        archiving = _Archiving(disk, journal)
        archiving.record_torn(now)
        archiving.write_state(now)
        base = archiving.newest_state(before)
        old = [one for one in archiving.segments() if base is not None and one.number < base.number]
        if old:
            archiving.save_checkpoint()
            record_archive(disk, journal.path, target)
            move_segments(disk, journal.path, target, old)
        [first, *_] = archiving.segments()
        return Archived(journal.path, target, tuple(one.name for one in old), first.first)


@contextmanager
def _telling(folder: Path) -> Generator[None]:
    """An OSError on the way breaks it off, and nothing is lost by that."""
    try:
        yield
    except OSError as error:
        raise UnreadableJournal(
            f"archiving was broken off: {error}",
            path=folder,
            hint="Nothing is lost. Look at the disks' space and the permissions, and do it again",
        ) from error


class _Archiving:
    def __init__(self, disk: Disk, journal: Journal) -> None:
        self._disk, self._journal, self._folder = disk, journal, journal.path
        self._state = State()
        self._said = 0
        """The last entry that is no part of a state."""
        for sequence, entry in journal.entries():
            self._state.apply(sequence, entry)
            if not isinstance(entry, Checkpoint):
                self._said = sequence
        if self._state.founding:
            raise JournalCorrupt("the state that it goes on from is not whole", path=self._folder, hint=SALVAGE)

    def record_torn(self, now: datetime) -> None:
        """Records what recovery has cut off, as every owner does first, with the settings as they were."""
        torn = self._journal.recovery.torn
        before = self._state.opened
        if not torn or before is None:
            return
        entry = msgspec.structs.replace(before, at=now, pid=os.getpid(), torn=torn, actor="duly archive")
        self._said = self._journal.append([entry], now)
        self._state.apply(self._said, entry)

    def segments(self) -> tuple[Segment, ...]:
        """The segments that are there now."""
        return listing(self._folder, self._disk.names(self._folder)).segments

    def _states(self) -> list[Segment]:
        """The segments that begin with a state."""
        return [one for one in self.segments() if begins_with_state(self._disk, self._folder / one.name, one)]

    def write_state(self, now: datetime) -> None:
        """Writes the state into a new segment, unless the last thing that was written is just that."""
        if not self._said or self._is_written(self._said):
            return
        journal, state = self._journal, self._state
        journal.rotate()
        through = state.sequence
        parts = encode_parts(state)
        for number, text in enumerate(parts, 1):
            entry = Checkpoint(at=now, part=number, parts=len(parts), through=through, state=text)
            state.apply(journal.enqueue([entry], now), entry)
        journal.sync()
        if not self._is_written(through):
            raise JournalError("the state does not read back as what it is", path=self._folder, hint="Try again")

    def save_checkpoint(self) -> None:
        """The one that is there was made after a line that moves away."""
        journal = self._journal
        try:
            save_checkpoint(self._disk, self._folder, journal.journal_id, journal.position, self._state)
        except OSError as error:
            _log.warning("%s: no checkpoint was made, so the next opening reads more: %s", self._folder, error)

    def _is_written(self, through: int) -> bool:
        """Whether the journal ends with the state after the entry `through`, and it gives the state that is known."""
        written = [one for one in self.segments() if one.first > through]
        if not written or not begins_with_state(self._disk, self._folder / written[0].name, written[0]):
            return False
        found = State()
        end = self._journal.position.place
        for sequence, entry in recovered_entries(self._disk, self._folder, tuple(written), end, through):
            found.apply(sequence, entry)
        return not found.founding and found.digest() == self._state.digest()

    def newest_state(self, before: int | datetime | None) -> Segment | None:
        """The newest segment that begins with a state, of those that were written up to `before`."""
        found = [one for one in self._states() if before is None or self._is_up_to(one, before)]
        return _last(found)

    def _is_up_to(self, segment: Segment, before: int | datetime) -> bool:
        if isinstance(before, int):
            return segment.first <= before
        state = state_of(self._disk, self._folder / segment.name, segment)
        return state is not None and state.at <= before


def _last(segments: Sequence[Segment]) -> Segment | None:
    return segments[-1] if segments else None
