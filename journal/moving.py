"""Moving sealed segments out of a journal's folder into an archive, so that a crash at any moment loses none.

Rules kept here:
- A segment has its name in the archive, synced, before it loses the one in the journal: there are two for a moment.
- They leave the journal oldest first, each synced before the next: what is left has no gap.
- Within a file system a second name is given; across, the bytes are copied, synced and compared.
- What is in the archive already, and is the same, is left alone; anything else of that name is refused. Nothing but the
  name in the journal's folder is ever removed.
- Indexes go along. They are caches: one that cannot is left behind and made again.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from duly.journal.archived import ARCHIVE, Location
from duly.journal.disk import Disk, Links
from duly.journal.errors import ForeignJournal, JournalError
from duly.journal.ownership import canonical
from duly.journal.recovery import write_all
from duly.journal.scanning import BLOCK, reader_of
from duly.journal.segments import LOCK, Segment, parse_segment
from duly.journal.survey import readable_header

_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL})


def check_archive(disk: Disk, folder: Path, archive: Path, journal_id: str) -> None:
    """Makes the archive's folder if it is not there. ForeignJournal if it is something else than an archive of this
    journal."""
    if canonical(archive) == folder:
        raise ForeignJournal("the archive is the journal's own folder", path=archive, hint="Name another one")
    with suppress(FileExistsError):
        disk.make_folder(archive)
        disk.sync_folder(archive.parent)
    names = disk.names(archive)
    if LOCK in names:
        raise ForeignJournal("the folder is a journal, and no archive", path=archive, hint="Name another one")
    segments = sorted(name for name in names if parse_segment(name))
    if not segments:
        return
    file = disk.open(archive / segments[0])
    try:
        header = readable_header(archive / segments[0], reader_of(disk, file))
    finally:
        disk.close(file)
    if header is None or header.journal_id != journal_id:
        raise ForeignJournal("the folder is the archive of another journal", path=archive, hint="Name another one")


def record_archive(disk: Disk, folder: Path, archive: Path) -> None:
    """Says in the journal's folder where its archive is, durably."""
    fresh = folder / f"{ARCHIVE}.new"
    file = _anew(disk, fresh)
    try:
        write_all(disk, file, 0, msgspec.json.encode(Location(str(canonical(archive)))) + b"\n")
        disk.sync(file)
    finally:
        disk.close(file)
    disk.replace(fresh, folder / ARCHIVE)
    disk.sync_folder(folder)


def move_segments(disk: Disk, folder: Path, archive: Path, segments: Sequence[Segment]) -> None:
    """Moves the segments, oldest first, and their indexes. Repeated after a crash, it goes on."""
    for segment in segments:
        _place(disk, folder / segment.name, archive / segment.name)
        with suppress(OSError, JournalError):
            _place(disk, folder / _index(segment), archive / _index(segment))
    disk.sync_folder(archive)
    for segment in segments:
        with suppress(FileNotFoundError):
            disk.remove(folder / _index(segment))
        disk.remove(folder / segment.name)
        disk.sync_folder(folder)


def _index(segment: Segment) -> str:
    return segment.name.removesuffix(".jsonl") + ".index"


def _place(disk: Disk, source: Path, target: Path) -> None:
    """Gives the file a name in the archive too."""
    try:
        disk.identity(target)
    except FileNotFoundError:
        if not _linked(disk, source, target):
            _copy(disk, source, target)
        return
    if not _are_equal(disk, source, target):
        raise ForeignJournal(
            "the archive holds another file of that name",
            path=target,
            hint="Name another folder, or find out what that file is",
        )


def _linked(disk: Disk, source: Path, target: Path) -> bool:
    if not isinstance(disk, Links):
        return False
    try:
        disk.link(source, target)
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    return True


def _copy(disk: Disk, source: Path, target: Path) -> None:
    fresh = target.with_name(f"{target.name}.new") if target.suffix == ".index" else target.with_suffix(".copy")
    original = disk.open(source)
    try:
        file = _anew(disk, fresh)
        try:
            offset = 0
            while data := disk.read(original, offset, BLOCK):
                write_all(disk, file, offset, data)
                offset += len(data)
            disk.sync(file)
        finally:
            disk.close(file)
    finally:
        disk.close(original)
    if not _are_equal(disk, source, fresh):
        raise JournalError(
            "the copy differs from the segment",
            path=fresh,
            hint="Look at the archive's disk; the journal is as it was",
        )
    disk.replace(fresh, target)


def _anew(disk: Disk, path: Path) -> int:
    try:
        return disk.create(path)
    except FileExistsError:
        file = disk.open(path, write=True)
    try:
        disk.truncate(file, 0)
    except BaseException:
        disk.close(file)
        raise
    return file


def _are_equal(disk: Disk, one: Path, other: Path) -> bool:
    if disk.identity(one) == disk.identity(other):
        return True
    first = disk.open(one)
    try:
        second = disk.open(other)
        try:
            return _hold_the_same(disk, first, second)
        finally:
            disk.close(second)
    finally:
        disk.close(first)


def _hold_the_same(disk: Disk, one: int, other: int) -> bool:
    offset = 0
    while True:
        data = disk.read(one, offset, BLOCK)
        if data != disk.read(other, offset, BLOCK):
            return False
        if not data:
            return True
        offset += len(data)
