"""Drafting: the batches of an export, numbered anew, before anybody believes that they are right.

Rules kept here:
- whole batches are copied, in their order and without gaps; every reference follows;
- what came before the slice stands in batches of another shape than a poll's, with the last opening behind it, so that
  only the slice itself is decided anew;
- what was left out leaves its clock reading behind, where the record depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeAlias

import msgspec

from duly.journal.entries import ClockJumped, ClockRegressed, Entry, JournalOpened, ScheduleRebaselined
from duly.journal.references import Renumbering
from duly.scheduler.engine import is_poll
from duly.scheduler.redacting import Redactor
from duly.scheduler.slicing import Cover, Readings, Selection

ACTOR: Final = "duly export"
COVERED: Final = "stands for the decisions before the slice"
PAST_ENTRIES: Final = 500
PAST_BYTES: Final = 1 << 20

Batch: TypeAlias = tuple[Entry, ...]
_encode: Final = msgspec.json.Encoder().encode


class Record(Protocol):
    """The original."""

    @property
    def objected(self) -> frozenset[int]:
        """The first sequences of the batches that the engine decides otherwise."""
        ...

    def batches(self) -> Iterator[tuple[int, Batch]]:
        """The batches up to the end of the slice, each with its first sequence."""
        ...


class Draft:
    """The copy, as it would be written. Its batches are made once; afterwards it knows where each entry went."""

    def __init__(self, record: Record, selection: Selection, redactor: Redactor | None = None) -> None:
        self.begins = 1
        self.numbers = Renumbering()
        self.selection = selection
        self.batches_kept: dict[int, int] = {}
        """Where a batch that the original's engine check objects to went."""
        self._record = record
        self._redactor = redactor
        self._objected = record.objected
        self._next = 1
        self._said = Readings()
        self._original = Readings()

    @property
    def names(self) -> dict[str, str]:
        """The new names of the schedules, if it is redacted."""
        return {} if self._redactor is None else self._redactor.schedules

    def batches(self) -> Iterator[tuple[int, Batch]]:
        """The copy's batches, each with its first sequence."""
        past = _Past()
        begun = not self.selection.trimmed
        for first, batch in self._record.batches():
            if not begun and first >= self.selection.first:
                begun = True
                yield from self._end_of_past(past)
            if not begun:
                yield from self._of_past(first, batch, past)
                continue
            if first == self.selection.first:
                self.begins = self._next
            yield from self._of_slice(first, batch)
        if not begun:
            yield from self._end_of_past(past)
        for unsaid in (self._unsaid_highest, self._unsaid_last):
            reading = unsaid()
            if reading is not None:
                yield self._written((reading,))

    def _of_past(self, first: int, batch: Batch, past: _Past) -> Iterator[tuple[int, Batch]]:
        for sequence, entry in enumerate(batch, first):
            if isinstance(entry, JournalOpened):
                past.opened = entry
            cover = self.selection.cover_at(sequence, entry)
            if cover is not None:
                past.add(None, _covering(cover, entry))
            elif self.selection.holds(sequence, entry):
                past.add(sequence, entry)
            self._original.note(entry)
        if past.full:
            yield from self._flushed(past)

    def _flushed(self, past: _Past) -> Iterator[tuple[int, Batch]]:
        if not past.entries:
            return
        entries = past.taken()
        if is_poll([entry for _, entry in entries]):
            entries = [(None, _reading(entries[0][1].at)), *entries]
        yield self._copied(entries)

    def _end_of_past(self, past: _Past) -> Iterator[tuple[int, Batch]]:
        yield from self._flushed(past)
        reading = self._unsaid_highest()
        if reading is not None:
            yield self._written((reading,))
        if past.opened is not None:
            # Last of all: before an opening nothing is decided anew, as the settings are not known.
            yield self._written((past.opened,))

    def _of_slice(self, first: int, batch: Batch) -> Iterator[tuple[int, Batch]]:
        kept: list[tuple[int | None, Entry]] = [
            (sequence, entry) for sequence, entry in enumerate(batch, first) if self.selection.holds(sequence, entry)
        ]
        reading = self._unsaid_highest()
        if reading is not None and any(isinstance(entry, ClockRegressed) for entry in batch):
            yield self._written((reading,))
        for entry in batch:
            self._original.note(entry)
        if not kept:
            return
        copied = self._copied(kept)
        if first in self._objected:
            self.batches_kept[first] = copied[0]
        yield copied

    def _unsaid_highest(self) -> ClockJumped | None:
        """The record's highest reading, where it stands in nothing that was copied."""
        highest = self._original.highest
        return None if highest is None or highest == self._said.highest else _reading(highest)

    def _unsaid_last(self) -> ClockJumped | None:
        last = self._original.last
        return None if last is None or last == self._said.last else _reading(last)

    def _copied(self, entries: list[tuple[int | None, Entry]]) -> tuple[int, Batch]:
        batch: list[Entry] = []
        for number, (sequence, entry) in enumerate(entries, self._next):
            if sequence is not None:
                self.numbers.note(sequence, number)
            batch.append(self.numbers.renumbered(entry))
        return self._written(tuple(batch))

    def _written(self, batch: Batch) -> tuple[int, Batch]:
        first = self._next
        self._next += len(batch)
        for entry in batch:
            self._said.note(entry)
        return first, batch if self._redactor is None else tuple(map(self._redactor.redacted, batch))


class _Past:
    """What stands before the slice and is not yet written."""

    def __init__(self) -> None:
        self.entries: list[tuple[int | None, Entry]] = []
        self.opened: JournalOpened | None = None
        self._bytes = 0

    def add(self, sequence: int | None, entry: Entry) -> None:
        """One more entry, and its number in the original if it has one."""
        self.entries.append((sequence, entry))
        self._bytes += len(_encode(entry))

    @property
    def full(self) -> bool:
        """Whether it is as much as goes into a batch."""
        return len(self.entries) >= PAST_ENTRIES or self._bytes >= PAST_BYTES

    def taken(self) -> list[tuple[int | None, Entry]]:
        """What stands here, which is written now."""
        taken, self.entries, self._bytes = self.entries, [], 0
        return taken


def _reading(at: datetime) -> ClockJumped:
    """An entry that says nothing but what the clock read."""
    return ClockJumped(at=at, ahead=timedelta())


def _covering(cover: Cover, entry: Entry) -> ScheduleRebaselined:
    return ScheduleRebaselined(
        at=entry.at,
        actor=ACTOR,
        note=COVERED,
        schedule_id=getattr(entry, "schedule_id", ""),
        through=cover.through,
        covers_after=min(cover.after, cover.through),
    )
