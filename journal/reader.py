"""Reading a journal that may be alive: section 4.3.7 of the specification.

Rules kept here:
- A reader takes no lock and writes nothing. HEAD is read first, then the names, then the lines: so everything that HEAD
  vouches for must be there.
- Every line is verified before it is handed on. What is damaged is raised as JournalCorrupt, after it was read
  three times: beside a writer one look may catch a line half written, and an undamaged line never stays bad.
- Lines beyond what is known to be durable are handed on as unconfirmed; a bad tail beyond it is unfinished, and ends
  the reading without an error. A reader that goes on first looks whether they are still there: UnconfirmedGone if not.
- Beside the side file of a broken rewrite the segment is read as it will be once the next owner put that back.
- A segment is over when the next one exists and it was read to its end since.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from duly.journal.archived import archived_before, founded, reading_disk
from duly.journal.checkpoint import CheckpointDoubted, Position, line_before, place_after
from duly.journal.codec import decode_line
from duly.journal.disk import Disk
from duly.journal.entries import Entry
from duly.journal.errors import ForeignJournal, JournalCorrupt, UnconfirmedGone, UnreadableJournal
from duly.journal.format import FIRST_HASH, seed
from duly.journal.judgement import SALVAGE, Stop, damage_at
from duly.journal.mark import Mark, read_mark, vouches_for_another
from duly.journal.rewriting import Saved, overlaid, read_saved
from duly.journal.scanning import Place, Read, Scan, later_proof, reader_of
from duly.journal.segments import HEAD, LOCK, REWRITE, Segment, settled_listing
from duly.journal.survey import (
    DAMAGED_HEADER,
    Before,
    check_continues,
    damaged,
    may_be_torn,
    readable_header,
    reading,
    rewritten_record,
)
from duly.journal.unconfirmed import Unconfirmed

LOOKS = 3
"""How often bytes are read before they are called damaged."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One entry of a journal, and where it stands. (A struct, because it is made for each entry of a replay.)"""

    sequence: int
    entry: Entry
    confirmed: bool
    """Whether it is known to be durable; an unconfirmed one may still be lost by a power cut."""
    segment: str
    offset: int


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line of a journal: an atomic batch. (A struct, because it is made for each line of a replay.)"""

    first: int
    entries: tuple[Entry, ...]
    confirmed: bool
    segment: str
    offset: int


class Unfinished(NamedTuple):
    """A tail that is no whole line yet, or never will be."""

    path: Path
    offset: int
    size: int
    fault: str


class Reader:
    """Reads a journal from its beginning, and goes on where it stopped each time `lines` or `records` is called.

    After an iteration came to its end, `unfinished` tells what stands after the last whole line.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        disk: Disk | None = None,
        partial: bool = False,
        start: Position | None = None,
    ) -> None:
        """Where entries are archived, and the archive is not at hand, reading raises JournalArchived; with `partial` it
        begins with the state that the journal goes on from. With `start` it begins there, after a line that is known;
        CheckpointDoubted if another one stands there."""
        self.path = Path(path)
        self.journal_id = ""
        self.unfinished: Unfinished | None = None
        self.segments = 0
        self.mark: Mark | None = None
        """What HEAD said when the iteration began."""
        self._disk: Disk = reading_disk(self.path) if disk is None else disk
        self._partial = partial
        self._from = start
        self._number = 0 if start is None else start.segment
        self._before = Before("", Place(1, FIRST_HASH, 0), 0)
        self._durable = 0
        self._bytes = 0
        self._scan: Scan | None = None
        """The scan of the segment that is being read; None before its header was read."""
        self._begin = 0
        """Where that segment's first batch line begins."""
        self._hopeless = False
        self._listed: tuple[Segment, ...] = ()
        self._saved: Saved | None = None
        """What the side file of a broken rewrite keeps of the last segment."""
        self._unconfirmed = Unconfirmed()
        self._is_second_opinion = False

    decode: Callable[[bytes], Any] = staticmethod(decode_line)
    """How a line is decoded. An index cuts lines up instead."""

    @property
    def position(self) -> Position:
        """Where what was read ends."""
        return Position(self._number, self.place)

    @property
    def first(self) -> int:
        """The first sequence of what there is to read."""
        return self._listed[0].first if self._listed else 1

    @property
    def place(self) -> Place:
        """Where what was read ends: the next sequence, the last line's hash, the offset in the segment."""
        return self._before.place._replace(offset=0) if self._scan is None else self._scan.place

    @property
    def chain(self) -> bytes:
        """The hash of the last batch that was read: what an anchor holds."""
        fresh = self._scan is None or self._scan.offset == self._begin
        return self._before.place.h if fresh or self._scan is None else self._scan.h

    @property
    def durable(self) -> int:
        """The highest sequence known to be durable."""
        return self._durable if self._scan is None else max(self._durable, self._scan.durable)

    @property
    def bytes(self) -> int:
        """How many bytes were read and found valid."""
        return self._bytes + (0 if self._scan is None else self._scan.offset)

    def records(self, after: int = 0) -> Iterator[Record]:
        """The entries above `after` that were not read yet."""
        for line in self.lines(after):
            for sequence, entry in enumerate(line.entries, line.first):
                if sequence > after:
                    yield Record(sequence, entry, line.confirmed, line.segment, line.offset)

    def lines(self, after: int = 0) -> Iterator[Line]:
        """The lines that hold an entry above `after` and were not read yet."""
        self.unfinished = None
        self._unconfirmed.confirm(self.durable)
        with reading(self.path):
            self._look(after)
            if self._unconfirmed and not self._still_stand():
                raise self._gone()
        looks = 0
        while self._listed and self._number <= self._listed[-1].number:
            before = (self._number, self.place)
            try:
                over = yield from self._segment(after)
            except UnreadableJournal as error:
                if isinstance(error.__cause__, FileNotFoundError):
                    self._is_sealed()  # it may have been archived just now, and that is told as such
                raise
            except JournalCorrupt:
                looks = looks + 1 if before == (self._number, self.place) else 1
                if looks >= LOOKS or self._hopeless:
                    self._unconfirmed.confirm(self.durable)
                    if self._unconfirmed and not self._is_second_opinion:
                        raise self._gone() from None
                    raise
            else:
                looks = 0
                if not over:
                    return

    def _look(self, after: int) -> None:
        mark, names = self._mark_and_names()
        for _ in range(LOOKS):
            if mark is not None or HEAD not in names:
                break
            # It is torn: just being written, or lost. The names are listed after it again: it may vouch for a new one.
            mark, names = self._mark_and_names()
        found = settled_listing(self.path, names, self._disk.names)
        self._take(found.segments, after)
        self._saved = None
        if REWRITE in found.ours and self._listed:
            self._saved = read_saved(self._disk, self.path, self._listed[-1].number)
        if mark is not None and self._is_foreign(mark):
            mark = None
        if not self._listed and LOCK not in names:
            raise ForeignJournal("the folder is no journal", path=self.path, hint="Look at the path")
        if mark is not None and mark.segment > (self._listed[-1].number if self._listed else 0):
            raise JournalCorrupt(
                f"segment {mark.segment} is missing: HEAD says that the journal goes on in it",
                path=self.path,
                sequence=mark.sequence,
                hint=SALVAGE,
            )
        self.mark = mark

    def _take(self, segments: tuple[Segment, ...], after: int) -> None:
        """Takes in which segments there are."""
        first = self._listed[0].number if self._listed else self._number
        known = tuple(segment for segment in segments if segment.number >= first)
        self._listed = known if known[:1] and known[0].number == first else founded(self._disk, self.path, segments)
        if not self._listed:
            return
        begin = self._listed[0]
        number = self._number or begin.number
        if begin.number > number or (not self._number and begin.first > max(after, 0) + 1 and not self._partial):
            raise archived_before(self.path, begin.first)
        self._number = number

    def _is_foreign(self, mark: Mark) -> bool:
        """A HEAD of another journal vouches for nothing, and is no reason to miss anything."""
        journal_id = self.journal_id
        if not journal_id and self._listed:
            path = self.path / self._listed[0].name
            file = self._disk.open(path)
            try:
                header = readable_header(path, self._overlaid(self._listed[0], file)[0])
            finally:
                self._disk.close(file)
            journal_id = "" if header is None else header.journal_id
        return bool(journal_id) and journal_id != mark.journal_id

    def _still_stand(self) -> bool:
        segment = self._unconfirmed.segment
        path = self.path / segment.name
        file = self._disk.open(path)
        try:
            read, _ = self._overlaid(segment, file)
            return self._unconfirmed.still_stand(path, read, seed(self.journal_id))
        finally:
            self._disk.close(file)

    def _gone(self) -> UnconfirmedGone:
        """What this reader stands in is not there. That is damage only if somebody who begins anew meets it too."""
        second = Reader(self.path, disk=self._disk, partial=True)
        second._is_second_opinion = True
        for _ in second.lines():
            pass
        return self._unconfirmed.gone(self.path)

    def _overlaid(self, segment: Segment, file: int) -> tuple[Read, int]:
        """How the segment is read, and its size."""
        read, size = reader_of(self._disk, file), self._disk.size(file)
        saved = self._saved
        if saved is None or saved.segment != segment.number or saved.offset > size:
            return read, size
        return overlaid(read, saved), max(size, saved.end)

    def _mark_and_names(self) -> tuple[Mark | None, list[str]]:
        try:
            return read_mark(self._disk, self.path), self._disk.names(self.path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ForeignJournal("there is no journal here", path=self.path, hint="Look at the path") from error

    def _segment(self, after: int) -> Generator[Line, None, bool]:
        """Reads the present segment as far as it goes; True if it is over, and the next one is the present one now."""
        segment = self._listed[self._number - self._listed[0].number]
        path = self.path / segment.name
        with reading(path):
            file = self._disk.open(path)
            try:
                read, size = self._overlaid(segment, file)
                sealed = self._number < self._listed[-1].number
                if self._scan is None:
                    if not self._start(segment, path, read, sealed, size):
                        return False
                    self._leap(segment, path, read)
                while True:
                    scan = self._again(path, read)
                    yield from self._scanned(scan, segment, after)
                    if sealed or not self._is_sealed():
                        break
                    # The next segment appeared meanwhile: whatever this one lacked is there now.
                    sealed = True
                self._judge(path, scan, read, sealed, self._overlaid(segment, file)[1])
            finally:
                self._disk.close(file)
        if sealed:
            self._turn(scan)
        return sealed

    def _is_sealed(self) -> bool:
        self._take(settled_listing(self.path, self._disk.names(self.path), self._disk.names).segments, 0)
        return self._number < self._listed[-1].number

    def _again(self, path: Path, read: Read) -> Scan:
        """A scan that goes on where the last one ended."""
        scan = Scan(path, read, seed(self.journal_id), self.place)
        scan.durable = self.durable
        self._scan = scan
        return scan

    def _turn(self, scan: Scan) -> None:
        self._bytes += scan.offset
        self._durable = self.durable
        self._before = Before(self.journal_id, Place(scan.next, self.chain, 0), scan.offset)
        self._scan = None
        self._number += 1

    def _start(self, segment: Segment, path: Path, read: Read, sealed: bool, size: int) -> bool:
        """Reads the header. False if it is not finished yet."""
        header = readable_header(path, read)
        before = self._before
        if not self.segments and header is not None:
            before = Before(header.journal_id, Place(1, FIRST_HASH, 0), 0)
            if segment.number > 1:
                before = Before(header.journal_id, Place(header.first, header.previous, 0), header.previous_bytes)
        try:
            if header is None:
                raise damaged(path, Stop(segment.first, 0, size, DAMAGED_HEADER), DAMAGED_HEADER)
            check_continues(header, path, segment, before)
        except (JournalCorrupt, ForeignJournal):
            if sealed or not may_be_torn(segment, size, self.mark):
                raise
            self.unfinished = Unfinished(path, 0, size, "the segment is being created, or its creation was torn")
            return False
        self._before, self.journal_id = before, before.journal_id
        begin = Place(header.first, header.h, header.size)
        mark = self._own_mark()
        if mark is not None and vouches_for_another(mark, segment.number, 0, begin):
            raise rewritten_record(path, 0, mark)
        self._durable = max(self._durable, header.first - 1)
        self._begin = header.size
        self.segments += 1
        if self._from is not None and segment.number == self._from.segment:
            begin = self._from.place
            if place_after(line_before(read, begin.offset), seed(self.journal_id), begin.offset) != begin:
                raise CheckpointDoubted("the journal has another line where it was made")
            self._durable = max(self._durable, begin.next - 1)
        self._scan = Scan(path, read, 0, begin)
        return True

    def _leap(self, segment: Segment, path: Path, read: Read) -> None:
        """For a reader that knows what the segment begins with: it may put the scan behind that."""

    def _own_mark(self) -> Mark | None:
        return self.mark if self.mark is not None and self.mark.journal_id == self.journal_id else None

    def _scanned(self, scan: Scan, segment: Segment, after: int) -> Iterator[Line]:
        mark = self._own_mark()
        if mark is not None:
            scan.durable = max(scan.durable, mark.sequence)
            if mark.segment != segment.number:
                mark = None
        name = segment.name
        unconfirmed = self._unconfirmed
        h = scan.h
        for offset, line in scan.run(self.decode):
            if (
                mark is not None
                and offset < mark.offset <= scan.offset
                and vouches_for_another(mark, segment.number, offset, scan.place)
            ):
                self._hopeless = True
                raise rewritten_record(scan.path, offset, mark)
            last = scan.next - 1
            if last > scan.durable:
                unconfirmed.confirm(scan.durable)
                unconfirmed.add(segment, Place(line.s, h, offset), scan.place)
            h = scan.h
            if last > after:
                yield Line(line.s, line.e, last <= scan.durable, name, offset)

    def _judge(self, path: Path, scan: Scan, read: Read, sealed: bool, size: int) -> None:
        stop = Stop(scan.next, scan.offset, size, scan.fault)
        proof = None
        if scan.fault and not sealed:
            proof = later_proof(read, scan.offset, seed(self.journal_id), scan.next)
        damage = damage_at(stop, last=not sealed, durable=self.durable, proof=proof)
        if damage:
            raise damaged(path, stop, damage)
        if scan.fault:
            self.unfinished = Unfinished(path, scan.offset, size - scan.offset, scan.fault)


def read(path: str | os.PathLike[str], after: int = 0, *, disk: Disk | None = None) -> Iterator[Record]:
    """The entries above `after`, each verified before it is handed on."""
    return Reader(path, disk=disk).records(after)
