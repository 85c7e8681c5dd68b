"""Making a new journal to copy into, or nothing at all.

Rules kept here:
- a folder that holds anything is refused, and not touched;
- where the copy fails, whatever it was (a full disk, Ctrl-C), what was made for it is removed again, so that the same
  command can be repeated. That is the one place where files of a journal are removed: nobody has been told of it yet.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from duly.journal.disk import Disk
from duly.journal.errors import ForeignJournal
from duly.journal.ownership import canonical
from duly.journal.writer import Journal


@contextmanager
def new_journal(disk: Disk, to: str | os.PathLike[str], at: datetime) -> Generator[Journal]:
    """A new journal in the folder `to`, closed after the block; `at` is the clock reading. Raises ForeignJournal where
    the folder is not empty, and the journal's errors."""
    folder = canonical(to)
    if _names(disk, folder):
        raise ForeignJournal("the folder is not empty", path=folder, hint="Name a new folder")
    with undone_if_it_fails(disk, folder), Journal.open(folder, now=at, disk=disk) as journal:
        yield journal
        journal.sync()


@contextmanager
def undone_if_it_fails(disk: Disk, folder: Path) -> Generator[None]:
    """Where the block fails, what it made in the folder is removed, if nothing was there before it."""
    before = _names(disk, folder)
    try:
        yield
    except BaseException:
        if not before:
            _clear(disk, folder, made=before is None)
        raise


def _names(disk: Disk, folder: Path) -> list[str] | None:
    """The names in the folder; None if there is no folder."""
    try:
        return disk.names(folder)
    except FileNotFoundError:
        return None


def _clear(disk: Disk, folder: Path, *, made: bool) -> None:
    """As far as it can be done: the failure that is being told of goes first."""
    with suppress(OSError):
        for name in disk.names(folder):
            disk.remove(folder / name)
        if made:
            folder.rmdir()
