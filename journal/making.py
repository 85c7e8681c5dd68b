"""Making a new journal, to copy into or to begin, or leaving nothing at all.

Rules kept here:
- a folder that holds anything is refused, and not touched;
- where it fails, whatever it was (a full disk, Ctrl-C), what was made is removed again, so that the same command can be
  repeated. That is the one place where files of a journal are removed: nobody has been told of it yet;
- nothing is removed but under the lock, and of what was not copied here, nothing that holds an entry: somebody else may
  have begun a journal there meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from duly.journal.disk import Disk
from duly.journal.errors import ForeignJournal, JournalError, JournalLocked, UnreadableJournal
from duly.journal.format import MAX_HEADER
from duly.journal.ownership import canonical
from duly.journal.real_disk import RealDisk
from duly.journal.segments import LOCK
from duly.journal.writer import Journal


@contextmanager
def new_journal(disk: Disk, to: str | os.PathLike[str], at: datetime) -> Generator[Journal]:
    """A new journal in the folder `to`, made durable and closed after the block; `at` is the clock reading.

    Raises ForeignJournal where the folder is not empty, and the journal's errors.
    """
    folder = canonical(to)
    with _told_as_a_copy(folder):
        yield from _made(disk, folder, at)


def _made(disk: Disk, folder: Path, at: datetime) -> Generator[Journal]:
    before = _names(disk, folder)
    with nothing_left(disk, folder):
        journal = Journal.open(folder, now=at, disk=disk) if not before else None
    if journal is None or not journal.recovery.created:
        if journal is not None:
            journal.close()
        raise ForeignJournal("the folder is not empty", path=folder, hint="Name a new folder")
    try:
        yield journal
        journal.sync()
    except BaseException:
        journal.poison("it is removed again, as the copy failed")
        with suppress(OSError):
            _remove_all(disk, folder)
        journal.close()
        if before is None:
            _remove_folder(disk, folder)
        raise
    journal.close()


@contextmanager
def _told_as_a_copy(folder: Path) -> Generator[None]:
    """What the system says of a journal that nobody will ever open is no advice to open it again."""
    try:
        yield
    except JournalError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, OSError):
            cause = cause.__cause__
        if cause is None or error.path is None or not error.path.is_relative_to(folder):
            raise  # it is about something else: the original, for example
        raise UnreadableJournal(
            f"the copy cannot be written: {cause}",
            path=folder,
            hint="Look at the disk's space and the permissions, and do it again: nothing was left there",
        ) from error


@contextmanager
def nothing_left(disk: Disk, folder: Path) -> Generator[None]:
    """Where the block fails to begin a journal in the folder, no empty files of one are left there."""
    before = _names(disk, folder)
    try:
        yield
    except JournalLocked:
        raise
    except BaseException:
        if not before:
            with suppress(OSError):
                _clear(disk, folder, made=before is None)
        raise


def _names(disk: Disk, folder: Path) -> list[str] | None:
    """The names in the folder; None if there is no folder."""
    try:
        return disk.names(folder)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _clear(disk: Disk, folder: Path, *, made: bool) -> None:
    names = disk.names(folder)
    if LOCK in names:
        lock = disk.open(folder / LOCK, write=True)
        try:
            if not disk.lock(lock) or any(_holds_more(disk, folder / name) for name in names):
                return
            _remove_all(disk, folder)
        finally:
            disk.close(lock)
    if made:
        _remove_folder(disk, folder)


def _holds_more(disk: Disk, path: Path) -> bool:
    """Whether there is more in the file than a mark or a header."""
    file = disk.open(path)
    try:
        return disk.size(file) > MAX_HEADER or disk.read(file, 0, MAX_HEADER).count(b"\n") > 1
    finally:
        disk.close(file)


def _remove_all(disk: Disk, folder: Path) -> None:
    for name in disk.names(folder):
        disk.remove(folder / name)


def _remove_folder(disk: Disk, folder: Path) -> None:
    if isinstance(disk, RealDisk):  # a simulated one has its folders elsewhere
        with suppress(OSError):
            folder.rmdir()
