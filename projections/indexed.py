"""An indexed journal: for each piece of it an index, from a file where there is a good one, made in memory elsewhere.

Rules kept here:
- Nothing is locked. Nothing is written either, unless it was asked for (`keep`), and then only what is durable and only
  index files.
- What no index file covers is read as ever: each line verified, damage told. What one covers is not read at all.
- An index that is doubted is dropped with a warning, and the segment is read; the answer is the same.
- Where too much has no index, or a broken rewrite is pending, there is no indexed journal: the whole is to be read.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar, cast

from duly.journal.archived import reading_disk
from duly.journal.disk import Disk
from duly.journal.entries import Entry
from duly.journal.errors import Error, UnconfirmedGone
from duly.journal.format import seed
from duly.journal.mark import vouches_for_another
from duly.journal.reader import Line, Reader, read
from duly.journal.scanning import Place, Read, Scan, opened
from duly.journal.segments import Segment, parse_segment
from duly.journal.survey import reading
from duly.projections.index import IndexDoubted, Moment, Part
from duly.projections.index_files import IndexFile, index_name, open_index, write_index
from duly.projections.indexing import BLOCK_BYTES, LARGEST, CutLine, Indexing, decode_cut
from duly.projections.parts import PartDoubted, Parts, sure

T = TypeVar("T")

MOST_UNINDEXED: Final = 2
"""Where more segments than this have no index, making them in memory for one question takes longer than reading."""

_log = logging.getLogger("duly.projections")


class NotIndexed(Error):
    """The journal is better read as a whole."""


class Kept(NamedTuple):
    """An index file: of which segment, up to which entry, and whether it was written just now."""

    segment: str
    through: int
    fresh: bool


class _PartReader(Reader):
    """Reads what no index file covers, cut into entries, and tells of each segment that begins."""

    decode = staticmethod(decode_cut)

    def __init__(self, path: Path, disk: Disk, begun: Callable[[_PartReader, Segment, Read, Place], Place]) -> None:
        super().__init__(path, disk=disk)
        self._begun = begun

    def _leap(self, segment: Segment, path: Path, read: Read) -> None:
        if self._saved is not None:
            raise NotIndexed("a broken rewrite is pending")
        place = self._begun(self, segment, read, self.place)
        self._scan = Scan(path, read, 0, place)
        self._durable = max(self._durable, place.next - 1)

    def is_sealed(self, segment: Segment) -> bool:
        """Whether a later segment exists."""
        return segment.number < len(self._listed)

    def contradicts(self, segment: Segment, before: Place, after: Place) -> bool:
        """Whether HEAD ends inside what lies between these places, or saw another record there."""
        mark = self._own_mark()
        if mark is None or mark.segment != segment.number:
            return False
        return mark.offset < after.offset or vouches_for_another(mark, segment.number, before.offset, after)


class IndexedJournal:
    """A journal, and the indexes of its pieces. `refresh` takes in what is new; `ask` asks."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        disk: Disk | None = None,
        keep: bool = False,
        confirmed: bool = False,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        """With `keep`, index files are written for the segments that are complete and lack one. With `confirmed`,
        what is not known to be durable is left out, and not looked at later either."""
        self.path = Path(path)
        self.kept: list[Kept] = []
        """The index files that are used or were written, by `keep`."""
        self.failure: OSError | None = None
        """Why an index file could not be written, the first time."""
        self.disk: Disk = reading_disk(self.path) if disk is None else disk
        self._keep, self._confirmed, self._block_bytes = keep, confirmed, block_bytes
        self._bad: set[str] = set()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._reader = _PartReader(self.path, self.disk, self._begun)
        self._parts: list[Part] = []
        self._growing: Indexing | None = None
        self._header = Place(1, b"", 0)
        self._segment = Segment(1, 1)
        self._over = False
        self._waiting: deque[tuple[Line, Place]] = deque()
        self.kept.clear()

    @property
    def durable(self) -> int:
        """The highest sequence that is known to be durable."""
        return self._reader.durable

    def ask(self, question: Callable[[Parts], T]) -> T:
        """The answer to a question, after what is new was taken in. Raises NotIndexed, and the journal's errors."""
        while True:
            try:
                self.refresh()
                return question(Parts(self.disk, self.path, seed(self._reader.journal_id), self._parts))
            except PartDoubted as doubt:
                self._drop(doubt)

    def _drop(self, doubt: PartDoubted) -> None:
        if doubt.segment in self._bad:
            # It was read and verified just now: so it is the segment itself that changes.
            raise NotIndexed(str(doubt)) from doubt
        _log.warning("%s: %s", self.path, doubt)
        self._bad.add(doubt.segment)
        self._begin_anew()

    def refresh(self) -> None:
        """Takes in what was appended since."""
        if not self._parts and not self._keep:
            self._refuse_many()
        if self._is_unchanged():
            return
        try:
            self._read_on()
        except UnconfirmedGone:
            self._begin_anew()
            self._read_on()

    def _is_unchanged(self) -> bool:
        """Whether it is plain that there is nothing new: the segment ends where it ended, and the next one is not
        there. That can be said only of what is durable: all else may have been replaced."""
        if not self._parts or self._reader.durable < self._parts[-1].end.next - 1:
            return False
        segment, end = self._parts[-1].segment, self._parts[-1].end
        try:
            self.disk.close(self.disk.open(self.path / Segment(segment.number + 1, end.next).name))
        except FileNotFoundError:
            with reading(self.path), opened(self.disk, self.path / segment.name) as read:
                return len(read(end.offset - 1, 2)) == 1
        return False

    def _refuse_many(self) -> None:
        try:
            names = frozenset(self.disk.names(self.path))
        except OSError as error:
            raise NotIndexed("it cannot be listed") from error
        segments = [name for name in names if parse_segment(name) is not None]
        lacking = sum(index_name(name) not in names or name in self._bad for name in segments)
        if lacking == len(segments) or lacking > MOST_UNINDEXED:
            raise NotIndexed("too many segments have no index")

    def _read_on(self) -> None:
        if self._over:
            return
        for line in self._reader.lines():
            self._waiting.append((line, self._reader.place))
            self._take(self._reader.durable if self._confirmed else None)
        # What is not durable by now was read, and is not read again.
        self._over = bool(self._waiting)

    def _take(self, durable: int | None) -> None:
        """Takes in what was read, up to what is durable if that is asked for."""
        while self._waiting and (durable is None or self._waiting[0][1].next <= durable + 1):
            line, end = self._waiting.popleft()
            if self._growing is None:
                self._growing = self._begin_part()
                self._parts.append(self._growing)
            self._growing.add(line.offset, cast("CutLine", line.entries), end)

    def _begin_part(self) -> Indexing:
        segment = self._segment
        last = self._parts[-1] if self._parts else None
        start = last.end if last is not None and last.segment == segment else self._header
        return self._indexing(segment, start, Moment() if last is None else sure(last, lambda: last.after))

    def _indexing(self, segment: Segment, start: Place, before: Moment) -> Indexing:
        crc_seed = seed(self._reader.journal_id)
        return Indexing(segment, start, before, crc_seed, block_bytes=self._block_bytes)

    def _begun(self, reader: _PartReader, segment: Segment, read: Read, header: Place) -> Place:
        """A segment begins: where its first line is that has to be read. All before it is durable."""
        self._take(None)
        if self._keep:
            self.write()
        self._segment, self._header, self._growing = segment, header, None
        found = self._usable(reader, segment, read, header)
        if found is None:
            return header
        self._parts.append(found)
        self.kept.append(Kept(segment.name, found.end.next - 1, fresh=False))
        return found.end

    def _usable(self, reader: _PartReader, segment: Segment, read: Read, header: Place) -> IndexFile | None:
        if segment.name in self._bad:
            return None
        try:
            found = open_index(self.disk, self.path, segment, reader.journal_id, header, read)
        except IndexDoubted as doubt:
            _log.warning("%s: the index of %s is not used: %s", self.path, segment.name, doubt)
            return None
        if found is None or reader.contradicts(segment, header, found.end):
            return None
        is_stale = self._keep and bool(read(found.end.offset, 1))
        return None if is_stale and (self._confirmed or reader.is_sealed(segment)) else found

    def write(self) -> None:
        """Writes the index of what was read of the newest segment, and uses it from now on."""
        if self._growing is None:
            return
        whole = self._whole(self._growing)
        if whole.end.offset >= LARGEST:
            return
        try:
            write_index(self.disk, self.path, whole, self._reader.journal_id)
        except OSError as error:
            _log.warning("%s: the index of %s cannot be written: %s", self.path, whole.segment.name, error)
            self.failure = self.failure or error
            return
        self._replace(whole)

    def _whole(self, growing: Indexing) -> Indexing:
        """The index of the segment from its header on, up to where `growing` ends."""
        if growing.start == self._header:
            return growing
        [before, *_] = [part for part in self._parts if part.segment == growing.segment]
        whole = self._indexing(growing.segment, self._header, sure(before, lambda: before.before))
        path = self.path / growing.segment.name
        with reading(path), opened(self.disk, path) as read:
            scan = Scan(path, read, seed(self._reader.journal_id), self._header)
            for offset, line in scan.run(decode_cut):
                whole.add(offset, line.e, scan.place)
                if scan.offset >= growing.end.offset:
                    break
        if whole.end != growing.end:
            raise NotIndexed("the segment changes while it is read")
        return whole

    def _replace(self, whole: Indexing) -> None:
        path = self.path / whole.segment.name
        with reading(path), opened(self.disk, path) as read:
            try:
                found = open_index(self.disk, self.path, whole.segment, self._reader.journal_id, whole.start, read)
            except IndexDoubted as doubt:
                _log.warning("%s: the index of %s is not used: %s", self.path, whole.segment.name, doubt)
                return
        if found is None:
            return
        self._parts = [*(part for part in self._parts if part.segment != whole.segment), found]
        self._growing = None
        self.kept = [*(one for one in self.kept if one.segment != whole.segment.name)]
        self.kept.append(Kept(whole.segment.name, whole.end.next - 1, fresh=True))


def entries_about(
    journal: IndexedJournal, schedule_id: str, *, through: int | None = None
) -> Iterable[tuple[int, Entry]]:
    """The entries that concern the schedule, and maybe others, in order; up to `through`."""
    try:
        return journal.ask(lambda parts: parts.concerning(schedule_id, through))
    except NotIndexed:
        return entries_of(journal.path, through=through, disk=journal.disk)


def entries_of_run(journal: IndexedJournal, run_id: int) -> Iterable[tuple[int, Entry]]:
    """The run's admission and the entries about it, and maybe others, in order."""
    try:
        return journal.ask(lambda parts: parts.of_run(run_id))
    except NotIndexed:
        return entries_of(journal.path, after=run_id - 1, disk=journal.disk)


def entries_of(
    path: Path | str, *, after: int = 0, through: int | None = None, disk: Disk | None = None
) -> Iterable[tuple[int, Entry]]:
    """The entries of a journal above `after`, up to `through`, all of them read."""
    for record in read(path, after, disk=disk):
        if through is not None and record.sequence > through:
            return
        yield record.sequence, record.entry


def index_journal(path: str | os.PathLike[str], *, disk: Disk | None = None) -> tuple[Kept, ...]:
    """Writes the index files that are missing, damaged or short, also beside a running owner, and returns them all.

    What is not known to be durable is not indexed. Raises NotIndexed while a broken rewrite is pending, the journal's
    errors, and an OSError if one cannot be written; those that could be are.
    """
    journal = IndexedJournal(path, disk=disk, keep=True, confirmed=True)
    journal.ask(Parts.check)
    journal.write()
    if journal.failure is not None:
        raise journal.failure
    return tuple(journal.kept)
