"""The checkpoint: a folded state in a file beside the segments, so that an owner need not read them all. A cache.

    {"x":"<64 hex>","v":1,"j":"<32 hex>","g":N,"o":N,"s":N,"h":"<64 hex>"}    padded with spaces to 511 bytes, and \\n
    the state, in lines

Rules kept here:
- It is never authority: it is used only where the journal has the very line that it was made after, and whatever is
  wrong with it is told as CheckpointDoubted, and costs nothing but time.
- `x` is the SHA-256 of the state and of the header from 70 on. `s` is the last entry that is folded in, `h` the chain
  there, `g` and `o` the segment and the offset where that line ends.
- What is folded in was durable before the file was written. So it is one more lower bound on what was acknowledged.
- How it is written is `checkpointing`'s.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from duly.journal.disk import Disk
from duly.journal.errors import Error
from duly.journal.format import MAX_LINE, crc_fits, seed
from duly.journal.scanning import BLOCK, UNDECODABLE, Place, Read, opened, raw_line

if TYPE_CHECKING:
    from duly.journal.entries import Entry

CHECKPOINT: Final = "checkpoint"
CHECKPOINT_NEW: Final = "checkpoint.new"
VERSION: Final = 1
HEADER: Final = 512
HASHED: Final = 70
"""Where the part of the header that `x` covers begins."""


class CheckpointDoubted(Error):
    """The checkpoint is not one that can be used; the text says why."""


class Position(NamedTuple):
    """A point of a journal's chain: the segment's number, and the place in it."""

    segment: int
    place: Place


class Folding(Protocol):
    """Who folds a journal while it is opened."""

    def begin(self) -> None:
        """From an empty state; also after `load`, which then counts for nothing."""
        ...

    def load(self, lines: Iterator[bytes]) -> None:
        """From the state that these lines hold. CheckpointDoubted if they hold none."""
        ...

    def fold(self, first: int, entries: tuple[Entry, ...]) -> None:
        """Folds the entries of a line in; `first` is the first one's sequence."""
        ...


class _Fields(msgspec.Struct, forbid_unknown_fields=True):
    x: str
    v: int
    j: str
    g: int
    o: int
    s: int
    h: str


_fields: Final = msgspec.json.Decoder(_Fields)


class CheckpointFile:
    """The checkpoint of a folder, its header read."""

    def __init__(self, disk: Disk, path: Path, header: bytes, fields: _Fields) -> None:
        """Not for users: `find_checkpoint` is."""
        self.journal_id = fields.j
        self.position = Position(fields.g, Place(fields.s + 1, bytes.fromhex(fields.h), fields.o))
        self._disk, self._path, self._header, self._sum = disk, path, header, fields.x

    def load(self, folding: Folding) -> None:
        """Hands the state over. CheckpointDoubted if it is not whole; what was handed over counts for nothing then."""
        digest = sha256()
        with _doubting(), opened(self._disk, self._path) as read:

            def hashed(offset: int, size: int) -> bytes:
                data = read(offset, size)
                digest.update(data)
                return data

            lines = _lines(hashed)
            folding.load(lines)
            for _ in lines:
                raise CheckpointDoubted("there is more in it than a state")
        digest.update(self._header[HASHED:])
        if digest.hexdigest() != self._sum:
            raise CheckpointDoubted("its SHA-256 does not fit")


def _lines(read: Read) -> Iterator[bytes]:
    """The lines of the state, without newlines. (They may be longer than those of a journal.)"""
    offset, parts = HEADER, list[bytes]()
    while data := read(offset, BLOCK):
        offset += len(data)
        first, *others = data.split(b"\n")
        parts.append(first)
        if others:
            yield b"".join(parts)
            yield from others[:-1]
            parts = others[-1:]
    if any(parts):
        raise CheckpointDoubted("it is cut")


@contextmanager
def _doubting(*but: type[OSError]) -> Generator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, but):
            raise
        raise CheckpointDoubted(f"it cannot be read: {error}") from error


def find_checkpoint(disk: Disk, folder: Path) -> CheckpointFile | None:
    """The folder's checkpoint; None if there is none. CheckpointDoubted if it is damaged, or of a newer version."""
    path = folder / CHECKPOINT
    try:
        with _doubting(FileNotFoundError), opened(disk, path) as read:
            header = read(0, HEADER)
    except FileNotFoundError:
        return None
    try:
        fields = _fields.decode(header)
        found = CheckpointFile(disk, path, header, fields)
        seed(fields.j)
    except (*UNDECODABLE, OverflowError) as error:
        raise CheckpointDoubted(f"its header cannot be read: {error}") from error
    if len(header) != HEADER:
        raise CheckpointDoubted("it is cut")
    if fields.v != VERSION:
        raise CheckpointDoubted(f"its version is {fields.v}, and this version of duly reads {VERSION}")
    return found


def line_before(read: Read, end: int) -> bytes:
    """The line that ends at `end`, without its newline; nothing if none does."""
    if end < 1 or read(end - 1, 1) != b"\n":
        return b""
    size = 4096
    while True:
        begin = max(0, end - 1 - size)
        data = read(begin, end - 1 - begin)
        found = data.rfind(b"\n")
        if found >= 0:
            return data[found + 1 :]
        if not begin or size > MAX_LINE:
            return b"" if begin else data
        size *= 8


def place_after(line: bytes, crc_seed: int, offset: int) -> Place | None:
    """Where the chain stands after a batch line that ends at `offset`, as the line says; None if it is not valid."""
    found = raw_line(line) if crc_fits(line, crc_seed) else None
    if found is None:
        return None
    return Place(found.s + len(found.e), bytes.fromhex(line[21:85].decode()), offset)
