"""Outcomes: what became of every occurrence of every schedule, in a form that two records can be compared in.

Rules: dispositions are read from the histories of a record and never decided anew; the calendar is asked only about an
instant that has no entry of its own. Sequences and clock readings belong to a record and take no part in a comparison.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from duly.journal.entries import ClockRegressed, Entry, EntryLost, IntervalSkipped, ScheduleCreated, kind_of
from duly.projections.history import History, Reign, Row
from duly.projections.ranges import FIRST_INSTANT, LAST_INSTANT
from duly.scheduler.accounting import is_kept
from duly.scheduler.errors import TriggerError
from duly.scheduler.instants import in_range
from duly.scheduler.sources import OccurrenceSource, SourceFactory, checked_next_after
from duly.scheduler.triggers import trigger_of

Disposition: TypeAlias = Literal[
    "admitted",
    "skipped",
    "superseded",
    "held",
    "waiting",
    "covered",
    "kept",
    "ahead",
    "ended",
    "none",
    "unaccounted",
    "unknown",
]

LONGEST_COUNT: Final = 1_000
"""How many instants of one summarised span are compared one by one."""
_SUMMARISED: Final = kind_of(IntervalSkipped)


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one occurrence.

    `covered` is by a baseline, `kept` counts as decided between decisions that were made ahead; `ahead` lies in the
    future; `ended` would have come due after the end of its schedule; `none` is no occurrence by the rule that was in
    force; `unaccounted` has a hole in its record; `unknown` cannot be told on this machine. `at` and `sequence` are
    those of the decision, None where it has none of its own.
    """

    disposition: Disposition
    reason: str | None = None
    at: datetime | None = None
    sequence: int | None = None
    run_id: int | None = None

    def is_like(self, other: Fate) -> bool:
        """Whether both are the same disposition for the same reason."""
        return (self.disposition, self.reason) == (other.disposition, other.reason)

    def __str__(self) -> str:
        return self.disposition if self.reason is None else f"{self.disposition}: {self.reason}"


class Parting(NamedTuple):
    """An occurrence of which two records tell differently."""

    schedule_id: str
    scheduled_at: datetime
    one: Fate
    other: Fate


class Outcomes:
    """The histories of all schedules of one record; feed it every entry, in order."""

    def __init__(self) -> None:
        self.histories: dict[str, History] = {}
        self.last_at: datetime | None = None
        self.lost = 0
        self._decided_at: dict[int, datetime] = {}
        self._sorted: dict[str, list[datetime]] = {}

    def apply(self, sequence: int, entry: Entry) -> None:
        """Folds one entry in."""
        if isinstance(entry, EntryLost):
            self.lost += 1
            return
        if FIRST_INSTANT <= entry.at < LAST_INSTANT:
            self.last_at = entry.at
        if isinstance(entry, ScheduleCreated):
            self.histories.setdefault(entry.schedule_id, History(entry.schedule_id))
        schedule_id = getattr(entry, "schedule_id", None)
        if isinstance(entry, ClockRegressed):
            for history in self.histories.values():
                history.apply(sequence, entry)
        elif schedule_id in self.histories:
            self.histories[schedule_id].apply(sequence, entry)
            self._decided_at[sequence] = entry.at

    def counts(self, schedule_id: str) -> Counter[str]:
        """How many occurrences had which disposition; skips by their reason too, spans with what was seen in them."""
        history = self.histories.get(schedule_id)
        found: Counter[str] = Counter()
        for row in [] if history is None else history.table():
            if row.disposition == "interval" and row.detail != _SUMMARISED:
                continue
            fate = self._fate_of(row)
            number = row.at_least or 1 if row.disposition == "interval" else 1
            found[fate.disposition] += number
            if fate.disposition == "skipped":
                found[f"skipped:{fate.reason}"] += number
        return found

    def fate(self, schedule_id: str, instant: datetime, now: datetime, sources: Mapping[str, SourceFactory]) -> Fate:
        """What became of the schedule's occurrence at the instant, as of `now`."""
        history = self.histories.get(schedule_id)
        if history is None or history.schedule is None:
            return Fate(disposition="none")
        row = history.rows.get(instant)
        if row is not None:
            return self._fate_of(row)
        try:
            if not _is_occurrence(history, instant, sources):
                return Fate(disposition="none")
        except TriggerError:
            return Fate(disposition="unknown")
        span = next((one for one in reversed(history.spans) if _holds(one, instant)), None)
        return self._fate_of(span) if span is not None else self._undecided(history, instant, now)

    def never_had(self, schedule_id: str, instant: datetime, sources: Mapping[str, SourceFactory]) -> bool:
        """Whether the instant is no occurrence by any rule that the schedule ever had."""
        history = self.histories.get(schedule_id)
        if history is None:
            return True
        try:
            return not any(has_instant(trigger_of(rule, sources), instant) for rule in history.rules.values())
        except TriggerError:
            return False

    def _undecided(self, history: History, instant: datetime, now: datetime) -> Fate:
        schedule = history.schedule
        if schedule is None:
            return Fate(disposition="none")
        rows = self._sorted.get(history.schedule_id)
        if rows is None:
            rows = self._sorted[history.schedule_id] = sorted(history.rows)
        if is_kept(history, rows, _reign(history, instant).revision, instant):
            return Fate(disposition="kept")
        if instant <= schedule.consumed_through:
            return Fate(disposition="unaccounted")
        if schedule.deleted or schedule.exhausted:
            return Fate(disposition="ended")
        return Fate(disposition="waiting" if instant <= now else "ahead")

    def _fate_of(self, row: Row) -> Fate:
        at = self._decided_at.get(row.sequence or 0)
        if row.disposition != "interval":
            return Fate(disposition=row.disposition, reason=row.reason, at=at, sequence=row.sequence, run_id=row.run_id)
        if row.reason == "superseded":
            return Fate(disposition="superseded", at=at, sequence=row.sequence)
        if row.reason == "backlog":
            return Fate(disposition="skipped", reason="backlog", at=at, sequence=row.sequence)
        return Fate(disposition="covered", reason=row.detail, at=at, sequence=row.sequence)


def partings(
    one: Outcomes,
    other: Outcomes,
    now: datetime,
    sources: Mapping[str, SourceFactory],
    *,
    until: datetime | None = None,
) -> Iterator[Parting]:
    """Every occurrence that is decided in one of both and of which they tell differently as of `now`, by schedule and
    instant; with `until` only those up to there. An admission at another clock reading is among them. Schedules that
    only one of both has are left out.

    Of a span that only one of them has, at most `LONGEST_COUNT` occurrences are looked at.
    """
    for schedule_id in sorted(set(one.histories) & set(other.histories)):
        mine, theirs = one.histories[schedule_id], other.histories[schedule_id]
        asked = {*mine.rows, *theirs.rows}
        asked.update(_in_spans_of_one(mine, theirs, sources), _in_spans_of_one(theirs, mine, sources))
        for instant in sorted(asked):
            if until is not None and instant > until:
                break
            first = one.fate(schedule_id, instant, now, sources)
            second = other.fate(schedule_id, instant, now, sources)
            moved = first.disposition == "admitted" and first.at != second.at
            if moved or not first.is_like(second):
                yield Parting(schedule_id, instant, first, second)


def _in_spans_of_one(mine: History, theirs: History, sources: Mapping[str, SourceFactory]) -> Iterator[datetime]:
    """The occurrences in the summarised spans that `theirs` does not have in the same way."""
    known = {(span.after, span.scheduled_at, span.reason) for span in theirs.spans}
    for span in mine.spans:
        if span.detail == _SUMMARISED and (span.after, span.scheduled_at, span.reason) not in known:
            try:
                yield from _instants_in(mine, span, sources)
            except TriggerError:
                continue


def _instants_in(history: History, span: Row, sources: Mapping[str, SourceFactory]) -> Iterator[datetime]:
    after = span.after
    for _ in range(LONGEST_COUNT):
        if after is None:
            return
        rule = _reign(history, after + datetime.resolution).rule
        after = checked_next_after(trigger_of(rule, sources), after)
        if after is None or after > span.scheduled_at:
            return
        yield after


def _holds(span: Row, instant: datetime) -> bool:
    return instant <= span.scheduled_at and (span.after is None or span.after < instant)


def _is_occurrence(history: History, instant: datetime, sources: Mapping[str, SourceFactory]) -> bool:
    return has_instant(trigger_of(_reign(history, instant).rule, sources), instant)


def has_instant(source: OccurrenceSource, instant: datetime) -> bool:
    """Whether the source has an occurrence at the instant. Raises TriggerError."""
    if instant.microsecond or not in_range(instant):
        return False
    return checked_next_after(source, instant - datetime.resolution) == instant


def _reign(history: History, instant: datetime) -> Reign:
    return next((one for one in reversed(history.reigns) if one.start < instant), history.reigns[0])
