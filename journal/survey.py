"""Looking at a whole journal without changing it: what is valid, what is proven durable, and what its end means.

Rules kept here: nothing is written; an I/O error is never damage; the first damage is raised as JournalCorrupt with its
file, offset and sequence; HEAD is a lower bound and nothing more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from duly.journal.checkpoint import Folding, Position, line_before, place_after
from duly.journal.codec import decode_line, decode_outline
from duly.journal.disk import Disk
from duly.journal.errors import ForeignJournal, JournalCorrupt, UnreadableJournal
from duly.journal.format import FIRST_HASH, MAX_HEADER, VERSION, Header, header_version, parse_header, seed
from duly.journal.judgement import SALVAGE, Stop, damage_at
from duly.journal.mark import Mark, vouches_for_another
from duly.journal.scanning import Place, Read, Scan, later_proof, reader_of
from duly.journal.segments import Segment

DAMAGED_HEADER = "the segment's header is damaged"


class Survey(NamedTuple):
    """What a journal holds. All offsets are in its last segment."""

    journal_id: str
    """Empty if the one segment there is was torn while it was created."""
    segments: tuple[Segment, ...]
    place: Place
    """Where what is valid ends."""
    durable: int
    """The highest sequence that is proven durable."""
    proven: int
    """Up to this offset the last segment is proven durable."""
    size: int
    fault: str
    """Why what follows `place` is a torn tail; empty if nothing does."""
    torn_header: bool
    """The last segment was torn while it was created."""
    previous_bytes: int
    """The size of the segment before the last."""


@contextmanager
def reading(path: Path) -> Generator[None]:
    """An OSError while reading is an I/O error, never damage."""
    try:
        yield
    except OSError as error:
        raise UnreadableJournal(
            f"it cannot be read: {error}",
            path=path,
            hint="This is an I/O error, not known damage; nothing was changed. Look at the disk and the permissions",
        ) from error


def readable_header(path: Path, read: Read) -> Header | None:
    """The segment's header; None if it is bad. UnreadableJournal if a newer version wrote it."""
    data = read(0, MAX_HEADER)
    line, newline, _ = data.partition(b"\n")
    version = header_version(line)
    if version is not None and version != VERSION:
        raise UnreadableJournal(
            f"its format version is {version}, and this version of duly reads {VERSION}",
            path=path,
            hint="Read it with the version of duly that wrote it, or a newer one",
        )
    return parse_header(line) if newline else None


def damaged(path: Path, stop: Stop, damage: str) -> JournalCorrupt:
    """The error for damage that was found where a scan stopped."""
    return JournalCorrupt(damage, path=path, offset=stop.offset, sequence=stop.sequence, hint=SALVAGE)


def rewritten_record(path: Path, offset: int, mark: Mark) -> JournalCorrupt:
    """The error for a chain that is whole, and yet not the one that HEAD has seen."""
    return JournalCorrupt(
        "the record is not the one that was acknowledged: HEAD has another hash for it",
        path=path,
        offset=offset,
        sequence=mark.sequence,
        hint=SALVAGE,
    )


class Before(NamedTuple):
    """What a header must continue: the journal, where the segment before ended, and that one's size."""

    journal_id: str
    place: Place
    size: int


def check_continues(header: Header, path: Path, segment: Segment, before: Before) -> None:
    """Raises unless the header is the one of this segment and continues what was before."""
    journal_id, place, previous_bytes = before
    if header.journal_id != journal_id:
        raise ForeignJournal(
            f"the segment belongs to journal {header.journal_id}, the one before it to {journal_id}",
            path=path,
            hint="Files of two journals are mixed: bring back those that belong together",
        )
    wanted = (segment.number, segment.first, place.next, place.h, previous_bytes)
    if (header.number, header.first, header.first, header.previous, header.previous_bytes) != wanted:
        raise damaged(
            path,
            Stop(place.next, 0, 0, ""),
            f"the segment does not continue the one before: it begins at sequence {header.first} after "
            f"{header.previous_bytes:,} bytes, and {place.next} after {previous_bytes:,} must follow",
        )


def may_be_torn(segment: Segment, size: int, mark: Mark | None) -> bool:
    """Whether the last segment may have been torn while it was created: its header is synced before anything follows
    it, and before HEAD names the segment."""
    named = mark is not None and (mark.segment >= segment.number or mark.sequence >= segment.first)
    return size <= MAX_HEADER and not named


class Surveyor:
    """Goes through the segments of one journal, oldest first."""

    def __init__(  # noqa: PLR0913, PLR0917 - what it goes by
        self,
        disk: Disk,
        folder: Path,
        segments: tuple[Segment, ...],
        mark: Mark | None,
        durable: int = 0,
        start: Position | None = None,
        folding: Folding | None = None,
    ) -> None:
        """Whatever is before `start` is taken to be what the checkpoint was made from; of the segments before only the
        ends are looked at. `folding` gets every line from there on, if the journal is not damaged."""
        self._start = start
        self._folding = folding
        self._disk = disk
        self._folder = folder
        self._segments = segments
        self._mark = mark
        self._journal_id = ""
        self._seed = 0
        self._previous_bytes = 0
        self._place = Place(1, FIRST_HASH, 0)
        last = segments[-1]
        self._durable = max(last.first - 1, mark.sequence if mark else 0, durable)

    def survey(self, last_read: Read, last_size: int) -> Survey:
        """The whole journal. The last segment is read through `last_read`, the others from the disk."""
        self._refuse_a_missing_last_segment()
        for segment in self._segments[:-1]:
            path = self._folder / segment.name
            with reading(path):
                file = self._disk.open(path)
                try:
                    self._sealed(segment, path, reader_of(self._disk, file), self._disk.size(file))
                finally:
                    self._disk.close(file)
        last = self._segments[-1]
        with reading(self._folder / last.name):
            return self._open_ended(last, self._folder / last.name, last_read, last_size)

    def _refuse_a_missing_last_segment(self) -> None:
        last = self._segments[-1]
        if self._mark is not None and self._mark.segment > last.number:
            raise JournalCorrupt(
                f"segment {self._mark.segment} is missing: HEAD says that the journal goes on in it",
                path=self._folder,
                sequence=self._mark.sequence,
                hint=SALVAGE,
            )

    def _sealed(self, segment: Segment, path: Path, read: Read, size: int) -> None:
        header = self._header(segment, path, read)
        if header is None:
            raise damaged(path, Stop(segment.first, 0, size, DAMAGED_HEADER), DAMAGED_HEADER)
        if self._start is not None and segment.number < self._start.segment:
            self._pass_over(segment, path, read, size)
            return
        scan = self._scan(path, read, header)
        for offset in self._lines(scan):
            self._compare_with_mark(path, segment, offset, scan.place)
        stop = Stop(scan.next, scan.offset, size, scan.fault)
        damage = damage_at(stop, last=False, durable=self._durable, proof=None)
        if damage:
            raise damaged(path, stop, damage)
        self._place = scan.place
        self._previous_bytes = size

    def _pass_over(self, segment: Segment, path: Path, read: Read, size: int) -> None:
        """A sealed segment before the checkpoint: its end says where the next one has to begin."""
        place = place_after(line_before(read, size), self._seed, size)
        if place is None:
            damage = "the segment does not end with a whole line, and a later segment exists"
            raise damaged(path, Stop(segment.first, size, size, damage), damage)
        self._place = place
        self._previous_bytes = size

    def _begins_in(self, segment: Segment) -> bool:
        return self._start is not None and segment.number == self._start.segment

    def _lines(self, scan: Scan) -> Iterator[int]:
        """The offset of each valid line; it is folded in."""
        if self._folding is None:
            for offset, _ in scan.run(decode_outline):
                yield offset
            return
        fold = self._folding.fold
        for offset, line in scan.run(decode_line):
            yield offset
            fold(line.s, line.e)

    def _open_ended(self, segment: Segment, path: Path, read: Read, size: int) -> Survey:
        header = None
        if self._may_be_torn(segment, size):
            # It may hold an older block of the disk: even a whole header, of another segment or another journal.
            with suppress(JournalCorrupt, ForeignJournal):
                header = self._header(segment, path, read)
        else:
            header = self._header(segment, path, read)
        if header is None:
            return self._torn_creation(segment, path, size)
        scan = self._scan(path, read, header)
        named = self._mark is not None and self._mark.segment == segment.number and self._mark.offset >= header.size
        # The header was synced before HEAD named the segment, and before the first line was written after it.
        proven = header.size if named else 0
        unproven: deque[tuple[int, int]] = deque()
        proven = max(proven, self._start.place.offset if self._begins_in(segment) and self._start else 0)
        for offset in self._lines(scan):
            self._compare_with_mark(path, segment, offset, scan.place)
            proven = proven or header.size
            unproven.append((scan.next - 1, scan.offset))
            self._durable = max(self._durable, scan.durable)
            while unproven and unproven[0][0] <= self._durable:
                proven = unproven.popleft()[1]
        stop = Stop(scan.next, scan.offset, size, scan.fault)
        proof = later_proof(read, scan.offset, self._seed, scan.next) if scan.fault else None
        damage = damage_at(stop, last=True, durable=self._durable, proof=proof)
        if damage:
            raise damaged(path, stop, damage)
        return Survey(
            journal_id=self._journal_id,
            segments=self._segments,
            place=scan.place,
            durable=self._durable,
            proven=proven,
            size=size,
            fault=scan.fault,
            torn_header=False,
            previous_bytes=self._previous_bytes,
        )

    def _may_be_torn(self, segment: Segment, size: int) -> bool:
        return may_be_torn(segment, size, self._mark)

    def _torn_creation(self, segment: Segment, path: Path, size: int) -> Survey:
        if not self._may_be_torn(segment, size):
            raise damaged(path, Stop(segment.first, 0, size, DAMAGED_HEADER), DAMAGED_HEADER)
        stop = Stop(self._place.next, 0, size, "")
        damage = damage_at(stop, last=True, durable=self._durable, proof=None)
        if damage:
            raise damaged(path, stop, damage)
        return Survey(
            journal_id=self._journal_id,
            segments=self._segments,
            place=Place(self._place.next, self._place.h, 0),
            durable=self._durable,
            proven=0,
            size=size,
            fault="the segment was torn while it was created",
            torn_header=True,
            previous_bytes=self._previous_bytes,
        )

    def _header(self, segment: Segment, path: Path, read: Read) -> Header | None:
        header = readable_header(path, read)
        if header is None:
            return None
        if segment == self._segments[0]:
            self._journal_id, self._seed = header.journal_id, seed(header.journal_id)
            if segment.number > 1:
                self._place = Place(header.first, header.previous, 0)
                self._previous_bytes = header.previous_bytes
        check_continues(header, path, segment, Before(self._journal_id, self._place, self._previous_bytes))
        self._compare_with_mark(path, segment, 0, Place(header.first, header.h, header.size))
        return header

    def _scan(self, path: Path, read: Read, header: Header) -> Scan:
        place = Place(header.first, header.h, header.size)
        number = header.number
        if self._start is not None and number == self._start.segment:
            place = self._start.place
            if self._mark is not None and vouches_for_another(self._mark, number, place.offset - 1, place):
                raise rewritten_record(path, place.offset, self._mark)
        return Scan(path, read, self._seed, place)

    def _compare_with_mark(self, path: Path, segment: Segment, before: int, after: Place) -> None:
        if self._mark is not None and vouches_for_another(self._mark, segment.number, before, after):
            raise rewritten_record(path, before, self._mark)
