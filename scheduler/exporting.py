"""Exporting: a slice of a journal as a small journal of its own, which is decided anew as the original was.

Rules kept here:
- the original is only read; the copy is a new journal with a new id;
- what is copied, and how it is numbered, is `duly.scheduler.slicing`'s and `duly.scheduler.drafting`'s; their draft is
  a proposal;
- before anything is written, the copy is folded and decided anew: it must end in the state of the original, and part
  from the engine where the original does and nowhere else. If not, more is kept: all schedules, then the whole past.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from duly.journal import Disk, Reader, RealDisk
from duly.journal.making import new_journal
from duly.journal.references import Renumbering
from duly.projections import State
from duly.projections.readings import is_since, is_until
from duly.projections.schedules import ScheduleState
from duly.scheduler.drafting import ACTOR, COVERED, Batch, Draft
from duly.scheduler.engine import EngineCheck, check_lines
from duly.scheduler.errors import DefinitionError
from duly.scheduler.instants import require_aware
from duly.scheduler.redacting import Redactor
from duly.scheduler.slicing import Selection, Survey
from duly.scheduler.sources import SourceFactory
from duly.scheduler.unknown import unknown_schedule


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """What was exported. `first` and `last` are sequences of the original, at the ends of whole batches; `begins` is
    the number that `first` has in the copy.

    `kept` are the schedules that are in it, and `whole_past` says whether all entries before the slice are; where more
    is kept than was asked for, the slice rested on it. `faithful`: decided anew, the copy comes out as the original
    does. `names` are the new names of the schedules, by the old ones, if it is redacted: the key stays with you.
    """

    source: Path
    path: Path
    journal_id: str
    first: int
    last: int
    begins: int
    entries: int
    polls: int
    divergences: int
    kept: tuple[str, ...]
    whole_past: bool
    faithful: bool
    redacted: bool
    names: dict[str, str]

    def __str__(self) -> str:
        return f"{self.entries:,} entries written to {self.path}: {self.first:,} to {self.last:,} and what they rest on"


def export(  # noqa: PLR0913 - each is a choice of its own, by keyword
    path: Path | str,
    to: str | os.PathLike[str],
    at: datetime,
    *,
    since: int | datetime | None = None,
    until: int | datetime | None = None,
    schedules: Iterable[str] = (),
    redact: bool = False,
    sources: Mapping[str, SourceFactory] | None = None,
    disk: Disk | None = None,
) -> Export:
    """Copies a slice of the journal at `path`, and what it rests on, into a new journal in the folder `to`.

    `since` and `until` are sequences, both included, or aware instants: the first entry that is not earlier, the last
    that is not later. `schedules` are those that matter; none means all. With `redact` everything that a host or a
    person put in gets another name, except for the triggers. `at` is the clock reading.

    Raises UnknownSchedule, DefinitionError for an empty slice or a naive instant, ForeignJournal where `to` is not
    empty, and the journal's errors.
    """
    source = _Source(Path(path), disk, sources or {})
    disk = RealDisk() if disk is None else disk
    source.read(since, until)
    wanted = frozenset(schedules)
    for schedule_id in sorted(wanted - source.survey.schedule_ids):
        raise unknown_schedule(schedule_id, source.survey.schedule_ids)
    selection, found = _believed(source, wanted)
    draft = source.draft(selection, redact=redact)
    faithful = found.faithful
    if redact:
        found = _Comparison(source, draft)
        faithful = faithful and found.faithful
        draft = source.draft(selection, redact=True)
    with new_journal(disk, to, at) as journal:
        for _, batch in draft.batches():
            journal.enqueue(batch, batch[0].at)
        kept = source.survey.schedule_ids if selection.schedule_ids is None else selection.schedule_ids
        return Export(
            source=source.path,
            path=journal.path,
            journal_id=journal.journal_id,
            first=source.first,
            last=source.last,
            begins=draft.begins,
            entries=journal.last_sequence,
            polls=found.check.polls,
            divergences=len(found.check.divergences),
            kept=tuple(sorted(kept)),
            whole_past=not selection.trimmed,
            faithful=faithful,
            redacted=redact,
            names={one: draft.names[one] for one in sorted(kept)} if redact else {},
        )


def _believed(source: _Source, wanted: frozenset[str]) -> tuple[Selection, _Comparison]:
    """The smallest selection that is decided anew as the original is; the last one is all there is."""
    everything = Selection(source.survey, None, trimmed=False)
    proposals = [Selection(source.survey, None, trimmed=True)]
    if wanted:
        proposals.insert(0, Selection(source.survey, wanted, trimmed=True))
    for selection in proposals:
        found = _Comparison(source, Draft(source, selection))
        if found.faithful:
            return selection, found
    return everything, _Comparison(source, Draft(source, everything))


class _Source:
    """The original, surveyed and decided anew up to the end of the slice."""

    first: int
    last: int
    survey: Survey
    check: EngineCheck

    def __init__(self, path: Path, disk: Disk | None, sources: Mapping[str, SourceFactory]) -> None:
        self.path = path
        self.sources = sources
        self._disk = disk

    def read(self, since: int | datetime | None, until: int | datetime | None) -> None:
        """Finds the ends of the slice, moved outward to those of whole batches, and surveys what is before its end."""
        for name, given in (("since", since), ("until", until)):
            if isinstance(given, datetime):
                require_aware(given, name)
        through = self._last_not_later(until) if isinstance(until, datetime) else until
        begin, self.last = None, 0
        for first, batch in self._all():
            if through is not None and first > through:
                break
            self.last = first + len(batch) - 1
            if begin is None and _reaches(first, batch, since):
                begin = first
        if begin is None:
            remedy = f"The record that is meant ends with entry {self.last}."
            raise DefinitionError("slice", f"{since} to {until}", "holds no entry", remedy)
        self.first = begin
        self.survey = Survey(begin)
        self.check = check_lines(self._surveyed(), sources=self.sources)

    @property
    def objected(self) -> frozenset[int]:
        """The first sequences of the batches that the engine decides otherwise."""
        return frozenset(one.sequence for one in self.check.divergences)

    def draft(self, selection: Selection, *, redact: bool) -> Draft:
        """The copy, as it would be written."""
        names = Redactor(self.survey.schedule_ids, (ACTOR, COVERED)) if redact else None
        return Draft(self, selection, names)

    def _last_not_later(self, until: datetime) -> int:
        return max(
            (first + n for first, batch in self._all() for n, entry in enumerate(batch) if is_until(entry, until)),
            default=0,
        )

    def batches(self) -> Iterator[tuple[int, Batch]]:
        """The batches up to the end of the slice, each with its first sequence."""
        for first, batch in self._all():
            if first > self.last:
                return
            yield first, batch

    def _all(self) -> Iterator[tuple[int, Batch]]:
        for line in Reader(self.path, disk=self._disk).lines():
            yield line.first, line.entries

    def _surveyed(self) -> Iterator[tuple[int, Batch]]:
        for first, batch in self.batches():
            for sequence, entry in enumerate(batch, first):
                self.survey.note(sequence, entry)
            yield first, batch


def _reaches(first: int, batch: Batch, since: int | datetime | None) -> bool:
    if since is None:
        return True
    if isinstance(since, int):
        return first + len(batch) > since
    return any(is_since(entry, since) for entry in batch)


class _Comparison:
    """A draft, folded and decided anew, beside the original."""

    def __init__(self, source: _Source, draft: Draft) -> None:
        self.state = State()
        self.check: EngineCheck = check_lines(self._folded(draft), sources=source.sources)
        expected = {draft.batches_kept.get(one.sequence) for one in source.check.divergences}
        diverging = {one.sequence for one in self.check.divergences}
        selection = draft.selection
        self.faithful = (
            diverging == expected - {None}
            and self.state.anomaly_count == source.survey.state.anomaly_count
            and self.state.last_at == source.survey.state.last_at
            and self.state.highest_at == source.survey.state.highest_at
            and all(
                self._is_standing(schedule, draft, spending=schedule.id in source.survey.spending)
                for schedule in source.survey.state.by_id.values()
                if selection.schedule_ids is None or schedule.id in selection.schedule_ids
            )
        )

    def _folded(self, draft: Draft) -> Iterator[tuple[int, Batch]]:
        for first, batch in draft.batches():
            for sequence, entry in enumerate(batch, first):
                self.state.apply(sequence, entry)
            yield first, batch

    def _is_standing(self, schedule: ScheduleState, draft: Draft, *, spending: bool) -> bool:
        """Whether the schedule stands in the copy as it does in the original."""
        found = self.state.by_id.get(draft.names.get(schedule.id, schedule.id))
        if found is None:
            return False
        return _standing(schedule, draft.numbers, spending=spending) == _standing(found, None, spending=spending)


def _standing(schedule: ScheduleState, numbers: Renumbering | None, *, spending: bool) -> tuple[object, ...]:
    """What a schedule's next decisions hang on, in the numbering of the copy."""
    moved = numbers or Renumbering()
    return (
        schedule.revision,
        schedule.definition.trigger,
        schedule.consumed_through,
        schedule.candidate,
        schedule.exhausted,
        schedule.last_decided,
        tuple(bool(one) for one in (schedule.paused, schedule.disabled, schedule.deleted)),
        schedule.block and (moved.of(schedule.block.sequence), schedule.block.cause),
        tuple(moved.of(run_id) for run_id in schedule.active),
        [(stamp, moved.of(sequence)) for stamp, sequence in schedule.spent or ()] if spending else None,
    )
