"""HEAD: one fixed-size line beside the segments that says how far the journal is known to be durable.

    {"c":"<8 hex>","j":"<32 hex journal id>","s":N,"g":N,"o":N,"h":"<64 hex>"}    padded with spaces to 255 bytes, \\n

Rules kept here: it is rewritten in place after each successful fsync, itself unsynced, and never authority: only a
lower bound on what was acknowledged, and the value to anchor elsewhere. `s` is the last durable sequence, `g` the
segment and `o` the offset in it where what is durable ends, `h` the hash of the line that ends there. `c` is as in a
line: the CRC-32 of everything from 14 on, the padding included, seeded with the journal id. A HEAD that does not fit is
torn, and ignored.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import NamedTuple

import msgspec

from duly.journal.disk import Disk
from duly.journal.format import CHECKED, crc_fits, seed
from duly.journal.scanning import Place
from duly.journal.segments import HEAD

HEAD_SIZE = 256


class Mark(NamedTuple):
    """What HEAD says."""

    journal_id: str
    sequence: int
    segment: int
    offset: int
    h: bytes


def vouches_for_another(mark: Mark, number: int, before: int, after: Place) -> bool:
    """Whether the line of segment `number` from offset `before` to `after`, or one with other bounds, was not the one
    that HEAD has seen there."""
    if mark.segment != number or not before < mark.offset <= after.offset:
        return False
    return (after.next - 1, after.h, after.offset) != (mark.sequence, mark.h, mark.offset)


class _Fields(msgspec.Struct, forbid_unknown_fields=True):
    c: str
    j: str
    s: int
    g: int
    o: int
    h: str


_decoder = msgspec.json.Decoder(_Fields)


def encode_mark(mark: Mark, crc_seed: int) -> bytes:
    """The whole of HEAD."""
    checked = b'","j":"%b","s":%d,"g":%d,"o":%d,"h":"%b"}' % (
        mark.journal_id.encode(),
        mark.sequence,
        mark.segment,
        mark.offset,
        mark.h.hex().encode(),
    )
    checked = checked.ljust(HEAD_SIZE - CHECKED - 1)
    return b'{"c":"%08x%b\n' % (zlib.crc32(checked, crc_seed), checked)


def parse_mark(data: bytes) -> Mark | None:
    """What HEAD says; None if it is torn, empty or no HEAD."""
    try:
        fields = _decoder.decode(data)
        mark = Mark(fields.j, fields.s, fields.g, fields.o, bytes.fromhex(fields.h))
        crc_seed = seed(fields.j)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    if len(data) != HEAD_SIZE or not crc_fits(data[:-1], crc_seed) or encode_mark(mark, crc_seed) != data:
        return None
    return mark


def read_mark(disk: Disk, folder: Path) -> Mark | None:
    """What the folder's HEAD says; None if there is none or it is torn."""
    try:
        file = disk.open(folder / HEAD)
    except FileNotFoundError:
        return None
    try:
        return parse_mark(disk.read(file, 0, HEAD_SIZE + 1))
    finally:
        disk.close(file)
