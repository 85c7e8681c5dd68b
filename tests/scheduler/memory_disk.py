"""A disk in memory without any durability of its own: what is written is there, and a crash loses nothing.

For histories by the thousand, where the journal must be real and the files need not be. What a lossy disk does to the
journal is the subject of `tests.journal`.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from duly.journal import Identity

_devices = itertools.count(2_000_000)


class MemoryDisk:
    """Folders are paths; a file is its bytes under a number, and a handle is a number for a file."""

    def __init__(self) -> None:
        self._device = next(_devices)
        self._numbers: dict[Path, int] = {}
        self._contents: dict[int, bytearray] = {}
        self._handles: dict[int, int] = {}
        self._locked: dict[int, int] = {}
        self._count = itertools.count(1)

    def crashed(self) -> MemoryDisk:
        """The disk as a new process finds it: another device, so that what the old one still holds is elsewhere."""
        disk = MemoryDisk()
        disk._numbers = dict(self._numbers)
        disk._contents = {number: bytearray(content) for number, content in self._contents.items()}
        disk._count = itertools.count(next(self._count))
        return disk

    def contents(self) -> dict[Path, bytes]:
        """What each file holds."""
        return {path: bytes(self._contents[number]) for path, number in self._numbers.items()}

    def cut(self, path: Path, size: int) -> None:
        """Cuts a file, as a crash of a lesser disk would."""
        del self._contents[self._number(path)][size:]

    def names(self, folder: Path) -> list[str]:
        self._number(folder)
        return [path.name for path in self._numbers if path.parent == folder and path != folder]

    def make_folder(self, folder: Path) -> None:
        self._new(folder)

    def create(self, path: Path) -> int:
        return self._handle(self._new(path))

    def open(self, path: Path, *, write: bool = False) -> int:
        return self._handle(self._number(path))

    def read(self, file: int, offset: int, size: int) -> bytes:
        return bytes(memoryview(self._contents[self._handles[file]])[offset : offset + size])

    def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
        content = self._contents[self._handles[file]]
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + len(data)] = data
        return len(data)

    def sync(self, file: int) -> None:
        """Nothing to do: nothing is ever lost."""

    def sync_folder(self, folder: Path) -> None:
        """Nothing to do: nothing is ever lost."""

    def truncate(self, file: int, size: int) -> None:
        del self._contents[self._handles[file]][size:]

    def size(self, file: int) -> int:
        return len(self._contents[self._handles[file]])

    def identity(self, file: int | Path) -> Identity:
        return Identity(self._device, self._handles[file] if isinstance(file, int) else self._number(file))

    def lock(self, file: int) -> bool:
        return self._locked.setdefault(self._handles[file], file) == file

    def replace(self, source: Path, target: Path) -> None:
        self._numbers[target] = self._numbers.pop(source)

    def remove(self, path: Path) -> None:
        self._number(path)
        del self._numbers[path]

    def close(self, file: int) -> None:
        number = self._handles.pop(file)
        if self._locked.get(number) == file:
            del self._locked[number]

    def _new(self, path: Path) -> int:
        if path in self._numbers:
            raise FileExistsError(path)
        self._number(path.parent)
        self._numbers[path] = next(self._count)
        self._contents[self._numbers[path]] = bytearray()
        return self._numbers[path]

    def _number(self, path: Path) -> int:
        if path == Path("/"):
            return 0
        if path not in self._numbers:
            raise FileNotFoundError(path)
        return self._numbers[path]

    def _handle(self, number: int) -> int:
        handle = next(self._count)
        self._handles[handle] = number
        return handle
