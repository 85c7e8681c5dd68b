"""Who owns a journal, told to people that have to wait for it.

Rules kept here: what is told is read from the journal, is no authority, and nothing fails because it cannot be told;
the search goes backwards from the end, and is bounded.
"""

from __future__ import annotations

from pathlib import Path

from duly.journal.codec import decode_line
from duly.journal.disk import Disk
from duly.journal.entries import JournalOpened
from duly.journal.errors import JournalError
from duly.journal.format import MAX_LINE
from duly.journal.scanning import BLOCK, UNDECODABLE, Read, line_blocks, reader_of
from duly.journal.segments import listing

SEGMENTS = 2
"""How many segments are searched, from the last one back."""
CANDIDATES = 16
"""How many lines of a segment are decoded: hosts may write the same words into their own data."""

_NEEDLE = b'"kind":"JournalOpened"'


def describe_owner(disk: Disk, folder: Path) -> str:
    """Who opened the journal last, as an addition to a sentence; empty if that cannot be told."""
    try:
        for segment in reversed(listing(folder, disk.names(folder)).segments[-SEGMENTS:]):
            opened = _last_opened(disk, folder / segment.name)
            if opened is not None:
                return f" (host {opened.host}, pid {opened.pid}, since {opened.at.isoformat(timespec='seconds')})"
    except (OSError, JournalError):
        pass
    return ""


def _last_opened(disk: Disk, path: Path) -> JournalOpened | None:
    file = disk.open(path)
    try:
        read = reader_of(disk, file)
        end = disk.size(file)
        for _ in range(CANDIDATES):
            place = _last_needle(read, end)
            if place is None:
                return None
            end, line = _line_around(read, place)
            opened = _opened_in(line)
            if opened is not None:
                return opened
    finally:
        disk.close(file)
    return None


def _last_needle(read: Read, end: int) -> int | None:
    """Where the needle stands last before `end`."""
    while end > 0:
        start = max(0, end - BLOCK)
        found = read(start, end - start).rfind(_NEEDLE)
        if found >= 0:
            return start + found
        # It may lie across the border of two blocks.
        end = start + len(_NEEDLE) - 1 if start else 0
    return None


def _line_around(read: Read, place: int) -> tuple[int, bytes]:
    """Where the line that holds this place begins, and the line."""
    before = b""
    for size in (BLOCK, MAX_LINE):
        begin = max(0, place - size)
        before = read(begin, place - begin)
        if b"\n" in before or not begin:
            break
    before = before[before.rfind(b"\n") + 1 :]
    _, lines, rest = next(line_blocks(read, place))
    return place - len(before), before + (lines[0] if lines else rest or b"")


def _opened_in(line: bytes) -> JournalOpened | None:
    try:
        entries = decode_line(line).e
    except UNDECODABLE:
        return None
    return next((entry for entry in reversed(entries) if isinstance(entry, JournalOpened)), None)
