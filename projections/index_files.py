"""Index files: `<segment>.index` beside the segment, written as a whole and read in the places that a question needs.

    {"c":"<8 hex>","v":2,"j":"<32 hex>","g":N,"s":N,"p":"<64 hex>","a":N,"n":N,"h":"<64 hex>","o":N,"l":N,"k":N,…}

Rules kept here:
- The header is 512 bytes, padded with spaces and ended by a newline. `c` is as in a line of the journal: the CRC-32 of
  everything from 14 on, seeded with the journal id.
- Each section begins with its own CRC-32, seeded with that of the header and the section's place in the file: nothing
  is believed because another part of the file is right.
- A file is used only for the very bytes that it was made from: the segment's header has the hash `p`, and the line from
  `l` to `o` is valid and has the hash `h`.
- It is written under another name, synced and renamed. Whatever is wrong with one is told as IndexDoubted.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from duly.journal.codec import decode_raw
from duly.journal.disk import Disk
from duly.journal.format import CHECKED, crc_fits, seed
from duly.journal.recovery import write_all
from duly.journal.scanning import UNDECODABLE, Place, Read, opened
from duly.journal.segments import Segment
from duly.projections.index import Block, IndexDoubted, Moment, Postings, encode
from duly.projections.indexing import Indexing

VERSION: Final = 2
HEADER: Final = 512
SUFFIX: Final = ".index"
NEW: Final = ".index.new"
KEYS: Final = 8
BUCKET: Final = 4096
"""About as many schedules, or as many bytes, share a bucket."""

_PLACE: Final = struct.Struct("<II")
_CRC: Final = struct.Struct("<I")


class _Fields(msgspec.Struct, forbid_unknown_fields=True):
    c: str
    v: int
    j: str
    g: int
    s: int
    p: str
    a: int
    n: int
    h: str
    o: int
    l: int  # noqa: E741 - as it stands on disk
    k: int
    m: tuple[int, int]
    b: tuple[int, int]


class _Middle(NamedTuple):
    before: Moment
    after: Moment
    of_kinds: dict[str, bytes]


class _Bucket(NamedTuple):
    of_schedules: dict[str, bytes]
    created: list[str]


@cache
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """Made when the first index is read: it takes a while."""
    return msgspec.msgpack.Decoder(kind)


def index_name(segment: str) -> str:
    """The name of a segment's index file."""
    return segment.removesuffix(".jsonl") + SUFFIX


def _crc(header: bytes, offset: int, data: bytes) -> bytes:
    return _CRC.pack(zlib.crc32(data, zlib.crc32(b"%d" % offset, zlib.crc32(header))))


def encode_index(index: Indexing, journal_id: str) -> bytes:
    """The whole of an index file."""
    count = max(len(index.of_schedules) // KEYS, sum(map(len, index.of_schedules.values())) // BUCKET) + 1
    groups = [_Bucket({}, []) for _ in range(count)]
    for schedule_id, postings in index.of_schedules.items():
        groups[_bucket_of(schedule_id, count)].of_schedules[schedule_id] = bytes(postings)
    for schedule_id in index.creations:
        groups[_bucket_of(schedule_id, count)].created.append(schedule_id)
    middle = encode(_Middle(index.before, index.after, {kind: bytes(one) for kind, one in index.of_kinds.items()}))
    sections = [middle, encode(index.blocks()), *map(encode, groups)]
    places: list[tuple[int, int]] = []
    offset = HEADER + _PLACE.size * count
    for section in sections:
        places.append((offset, len(section)))
        offset += _CRC.size + len(section)
    header = _header(index, journal_id, count, places[0], places[1])
    parts = [header, *(_PLACE.pack(*place) for place in places[2:])]
    for (offset, _), section in zip(places, sections, strict=True):
        parts += [_crc(header, offset, section), section]
    return b"".join(parts)


def _header(index: Indexing, journal_id: str, count: int, middle: tuple[int, int], blocks: tuple[int, int]) -> bytes:
    checked = (
        b'","v":%d,"j":"%b","g":%d,"s":%d,"p":"%b","a":%d,"n":%d,"h":"%b","o":%d,"l":%d,"k":%d,"m":[%d,%d],"b":[%d,%d]}'
        % (
            VERSION,
            journal_id.encode(),
            index.segment.number,
            index.start.next,
            index.start.h.hex().encode(),
            index.start.offset,
            index.end.next,
            index.end.h.hex().encode(),
            index.end.offset,
            index.last_line,
            count,
            *middle,
            *blocks,
        )
    ).ljust(HEADER - CHECKED - 1)
    return b'{"c":"%08x%b\n' % (zlib.crc32(checked, seed(journal_id)), checked)


def _bucket_of(schedule_id: str, count: int) -> int:
    return zlib.crc32(schedule_id.encode("utf-8", "surrogatepass")) % count


class IndexFile:
    """An index in a file: a `Part`."""

    def __init__(self, disk: Disk, path: Path, segment: Segment, header: bytes, fields: _Fields) -> None:
        """Not for users: `open_index` is."""
        self.segment = segment
        self.start = Place(fields.s, bytes.fromhex(fields.p), fields.a)
        self.end = Place(fields.n, bytes.fromhex(fields.h), fields.o)
        self._disk, self._path = disk, path
        self._header, self._fields = header, fields
        self._kept: _Middle | None = None

    @property
    def before(self) -> Moment:
        """The moment before its first entry."""
        return self._middle().before

    @property
    def after(self) -> Moment:
        """The moment after its last entry."""
        return self._middle().after

    def of_schedule(self, schedule_id: str) -> Postings:
        """The entries of a schedule."""
        with _doubting(), opened(self._disk, self._path) as read:
            bucket = self._bucket(read, _bucket_of(schedule_id, self._fields.k))
        return Postings(self.start.next, bucket.of_schedules.get(schedule_id, b""))

    def of_journal(self, kind: str) -> Postings:
        """The entries of this kind that name no schedule."""
        return Postings(self.start.next, self._middle().of_kinds.get(kind, b""))

    def blocks(self) -> Sequence[Block]:
        """Its blocks."""
        with _doubting(), opened(self._disk, self._path) as read:
            found: list[Block] = self._section(read, self._fields.b, list[Block])
        return found

    def created(self) -> Iterator[str]:
        """The schedules that were created in it."""
        for number in range(self._fields.k):
            with _doubting(), opened(self._disk, self._path) as read:
                bucket = self._bucket(read, number)
            yield from bucket.created

    def _middle(self) -> _Middle:
        if self._kept is not None:
            return self._kept
        with _doubting(), opened(self._disk, self._path) as read:
            found: _Middle = self._section(read, self._fields.m, _Middle)
        self._kept = found
        return found

    def _bucket(self, read: Read, number: int) -> _Bucket:
        place = read(HEADER + number * _PLACE.size, _PLACE.size)
        if len(place) != _PLACE.size:
            raise IndexDoubted("the index is cut")
        found: _Bucket = self._section(read, _PLACE.unpack(place), _Bucket)
        if any(_bucket_of(each, self._fields.k) != number for each in found.of_schedules):
            raise IndexDoubted("a bucket of the index is not the one that was asked for")
        return found

    def _section(self, read: Read, place: tuple[int, ...], kind: Any) -> Any:
        offset, size = place
        data = read(offset, _CRC.size + size)
        if len(data) != _CRC.size + size or data[: _CRC.size] != _crc(self._header, offset, data[_CRC.size :]):
            raise IndexDoubted("the checksum of a section does not fit")
        try:
            return _decoder(kind).decode(data[_CRC.size :])
        except UNDECODABLE as error:
            raise IndexDoubted(f"a section cannot be decoded: {error}") from error


@contextmanager
def _doubting(*but: type[OSError]) -> Generator[None]:
    """An index file that cannot be read is one that is doubted, and not an error."""
    try:
        yield
    except OSError as error:
        if isinstance(error, but):
            raise
        raise IndexDoubted(f"it cannot be read: {error}") from error


def open_index(  # noqa: PLR0913, PLR0917 - what it must fit
    disk: Disk, folder: Path, segment: Segment, journal_id: str, start: Place, read: Read
) -> IndexFile | None:
    """The index of the segment, whose first line is at `start`, and which is read through `read`; None if there is
    none. IndexDoubted if it is not the one of what is there."""
    path = folder / index_name(segment.name)
    try:
        with _doubting(FileNotFoundError), opened(disk, path) as through:
            header = through(0, HEADER)
    except FileNotFoundError:
        return None
    if len(header) != HEADER or not crc_fits(header[:-1], seed(journal_id)) or header[-1:] != b"\n":
        raise IndexDoubted("its header is damaged, or another journal's")
    try:
        fields = msgspec.json.decode(header, type=_Fields)
        found = IndexFile(disk, path, segment, header, fields)
    except (msgspec.MsgspecError, ValueError) as error:
        raise IndexDoubted(f"its header cannot be decoded: {error}") from error
    if (fields.v, fields.j, fields.g, found.start) != (VERSION, journal_id, segment.number, start):
        raise IndexDoubted("it is the index of something else")
    _check_end(fields, read, seed(journal_id))
    return found


def _check_end(fields: _Fields, read: Read, crc_seed: int) -> None:
    """Whether the segment still has the line that it had where the index ends."""
    line = read(fields.l, fields.o - fields.l) if fields.a <= fields.l < fields.o else b""
    if not line.endswith(b"\n") or not crc_fits(line[:-1], crc_seed) or line[21:85] != fields.h.encode():
        raise IndexDoubted("the segment is not what it was when the index was made")
    try:
        last = decode_raw(line)
    except UNDECODABLE as error:
        raise IndexDoubted(f"the line where it ends cannot be decoded: {error}") from error
    if last.s + len(last.e) != fields.n:
        raise IndexDoubted("it ends at another entry than the segment's line")


def write_index(disk: Disk, folder: Path, index: Indexing, journal_id: str) -> None:
    """Writes the index beside its segment, durably; where somebody is writing it, leaves it to them. An OSError leaves
    what was there."""
    path = folder / index_name(index.segment.name)
    fresh = path.with_suffix(NEW)
    try:
        file = disk.create(fresh)
    except FileExistsError:
        try:
            file = disk.open(fresh, write=True)
        except FileNotFoundError:  # somebody has just put it in its place
            return
    try:
        if not _is_ours(disk, file, fresh):
            return
        try:
            disk.truncate(file, 0)
            write_all(disk, file, 0, encode_index(index, journal_id))
            disk.sync(file)
        except OSError:
            with suppress(OSError):
                disk.remove(fresh)
            raise
        disk.replace(fresh, path)
    finally:
        disk.close(file)
    disk.sync_folder(folder)


def _is_ours(disk: Disk, file: int, path: Path) -> bool:
    """Whether nobody else writes the file, and it has not been put in its place since it was opened."""
    try:
        if not disk.lock(file):
            return False
    except OSError:  # this file system has no locks
        return True
    try:
        return disk.identity(file) == disk.identity(path)
    except FileNotFoundError:
        return False
