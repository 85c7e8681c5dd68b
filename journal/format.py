"""The format of the journal's lines: one JSON line per atomic batch, chained, each line checkable by itself.

    {"c":"<8 hex>","h":"<64 hex>","s":N,"d":N,"t":N,"e":[...]}

Rules kept here:
- Offsets are fixed: `c` stands at 6, `h` at 21, and what both cover (the *body*) begins at 86. Hex is lower case.
- `h` is the SHA-256 of the previous line's `h` (32 raw bytes) and the body: the chain, which binds the order.
- `c` is the CRC-32 of the line from 14 on, seeded with the journal id: it keeps a line checkable when its neighbour is
  damaged, and a stale block of another journal is never taken for ours.
- A line is exactly these bytes; a line that differs in any of them is bad. Lines are split on a newline byte only.
- Nothing here touches a disk or a clock.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

import msgspec

MiB = 1024 * 1024
VERSION = 1
BODY = 86
"""Where the body begins: the part of a line that `h` covers."""
CHECKED = 14
"""Where the part of a line that `c` covers begins."""
MAX_LINE = 4 * MiB
MAX_HEADER = 512
APPEND_WINDOW = 16 * MiB
"""Never more than this is written and not yet synced, so a torn tail is never longer."""
SEGMENT_BYTES = 64 * MiB
REACHING = 16
"""How many beginnings of lines, from either end of a damaged piece, are tried up to its end."""
FIRST_HASH = bytes(32)
"""What the chain begins with."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ENVELOPE = re.compile(rb'\{"c":"[0-9a-f]{8}","h":"[0-9a-f]{64}","[sv]":')
_HEX32 = re.compile(r"[0-9a-f]{32}")


class Sealed(NamedTuple):
    """A finished line (without its newline) and its hash."""

    line: bytes
    h: bytes


class Header(NamedTuple):
    """The first line of a segment."""

    journal_id: str
    number: int
    first: int
    previous: bytes
    """The last hash of the segment before."""
    previous_bytes: int
    """The size of the segment before."""
    h: bytes
    size: int
    """The header's own bytes, newline included."""


class _HeaderFields(msgspec.Struct, forbid_unknown_fields=True):
    c: str
    h: str
    v: int
    j: str
    g: int
    s: int
    p: str
    b: int


class _VersionOnly(msgspec.Struct):
    v: int
    j: str = ""


_header_fields = msgspec.json.Decoder(_HeaderFields)
_version_only = msgspec.json.Decoder(_VersionOnly)


def seed(journal_id: str) -> int:
    """The start value of every `c` in the journal."""
    return zlib.crc32(bytes.fromhex(journal_id))


def microseconds(now: datetime) -> int:
    """Unix microseconds, exactly. A naive datetime is refused."""
    if now.utcoffset() is None:
        raise ValueError(f"now is {now!r}, a naive datetime: pass an aware one")
    return (now - _EPOCH) // _MICROSECOND


def seal(previous: bytes, crc_seed: int, body: bytes) -> Sealed:
    """The line with this body that follows the hash `previous`."""
    digest = sha256(previous + body)
    checked = b'","h":"%b"%b' % (digest.hexdigest().encode(), body)
    return Sealed(b'{"c":"%08x%b' % (zlib.crc32(checked, crc_seed), checked), digest.digest())


def batch_body(sequence: int, durable: int, at: int, entries: bytes) -> bytes:
    """The body of a batch: `entries` is the encoded array."""
    return b',"s":%d,"d":%d,"t":%d,"e":%b}' % (sequence, durable, at, entries)


def header_line(journal_id: str, number: int, first: int, previous: bytes, previous_bytes: int) -> Sealed:
    """The first line of segment `number`, whose first entry is `first`."""
    body = b',"v":%d,"j":"%b","g":%d,"s":%d,"p":"%b","b":%d}' % (
        VERSION,
        journal_id.encode(),
        number,
        first,
        previous.hex().encode(),
        previous_bytes,
    )
    return seal(previous, seed(journal_id), body)


def header_version(line: bytes) -> int | None:
    """The format version that an undamaged header line claims; None if it is no such line."""
    try:
        fields = _version_only.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if not _HEX32.fullmatch(fields.j) or not crc_fits(line, seed(fields.j)):
        return None
    return fields.v


def parse_header(line: bytes) -> Header | None:
    """The header that stands in this line (without its newline); None if it is not exactly one of this version."""
    try:
        fields = _header_fields.decode(line)
        previous = bytes.fromhex(fields.p)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    if fields.v != VERSION or len(previous) != 32 or not _HEX32.fullmatch(fields.j) or fields.g < 1 or fields.s < 1:
        return None
    sealed = header_line(fields.j, fields.g, fields.s, previous, fields.b)
    if sealed.line != line:
        return None
    return Header(fields.j, fields.g, fields.s, previous, fields.b, sealed.h, len(line) + 1)


def crc_fits(line: bytes, crc_seed: int) -> bool:
    """Whether the line's own checksum is right, whatever stands before and after it."""
    return len(line) > BODY and line[:CHECKED] == b'{"c":"%08x' % zlib.crc32(line[CHECKED:], crc_seed)


def fits(line: bytes, previous: bytes, crc_seed: int) -> bytes | None:
    """The line's hash if its checksum and its place in the chain are right; None otherwise."""
    digest = sha256(previous + line[BODY:])
    head = b'{"c":"%08x","h":"%b"' % (zlib.crc32(line[CHECKED:], crc_seed), digest.hexdigest().encode())
    return digest.digest() if line.startswith(head) else None


def envelopes(piece: bytes) -> Iterator[tuple[int, bytes]]:
    """(place, part) for each part of a piece that may be a line.

    A lost newline glues lines to one: each may reach to the beginning of the next, or to one byte before it, or to the
    end, if what looks like the next is a host's own data.

    The work is linear: only of the outermost beginnings are so many taken to reach to the end.
    """
    begins = [match.start() for match in _ENVELOPE.finditer(piece)]
    for index, begin in enumerate(begins):
        if index < REACHING or index >= len(begins) - REACHING:
            yield begin, piece[begin:]
        if index + 1 < len(begins):
            yield begin, piece[begin : begins[index + 1] - 1]
            yield begin, piece[begin : begins[index + 1]]
