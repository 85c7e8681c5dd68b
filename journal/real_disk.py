"""The disk of this machine.

Rules kept here: one system call (or one short fixed row of them) per method, no retry, every OSError goes through.
Locking is portalocker's, with flock on POSIX and msvcrt on Windows, always on our own descriptor: never
`portalocker.Lock`, which lets go when it is garbage collected, and never lockf, whose second lock in the same process
succeeds.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from duly.journal.disk import Identity
from duly.journal.operating_system import Platform, this_platform

FILE_MODE = 0o666


class RealDisk:
    """The `Disk` of this machine."""

    def __init__(self, platform: Platform | None = None) -> None:
        self.platform = this_platform() if platform is None else platform
        self.locks_segments = self.platform.locks_segments
        self._locked: dict[int, int] = {}
        """The process that locked each handle."""

    def names(self, folder: Path) -> list[str]:
        """The names in the folder."""
        return os.listdir(folder)  # noqa: PTH208  # the names, and no paths around them

    def make_folder(self, folder: Path) -> None:
        """Makes one folder."""
        folder.mkdir()

    def create(self, path: Path) -> int:
        """Creates a file that must not exist."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | self.platform.flags(write=True), FILE_MODE)

    def open(self, path: Path, *, write: bool = False) -> int:
        """Opens a regular file."""
        file = os.open(path, (os.O_RDWR if write else os.O_RDONLY) | self.platform.flags(write=write))
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file

    def read(self, file: int, offset: int, size: int) -> bytes:
        """Reads until there is nothing more: a short read is not the end of the file."""
        data = self.platform.read(file, offset, size)
        if len(data) == size or not data:
            return data
        parts = [data]
        done = len(data)
        while done < size:
            data = self.platform.read(file, offset + done, size - done)
            if not data:
                break
            parts.append(data)
            done += len(data)
        return b"".join(parts)

    def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
        """Writes at `offset`; may be short."""
        return self.platform.write(file, offset, data)

    def sync(self, file: int) -> None:
        """Makes contents and size durable."""
        self.platform.sync(file)

    def sync_folder(self, folder: Path) -> None:
        """Makes names durable, where the platform can."""
        self.platform.sync_folder(folder)

    def truncate(self, file: int, size: int) -> None:
        """Cuts the file."""
        os.ftruncate(file, size)

    def size(self, file: int) -> int:
        """The file's size."""
        return os.fstat(file).st_size

    def identity(self, file: int | Path) -> Identity:
        """Device and inode."""
        status = os.fstat(file) if isinstance(file, int) else os.stat(file)  # noqa: PTH116  # one call for both
        return Identity(status.st_dev, status.st_ino)

    def lock(self, file: int) -> bool:
        """portalocker's exclusive, non-blocking lock."""
        import portalocker  # 40 ms, and only owners need it

        try:
            _locker("lock")(_Descriptor(file), portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.AlreadyLocked:
            return False
        except portalocker.LockException as error:
            cause = error.__cause__
            raise cause if isinstance(cause, OSError) else OSError(errno.ENOLCK, str(error)) from error
        self._locked[file] = os.getpid()
        return True

    def replace(self, source: Path, target: Path) -> None:
        """Renames over another file."""
        source.replace(target)

    def link(self, source: Path, target: Path) -> None:
        """Gives a file another name."""
        target.hardlink_to(source)

    def remove(self, path: Path) -> None:
        """Removes a name."""
        path.unlink()

    def close(self, file: int) -> None:
        """Closes the handle, and with it drops its lock.

        The lock is dropped in so many words: a program that is just being started holds a copy of every descriptor for
        a moment, and with it the lock. A forked child, though, only closes, because unlocking its copy would release
        the lock of the parent.
        """
        try:
            if self._locked.pop(file, None) == os.getpid():
                _unlock(file)
        finally:
            os.close(file)

    def file_system(self, folder: Path) -> str:
        """The kind of file system the folder is on; empty if that cannot be told."""
        return self.platform.file_system(folder)


class _Descriptor(NamedTuple):
    """A descriptor in the one shape that every version of portalocker takes."""

    number: int

    def fileno(self) -> int:
        return self.number


def _unlock(file: int) -> None:
    import portalocker

    with suppress(portalocker.LockException, OSError):
        _locker("unlock")(_Descriptor(file))


def _locker(call: str) -> Callable[..., object]:
    """portalocker's flock, whatever an application made its default; where it has no such choice, its default."""
    import portalocker.portalocker as lockers

    flock: Any = getattr(lockers, "FlockLocker", None)
    found: Callable[..., object] = getattr(lockers if flock is None else flock(), call)
    return found
