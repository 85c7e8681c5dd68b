"""Reading lines from a segment, and verifying them as they come.

Rules kept here:
- A line is accepted when its checksum, its place in the chain and its sequence are right, all three, always.
- The first line that is not accepted stops the scan; what it means is for `judgement` to say.
- Segments are read in blocks; no more than a block and one line is in memory.
- A line that is intact but that this version cannot decode is unreadable, never damaged.
"""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar
from zlib import crc32

import msgspec

from duly.journal.codec import RawLine, decode_raw
from duly.journal.disk import Disk
from duly.journal.errors import UnreadableJournal
from duly.journal.format import APPEND_WINDOW, BODY, CHECKED, MAX_LINE, crc_fits, envelopes

BLOCK = 256 * 1024

Read = Callable[[int, int], bytes]
"""(offset, size) -> bytes; fewer only at the end."""


class _Decoded(Protocol):
    s: int
    d: int
    e: Any


L = TypeVar("L", bound=_Decoded)


class Place(NamedTuple):
    """Where a verified prefix ends: the next sequence, the chain's hash there, the offset in the segment."""

    next: int
    h: bytes
    offset: int


class Proof(NamedTuple):
    """A valid line that stands after a bad one."""

    offset: int
    sequence: int
    durable: int


def reader_of(disk: Disk, file: int) -> Read:
    """Reading from an open file."""

    def read(offset: int, size: int) -> bytes:
        return disk.read(file, offset, size)

    return read


@contextmanager
def opened(disk: Disk, path: Path) -> Generator[Read]:
    """A file, open for reading."""
    file = disk.open(path)
    try:
        yield reader_of(disk, file)
    finally:
        disk.close(file)


def line_blocks(read: Read, offset: int, block: int = BLOCK) -> Iterator[tuple[int, list[bytes], bytes | None]]:
    """(offset of the first line, whole lines without newline, None), …, and last (offset, [], what follows the last
    newline). It stops early when a line is longer than a line may be."""
    carry = b""
    while True:
        data = read(offset + len(carry), block)
        if not data:
            yield offset, [], carry
            return
        lines = (carry + data).split(b"\n")
        size = len(carry) + len(data)
        carry = lines.pop()
        if lines:
            yield offset, lines, None
            offset += size - len(carry)
        if len(carry) > MAX_LINE:
            yield offset, [], carry
            return


class Scan:
    """Verifies the batch lines of one segment from a place on. `fault` tells, in the end, why it stopped there; it is
    empty at a clean end."""

    def __init__(self, path: Path, read: Read, crc_seed: int, place: Place) -> None:
        self.path = path
        self.next, self.h, self.offset = place
        self.durable = 0
        self.fault = ""
        self._read = read
        self._seed = crc_seed

    @property
    def place(self) -> Place:
        """Where what is verified ends."""
        return Place(self.next, self.h, self.offset)

    def run(self, decode: Callable[[bytes], L]) -> Iterator[tuple[int, L]]:
        """(offset, line) for each valid line. The attributes are up to date at every step.

        This is the innermost loop of every replay: what looks long-winded in it was measured.
        """
        h, expected, crc_seed, durable = self.h, self.next, self._seed, self.durable
        for start, lines, rest in line_blocks(self._read, self.offset):
            if rest:
                self.fault = "a line is longer than 4 MiB" if len(rest) > MAX_LINE else "the line has no end"
                return
            offset = start
            for line in lines:
                digest = sha256(h + line[BODY:]).digest()
                if line[:BODY] != b'{"c":"%08x","h":"%b"' % (crc32(line[CHECKED:], crc_seed), hexlify(digest)):
                    self.fault = _fault(line, crc_seed, expected)
                    return
                try:
                    decoded = decode(line)
                except UNDECODABLE as error:
                    raise unreadable_line(self.path, offset, expected, error) from error
                count = len(decoded.e)
                if decoded.s != expected or not count or not 0 <= decoded.d < expected:
                    self.fault = f"the line's numbers are wrong: s {decoded.s}, d {decoded.d}, {count} entries"
                    return
                here = offset
                self.offset = offset = here + len(line) + 1
                self.next = expected = expected + count
                self.h = h = digest
                if decoded.d > durable:
                    self.durable = durable = decoded.d
                yield here, decoded


UNDECODABLE = (msgspec.MsgspecError, RecursionError, ValueError)
"""What decoding raises for a line that is no line of this version."""


def unreadable_line(path: Path, offset: int, sequence: int, error: Exception) -> UnreadableJournal:
    """The error for a line that is intact, and yet this version cannot decode it."""
    return UnreadableJournal(
        f"the line is intact, but this version cannot read it: {error}",
        path=path,
        offset=offset,
        sequence=sequence,
        hint="It was written by a newer version of duly: read it with that one",
    )


def _fault(line: bytes, crc_seed: int, expected: int) -> str:
    if not crc_fits(line, crc_seed):
        return "the line's checksum does not fit"
    found = raw_line(line)
    if found is not None and found.s != expected:
        return f"the line is whole, but its sequence is {found.s} where {expected} must follow"
    return "the line is whole, but does not follow from the one before (chain)"


def raw_line(line: bytes) -> RawLine | None:
    """The line with its entries undecoded; None if it is no batch line."""
    try:
        return decode_raw(line)
    except UNDECODABLE:
        return None


def later_proof(read: Read, offset: int, crc_seed: int, bad: int) -> Proof | None:
    """A line at or after `offset` that is valid by its own checksum and says that the bad sequence was durable."""
    for start, lines, rest in line_blocks(read, offset):
        at = start
        for piece in [*lines, *([rest] if rest else [])]:
            for place, candidate in envelopes(piece):
                if not crc_fits(candidate, crc_seed):
                    continue
                found = raw_line(candidate)
                if found is not None and found.s >= bad and found.d >= bad:
                    return Proof(at + place, found.s, found.d)
            at += len(piece) + 1
        if start - offset > APPEND_WINDOW:
            break
    return None
