"""Indexing: the index of a piece of a segment, as it grows line by line.

Rules: lines are given in order, each of them verified; nothing is read and nothing is written here. What is kept is
16 bytes for each entry, and not the entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final
from zlib import crc32

import msgspec

from duly.journal.codec import decode_raw
from duly.journal.format import BODY
from duly.journal.scanning import Place
from duly.journal.segments import Segment
from duly.projections.index import (
    CREATED,
    LOST,
    Block,
    Course,
    Facts,
    Moment,
    Posting,
    Postings,
    decode_facts,
    packed,
)

BLOCK_BYTES: Final = 256 * 1024
HOLDER_BYTES: Final = 1024
"""A block is longer where more runs are open: so its moment takes a small part of it at most."""
LARGEST: Final = 1 << 32
"""Segments beyond this have no index: the offsets in it have four bytes."""

_ENTRIES = b',"e":['


class CutLine(msgspec.Struct):
    """A line and its entries: their facts and their bytes. Stands where a reader expects the entries themselves."""

    line: bytes
    facts: list[Facts]
    raws: list[msgspec.Raw]

    def __len__(self) -> int:
        return len(self.facts)


class Cut(msgspec.Struct):
    """A decoded line, in the form in which a scan takes it."""

    s: int
    d: int
    e: CutLine


def decode_cut(line: bytes) -> Cut:
    """The line with its entries cut out of it. Raises what decoding raises, also for a kind that is not known."""
    outline = decode_facts(line)
    return Cut(outline.s, outline.d, CutLine(line, outline.e, decode_raw(line).e))


class Indexing:
    """The index of a piece of a segment, in memory."""

    def __init__(
        self,
        segment: Segment,
        start: Place,
        before: Moment,
        crc_seed: int,
        *,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self.segment = segment
        self.start = start
        self.end = start
        self.last_line = start.offset
        """Where the last line begins."""
        self.before = before
        self.of_schedules: dict[str, bytearray] = {}
        self.of_kinds: dict[str, bytearray] = {}
        self.creations: dict[str, None] = {}
        self._seed = crc_seed
        self._block_bytes = block_bytes
        self._course = Course(before)
        self._blocks: list[Block] = []
        self._open: Block | None = None

    @property
    def after(self) -> Moment:
        """The moment after the last entry."""
        return self._course.moment

    def add(self, offset: int, cut: CutLine, end: Place) -> None:
        """Takes in the line at `offset`, behind which the chain stands at `end`."""
        if not cut.facts:
            return
        self._begin_block(offset)
        line, sequence, first = cut.line, end.next - len(cut.facts), self.start.next
        place = line.index(_ENTRIES, BODY) + len(_ENTRIES)
        for facts, raw in zip(cut.facts, cut.raws, strict=True):
            data = bytes(raw)
            # Only separators stand between two entries: so the first place that holds these bytes is the entry's.
            place = line.index(data, place)
            posting = Posting(sequence, offset + place, len(data), crc32(data, self._seed))
            self._list_of(facts).extend(packed(first, posting))
            place += len(data)
            self._course.apply(sequence, facts)
            sequence += 1
        self._widen_block([facts.at for facts in cut.facts if facts.kind != LOST])
        self.last_line = offset
        self.end = end

    def _list_of(self, facts: Facts) -> bytearray:
        if facts.schedule_id is None:
            return self.of_kinds.setdefault(facts.kind, bytearray())
        if facts.kind == CREATED:
            self.creations[facts.schedule_id] = None
        found = self.of_schedules.get(facts.schedule_id)
        if found is None:
            found = self.of_schedules[facts.schedule_id] = bytearray()
        return found

    def _begin_block(self, offset: int) -> None:
        if self._open is not None:
            if offset - self._open.offset < max(self._block_bytes, HOLDER_BYTES * len(self._course.slots)):
                return
            self._blocks.append(self._open)
        # Its readings are not known yet.
        self._open = None
        self._offset, self._moment = offset, self._course.moment

    def _widen_block(self, readings: list[datetime]) -> None:
        block = self._open
        if block is None:
            self._open = block = Block(self._offset, self._moment, None, None)
        if not readings:
            return
        earliest, latest = min(readings), max(readings)
        if block.earliest is None or block.latest is None:
            self._open = Block(block.offset, block.before, earliest, latest)
        elif earliest < block.earliest or latest > block.latest:
            self._open = Block(block.offset, block.before, min(earliest, block.earliest), max(latest, block.latest))

    def of_schedule(self, schedule_id: str) -> Postings:
        """The entries of a schedule."""
        return Postings(self.start.next, self.of_schedules.get(schedule_id, b""))

    def of_journal(self, kind: str) -> Postings:
        """The entries of this kind that name no schedule."""
        return Postings(self.start.next, self.of_kinds.get(kind, b""))

    def blocks(self) -> Sequence[Block]:
        """Its blocks."""
        return [*self._blocks, self._open] if self._open is not None else list(self._blocks)

    def created(self) -> Iterator[str]:
        """The schedules that were created in it."""
        return iter(self.creations)
