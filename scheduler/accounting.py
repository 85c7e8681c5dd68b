"""Accounting: the record, counted against the calendar.

Rules: every instant ≤ now of every rule that a schedule had has exactly one of: its own entry; a span that an entry
decided or covered; or it is waiting or held. What has none is unaccounted, what has two is double, and what was
decided without being an occurrence is foreign. The calendar is asked anew; the record is only counted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from duly.journal import read
from duly.journal.entries import CalendarChanged, ClockRegressed, Entry, EntryLost, JournalOpened, ScheduleCreated
from duly.projections.history import History, Reign, Row
from duly.projections.ranges import FIRST_INSTANT, LAST_INSTANT, range_holding
from duly.projections.schedules import ScheduleState
from duly.scheduler.errors import TriggerError
from duly.scheduler.sources import OccurrenceSource, SourceFactory, checked_next_after
from duly.scheduler.triggers import trigger_of

LONGEST_COUNT: Final = 1_000
"""How many instants of one span, or of what waits, are counted one by one."""


class ScheduleAccount(msgspec.Struct, kw_only=True):
    """What became of one schedule's occurrences up to now.

    `counts` are by disposition, skips by their reason too (`skipped:overlap`). A sound record has `unaccounted`,
    `double` and `foreign` empty; `fault` says why it could not be counted at all. Where not `exact`, a long span, or
    much that waits, was not counted to its end: there are more of those than is said.
    """

    schedule_id: str
    due: int = 0
    counts: Counter[str] = msgspec.field(default_factory=Counter[str])
    unaccounted: list[datetime] = msgspec.field(default_factory=list[datetime])
    double: list[datetime] = msgspec.field(default_factory=list[datetime])
    foreign: list[datetime] = msgspec.field(default_factory=list[datetime])
    fault: str = ""
    exact: bool = True
    calendar_changed: CalendarChanged | None = None

    @property
    def balanced(self) -> bool:
        """Whether every occurrence has exactly one disposition, and nothing else has."""
        return not (self.unaccounted or self.double or self.foreign or self.fault)


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The accounts of all schedules of a journal, as of its last clock reading.

    `calendars` are the versions of croniter and tzdata that its owners had, in their order; the counting uses this
    machine's.
    """

    now: datetime | None
    schedules: tuple[ScheduleAccount, ...]
    lost: int
    calendars: tuple[tuple[str, str], ...] = ()

    @property
    def unaccounted(self) -> int:
        """How many occurrences have no disposition."""
        return sum(len(one.unaccounted) for one in self.schedules)

    @property
    def balanced(self) -> bool:
        """Whether every schedule's account is, and no entry is lost: a schedule that was lost is not counted."""
        return not self.lost and all(one.balanced for one in self.schedules)


def account(
    path: Path | str, *, since: datetime | None = None, sources: Mapping[str, SourceFactory] | None = None
) -> Account:
    """Counts the journal at `path`; with `since` only the occurrences from this instant on. Raises the journal's
    errors."""
    return account_of(((record.sequence, record.entry) for record in read(path)), since=since, sources=sources)


def account_of(
    entries: Iterable[tuple[int, Entry]],
    *,
    since: datetime | None = None,
    sources: Mapping[str, SourceFactory] | None = None,
) -> Account:
    """Counts these entries, which begin where their journal does."""
    histories: dict[str, History] = {}
    calendars: dict[tuple[str, str], None] = {}
    now: datetime | None = None
    lost = 0
    for sequence, entry in entries:
        if isinstance(entry, EntryLost):
            lost += 1
            continue
        if FIRST_INSTANT <= entry.at < LAST_INSTANT:
            now = entry.at
        if isinstance(entry, JournalOpened):
            calendars[entry.croniter, entry.tzdata] = None
        if isinstance(entry, ScheduleCreated):
            histories.setdefault(entry.schedule_id, History(entry.schedule_id))
        schedule_id = getattr(entry, "schedule_id", None)
        everybody = isinstance(entry, ClockRegressed)
        concerned = histories.values() if everybody else filter(None, [histories.get(schedule_id or "")])
        for history in concerned:
            history.apply(sequence, entry)
    begin = FIRST_INSTANT if since is None else since
    settled = (_settled(one, begin, now, sources or {}) for one in histories.values() if now is not None)
    return Account(now=now, schedules=tuple(settled), lost=lost, calendars=tuple(calendars))


def _settled(history: History, begin: datetime, now: datetime, sources: Mapping[str, SourceFactory]) -> ScheduleAccount:
    doubles = [instant for instant in history.doubles if instant >= begin]
    result = ScheduleAccount(schedule_id=history.schedule_id, double=doubles)
    result.calendar_changed = history.calendar_changed
    schedule = history.schedule
    if schedule is None:
        result.fault = "the record never created it"
        return result
    counting = _Counting(result, history, schedule)
    end = min(now, schedule.consumed_through) if schedule.deleted else now
    try:
        for reign, until in _reigns(history, end):
            start = max(reign.start, begin - datetime.resolution)
            if start < until:
                counting.walk(Reign(start, reign.rule, reign.revision), trigger_of(reign.rule, sources), until)
        unseen = sorted(one for one in history.rows if begin <= one <= end and one not in counting.seen)
        result.foreign.extend(one for one in unseen if _is_foreign(history.rows[one], history, sources))
    except TriggerError as error:
        result.fault = str(error)
        return result
    return result


def _is_foreign(row: Row, history: History, sources: Mapping[str, SourceFactory]) -> bool:
    """Whether what was decided is no occurrence by the rule of its own revision."""
    rule = history.rules.get(row.revision or 0)
    if rule is None:
        return True
    return checked_next_after(trigger_of(rule, sources), row.scheduled_at - datetime.resolution) != row.scheduled_at


def is_kept(history: History, decided: Sequence[datetime], revision: int, instant: datetime) -> bool:
    """Whether an instant of this revision's rule, without a row of its own, counts as decided.

    So it is in a gap that was closed for want of ranges, or between kept decisions of another revision's rule.
    `decided` are the instants of the history's rows, in order.
    """
    if any(start < instant < end for start, end in history.joined):
        return True
    schedule = history.schedule
    if schedule is None or range_holding(schedule.kept, instant) is None:
        return False
    at = bisect_left(decided, instant)
    beside = [history.rows[one] for one in decided[max(at - 1, 0) : at + 1]]
    return any(row.revision != revision for row in beside)


def _reigns(history: History, end: datetime) -> Iterator[tuple[Reign, datetime]]:
    ends = [min(reign.start, end) for reign in history.reigns[1:]] + [end]
    return zip(history.reigns, ends, strict=True)


class _Counting:
    """One schedule's instants, counted in order; what lies in a long span is counted up to `LONGEST_COUNT` of it."""

    def __init__(self, result: ScheduleAccount, history: History, schedule: ScheduleState) -> None:
        self.seen: set[datetime] = set()
        self._result = result
        self._history = history
        self._schedule = schedule
        self._spans = _Spans(history.spans)
        self._rows = sorted(history.rows)
        self._waiting = 0
        self._revision = 0
        self._in_span: tuple[Row | None, int] = (None, 0)

    def walk(self, reign: Reign, source: OccurrenceSource, until: datetime) -> None:
        """Counts the instants of one rule from its reign's start, excluded, to `until`."""
        self._revision = reign.revision
        instant = checked_next_after(source, reign.start)
        while instant is not None and instant <= until:
            self.seen.add(instant)
            self._result.due += 1
            after = self._settle(instant)
            if after is None:
                return
            instant = checked_next_after(source, after)

    def _settle(self, instant: datetime) -> datetime | None:
        """Counts one instant; says after which one to go on, or None if all that follows waits like this one."""
        counts = self._result.counts
        row = self._history.rows.get(instant)
        span = None if row is not None else self._spans.holding(instant)
        if row is not None:
            counts[row.disposition] += 1
            if row.disposition == "skipped":
                counts[f"skipped:{row.reason}"] += 1
        elif span is not None:
            counts["covered" if span.reason in (None, "operator") else f"interval:{span.reason}"] += 1
            return self._after_span(instant, span)
        elif is_kept(self._history, self._rows, self._revision, instant):
            counts["kept"] += 1
        elif instant > self._schedule.consumed_through:
            counts["waiting"] += 1
            self._waiting += 1
            if self._waiting >= LONGEST_COUNT and not self._rows_from(instant):
                self._result.exact = False
                return None
        else:
            self._result.unaccounted.append(instant)
        return instant

    def _after_span(self, instant: datetime, span: Row) -> datetime:
        former, number = self._in_span
        self._in_span = (span, number + 1 if former is span else 1)
        if self._in_span[1] < LONGEST_COUNT:
            return instant
        self._result.exact = False
        # An occurrence that was decided on its own inside the span is still to be looked at.
        inside = [row for row in self._rows_from(instant) if row <= span.scheduled_at]
        return max(instant, inside[0] - datetime.resolution) if inside else span.scheduled_at

    def _rows_from(self, instant: datetime) -> list[datetime]:
        return self._rows[bisect_right(self._rows, instant) :]


class _Spans:
    """Which span an instant lies in: spans by their end, searched by halving."""

    def __init__(self, spans: list[Row]) -> None:
        self._spans = sorted(spans, key=lambda span: span.scheduled_at)
        self._ends = [span.scheduled_at for span in self._spans]

    def holding(self, instant: datetime) -> Row | None:
        for span in self._spans[bisect_left(self._ends, instant) :]:
            if span.after is None or span.after < instant:
                return span
        return None
