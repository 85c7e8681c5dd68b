"""Reading again what was verified when the journal was opened, for its owner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from duly.journal.codec import decode_line
from duly.journal.disk import Disk
from duly.journal.entries import Entry
from duly.journal.judgement import Stop
from duly.journal.scanning import UNDECODABLE, Place, line_blocks, unreadable_line
from duly.journal.segments import Segment
from duly.journal.survey import damaged, reading


def recovered_entries(
    disk: Disk, folder: Path, segments: tuple[Segment, ...], end: Place, after: int
) -> Iterator[tuple[int, Entry]]:
    """(sequence, entry) above `after` of a journal that was verified when it was opened, up to where it ended then."""
    begin = 0
    for index, segment in enumerate(segments):
        if segment.first <= after + 1:
            begin = index
    for index in range(begin, len(segments)):
        limit = end.offset if index == len(segments) - 1 else None
        yield from _entries(disk, folder / segments[index].name, segments[index].first, limit, after)


def _entries(disk: Disk, path: Path, first: int, limit: int | None, after: int) -> Iterator[tuple[int, Entry]]:
    expected = first
    with reading(path):
        file = disk.open(path)
        try:

            def bounded(offset: int, size: int) -> bytes:
                return disk.read(file, offset, size if limit is None else max(0, min(size, limit - offset)))

            header = True
            for start, lines, _ in line_blocks(bounded, 0):
                offset = start
                for line in lines:
                    if header:
                        header = False
                    else:
                        decoded = _decoded(path, line, offset, expected)
                        for entry in decoded:
                            if expected > after:
                                yield expected, entry
                            expected += 1
                    offset += len(line) + 1
        finally:
            disk.close(file)


def _decoded(path: Path, line: bytes, offset: int, expected: int) -> tuple[Entry, ...]:
    try:
        decoded = decode_line(line)
    except UNDECODABLE as error:
        raise unreadable_line(path, offset, expected, error) from error
    if decoded.s != expected:
        raise damaged(path, Stop(expected, offset, 0, ""), "the segment changed since it was verified")
    return decoded.e
