"""The side file REWRITE: an unproved tail, kept while it is written again.

Rules kept here: the side file is whole and synced before the segment is touched, so that whoever finds it whole, owner
or reader, takes the segment as it will be once the side file is put back. One that is torn protects nothing yet.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import NamedTuple

import msgspec

from duly.journal.disk import Disk
from duly.journal.format import CHECKED, seed
from duly.journal.scanning import Read
from duly.journal.segments import REWRITE


class Saved(NamedTuple):
    """The tail of a segment, from `offset` on, that an interrupted rewrite left in the side file."""

    journal_id: str
    segment: int
    offset: int
    data: bytes

    @property
    def end(self) -> int:
        """Where what is saved ends in the segment."""
        return self.offset + len(self.data)


class _SavedFields(msgspec.Struct, forbid_unknown_fields=True):
    c: str
    j: str
    g: int
    o: int
    n: int


_saved_fields = msgspec.json.Decoder(_SavedFields)


def encode_saved(saved: Saved) -> bytes:
    """The whole of the side file."""
    checked = b'","j":"%b","g":%d,"o":%d,"n":%d}\n%b' % (
        saved.journal_id.encode(),
        saved.segment,
        saved.offset,
        len(saved.data),
        saved.data,
    )
    return b'{"c":"%08x%b' % (zlib.crc32(checked, seed(saved.journal_id)), checked)


def parse_saved(data: bytes) -> Saved | None:
    """What the side file holds; None if it is torn."""
    line, newline, tail = data.partition(b"\n")
    try:
        fields = _saved_fields.decode(line)
        crc_seed = seed(fields.j)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    if not newline or data[:CHECKED] != b'{"c":"%08x' % zlib.crc32(data[CHECKED:], crc_seed):
        return None
    return Saved(fields.j, fields.g, fields.o, tail) if fields.n == len(tail) else None


def read_saved(disk: Disk, folder: Path, segment: int) -> Saved | None:
    """What the folder's side file keeps of this segment; None if it keeps nothing of it, is torn, or is not there."""
    try:
        file = disk.open(folder / REWRITE)
    except FileNotFoundError:
        return None
    try:
        saved = parse_saved(disk.read(file, 0, disk.size(file)))
    finally:
        disk.close(file)
    return saved if saved is not None and saved.segment == segment else None


def overlaid(read: Read, saved: Saved | None) -> Read:
    """The segment as it is once the side file is put back."""
    if saved is None:
        return read

    def through(offset: int, size: int) -> bytes:
        data = read(offset, size)
        if offset + size <= saved.offset or offset >= saved.end:
            return data
        before = data[: max(0, saved.offset - offset)]
        inside = saved.data[max(0, offset - saved.offset) : offset + size - saved.offset]
        return before + inside + data[max(0, saved.end - offset) :]

    return through
