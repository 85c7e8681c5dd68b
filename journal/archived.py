"""Archived segments: the oldest ones of a journal, moved to a folder of their own, and read together with the rest.

Rules kept here:
- A journal whose first segment is not there can be read from a segment on that begins with `Checkpoint` entries: with
  the whole state as it was before. Where there is none, a segment is missing, and that is damage.
- What stands before that segment is left over from a moving that was broken off. It is not read.
- The chain goes across: read together, archive and journal are verified as if nothing had ever been moved.
- Where the archive is, a file in the journal's folder says; `archive_at` says otherwise for a while. Neither is
  believed in anything but that.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

import msgspec

from duly.journal.codec import decode_line
from duly.journal.disk import Disk, Identity
from duly.journal.entries import Checkpoint
from duly.journal.errors import ForeignJournal, JournalArchived, JournalCorrupt
from duly.journal.judgement import SALVAGE
from duly.journal.real_disk import RealDisk
from duly.journal.scanning import UNDECODABLE, line_blocks, reader_of
from duly.journal.segments import Segment, parse_segment
from duly.journal.survey import reading

ARCHIVE: Final = "archive"
"""The file that says where the archive is."""
_OF_SEGMENT: Final = re.compile(r"(\d{8}-\d{16})\.(jsonl|index.*)")
_chosen: Final[ContextVar[Path | None]] = ContextVar("archive", default=None)


class Location(msgspec.Struct):
    """What the file says: the archive's folder, as an absolute path."""

    folder: str


@contextmanager
def archive_at(folder: Path | str | None) -> Generator[None]:
    """Inside of the block, journals whose segments were archived are read together with those in `folder`, wherever
    they say that their archive is. With None it changes nothing. ForeignJournal if the folder is no archive."""
    path = None if folder is None else Path(folder)
    if path is not None and not any(parse_segment(name) for name in _names(RealDisk(), path)):
        raise ForeignJournal("the folder holds no segments, so it is no archive", path=path, hint="Look at the path")
    token = _chosen.set(path or _chosen.get())
    try:
        yield
    finally:
        _chosen.reset(token)


def recorded_archive(disk: Disk, folder: Path) -> Path | None:
    """Where the journal's archive is, as its folder says; None if it does not."""
    try:
        file = disk.open(folder / ARCHIVE)
    except OSError:
        return None
    try:
        return Path(msgspec.json.decode(disk.read(file, 0, 1 << 16), type=Location).folder)
    except (*UNDECODABLE, OSError):
        return None
    finally:
        disk.close(file)


def reading_disk(folder: Path) -> Disk:
    """This machine's disk, on which the journal's archive, if there is one, appears in the journal's own folder."""
    disk = RealDisk()
    archive = _chosen.get() or recorded_archive(disk, folder)
    return disk if archive is None or not _names(disk, archive) else JoinedDisk(disk, folder, archive)


def _names(disk: Disk, folder: Path) -> list[str]:
    try:
        return disk.names(folder)
    except OSError:
        return []


def archived_before(folder: Path, first: int) -> JournalArchived:
    """The error for whoever asks for what was archived."""
    archive = recorded_archive(RealDisk(), folder)
    where = "" if archive is None else f", in {archive}, which is not there now"
    return JournalArchived(
        f"entries 1 to {first - 1} are archived{where}",
        path=folder,
        sequence=first - 1,
        hint="Name the folder they were moved to (--archive FOLDER, or archive_at(folder)), or ask for entries from "
        f"{first} on",
    )


def founded(disk: Disk, folder: Path, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The segments that the record can be read from: all of them from the first on, or from the first one that begins
    with the whole state. JournalCorrupt if there is none."""
    if not segments or segments[0].number == 1:
        return segments
    for index, segment in enumerate(segments):
        if begins_with_state(disk, folder / segment.name, segment):
            return segments[index:]
    raise JournalCorrupt(
        f"segment {segments[0].number - 1} is missing: the next one is {segments[0].name}",
        path=folder / segments[0].name,
        hint=f"If it was archived, bring it back from there. {SALVAGE}",
    )


def begins_with_state(disk: Disk, path: Path, segment: Segment) -> bool:
    """Whether the segment's first entry is the first part of the state before it."""
    return state_of(disk, path, segment) is not None


def state_of(disk: Disk, path: Path, segment: Segment) -> Checkpoint | None:
    """The first part of the state before the segment, if that is the segment's first entry."""
    with reading(path):
        file = disk.open(path)
        try:
            first: list[bytes] = []
            for _, lines, _ in line_blocks(reader_of(disk, file), 0):
                first += lines
                if len(first) > 1:
                    break
        finally:
            disk.close(file)
    try:
        entry = decode_line(first[1]).e[0]
    except (*UNDECODABLE, IndexError):
        return None
    if isinstance(entry, Checkpoint) and (entry.part, entry.through) == (1, segment.first - 1):
        return entry
    return None


class JoinedDisk:
    """A disk on which the segments of an archive, and their indexes, appear in the journal's folder."""

    def __init__(self, disk: Disk, folder: Path, archive: Path) -> None:
        self._disk, self._folder, self._archive = disk, folder, archive

    def _at(self, path: Path) -> Path:
        """Where the file is, or would be."""
        match = _OF_SEGMENT.fullmatch(path.name) if path.parent == self._folder else None
        if match is None:
            return path
        segment = f"{match[1]}.jsonl"
        for folder in (self._folder, self._archive):
            try:
                self._disk.identity(folder / segment)
            except OSError:
                continue
            return folder / path.name
        return path

    def names(self, folder: Path) -> list[str]:
        """The names in the folder; the archive's segments and indexes are among them."""
        found = self._disk.names(folder)
        if folder == self._folder:
            # The archive last: what is moved meanwhile is in one of them.
            found += [name for name in self._disk.names(self._archive) if _OF_SEGMENT.fullmatch(name)]
        return list(dict.fromkeys(found))

    def make_folder(self, folder: Path) -> None:
        """Makes one folder."""
        self._disk.make_folder(folder)

    def create(self, path: Path) -> int:
        """Creates a file; an index beside its segment."""
        return self._disk.create(self._at(path))

    def open(self, path: Path, *, write: bool = False) -> int:
        """Opens a file, wherever it is."""
        try:
            return self._disk.open(self._at(path), write=write)
        except FileNotFoundError:
            # It may have been moved just now.
            return self._disk.open(self._at(path), write=write)

    def read(self, file: int, offset: int, size: int) -> bytes:
        """Reads from a file."""
        return self._disk.read(file, offset, size)

    def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
        """Writes into a file."""
        return self._disk.write(file, offset, data)

    def sync(self, file: int) -> None:
        """Makes contents durable."""
        self._disk.sync(file)

    def sync_folder(self, folder: Path) -> None:
        """Makes the folder's names durable, and the archive's."""
        self._disk.sync_folder(folder)
        if folder == self._folder:
            self._disk.sync_folder(self._archive)

    def truncate(self, file: int, size: int) -> None:
        """Cuts a file."""
        self._disk.truncate(file, size)

    def size(self, file: int) -> int:
        """A file's size."""
        return self._disk.size(file)

    def identity(self, file: int | Path) -> Identity:
        """Which file this is."""
        return self._disk.identity(file if isinstance(file, int) else self._at(file))

    def lock(self, file: int) -> bool:
        """Takes a lock."""
        return self._disk.lock(file)

    def replace(self, source: Path, target: Path) -> None:
        """Renames a file, where it is."""
        self._disk.replace(self._at(source), self._at(target))

    def remove(self, path: Path) -> None:
        """Removes a name, where it is."""
        self._disk.remove(self._at(path))

    def close(self, file: int) -> None:
        """Closes a file."""
        self._disk.close(file)
