"""One owner per journal, whatever happens: section 4.4 of the specification.

Rules kept here:
- The authority is one held lock on our own descriptor of LOCK, an empty file that is never deleted. It dies with the
  process. No PID file, no lease, no expiry.
- Where the platform allows it, the active segment is locked too, and then the folder is listed again: whoever deletes
  LOCK still gets no second owner, not even across a rotation.
- A lock is only believed when a second descriptor is refused: a locker or a file system that grants everything, or
  grants it twice within one process, is unsupported.
- Within the process a registry by (device, inode) of the folder says it sooner and better.
- After a fork the child's copies are closed, never unlocked: unlocking would release the parent's lock.
- Whatever is refused, is refused before anything is changed.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Protocol, runtime_checkable

from duly.journal.disk import Disk, Identity
from duly.journal.errors import ForeignJournal, JournalError, JournalLocked, LockUnsupported, UnreadableJournal
from duly.journal.handles import Handles
from duly.journal.operating_system import NETWORK_FILE_SYSTEMS
from duly.journal.segments import HEAD, LOCK, Listing, Segment, listing, parse_segment

PAUSE = timedelta(milliseconds=50)
"""How long a waiter for the lock sleeps between two tries."""


@runtime_checkable
class KnowsFileSystem(Protocol):
    """A disk that can tell what kind of file system a folder is on."""

    def file_system(self, folder: Path) -> str:
        """The kind; empty if it cannot be told."""
        ...


class Ownership:
    """A journal folder that is held, or about to be."""

    def __init__(self, disk: Disk, folder: Path, identity: Identity) -> None:
        self._disk = disk
        self._lock_identity: Identity | None = None
        self.folder = folder
        self._lock_path = folder / LOCK
        self.identity = identity
        self.handles = Handles(disk)
        self.released = False
        self.locks_segments: bool = getattr(disk, "locks_segments", True)

    def take(self) -> None:
        """Takes LOCK. JournalLocked if somebody has it."""
        lock = self.handles.hold(_open_lock(self._disk, self.folder / LOCK))
        self._lock_identity = self._disk.identity(lock)
        _hold(self._disk, lock, self.folder)

    def list(self) -> Listing:
        """What the folder holds now."""
        return listing(self.folder, self._disk.names(self.folder))

    def verify_held(self) -> None:
        """JournalError if the path no longer leads to the folder that is held.

        A LOCK that somebody deleted is borne where the segment's lock protects the journal as well.
        """
        try:
            if self._disk.identity(self._lock_path) == self._lock_identity:
                return
            deleted = "LOCK was replaced by another file"
        except FileNotFoundError:
            deleted = "LOCK was deleted"
        try:
            moved = self._disk.identity(self.folder) != self.identity
        except FileNotFoundError:
            moved = True
        if moved:
            raise JournalError(
                "the journal's folder was moved or deleted while it was open",
                path=self.folder,
                hint="Close it, bring the folder back or name its new place, and open it there",
            )
        if not self.locks_segments:
            raise JournalError(
                f"{deleted} while the journal was open",
                path=self.folder / LOCK,
                hint="Make sure that nobody else owns the journal, close it and open it again; leave LOCK alone",
            )

    def lock_segment(self, file: int, path: Path) -> None:
        """Locks a segment, where that leaves readers alone."""
        if self.locks_segments and not self._disk.lock(file):
            raise JournalLocked(
                "somebody else holds the journal's segment, although LOCK was free: LOCK was deleted while the journal "
                "was open",
                path=path,
                hint="Stop the other owner first",
            )

    def release(self) -> None:
        """Closes every file and with them drops the locks. May be repeated when it was interrupted."""
        self.handles.close_all()
        self.released = True
        CLAIMS.forget_released()


class Claims:
    """The journals that this process owns. An opening that was interrupted and forgotten owns nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[Identity, weakref.ref[Ownership]] = {}

    def claim(self, ownership: Ownership) -> None:
        """Takes the folder within this process."""
        with self._lock:
            for identity, held in self._living().items():
                if identity == ownership.identity:
                    raise JournalLocked(
                        "this process owns the journal already, through another handle",
                        path=ownership.folder,
                        hint="Use that handle, or close it first",
                    )
                if held.folder in ownership.folder.parents or ownership.folder in held.folder.parents:
                    raise _nested(ownership.folder, held.folder)
            self._held[ownership.identity] = weakref.ref(ownership)

    def held(self) -> list[Path]:
        """The folders that this process owns."""
        with self._lock:
            return sorted(held.folder for held in self._living().values())

    def forget_released(self) -> None:
        """Keeps the living ones only."""
        with self._lock:
            self._held = {identity: weakref.ref(held) for identity, held in self._living().items()}

    def forget(self) -> None:
        """After a fork: the child owns nothing, and the lock may be held by a thread that is not there."""
        self._lock = threading.Lock()
        self._held = {}

    def _living(self) -> dict[Identity, Ownership]:
        found = {identity: reference() for identity, reference in self._held.items()}
        return {identity: held for identity, held in found.items() if held is not None and not held.released}


CLAIMS = Claims()


def canonical(path: str | os.PathLike[str]) -> Path:
    """The folder's real path: two names of one folder are one journal."""
    return Path(os.path.realpath(path))


def own(  # noqa: PLR0913  # each is a choice of its own, by keyword
    disk: Disk,
    folder: Path,
    *,
    create: bool,
    lock_timeout: timedelta | None,
    sleep: Callable[[float], None] = time.sleep,
    owner: Callable[[], str],
) -> Ownership:
    """Takes the journal folder, making it if it may.

    `owner` describes the present owner, for people: it is asked once, when the waiting is over. Waiting counts its
    pauses instead of reading a clock.
    """
    existing = _names(disk, folder)
    _refuse_network(disk, folder)
    _refuse_nested(disk, folder, existing or [])
    if existing is None or not is_journal(existing):
        _refuse_creation(folder, existing, create)
    if existing is None:
        _make_folders(disk, folder)
    identity = disk.identity(folder)
    tries = 1 if lock_timeout is None else max(1, 1 + lock_timeout // PAUSE)
    for remaining in range(tries - 1, -1, -1):
        try:
            return _take(disk, folder, identity)
        except JournalLocked as error:
            if not remaining:
                if isinstance(error, _HeldElsewhere):
                    error = JournalLocked(f"{error.message}{owner()}", path=folder, hint=error.hint)
                raise error from None
        sleep(PAUSE.total_seconds())
    raise AssertionError("unreachable")


def _names(disk: Disk, folder: Path) -> list[str] | None:
    try:
        return disk.names(folder)
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise ForeignJournal(
            "it is a file, and a journal is a folder", path=folder, hint="Name the folder of the journal"
        ) from error
    except OSError as error:
        raise UnreadableJournal(
            f"it cannot be listed: {error}", path=folder, hint="Look at its permissions and at the disk"
        ) from error


def is_journal(names: list[str]) -> bool:
    """Whether a folder with these names is a journal's."""
    return any(name in (LOCK, HEAD) or parse_segment(name) for name in names)


def _refuse_creation(folder: Path, names: list[str] | None, create: bool) -> None:
    if names:
        raise ForeignJournal(
            f"it is no journal, and holds other files ({', '.join(sorted(names)[:3])})",
            path=folder,
            hint="A journal needs a folder of its own: name a new or an empty one",
        )
    if not create:
        raise ForeignJournal(
            "there is no journal here" if names is None else "the folder is empty, and no journal",
            path=folder,
            hint="Look at the path; a journal is only created where create=True",
        )


def _refuse_network(disk: Disk, folder: Path) -> None:
    if not isinstance(disk, KnowsFileSystem):
        return
    nearest = folder
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    kind = disk.file_system(nearest)
    if kind in NETWORK_FILE_SYSTEMS:
        raise LockUnsupported(
            f"it is on a network file system ({kind}), where a lock does not reliably keep a second owner out",
            path=folder,
            hint="Keep the journal on a local disk",
        )


def _nested(folder: Path, other: Path) -> ForeignJournal:
    return ForeignJournal(
        f"it overlaps the journal in {other}",
        path=folder,
        hint="Give each journal a folder that neither contains nor is contained in another journal's",
    )


def _refuse_nested(disk: Disk, folder: Path, names: list[str]) -> None:
    for parent in folder.parents:
        if _holds_segments(disk, parent):
            raise _nested(folder, parent)
    for name in names:
        if parse_segment(name) is None and _holds_segments(disk, folder / name):
            raise _nested(folder, folder / name)


def _holds_segments(disk: Disk, folder: Path) -> bool:
    try:
        names = disk.names(folder)
    except OSError:
        return False
    return LOCK in names and any(parse_segment(name) for name in names)


def _make_folders(disk: Disk, folder: Path) -> None:
    missing = [folder]
    while _names(disk, missing[-1].parent) is None:
        missing.append(missing[-1].parent)
    for each in reversed(missing):
        try:
            disk.make_folder(each)
        except FileExistsError:
            pass  # somebody else made it just now; the lock will tell us apart
        except OSError as error:
            raise UnreadableJournal(
                f"its folder cannot be made: {error}", path=each, hint="Look at the permissions and the disk"
            ) from error
        disk.sync_folder(each.parent)


class _HeldElsewhere(JournalLocked):
    """Another process has LOCK."""


def _take(disk: Disk, folder: Path, identity: Identity) -> Ownership:
    ownership = Ownership(disk, folder, identity)
    try:
        CLAIMS.claim(ownership)
        ownership.take()
    except BaseException:
        ownership.release()
        raise
    return ownership


def _open_lock(disk: Disk, path: Path) -> int:
    try:
        try:
            return disk.create(path)
        except FileExistsError:
            return disk.open(path, write=True)
    except OSError as error:
        raise UnreadableJournal(
            f"its lock file cannot be opened for writing: {error}",
            path=path,
            hint="An owner needs a plain file that it may write; reading a journal (verify, replay) needs no lock",
        ) from error


def _hold(disk: Disk, lock: int, folder: Path) -> None:
    try:
        if not disk.lock(lock):
            raise _HeldElsewhere("another process owns the journal", path=folder, hint="Stop it, or wait")
        if disk.identity(folder / LOCK) != disk.identity(lock):
            raise JournalLocked("LOCK was replaced while it was being taken", path=folder / LOCK, hint="Try again")
        second = disk.open(folder / LOCK, write=True)
        try:
            doubled = disk.lock(second)
        finally:
            disk.close(second)
    except OSError as error:
        raise LockUnsupported(
            f"the file system refuses the lock: {error}", path=folder, hint="Keep the journal on a local disk"
        ) from error
    if doubled:
        raise LockUnsupported(
            "a second lock on the same file was granted too, so the lock protects nothing",
            path=folder,
            hint="Keep the journal on a local disk, and leave portalocker's locker at flock",
        )


def last_segment(found: Listing) -> Segment | None:
    """The segment that the journal goes on in."""
    return found.segments[-1] if found.segments else None
