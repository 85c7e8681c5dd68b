"""Looking up: what a record says about one schedule, by the index where there is one, and from the whole otherwise.

Rules: the answers are the same either way. An index is asked for the schedule's own entries and for the steps back of
the clock, which concern every schedule; what else a story needs of its surroundings is asked at the moment it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TypeAlias, TypeVar

from duly.journal.entries import Entry, ScheduleCreated
from duly.projections.indexed import IndexedJournal, NotIndexed, entries_of
from duly.projections.parts import Parts
from duly.projections.ranges import FIRST_INSTANT
from duly.projections.schedules import ScheduleState
from duly.scheduler.explanations import SlotTaken
from duly.scheduler.story import MOST_SLOTS, Story
from duly.scheduler.unknown import unknown_schedule

T = TypeVar("T")
Numbered: TypeAlias = tuple[int, Entry]
Record: TypeAlias = Path | str | IndexedJournal | Iterable[Numbered]
"""A journal: its path, its indexes, or its entries."""


class IndexedSetting:
    """The surroundings of a story that is told by an index: at the entry `sequence`."""

    def __init__(self, parts: Parts, through: int) -> None:
        self.sequence = through
        self._parts = parts

    @property
    def ids(self) -> Collection[str]:
        """The schedules that were ever created."""
        return self._parts.created()

    @property
    def last_at(self) -> datetime:
        """The last clock reading in the supported range."""
        return self._parts.moment(self.sequence).last_at or FIRST_INSTANT

    @property
    def lost(self) -> int:
        """How many entries were lost."""
        return self._parts.moment(self.sequence).lost

    @property
    def task_slots(self) -> int | None:
        """How many task slots the owner has; None before there was one."""
        return self._parts.task_slots(self.sequence)

    @property
    def taken(self) -> int:
        """How many of them are taken."""
        return len(self._parts.moment(self.sequence).holding)

    def slots(self, since: datetime, until: datetime) -> list[SlotTaken]:
        """The task slots that were taken at any time from `since` to `until`, the newest of them."""
        freed = [
            SlotTaken(run_id=slot.run_id, schedule_id=slot.schedule_id, since=slot.since, until=ended)
            for slot, ended in self._parts.freed(since, self.sequence, MOST_SLOTS)
        ]
        taken = [
            SlotTaken(run_id=slot.run_id, schedule_id=slot.schedule_id, since=slot.since)
            for slot in self._parts.moment(self.sequence).holding
            if slot.since <= until
        ]
        return [*freed, *taken][-MOST_SLOTS:]

    def apply(self, sequence: int, entry: Entry) -> None:
        """Nothing: the index knows every entry already."""


def told(
    journal: Record,
    schedule_id: str,
    instants: Iterable[datetime],
    tell: Callable[[Story, ScheduleState], T],
    *,
    through: int | None = None,
) -> T:
    """What is told by the story of the instants. Raises UnknownSchedule, and the journal's errors."""
    asked = tuple(instants)
    indexed = _indexed(journal)
    if indexed is not None:
        try:
            return indexed.ask(lambda parts: _tell(_by_index(parts, schedule_id, asked, through), tell))
        except NotIndexed:
            journal = indexed
    story = Story(schedule_id, asked)
    for sequence, entry in _entries(journal, through):
        story.apply(sequence, entry)
    return _tell(story, tell)


def _tell(story: Story, tell: Callable[[Story, ScheduleState], T]) -> T:
    schedule = story.history.schedule
    if schedule is None:
        raise unknown_schedule(story.history.schedule_id, story.setting.ids)
    return tell(story, schedule)


def _by_index(parts: Parts, schedule_id: str, asked: Iterable[datetime], through: int | None) -> Story:
    setting = IndexedSetting(parts, parts.last if through is None else through)
    end = setting.sequence
    story = Story(schedule_id, asked, setting)
    for sequence, entry in _about(parts, schedule_id, through):
        setting.sequence = sequence
        story.follow(sequence, entry)
    setting.sequence = end
    return story


def about(journal: Record, schedule_id: str, *, after: int = 0, through: int | None = None) -> Iterable[Numbered]:
    """All entries above `after` that concern the schedule, and maybe others, in order. Raises UnknownSchedule, at once
    or at the end, where nothing was left out before them, and the journal's errors."""
    indexed = _indexed(journal)
    if indexed is not None:
        try:
            if after:
                return indexed.ask(lambda parts: parts.concerning(schedule_id, through, after=after))
            return indexed.ask(lambda parts: _about(parts, schedule_id, through))
        except NotIndexed:
            journal = indexed
    entries = _entries(journal, through, after)
    return entries if after else _of_whole(entries, schedule_id)


def _about(parts: Parts, schedule_id: str, through: int | None) -> list[Numbered]:
    found = parts.concerning(schedule_id, through)
    if not _is_created(found):
        raise unknown_schedule(
            schedule_id, parts.created(), was_there=lambda one: _is_created(parts.concerning(one, through))
        )
    return found


def _is_created(found: Iterable[Numbered]) -> bool:
    return any(isinstance(entry, ScheduleCreated) for _, entry in found)


def _of_whole(entries: Iterable[Numbered], schedule_id: str) -> Iterable[Numbered]:
    ids: set[str] = set()
    for sequence, entry in entries:
        if isinstance(entry, ScheduleCreated):
            ids.add(entry.schedule_id)
        yield sequence, entry
    if schedule_id not in ids:
        raise unknown_schedule(schedule_id, ids)


def _entries(journal: Record, through: int | None, after: int = 0) -> Iterable[Numbered]:
    if isinstance(journal, IndexedJournal):
        return entries_of(journal.path, after=after, through=through, disk=journal.disk)
    if isinstance(journal, Path | str):
        return entries_of(journal, after=after, through=through)
    rest = dropwhile(lambda one: one[0] <= after, journal)
    return rest if through is None else takewhile(lambda one: one[0] <= through, rest)


def _indexed(journal: Record) -> IndexedJournal | None:
    if isinstance(journal, IndexedJournal):
        return journal
    return IndexedJournal(journal) if isinstance(journal, Path | str) else None
