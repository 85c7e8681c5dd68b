"""The narrow interface through which the journal touches a disk.

Everything the journal does to files passes these calls, so that a simulated disk can stand in and crash between any
two of them. Rules: a call does one thing, never retries, and lets the OSError through; a write may be short and says
how much it wrote; nothing is durable before `sync` (contents) or `sync_folder` (names) has returned.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable


class Identity(NamedTuple):
    """Which file or folder something is, whatever its name."""

    device: int
    inode: int


@runtime_checkable
class Links(Protocol):
    """A disk that can give a file a second name."""

    def link(self, source: Path, target: Path) -> None:
        """Gives the file another name. FileExistsError if that is taken, another OSError where it cannot be done."""
        ...


class Disk(Protocol):
    """What the journal asks of a disk. `file` is a handle that `open` or `create` returned."""

    def names(self, folder: Path) -> list[str]:
        """The names in the folder, in no order."""
        ...

    def make_folder(self, folder: Path) -> None:
        """Makes one folder; FileExistsError if the name is taken."""
        ...

    def create(self, path: Path) -> int:
        """Creates a file for reading and writing (O_EXCL: FileExistsError if the name is taken)."""
        ...

    def open(self, path: Path, *, write: bool = False) -> int:
        """Opens an existing regular file; a symbolic link is refused when it is opened for writing."""
        ...

    def read(self, file: int, offset: int, size: int) -> bytes:
        """Up to `size` bytes at `offset`; fewer only at the end of the file."""
        ...

    def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
        """Writes at `offset` and returns how many bytes it wrote, which may be fewer."""
        ...

    def sync(self, file: int) -> None:
        """Makes the file's contents and size durable."""
        ...

    def sync_folder(self, folder: Path) -> None:
        """Makes the folder's names durable, where the platform can."""
        ...

    def truncate(self, file: int, size: int) -> None:
        """Cuts the file to `size` bytes."""
        ...

    def size(self, file: int) -> int:
        """The file's size in bytes."""
        ...

    def identity(self, file: int | Path) -> Identity:
        """Which file this is."""
        ...

    def lock(self, file: int) -> bool:
        """Takes the exclusive, non-blocking lock of the open file; False if somebody holds it. OSError if the file
        system cannot."""
        ...

    def replace(self, source: Path, target: Path) -> None:
        """Renames a file over another, atomically."""
        ...

    def remove(self, path: Path) -> None:
        """Removes a file's name."""
        ...

    def close(self, file: int) -> None:
        """Closes the handle, and with it drops its lock."""
        ...
