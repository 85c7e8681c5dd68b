"""Saving what is valid of a damaged journal into a new one.

Rules kept here:
- The source is only read.
- What is valid by its own checksum, and continues the line before where that one is known, is copied as it stands,
  whatever its kind, in the order of its sequences; what is lost becomes `EntryLost`. So sequences, and with them run
  ids, keep their meaning.
- No sequence that may have been given out is given out again: what HEAD, a later segment or a line that is not believed
  tells of, and is not there at the end, is lost too, and marked as such.
- The copy is a new journal with a new id: nobody can take it for the original. One that fails leaves nothing behind.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from duly.journal.codec import RawLine, encode_batch
from duly.journal.disk import Disk
from duly.journal.entries import EntryLost
from duly.journal.errors import ForeignJournal, UnreadableJournal
from duly.journal.format import MAX_HEADER, Header, crc_fits, envelopes, fits, parse_header, seed
from duly.journal.making import new_journal
from duly.journal.mark import Mark, read_mark
from duly.journal.ownership import canonical
from duly.journal.real_disk import RealDisk
from duly.journal.scanning import line_blocks, raw_line, reader_of
from duly.journal.segments import parse_segment
from duly.journal.survey import reading
from duly.journal.writer import Journal

LOST_PER_LINE = 1000

_encoder = msgspec.json.Encoder()


class Lost(NamedTuple):
    """Entries `first` to `last` are lost."""

    first: int
    last: int


class Salvage(NamedTuple):
    """What was saved, and what was not."""

    source: Path
    path: Path
    journal_id: str
    """The new journal's."""
    copied: int
    lost: tuple[Lost, ...]

    def __str__(self) -> str:
        gone = sum(lost.last - lost.first + 1 for lost in self.lost)
        return f"{self.copied:,} entries copied to {self.path}, {gone:,} lost"


def salvage(
    path: str | os.PathLike[str],
    to: str | os.PathLike[str],
    at: datetime,
    *,
    disk: Disk | None = None,
    target: Disk | None = None,
) -> Salvage:
    """Copies what is valid of the journal at `path` into a new one in the folder `to`; `at` is the clock reading."""
    disk = RealDisk() if disk is None else disk
    target = disk if target is None else target
    source = _Source(disk, canonical(path))
    copied, lost = 0, list[Lost]()
    with new_journal(target, to, at) as journal:

        def lose(through: int) -> None:
            first = journal.last_sequence + 1
            if through >= first:
                _write_lost(journal, through - first + 1, at)
                lost.append(Lost(first, through))

        for line in source.lines():
            expected = journal.last_sequence + 1
            if line.s + len(line.e) <= expected:
                continue  # a second copy of what is there already
            lose(line.s - 1)
            kept = line.e[max(0, expected - line.s) :]
            journal.enqueue_encoded(_encoder.encode(kept), len(kept), at)
            copied += len(kept)
        lose(source.given_out)
        journal.sync()
        return Salvage(source.folder, journal.path, journal.journal_id, copied, tuple(lost))


def _segments(disk: Disk, folder: Path) -> list[Path]:
    with reading(folder):
        try:
            names = disk.names(folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ForeignJournal("there is no journal here", path=folder, hint="Look at the path") from error
    found = sorted(name for name in names if parse_segment(name))
    if not found:
        raise ForeignJournal("the folder holds no segments", path=folder, hint="Look at the path")
    return [folder / name for name in found]


def _journal_id(disk: Disk, folder: Path, files: list[Path], mark: Mark | None) -> str:
    """The id under which most lines are valid, of those that headers and HEAD tell: a segment may be a stranger's."""
    with reading(folder):
        ids = {mark.journal_id} if mark is not None else set[str]()
        ids.update(header.journal_id for header in (_header(disk, path) for path in files) if header is not None)
        if not ids:
            raise UnreadableJournal(
                "neither a segment's header nor HEAD tells the journal's id, without which no line can be checked",
                path=folder,
                hint="Bring one of them back from a backup",
            )
        if len(ids) == 1:
            return ids.pop()
        return max(sorted(ids), key=lambda each: sum(len(_lines(disk, path, seed(each))) for path in files))


def _header(disk: Disk, path: Path) -> Header | None:
    file = disk.open(path)
    try:
        return parse_header(disk.read(file, 0, MAX_HEADER).partition(b"\n")[0])
    finally:
        disk.close(file)


class _Found(NamedTuple):
    """A line that is valid by its own checksum."""

    first: int
    last: int
    h: bytes
    """The chain at it, as it says itself."""
    offset: int
    size: int


class _Source:
    """The damaged journal."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self.folder = folder
        self._disk = disk
        self._files = _segments(disk, folder)
        with reading(folder):
            mark = read_mark(disk, folder)
        self._journal_id = _journal_id(disk, folder, self._files, mark)
        self._seed = seed(self._journal_id)
        self.given_out = mark.sequence if mark is not None and mark.journal_id == self._journal_id else 0
        """The highest sequence that may have been acknowledged, as far as was seen beside the valid lines."""

    def lines(self) -> Iterator[RawLine]:
        """The valid lines, segment by segment, in the order of their sequences.

        Where the line before is known, a line has to continue it: one that was edited, and got a new checksum, does
        not. (Nor does the one after a line that was edited and got a new hash as well: nobody can tell the two apart.)
        """
        for path in self._files:
            with reading(path):
                file = self._disk.open(path)
                try:
                    yield from self._lines_of(path, file)
                finally:
                    self._disk.close(file)

    def _lines_of(self, path: Path, file: int) -> Iterator[RawLine]:
        found = _lines(self._disk, path, self._seed)
        chain: dict[int, set[bytes]] = {}
        header = _header(self._disk, path)
        if header is None or header.journal_id == self._journal_id:
            # A segment begins when all before it is durable. Where the header is lost, the name still says so.
            named = parse_segment(path.name) if header is None else header
            self._tell(0 if named is None else named.first - 1)
        if header is not None and header.journal_id == self._journal_id:
            chain[header.first - 1] = {header.h}
        for line in found:
            chain.setdefault(line.last, set()).add(line.h)
        for line in sorted(found):
            data = self._disk.read(file, line.offset, line.size)
            before = chain.get(line.first - 1)
            raw = raw_line(data)
            if raw is not None and (before is None or any(fits(data, h, self._seed) for h in before)):
                yield raw
            else:
                self._tell(line.last)

    def _tell(self, sequence: int) -> None:
        self.given_out = max(self.given_out, sequence)


def _lines(disk: Disk, path: Path, crc_seed: int) -> list[_Found]:
    found: list[_Found] = []
    file = disk.open(path)
    try:
        for start, lines, rest in line_blocks(reader_of(disk, file), 0):
            offset = start
            for piece in [*lines, *([rest] if rest else [])]:
                end = 0
                for place, candidate in envelopes(piece):
                    # What stands inside of a line that was found is data of a host, whatever it looks like.
                    line = raw_line(candidate) if place >= end and crc_fits(candidate, crc_seed) else None
                    if line is not None and line.e:
                        h = bytes.fromhex(candidate[21:85].decode())
                        found.append(_Found(line.s, line.s + len(line.e) - 1, h, offset + place, len(candidate)))
                        end = place + len(candidate)
                offset += len(piece) + 1
    finally:
        disk.close(file)
    return found


def _write_lost(journal: Journal, count: int, at: datetime) -> None:
    while count > 0:
        batch = min(count, LOST_PER_LINE)
        journal.enqueue_encoded(encode_batch((EntryLost(at=at),) * batch), batch, at)
        count -= batch
