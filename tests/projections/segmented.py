"""Journals of many small segments in memory, and what is asked of them with and without indexes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from duly.journal import Journal
from duly.journal.disk import Disk
from duly.journal.entries import Entry
from duly.projections.indexed import IndexedJournal
from tests.projections.samples import DAY
from tests.scheduler.memory_disk import MemoryDisk

PATH = Path("/journal")
SMALL = 2_000
"""Bytes of a segment: a handful of lines."""
BLOCK = 300
"""Bytes of a block: a line or two."""
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def segmented(entries: Sequence[Entry], disk: Disk, *, path: Path = PATH, segment_bytes: int = SMALL) -> None:
    """Appends the entries to the journal, in lines of one to five."""
    with Journal.open(path, disk=disk, segment_bytes=segment_bytes) as journal:
        done = 0
        while done < len(entries):
            count = 1 + done * 7 % 5
            journal.append(entries[done : done + count], DAY)
            done += count


def indexed(disk: Disk, path: Path = PATH) -> None:
    """Writes all indexes, with small blocks."""
    journal = IndexedJournal(path, disk=disk, keep=True, confirmed=True, block_bytes=BLOCK)
    journal.refresh()
    journal.write()


def index_files(disk: MemoryDisk) -> list[Path]:
    return sorted(path for path in disk.contents() if path.suffix == ".index")


def segment_files(disk: MemoryDisk) -> list[Path]:
    return sorted(path for path in disk.contents() if path.suffix == ".jsonl")


def overwrite(disk: MemoryDisk, path: Path, content: bytes) -> None:
    """Makes this the file's whole content."""
    file = disk.open(path, write=True)
    disk.truncate(file, 0)
    disk.write(file, 0, content)
    disk.close(file)


class CountingDisk(MemoryDisk):
    """Counts what is read of each file: how often, and how many bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self._open: dict[int, str] = {}

    def open(self, path: Path, *, write: bool = False) -> int:
        file = super().open(path, write=write)
        self._open[file] = path.name
        return file

    def read(self, file: int, offset: int, size: int) -> bytes:
        data = super().read(file, offset, size)
        if file in self._open:
            self.reads[self._open[file]] += 1
            self.bytes[self._open[file]] += len(data)
        return data

    def forget(self) -> None:
        """Begins to count anew."""
        self.reads.clear()
        self.bytes.clear()
