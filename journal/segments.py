"""The names in a journal's folder, and which segment follows which.

Rules kept here: a segment's name says its number and its first sequence, both of fixed width; numbers are dense, from
1 or, where the first ones were archived, from another one. A name that looks like a segment and is none stops
everything: half of a restored backup must not be taken for a whole journal. Names that file managers leave behind, and
others that cannot be mistaken, are only warned of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from duly.journal.errors import ForeignJournal, JournalCorrupt

LOCK = "LOCK"
HEAD = "HEAD"
TORN = "torn"
REWRITE = "REWRITE"
"""The side file that keeps an unproved tail while it is rewritten."""
REWRITE_NEW = "REWRITE.new"
OURS = frozenset({LOCK, HEAD, TORN, REWRITE, REWRITE_NEW})

_SEGMENT = re.compile(r"(\d{8})-(\d{16})\.jsonl")
_RESERVED = re.compile(r"checkpoint.*|archive.*|\d{8}-\d{16}\.index.*")
"""Names that a later version of the format uses beside the segments."""


class Segment(NamedTuple):
    """One segment, by its name."""

    number: int
    first: int

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.number:08d}-{self.first:016d}.jsonl"


class Listing(NamedTuple):
    """What stands in a journal's folder."""

    segments: tuple[Segment, ...]
    ours: frozenset[str]
    strangers: tuple[str, ...]


def parse_segment(name: str) -> Segment | None:
    """The segment of this name; None if it is none."""
    match = _SEGMENT.fullmatch(name)
    return Segment(int(match[1]), int(match[2])) if match and name.isascii() else None


def listing(folder: Path, names: Iterable[str]) -> Listing:
    """Sorts the names. ForeignJournal if one could be mistaken for a segment, JournalCorrupt if one is missing."""
    segments: list[Segment] = []
    ours: set[str] = set()
    strangers: list[str] = []
    for name in sorted(names):
        segment = parse_segment(name)
        if segment is not None:
            segments.append(segment)
        elif name in OURS:
            ours.add(name)
        elif ".jsonl" in name.lower():
            raise ForeignJournal(
                f"the journal's folder holds {name!r}, which looks like a segment and is none",
                path=folder / name,
                hint="If it is a copy, move it out of the folder; if it is a renamed segment, name it back",
            )
        elif not _RESERVED.fullmatch(name):
            strangers.append(name)
    segments.sort()
    _check_dense(folder, segments)
    return Listing(tuple(segments), frozenset(ours), tuple(strangers))


def settled_listing(folder: Path, names: Iterable[str], again: Callable[[Path], Iterable[str]]) -> Listing:
    """Sorts the names of a folder that somebody may be writing to; `again` lists it once more.

    A listing is no snapshot: it may show a segment that was made while it went on, and lack one that was made just
    before. What lacks again, though it is older than the listing, is missing.
    """
    older = 0
    begin = 1
    while True:
        seen = list(names)
        try:
            found = listing(folder, seen)
            if not found.segments or found.segments[0].number == begin:
                return found
            # It seems to begin later: it may be that what was there before is not shown.
            begin = found.segments[0].number
            names = again(folder)
        except JournalCorrupt:
            numbers = sorted(segment.number for segment in map(parse_segment, seen) if segment is not None)
            gap = next((expected for expected, number in enumerate(numbers, numbers[0]) if number > expected), 0)
            # A number that stands twice is no matter of the moment; neither is a gap that was there before.
            if gap <= older:
                raise
            older = numbers[-1]
            names = again(folder)


def _check_dense(folder: Path, segments: list[Segment]) -> None:
    for expected, segment in enumerate(segments, segments[0].number if segments else 1):
        if segment.number != expected:
            raise JournalCorrupt(
                f"segment {expected} is missing: the next one is {segment.name}"
                if segment.number > expected
                else f"segment {segment.number} is there twice",
                path=folder / segment.name,
                hint="Bring the missing file back, or copy what is valid with duly salvage",
            )
