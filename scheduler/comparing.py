"""Comparing two records: where they part, and which occurrences they decided differently.

Rules: nothing is decided anew. Copies of one record (the same journal, a backup, a salvage) are compared by entry,
exactly; records of two hosts by what was decided, without clock readings, processes, results and words, which two hosts
never share. Occurrences are compared up to where the shorter record ends; what salvage has lost is told apart from what
differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from duly.journal import Reader
from duly.journal.entries import Entry, EntryLost, JournalOpened, kind_of
from duly.scheduler.outcomes import Fate, Outcomes, Parting, partings
from duly.scheduler.sources import SourceFactory

_Numbered: TypeAlias = tuple[int, Entry]

_UNDECIDED: Final = {"held", "waiting", "ahead"}
OWN_TO_A_HOST: Final = frozenset(
    {"at", "actor", "note", "request", "host", "pid", "duly", "croniter", "tzdata", "python", "torn"}
    | {"covers_after", "covers_through", "highest", "ahead", "result", "error", "checkpoint", "data", "detail"}
)
"""The fields that two hosts never share, however alike they decide."""


class Divergence(msgspec.Struct, frozen=True):
    """The first place where two records say different things; None where one of them has ended."""

    sequence: int
    a: Entry | None
    b: Entry | None


class DecidedDifferently(msgspec.Struct, frozen=True, kw_only=True):
    """An occurrence, and what became of it in each record."""

    schedule_id: str
    scheduled_at: datetime
    a: Fate
    b: Fate


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How two records differ.

    `same_journal` is whether both have one journal id, `copies` whether one is a copy of the other as far as both go (a
    backup, a salvage), so that they were compared exactly. `divergence` is where they part. `occurrences` were decided
    differently up to `until`; `only_a`, `only_b` are schedules that the other record does not have. `lost_a`, `lost_b`
    are the sequences that salvage could not save.
    """

    same_journal: bool
    copies: bool
    entries_a: int
    entries_b: int
    divergence: Divergence | None
    occurrences: tuple[DecidedDifferently, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    lost_a: tuple[int, ...]
    lost_b: tuple[int, ...]
    until: datetime | None

    @property
    def equal(self) -> bool:
        """Whether both records say the same."""
        alike = self.divergence is None and not self.occurrences and self.lost_a == self.lost_b
        return alike and not self.only_a and not self.only_b

    @property
    def decided_alike(self) -> bool:
        """Whether every occurrence was decided alike, wherever it stands."""
        return not self.occurrences and not self.only_a and not self.only_b


class Told:
    """One record of two: its journal's id, and its entries by sequence."""

    def __init__(self, journal: Path | str | Sequence[_Numbered]) -> None:
        self.journal_id = ""
        self._journal = journal
        self.outcomes = Outcomes()
        self.lost: list[int] = []
        self.count = 0

    def entries(self) -> Iterator[_Numbered]:
        """The entries in order, counted as they are read."""
        for sequence, entry in self._read():
            self.count += 1
            if isinstance(entry, EntryLost):
                self.lost.append(sequence)
            yield sequence, entry

    def note(self, numbered: _Numbered | None) -> None:
        """Takes an entry into account."""
        if numbered is not None:
            self.outcomes.apply(*numbered)

    def _read(self) -> Iterator[_Numbered]:
        if not isinstance(self._journal, Path | str):
            yield from self._journal
            return
        reader = Reader(self._journal)
        for line in reader.lines():
            self.journal_id = reader.journal_id
            yield from enumerate(line.entries, line.first)
        self.journal_id = reader.journal_id


def diff(
    a: Path | str | Sequence[_Numbered],
    b: Path | str | Sequence[_Numbered],
    *,
    sources: Mapping[str, SourceFactory] | None = None,
) -> Difference:
    """Compares the journals at two paths, or two records' entries. Raises the journals' errors."""
    one, other = Told(a), Told(b)
    exact: Divergence | None = None
    alike: Divergence | None = None
    copies = False
    for number, (first, second) in enumerate(zip_longest(one.entries(), other.entries())):
        sequence = (first or second or (0, None))[0]
        mine, theirs = first[1] if first else None, second[1] if second else None
        if number == 0:
            # An opening names its host, its process and its instant: only a copy has the same one.
            copies = mine == theirs
        if not copies or (first and second):
            # What a copy does not have yet is no difference in what was decided.
            one.note(first)
            other.note(second)
        if isinstance(mine, EntryLost) or isinstance(theirs, EntryLost):
            continue
        if exact is None and mine != theirs:
            exact = Divergence(sequence, mine, theirs)
        if alike is None and not _is_alike(mine, theirs):
            alike = Divergence(sequence, mine, theirs)
    same = one.journal_id == other.journal_id != ""
    ends = [found.outcomes.last_at for found in (one, other)]
    until = min((end for end in ends if end is not None), default=None) if None not in ends else None
    differing = () if until is None else _decided_differently(one, other, until, sources or {})
    occurrences = tuple(sorted(differing, key=lambda decided: (decided.scheduled_at, decided.schedule_id)))
    mine_only, theirs_only = set(one.outcomes.histories), set(other.outcomes.histories)
    return Difference(
        same_journal=same,
        copies=copies,
        entries_a=one.count,
        entries_b=other.count,
        divergence=exact if copies or same else alike,
        occurrences=occurrences,
        only_a=tuple(sorted(mine_only - theirs_only)),
        only_b=tuple(sorted(theirs_only - mine_only)),
        lost_a=tuple(one.lost),
        lost_b=tuple(other.lost),
        until=until,
    )


def _decided_differently(
    one: Told, other: Told, until: datetime, sources: Mapping[str, SourceFactory]
) -> Iterator[DecidedDifferently]:
    for found in partings(one.outcomes, other.outcomes, until, sources, until=until):
        if not found.one.is_like(found.other) and not _came_later(found, until):
            yield DecidedDifferently(
                schedule_id=found.schedule_id, scheduled_at=found.scheduled_at, a=found.one, b=found.other
            )


def _came_later(found: Parting, until: datetime) -> bool:
    """Whether one record had not come so far yet as to decide what the other did decide."""
    return any(
        mine.disposition in _UNDECIDED and theirs.at is not None and theirs.at > until
        for mine, theirs in ((found.one, found.other), (found.other, found.one))
    )


def _is_alike(mine: Entry | None, theirs: Entry | None) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    if isinstance(mine, JournalOpened) and isinstance(theirs, JournalOpened):
        return _shared(mine) == _shared(theirs)
    return type(mine) is type(theirs) and _shared(mine) == _shared(theirs)


def _shared(entry: Entry) -> dict[str, Any]:
    shared = {name: getattr(entry, name) for name in entry.__struct_fields__ if name not in OWN_TO_A_HOST}
    if kind_of(entry) == "IntervalSkipped":
        # Where a span begins is where a watermark stood, which a host's clock may have set.
        shared.pop("after")
    return shared
