"""The active segment and HEAD: the only place that writes entries to a disk.

Rules kept here:
- Before each write: the folder and the lock are still ours, and the file is exactly as long as we left it.
- Write, then sync, and only then is it durable. No call is repeated after it failed; the owner is finished then.
- A new segment is made when nothing is unsynced: O_EXCL, lock, header, sync the file, sync the folder, list it again.
- A failed write of HEAD is only worth a warning.
"""

from __future__ import annotations

import logging
from pathlib import Path

from duly.journal.chain import Batch, Item, Rotation
from duly.journal.checkpoint import Position
from duly.journal.disk import Disk
from duly.journal.errors import JournalError
from duly.journal.format import seed
from duly.journal.mark import Mark, encode_mark
from duly.journal.ownership import Ownership, last_segment
from duly.journal.recovery import Recovered, write_all
from duly.journal.scanning import Place
from duly.journal.segments import HEAD

_log = logging.getLogger("duly.journal")


class Output:
    """Writes what is queued. Only the leader of a group commit uses it."""

    def __init__(self, disk: Disk, ownership: Ownership, recovered: Recovered, file: int, head: int) -> None:
        self._disk = disk
        self._ownership = ownership
        self._folder = ownership.folder
        self._journal_id = recovered.journal_id
        self._seed = seed(recovered.journal_id)
        self._handles = ownership.handles
        self._file = file
        self._head = head
        self._segment = recovered.segments[-1]
        self._offset = recovered.place.offset
        self._h = recovered.place.h
        self._head_failed = False
        self.durable = recovered.place.next - 1
        """The highest sequence whose sync has returned."""

    @property
    def position(self) -> Position:
        """Where what is durable ends."""
        return Position(self._segment.number, Place(self.durable + 1, self._h, self._offset))

    def commit(self, items: list[Item]) -> None:
        """Writes and syncs the items, in order."""
        batches: list[Batch] = []
        for item in items:
            if isinstance(item, Rotation):
                self._write(batches)
                self._rotate(item)
                batches = []
            else:
                batches.append(item)
        self._write(batches)

    def _write(self, batches: list[Batch]) -> None:
        if not batches:
            return
        self._verify_untouched()
        data = b"".join([batch.line for batch in batches]) if len(batches) > 1 else batches[0].line
        write_all(self._disk, self._file, self._offset, data)
        self._disk.sync(self._file)
        self._offset += len(data)
        self._h = batches[-1].h
        self.durable = batches[-1].last

    def _verify_untouched(self) -> None:
        self._ownership.verify_held()
        size = self._disk.size(self._file)
        if size != self._offset:
            raise JournalError(
                f"somebody else changed the segment: it has {size:,} bytes, and we left it with {self._offset:,}",
                path=self._folder / self._segment.name,
                offset=self._offset,
                hint="Find out who writes into the journal's folder and stop it; then close it and open it again",
            )

    def _rotate(self, rotation: Rotation) -> None:
        self._verify_untouched()
        path: Path = self._folder / rotation.segment.name
        file = self._handles.hold(self._disk.create(path))
        self._ownership.lock_segment(file, path)
        write_all(self._disk, file, 0, rotation.header)
        self._disk.sync(file)
        self._disk.sync_folder(self._folder)
        if last_segment(self._ownership.list()) != rotation.segment:
            raise JournalError(
                "somebody else made a segment",
                path=self._folder,
                hint="Find out who writes into the journal's folder and stop it; then close it and open it again",
            )
        former, self._file = self._file, file
        self._segment = rotation.segment
        self._offset = len(rotation.header)
        self._h = rotation.h
        # Only now: until here whoever deleted LOCK would still have met the lock of the segment before.
        self._handles.close(former)

    def write_head(self) -> None:
        """Says in HEAD how far the journal is durable."""
        mark = Mark(self._journal_id, self.durable, self._segment.number, self._offset, self._h)
        try:
            write_all(self._disk, self._head, 0, encode_mark(mark, self._seed))
        except OSError as error:
            if not self._head_failed:
                self._head_failed = True
                _log.warning("%s cannot be written (%s); the journal itself is fine", self._folder / HEAD, error)
