"""Accounting: the record, counted against the calendar.

Rules: every instant ≤ now of every rule that a schedule had has exactly one of: its own entry; a span that an entry
decided or covered; or it is waiting or held. What has none is unaccounted, what has two is double, and what was
decided without being an occurrence is foreign. The calendar is asked anew; the record is only counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from duly.journal import read
from duly.journal.entries import Entry, EntryLost, ScheduleCreated, TriggerRule
from duly.projections.fold import FIRST_INSTANT, LAST_INSTANT
from duly.projections.history import History, Row
from duly.projections.schedules import ScheduleState
from duly.scheduler.errors import TriggerError
from duly.scheduler.sources import SourceFactory, checked_next_after
from duly.scheduler.triggers import trigger_of


class ScheduleAccount(msgspec.Struct, kw_only=True):
    """What became of one schedule's occurrences up to now.

    `counts` are by disposition, skips by their reason too (`skipped:overlap`). A sound record has `unaccounted`,
    `double` and `foreign` empty; `fault` says why it could not be counted at all.
    """

    schedule_id: str
    due: int = 0
    counts: Counter[str] = msgspec.field(default_factory=Counter[str])
    unaccounted: list[datetime] = msgspec.field(default_factory=list[datetime])
    double: list[datetime] = msgspec.field(default_factory=list[datetime])
    foreign: list[datetime] = msgspec.field(default_factory=list[datetime])
    fault: str = ""
    calendar_changed: bool = False

    @property
    def balanced(self) -> bool:
        """Whether every occurrence has exactly one disposition, and nothing else has."""
        return not (self.unaccounted or self.double or self.foreign or self.fault)


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The accounts of all schedules of a journal, as of its last clock reading."""

    now: datetime | None
    schedules: tuple[ScheduleAccount, ...]
    lost: int

    @property
    def unaccounted(self) -> int:
        """How many occurrences have no disposition."""
        return sum(len(one.unaccounted) for one in self.schedules)

    @property
    def balanced(self) -> bool:
        """Whether every schedule's account is."""
        return all(one.balanced for one in self.schedules)


def account(path: Path | str, *, sources: Mapping[str, SourceFactory] | None = None) -> Account:
    """Counts the journal at `path`. Raises the journal's errors."""
    return account_of(((record.sequence, record.entry) for record in read(path)), sources=sources)


def account_of(entries: Iterable[tuple[int, Entry]], *, sources: Mapping[str, SourceFactory] | None = None) -> Account:
    """Counts these entries, which begin where their journal does."""
    histories: dict[str, History] = {}
    now: datetime | None = None
    lost = 0
    for sequence, entry in entries:
        if isinstance(entry, EntryLost):
            lost += 1
            continue
        if FIRST_INSTANT <= entry.at < LAST_INSTANT:
            now = entry.at
        if isinstance(entry, ScheduleCreated):
            histories.setdefault(entry.schedule_id, History(entry.schedule_id))
        schedule_id = getattr(entry, "schedule_id", None)
        concerned = histories.values() if schedule_id is None else filter(None, [histories.get(schedule_id)])
        for history in concerned:
            history.apply(sequence, entry)
    settled = (_settled(one, now, sources or {}) for one in histories.values() if now is not None)
    return Account(now=now, schedules=tuple(settled), lost=lost)


def _settled(history: History, now: datetime, sources: Mapping[str, SourceFactory]) -> ScheduleAccount:
    result = ScheduleAccount(schedule_id=history.schedule_id, double=list(history.doubles))
    result.calendar_changed = history.calendar_changed is not None
    schedule = history.schedule
    if schedule is None:
        result.fault = "the record never created it"
        return result
    spans = _Spans(history.spans)
    seen: set[datetime] = set()
    end = min(now, schedule.consumed_through) if schedule.deleted else now
    try:
        for instant in _instants(history, end, sources):
            seen.add(instant)
            result.due += 1
            _settle(result, history, schedule, spans, instant)
    except TriggerError as error:
        result.fault = str(error)
        return result
    result.foreign.extend(sorted(instant for instant in history.rows if instant not in seen and instant <= end))
    return result


def _instants(history: History, end: datetime, sources: Mapping[str, SourceFactory]) -> Iterator[datetime]:
    ends = [min(reign.start, end) for reign in history.reigns[1:]] + [end]
    for reign, until in zip(history.reigns, ends, strict=True):
        yield from _instants_of(reign.rule, reign.start, until, sources)


def _instants_of(
    rule: TriggerRule, start: datetime, until: datetime, sources: Mapping[str, SourceFactory]
) -> Iterator[datetime]:
    source = trigger_of(rule, sources)
    instant = checked_next_after(source, start)
    while instant is not None and instant <= until:
        yield instant
        instant = checked_next_after(source, instant)


def _settle(
    result: ScheduleAccount, history: History, schedule: ScheduleState, spans: _Spans, instant: datetime
) -> None:
    row = history.rows.get(instant)
    if row is not None:
        result.counts[row.disposition] += 1
        if row.disposition == "skipped":
            result.counts[f"skipped:{row.reason}"] += 1
        return
    span = spans.holding(instant)
    if span is not None:
        result.counts["covered" if span.reason in (None, "operator") else f"interval:{span.reason}"] += 1
    elif any(start < instant < end for start, end in history.joined):
        result.counts["kept"] += 1
    elif instant > schedule.consumed_through:
        result.counts["waiting"] += 1
    else:
        result.unaccounted.append(instant)


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
