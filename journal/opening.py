"""Taking a journal: ownership, then creation or recovery, then HEAD.

Rules kept here:
- The order of a creation: folder, LOCK, HEAD, segment, header, sync the file, sync the folder; only then is anything
  accepted. A creation that a crash broke off is carried on.
- A journal whose segments are gone although HEAD knows of some is not created anew.
- Whatever goes wrong, the lock is released again.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from duly.journal.archived import founded
from duly.journal.checkpoint import Folding
from duly.journal.disk import Disk
from duly.journal.errors import ForeignJournal, JournalCorrupt, JournalLocked, UnreadableJournal
from duly.journal.judgement import SALVAGE
from duly.journal.mark import read_mark
from duly.journal.output import Output
from duly.journal.ownership import Ownership, last_segment
from duly.journal.recovery import Recovered, Recoverer, Recovery, create_first_segment, sync_ancestors
from duly.journal.segments import HEAD, REWRITE, Listing, Segment


class Taken(NamedTuple):
    """An owned journal, ready to be appended to."""

    recovered: Recovered
    output: Output


@contextmanager
def opening(folder: Path) -> Generator[None]:
    """An OSError while opening tells nothing about the journal but that it cannot be opened now."""
    try:
        yield
    except OSError as error:
        raise UnreadableJournal(
            f"it cannot be opened for writing: {error}",
            path=folder,
            hint="Look at the disk's space and the permissions; the journal is as it was, or will be recovered",
        ) from error


def take(disk: Disk, ownership: Ownership, folding: Folding | None = None) -> Taken:
    """Creates or recovers the journal that `ownership` holds. The caller releases `ownership` if this raises.

    `folding` gets what the journal holds: the state of the checkpoint, where that is good, and the lines after it.
    """
    found = ownership.list()
    found = found._replace(segments=founded(disk, ownership.folder, found.segments))
    if found.segments:
        file = _lock_last_segment(disk, ownership, found)
        recovered = Recoverer(disk, ownership.folder, found, file, folding).recover()
        head = _open_head(disk, ownership)
    else:
        head, file, recovered = _create(disk, ownership, found)
    output = Output(disk, ownership, recovered, file, head)
    output.write_head()
    return Taken(recovered, output)


def _lock_last_segment(disk: Disk, ownership: Ownership, found: Listing) -> int:
    """Locks the last segment, and for a moment the one before: in the middle of a rotation an owner whose LOCK was
    deleted holds that one."""
    last = found.segments[-1]
    if len(found.segments) > 1 and _are_one_file(disk, ownership.folder, last, found.segments[-2]):
        raise ForeignJournal(
            f"{found.segments[-2].name} and {last.name} are the same file",
            path=ownership.folder / last.name,
            hint="Remove the hard link, or bring the segment back that it stands in the place of",
        )
    file = _open_segment(disk, ownership, last)
    former = _open_segment(disk, ownership, found.segments[-2]) if len(found.segments) > 1 else None
    if last_segment(ownership.list()) != last:
        raise JournalLocked("somebody else is writing the journal", path=ownership.folder, hint="Stop the other owner")
    if former is not None:
        ownership.handles.close(former)
    return file


def _are_one_file(disk: Disk, folder: Path, one: Segment, other: Segment) -> bool:
    return disk.identity(folder / one.name) == disk.identity(folder / other.name)


def _open_segment(disk: Disk, ownership: Ownership, segment: Segment) -> int:
    path = ownership.folder / segment.name
    file = ownership.handles.hold(disk.open(path, write=True))
    ownership.lock_segment(file, path)
    return file


def _open_head(disk: Disk, ownership: Ownership) -> int:
    path = ownership.folder / HEAD
    try:
        file = disk.open(path, write=True)
    except FileNotFoundError:
        file = disk.create(path)
    return ownership.handles.hold(file)


def _create(disk: Disk, ownership: Ownership, found: Listing) -> tuple[int, int, Recovered]:
    folder = ownership.folder
    mark = read_mark(disk, folder)
    if mark is not None or REWRITE in found.ours:
        raise JournalCorrupt(
            "every segment is missing, although the journal had some",
            path=folder,
            sequence=mark.sequence if mark else None,
            hint=SALVAGE,
        )
    segment = Segment(1, 1)
    head = _open_head(disk, ownership)
    file = ownership.handles.hold(disk.create(folder / segment.name))
    ownership.lock_segment(file, folder / segment.name)
    journal_id, place = create_first_segment(disk, file)
    disk.sync_folder(folder)
    sync_ancestors(disk, folder)
    warnings = tuple(f"the journal's folder holds a file that is not the journal's: {n}" for n in found.strangers)
    return head, file, Recovered(journal_id, (segment,), place, Recovery(created=True, warnings=warnings))
