"""The answer to "is this record intact?", and the value to anchor elsewhere.

Rules kept here: nothing is locked, nothing is written; the answer is a value that names everything found; damage is in
it, while what keeps the journal from being read at all (no journal, an I/O error, a newer version) is raised.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from duly.journal.disk import Disk
from duly.journal.errors import JournalCorrupt
from duly.journal.format import FIRST_HASH
from duly.journal.judgement import SALVAGE
from duly.journal.reader import Reader, Unfinished

SECOND_LOOK = 1.0
"""After so many seconds an unfinished tail that has not changed is no longer a line that is being written."""


class Head(NamedTuple):
    """A point of the chain, to anchor elsewhere: whoever has it can tell whether everything up to `sequence` is still
    the record it was. `str` is "<sequence>:<h>", as `verify` takes it."""

    journal_id: str
    sequence: int
    h: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.h}"


class Damage(NamedTuple):
    """The first thing that is not as it was written."""

    path: Path | None
    offset: int | None
    sequence: int | None
    reason: str
    remedy: str


class Verification(NamedTuple):
    """What a journal holds and whether it is intact."""

    path: Path
    journal_id: str
    segments: int
    lines: int
    entries: int
    bytes: int
    sequence: int
    """The last sequence that was read."""
    h: str
    """The chain there."""
    unconfirmed: int
    """How many of the last entries are not known to be durable."""
    unfinished: Unfinished | None
    """A tail that is no whole line, and did not change for a second: the next owner cuts it off, and keeps a copy."""
    damage: Damage | None
    expected: str
    """What became of the anchor that was given; empty if none was given or it fits."""
    first: int = 1
    """The first sequence that was read: those before are archived, and the archive is not at hand."""

    @property
    def intact(self) -> bool:
        """Whether the chain is whole, up to a clean end, and fits the anchor."""
        return self.damage is None and self.unfinished is None and not self.expected

    def __str__(self) -> str:
        if self.damage is not None:
            return f"journal damaged after {_entries(self.entries)}: {self.damage.reason}. {self.damage.remedy}"
        if self.expected:
            return f"journal read, {_entries(self.entries)}, but {self.expected}"
        verdict = "verified" if self.unfinished is None else "unfinished"
        text = f"journal {verdict}, {_entries(self.entries)}, chain intact"
        if self.first > 1:
            text += f" from entry {self.first:,} on (those before are archived)"
        if self.unconfirmed:
            text += f", the last {self.unconfirmed:,} unconfirmed"
        if self.unfinished is not None:
            text += f", then an unfinished tail of {self.unfinished.size:,} bytes, which its next owner cuts off"
        return text


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"


Anchor: TypeAlias = str | tuple[int, str] | Head


def verify(
    path: str | os.PathLike[str],
    expect: Anchor | None = None,
    *,
    disk: Disk | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Verification:
    """Reads the whole journal and says whether it is intact; `expect` is an anchor, as `head` gives it."""
    anchor = None if expect is None else parse_anchor(expect)
    reader = Reader(path, disk=disk, partial=True)
    tally = _Tally(anchor)
    damage = tally.read(reader)
    unfinished = reader.unfinished
    if damage is None and unfinished is not None:
        sleep(SECOND_LOOK)
        damage = tally.read(reader)
        if reader.unfinished != unfinished:
            unfinished = None
    return Verification(
        path=reader.path,
        journal_id=reader.journal_id,
        segments=reader.segments,
        lines=tally.lines,
        entries=tally.entries,
        bytes=reader.bytes,
        sequence=reader.place.next - 1,
        h=reader.chain.hex(),
        unconfirmed=max(0, reader.place.next - 1 - reader.durable),
        unfinished=unfinished,
        damage=damage,
        expected="" if anchor is None or damage is not None else tally.misfit(anchor, reader),
        first=reader.first,
    )


def head(path: str | os.PathLike[str], *, disk: Disk | None = None) -> Head:
    """The last point of the chain that is known to be durable. The chain up to it is verified first."""
    reader = Reader(path, disk=disk, partial=True)
    proven = 0, reader.chain
    waiting: deque[tuple[int, bytes]] = deque()
    for line in reader.lines():
        waiting.append((line.first + len(line.entries) - 1, reader.chain))
        # A later line may be what proves an earlier one.
        while waiting and waiting[0][0] <= reader.durable:
            proven = waiting.popleft()
    return Head(reader.journal_id, proven[0], proven[1].hex())


def parse_anchor(expect: Anchor) -> tuple[int, str]:
    """(sequence, h) of an anchor. ValueError if it is none."""
    if isinstance(expect, Head):
        return expect.sequence, expect.h
    if isinstance(expect, tuple):
        return expect
    sequence, _, h = expect.strip().partition(":")
    if not (sequence.isascii() and sequence.isdigit() and len(h) == 64 and set(h) <= set("0123456789abcdef")):
        raise ValueError(f"an anchor is <sequence>:<64 hex digits>, as duly head prints it, not {expect!r}")
    return int(sequence), h


class _Tally:
    def __init__(self, anchor: tuple[int, str] | None) -> None:
        self.lines = 0
        self.entries = 0
        self._anchor = anchor
        self._found: str | None = None

    def read(self, reader: Reader) -> Damage | None:
        try:
            for line in reader.lines():
                self.lines += 1
                self.entries += len(line.entries)
                if self._anchor is not None and line.first + len(line.entries) - 1 == self._anchor[0]:
                    self._found = reader.chain.hex()
        except JournalCorrupt as error:
            return Damage(error.path, error.offset, error.sequence, error.message, error.hint or SALVAGE)
        return None

    def misfit(self, anchor: tuple[int, str], reader: Reader) -> str:
        sequence, h = anchor
        if self._found == h or (sequence, h) == (0, FIRST_HASH.hex()):
            return ""
        if sequence >= reader.place.next:
            return f"it ends at sequence {reader.place.next - 1}, before the anchor at {sequence}: its tail was cut"
        if self._found is None and sequence < reader.first:
            return f"the anchor at sequence {sequence} is archived: name the archive to check it"
        if self._found is None:
            return f"no line ends at sequence {sequence}, where the anchor was taken: it is another record"
        return f"the chain at sequence {sequence} is {self._found}, not the anchor's {h}: it is another record"
