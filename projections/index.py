"""The index of a segment: where the entries of each schedule are, and what held at each of its blocks.

Rules: an index is a projection of a piece of one segment and of the moment before it, and of nothing else: the same
bytes give the same index. It is a cache: whoever doubts it reads the segment.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple, Protocol, get_args

import msgspec

from duly.journal.codec import KINDS
from duly.journal.entries import (
    ClockRegressed,
    EntryLost,
    Instant,
    JournalOpened,
    OccurrenceAdmitted,
    RunAdmittedManually,
    ScheduleCreated,
    kind_of,
)
from duly.journal.errors import Error
from duly.journal.scanning import Place
from duly.journal.segments import Segment
from duly.projections.ranges import FIRST_INSTANT, LAST_INSTANT
from duly.projections.runs import RunEntry
from duly.projections.slots import OpenRun, Slots

OPENED: Final = kind_of(JournalOpened)
REGRESSED: Final = kind_of(ClockRegressed)
RUN_KINDS: Final = tuple(kind_of(kind) for kind in (RunAdmittedManually, *get_args(RunEntry)))
CREATED: Final = kind_of(ScheduleCreated)
LOST: Final = kind_of(EntryLost)
_OF_RUNS: Final = {kind_of(kind): kind for kind in (OccurrenceAdmitted, RunAdmittedManually, *get_args(RunEntry))}
_POSTING: Final = struct.Struct("<4I")


class IndexDoubted(Error):
    """An index, or what was read through it, is not what it should be: its segment has to be read instead."""


class Posting(NamedTuple):
    """Where an entry is: its sequence, and the bytes of its JSON in the segment, with their CRC-32."""

    sequence: int
    offset: int
    size: int
    crc: int


class Postings:
    """The postings of one schedule or kind in a piece of a segment, in order, as they stand in an index: 16 bytes each,
    the sequence counted from the piece's `first`. Only those that are asked for are unpacked."""

    def __init__(self, first: int, data: bytes | bytearray) -> None:
        """IndexDoubted if these are no postings."""
        if len(data) % _POSTING.size:
            raise IndexDoubted("a list of entries is cut")
        self._first, self._data = first, data

    def __len__(self) -> int:
        return len(self._data) // _POSTING.size

    def between(self, after: int, through: int) -> Postings:
        """Those of the entries above `after`, up to `through`."""
        places = range(len(self))
        begin = bisect_right(places, after, key=self._sequence) * _POSTING.size
        end = bisect_right(places, through, key=self._sequence) * _POSTING.size
        return Postings(self._first, self._data[begin:end])

    def newest(self, limit: int) -> Postings:
        """The last `limit` of them."""
        return Postings(self._first, self._data[max(len(self._data) - limit * _POSTING.size, 0) :])

    def __iter__(self) -> Iterator[Posting]:
        first = self._first
        places = _POSTING.iter_unpack(self._data)
        return (Posting(first + number, offset, size, crc) for number, offset, size, crc in places)

    def _sequence(self, place: int) -> int:
        sequence: int = _POSTING.unpack_from(self._data, place * _POSTING.size)[0]
        return self._first + sequence


def packed(first: int, posting: Posting) -> bytes:
    """The posting as it stands in an index."""
    return _POSTING.pack(posting.sequence - first, posting.offset, posting.size, posting.crc)


class Freed(NamedTuple):
    """A task slot that a run held, and until when."""

    slot: OpenRun
    until: datetime


class Moment(msgspec.Struct, frozen=True, array_like=True):
    """What held after the entry `sequence`, as far as no single schedule's entries tell it."""

    sequence: int = 0
    last_at: Instant | None = None
    """The last clock reading in the supported range."""
    highest: Instant | None = None
    """The highest clock reading of all, in range or not."""
    task_slots: int | None = None
    lost: int = 0
    open_runs: tuple[OpenRun, ...] = ()

    @property
    def holding(self) -> tuple[OpenRun, ...]:
        """The runs that hold a task slot, in the order in which they took it."""
        return tuple(run for run in self.open_runs if run.state == "started")


class Block(msgspec.Struct, frozen=True, array_like=True):
    """Some lines of a segment: the first one's offset, the moment before it, and the clock readings in them, None where
    all of their entries are lost."""

    offset: int
    before: Moment
    earliest: Instant | None
    latest: Instant | None


class Facts(msgspec.Struct, gc=False):
    """What an index needs of an entry."""

    kind: str
    at: Instant
    schedule_id: str | None = None
    run_id: int | None = None
    attempt_id: int | None = None
    task_slots: int | None = None


class FactsLine(msgspec.Struct, gc=False):
    """A batch line, of which only the facts of its entries are decoded."""

    s: int
    d: int
    t: int
    e: list[Facts]


@cache
def _facts_decoder() -> Callable[[bytes], FactsLine]:
    return msgspec.json.Decoder(FactsLine).decode


def decode_facts(line: bytes) -> FactsLine:
    """The facts of a line. ValueError for an entry of a kind that this version does not know."""
    found = _facts_decoder()(line)
    for facts in found.e:
        if facts.kind not in KINDS:
            raise ValueError(f"Invalid value {facts.kind!r}")
    return found


class Course:
    """The fold of entries into moments."""

    def __init__(self, before: Moment) -> None:
        self._sequence, self._last_at, self._highest = before.sequence, before.last_at, before.highest
        self._task_slots, self._lost = before.task_slots, before.lost
        self.slots = Slots(before.open_runs)

    @property
    def moment(self) -> Moment:
        """What holds now."""
        return Moment(self._sequence, self._last_at, self._highest, self._task_slots, self._lost, self.slots.open_runs)

    def apply(self, sequence: int, facts: Facts) -> Freed | None:
        """Folds one entry in, and returns the slot that it freed, or None."""
        self._sequence = sequence
        kind, at = facts.kind, facts.at
        if kind == LOST:
            self._lost += 1
            return None
        if self._highest is None or at > self._highest:
            self._highest = at
        if FIRST_INSTANT <= at < LAST_INSTANT:
            self._last_at = at
        if kind == OPENED:
            self._task_slots = facts.task_slots
        if kind not in _OF_RUNS:
            return None
        freed = self.slots.apply(sequence, _OF_RUNS[kind], at, facts.schedule_id, facts.run_id, facts.attempt_id)
        return None if freed is None else Freed(freed, at)


class Part(Protocol):
    """The index of a piece of a segment, in memory or in a file. IndexDoubted if it turns out to be none."""

    @property
    def segment(self) -> Segment:
        """The segment that it is a piece of."""
        ...

    @property
    def start(self) -> Place:
        """Where the piece begins: its first sequence, the hash and the offset there."""
        ...

    @property
    def end(self) -> Place:
        """Where the piece ends."""
        ...

    @property
    def before(self) -> Moment:
        """The moment before its first entry."""
        ...

    @property
    def after(self) -> Moment:
        """The moment after its last entry."""
        ...

    def of_schedule(self, schedule_id: str) -> Postings:
        """The entries of a schedule, in order."""
        ...

    def of_journal(self, kind: str) -> Postings:
        """The entries of this kind that name no schedule, in order."""
        ...

    def blocks(self) -> Sequence[Block]:
        """Its blocks, in order."""
        ...

    def created(self) -> Iterator[str]:
        """The schedules that were created in it."""
        ...


def replayed(before: Moment, lines: Iterable[FactsLine], through: int) -> tuple[Moment, list[Freed]]:
    """The moment after the entry `through`, and the slots that were freed on the way there."""
    course = Course(before)
    freed: list[Freed] = []
    for line in lines:
        for sequence, facts in enumerate(line.e, line.s):
            if sequence > through:
                return course.moment, freed
            slot = course.apply(sequence, facts)
            if slot is not None:
                freed.append(slot)
    return course.moment, freed


def encode(value: Any) -> bytes:
    """A section of an index file."""
    return msgspec.msgpack.encode(value)
