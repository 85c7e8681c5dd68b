"""What the parts of an indexed journal tell: the entries of one schedule, and what held at any moment.

Rules: an entry is read alone and checked by the checksum that its index has of it; a block is read as whole lines, each
checked by its own checksum and its sequence. What does not fit is PartDoubted, and names the segment. The cost follows
what is asked for, not the length of the journal: a block or two for a moment, the schedule's own entries for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache, partial
from heapq import merge
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, TypeVar
from zlib import crc32

import msgspec

from duly.journal.disk import Disk
from duly.journal.entries import Entry, JournalOpened
from duly.journal.errors import Error
from duly.journal.format import crc_fits
from duly.journal.scanning import UNDECODABLE
from duly.journal.survey import reading
from duly.projections.index import (
    LOST,
    OPENED,
    REGRESSED,
    RUN_KINDS,
    Block,
    FactsLine,
    Freed,
    IndexDoubted,
    Moment,
    Part,
    Posting,
    decode_facts,
    replayed,
)

T = TypeVar("T")

GAP: Final = 4096
"""Bytes between two wanted entries that are read along with them, rather than by another call."""
SPAN: Final = 1 << 20


@cache
def _entry_decoder() -> Callable[[bytes], Entry]:
    """Made at the first question: it takes a while, and most programs never ask one."""
    return msgspec.json.Decoder(Entry).decode


class PartDoubted(Error):
    """An index, or what was read through it, is not what it should be: `segment` has to be read instead."""

    def __init__(self, segment: str, doubt: IndexDoubted) -> None:
        super().__init__(f"the index of {segment} is not used: {doubt}")
        self.segment = segment


class Found(NamedTuple):
    """An entry that was found through an index; `offset` is where it begins, inside its line."""

    sequence: int
    entry: Entry
    segment: str
    offset: int


_Cut: TypeAlias = tuple[Posting, Entry]


class _Stretch(NamedTuple):
    part: Part
    block: Block
    end: int


class Parts:
    """The parts of a journal, oldest first, without a gap; each answers for a piece of a segment."""

    def __init__(self, disk: Disk, folder: Path, crc_seed: int, parts: Sequence[Part]) -> None:
        self._disk, self._folder, self._seed = disk, folder, crc_seed
        self._parts = parts

    @property
    def last(self) -> int:
        """The last sequence."""
        return self._parts[-1].end.next - 1 if self._parts else 0

    def entries(
        self, schedule_id: str | None, kinds: Sequence[str] = (), *, after: int = 0, through: int | None = None
    ) -> Iterator[Found]:
        """The schedule's entries, and those of these kinds that name no schedule, in order."""
        for part, found in self._of_parts(schedule_id, kinds, after, through):
            yield from _shown(part, found)

    def concerning(self, schedule_id: str, through: int | None = None, *, after: int = 0) -> list[tuple[int, Entry]]:
        """What a history of the schedule is folded from: its own entries, and the steps back of the clock."""
        found = self._of_parts(schedule_id, (REGRESSED,), after, through)
        return [(posting[0], entry) for _, some in found for posting, entry in some]

    def of_run(self, run_id: int) -> list[tuple[int, Entry]]:
        """The run's admission, and the entries after it that are about the run; nothing if `run_id` is no entry."""
        if not 0 < run_id <= self.last:
            return []
        lines = self._lines(next(self._back_from(run_id)))
        [facts] = [line.e[run_id - line.s] for line in lines if line.s <= run_id < line.s + len(line.e)]
        kinds = RUN_KINDS if facts.schedule_id is None else ()
        found = self.entries(facts.schedule_id, kinds, after=run_id - 1)
        return [(one.sequence, one.entry) for one in found if getattr(one.entry, "run_id", one.sequence) == run_id]

    def newest(self, schedule_id: str, limit: int, *, after: int = 0, through: int | None = None) -> list[Found]:
        """The schedule's last `limit` entries, in order."""
        found: list[Found] = []
        bound = self.last if through is None else through
        for part in reversed(self._parts):
            if len(found) >= limit or part.end.next - 1 <= after:
                break
            if part.start.next <= bound:
                wanted = limit - len(found)
                found = [*_shown(part, self._of_part(part, schedule_id, (), after, bound, newest=wanted)), *found]
        return found

    def names(self, schedule_id: str) -> bool:
        """Whether any entry names the schedule."""
        return any(sure(part, partial(part.of_schedule, schedule_id)) for part in reversed(self._parts))

    def created(self) -> set[str]:
        """The ids of all schedules that were ever created."""
        return {each for part in self._parts for each in sure(part, partial(_created, part))}

    def check(self) -> None:
        """Reads the indexes from end to end."""
        for part in self._parts:
            sure(part, partial(getattr, part, "before"))
            sure(part, part.blocks)
            sure(part, partial(_created, part))

    def moment(self, through: int | None = None) -> Moment:
        """What held after the entry `through`, or after the last one."""
        part = self._part_of(self.last if through is None else through)
        if part is None:
            return Moment()
        if through is None or through >= part.end.next - 1:
            return sure(part, lambda: part.after)
        return self._replayed(next(self._back_from(through)), through)[0]

    def task_slots(self, through: int) -> int | None:
        """How many task slots the host had at the entry `through`."""
        part = self._part_of(through)
        if part is None:
            return None
        openings = sure(part, partial(part.of_journal, OPENED)).between(0, through)
        if not openings:
            return sure(part, lambda: part.before).task_slots
        [(_, opened)] = self._read(part, list(openings.newest(1)))
        return opened.task_slots if isinstance(opened, JournalOpened) else None

    def freed(self, since: datetime, through: int, most: int) -> list[Freed]:
        """Of the last `most` task slots that were freed by the entries up to `through`, those freed at `since` or
        later."""
        found: list[Freed] = []
        for stretch in self._back_from(through):
            found = [*self._replayed(stretch, through)[1], *found]
            highest = stretch.block.before.highest
            if len(found) >= most or highest is None or highest < since:
                break
        return [one for one in found[-most:] if one.until >= since]

    def first_since(self, instant: datetime) -> int:
        """The first entry whose clock reading is not before the instant; one more than the last if there is none."""
        for part in self._parts:
            for stretch in self._stretches(part):
                latest = stretch.block.latest
                if latest is not None and latest >= instant:
                    return next(sequence for sequence, at in self._readings(stretch) if at >= instant)
        return self.last + 1

    def last_until(self, instant: datetime) -> int:
        """The last entry whose clock reading is not after the instant; 0 if there is none."""
        for stretch in self._back_from(self.last):
            earliest = stretch.block.earliest
            if earliest is not None and earliest <= instant:
                return max(sequence for sequence, at in self._readings(stretch) if at <= instant)
        return 0

    def _part_of(self, sequence: int) -> Part | None:
        for part in reversed(self._parts):
            if part.start.next <= sequence:
                return part
        return None

    def _stretches(self, part: Part) -> list[_Stretch]:
        blocks = sure(part, part.blocks)
        ends = [*(block.offset for block in blocks[1:]), part.end.offset]
        return [_Stretch(part, block, end) for block, end in zip(blocks, ends, strict=True)]

    def _back_from(self, through: int) -> Iterator[_Stretch]:
        """The blocks with entries up to `through`, the newest first."""
        for part in reversed(self._parts):
            if part.start.next <= through:
                for stretch in reversed(self._stretches(part)):
                    if stretch.block.before.sequence < through:
                        yield stretch

    def _replayed(self, stretch: _Stretch, through: int) -> tuple[Moment, list[Freed]]:
        return replayed(stretch.block.before, self._lines(stretch), through)

    def _readings(self, stretch: _Stretch) -> Iterator[tuple[int, datetime]]:
        for line in self._lines(stretch):
            for sequence, facts in enumerate(line.e, line.s):
                if facts.kind != LOST:
                    yield sequence, facts.at

    def _lines(self, stretch: _Stretch) -> list[FactsLine]:
        part, block, end = stretch
        path = self._folder / part.segment.name
        with reading(path):
            file = self._disk.open(path)
            try:
                data = self._disk.read(file, block.offset, end - block.offset)
            finally:
                self._disk.close(file)
        return sure(part, lambda: self._checked(data, block.before.sequence + 1))

    def _checked(self, data: bytes, expected: int) -> list[FactsLine]:
        *lines, rest = data.split(b"\n")
        found: list[FactsLine] = []
        for line in lines:
            if not crc_fits(line, self._seed):
                raise IndexDoubted("a line of a block has another checksum")
            try:
                decoded = decode_facts(line)
            except UNDECODABLE as error:
                raise IndexDoubted(f"a line of a block cannot be decoded: {error}") from error
            if decoded.s != expected:
                raise IndexDoubted("a block holds other lines than it should")
            expected += len(decoded.e)
            found.append(decoded)
        if rest or not found:
            raise IndexDoubted("a block does not end with a line")
        return found

    def _of_parts(
        self, schedule_id: str | None, kinds: Sequence[str], after: int, through: int | None
    ) -> Iterator[tuple[Part, list[_Cut]]]:
        bound = self.last if through is None else through
        for part in self._parts:
            if part.end.next - 1 > after and part.start.next <= bound:
                yield part, self._of_part(part, schedule_id, kinds, after, bound)

    def _of_part(  # noqa: PLR0913 - what is asked of it
        self,
        part: Part,
        schedule_id: str | None,
        kinds: Sequence[str],
        after: int,
        through: int,
        *,
        newest: int | None = None,
    ) -> list[_Cut]:
        lists = [] if schedule_id is None else [sure(part, partial(part.of_schedule, schedule_id))]
        lists += [sure(part, partial(part.of_journal, kind)) for kind in kinds]
        lists = [one.between(after, through) for one in lists if one]
        if newest is not None:
            lists = [one.newest(newest) for one in lists]
        return self._read(part, list(lists[0]) if len(lists) == 1 else list(merge(*lists)))

    def _read(self, part: Part, postings: Sequence[Posting]) -> list[_Cut]:
        if not postings:
            return []
        path = self._folder / part.segment.name
        with reading(path):
            file = self._disk.open(path)
            try:
                return sure(part, lambda: self._cut(file, postings))
            finally:
                self._disk.close(file)

    def _cut(self, file: int, postings: Sequence[Posting]) -> list[_Cut]:
        found: list[_Cut] = []
        read, crc_seed, decode = self._disk.read, self._seed, _entry_decoder()
        for group in _grouped(postings):
            _, begin, size, _ = group[0]
            if len(group) > 1:
                _, last, size, _ = group[-1]
                size += last - begin
            data = read(file, begin, size)
            for posting in group:
                sequence, offset, size, crc = posting
                place = offset - begin
                piece = data[place : place + size]
                if crc32(piece, crc_seed) != crc:
                    raise IndexDoubted(f"entry {sequence} has another checksum")
                try:
                    entry = decode(piece)
                except UNDECODABLE as error:
                    raise IndexDoubted(f"entry {sequence} cannot be decoded: {error}") from error
                found.append((posting, entry))
        return found


def _shown(part: Part, found: Iterable[_Cut]) -> Iterator[Found]:
    segment = part.segment.name
    return (Found(posting.sequence, entry, segment, posting.offset) for posting, entry in found)


def _grouped(postings: Sequence[Posting]) -> Iterator[list[Posting]]:
    """Those that are read with one call."""
    group: list[Posting] = []
    begin = end = 0
    for one in postings:
        _, offset, size, _ = one
        if group and (offset - end > GAP or end - begin > SPAN):
            yield group
            group = []
        if not group:
            begin = offset
        group.append(one)
        end = offset + size
    if group:
        yield group


def _created(part: Part) -> list[str]:
    return list(part.created())


def sure(part: Part, ask: Callable[[], T]) -> T:
    """The answer of a part; its doubt names the segment."""
    try:
        return ask()
    except IndexDoubted as doubt:
        raise PartDoubted(part.segment.name, doubt) from doubt
