"""Counts the record against the calendar: every occurrence that came due has one disposition, and nothing else has.

Rules kept here:
- the calendar is asked anew for every instant of every revision; the record is only counted, never replayed;
- pure: entries and a calendar in, figures out; no clock is read, "due" means due at the last entry's clock reading;
- a record whose clock went back (`ClockRegressed`) is counted as it stands: what was made void shows as double.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from duly.journal.entries import (
    CandidateHeld,
    Entry,
    IntervalSkipped,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    RunAbandoned,
    RunCompleted,
    RunFailed,
    RunStarted,
    ScheduleCreated,
    ScheduleDeleted,
    ScheduleDisabled,
    ScheduleEdited,
    ScheduleEnabled,
    SchedulePaused,
    ScheduleRebaselined,
    ScheduleUnpaused,
    TriggerRule,
)

BASELINES = (
    ScheduleCreated,
    ScheduleEdited,
    SchedulePaused,
    ScheduleUnpaused,
    ScheduleDisabled,
    ScheduleEnabled,
    ScheduleDeleted,
    ScheduleRebaselined,
)
INSTANT = timedelta(microseconds=1)


class Calendar(Protocol):
    """What yields the instants of a rule."""

    def next_after(self, instant: datetime, /) -> datetime | None: ...


@dataclass(slots=True)
class ScheduleAccount:
    """What became of one schedule's occurrences. `unaccounted`, `double` and `foreign` must be empty."""

    schedule_id: str
    rule: TriggerRule
    due: int = 0
    admitted: int = 0
    skipped: Counter[str] = field(default_factory=Counter[str])
    superseded: int = 0
    covered: int = 0
    waiting: int = 0
    runs: Counter[str] = field(default_factory=Counter[str])
    unaccounted: list[datetime] = field(default_factory=list[datetime])
    double: list[datetime] = field(default_factory=list[datetime])
    foreign: list[datetime] = field(default_factory=list[datetime])

    @property
    def balanced(self) -> bool:
        return not (self.unaccounted or self.double or self.foreign)


@dataclass(slots=True)
class _Recorded:
    """What the record holds about one schedule."""

    rules: list[tuple[datetime, TriggerRule]]
    decisions: dict[datetime, list[Entry]] = field(default_factory=dict[datetime, "list[Entry]"])
    intervals: list[IntervalSkipped] = field(default_factory=list[IntervalSkipped])
    covered: list[tuple[datetime | None, datetime]] = field(default_factory=list[tuple["datetime | None", datetime]])
    decided_through: datetime | None = None
    held: datetime | None = None
    ended: datetime | None = None
    runs: dict[int, str] = field(default_factory=dict[int, str])


def account(entries: Iterable[tuple[int, Entry]], calendar: Callable[[TriggerRule], Calendar]) -> list[ScheduleAccount]:
    """One account for each schedule, in the order of their creation."""
    recorded: dict[str, _Recorded] = {}
    last_at: datetime | None = None
    for sequence, entry in entries:
        last_at = entry.at
        _note(recorded, sequence, entry)
    return [_settle(key, one, last_at, calendar) for key, one in recorded.items() if last_at is not None]


def _note(recorded: dict[str, _Recorded], sequence: int, entry: Entry) -> None:
    if isinstance(entry, ScheduleCreated):
        recorded[entry.schedule_id] = _Recorded([(entry.covers_through, entry.definition.trigger)])
        return
    found = recorded.get(getattr(entry, "schedule_id", None) or "")
    if found is None:
        return
    match entry:
        case OccurrenceAdmitted() | OccurrenceSkipped() | OccurrenceSuperseded():
            found.decisions.setdefault(entry.scheduled_at, []).append(entry)
            found.decided_through = max(found.decided_through or entry.scheduled_at, entry.scheduled_at)
            found.held = None if found.held == entry.scheduled_at else found.held
            if isinstance(entry, OccurrenceAdmitted):
                found.runs[sequence] = "pending"
        case IntervalSkipped():
            found.intervals.append(entry)
        case CandidateHeld(scheduled_at=scheduled_at):
            found.held = scheduled_at
            found.decided_through = max(found.decided_through or scheduled_at, scheduled_at)
        case RunStarted() | RunCompleted() | RunFailed() | RunAbandoned():
            if entry.run_id in found.runs:
                found.runs[entry.run_id] = type(entry).__name__.removeprefix("Run").lower()
        case _:
            if isinstance(entry, BASELINES):
                _note_baseline(found, entry)


def _note_baseline(found: _Recorded, entry: Entry) -> None:
    if isinstance(entry, ScheduleRebaselined):
        found.covered.append((entry.covers_after or entry.through, entry.through))
    elif isinstance(entry, BASELINES):
        found.covered.append((entry.covers_after, entry.covers_through))
        if isinstance(entry, ScheduleEdited):
            found.rules.append((entry.covers_through, entry.definition.trigger))
        if isinstance(entry, ScheduleDeleted):
            found.ended = entry.covers_through


def _settle(
    schedule_id: str, recorded: _Recorded, last_at: datetime | None, calendar: Callable[[TriggerRule], Calendar]
) -> ScheduleAccount:
    result = ScheduleAccount(schedule_id, recorded.rules[-1][1])
    result.runs.update(recorded.runs.values())
    end = recorded.ended or last_at
    pending = dict(recorded.decisions)
    bounds = [*(start for start, _ in recorded.rules[1:]), end]
    begun = recorded.rules[0][0]
    covered = sorted((after or begun, through) for after, through in recorded.covered)
    for (start, rule), until in zip(recorded.rules, bounds, strict=True):
        source = calendar(rule)
        instant = source.next_after(start)
        while instant is not None and until is not None and instant <= until:
            result.due += 1
            _settle_one(result, recorded, pending.pop(instant, []), instant, covered)
            instant = source.next_after(instant)
    result.foreign.extend(sorted(pending))
    return result


def _settle_one(
    result: ScheduleAccount,
    recorded: _Recorded,
    decisions: list[Entry],
    instant: datetime,
    covered: list[tuple[datetime, datetime]],
) -> None:
    interval = next((one for one in recorded.intervals if one.after < instant < one.before), None)
    if len(decisions) + (interval is not None) > 1:
        result.double.append(instant)
    for decision in decisions:
        if isinstance(decision, OccurrenceAdmitted):
            result.admitted += 1
        elif isinstance(decision, OccurrenceSkipped):
            result.skipped[decision.reason] += 1
        else:
            result.superseded += 1
    if decisions:
        return
    if interval is not None and interval.reason == "superseded":
        result.superseded += 1
    elif interval is not None:
        result.skipped[interval.reason] += 1
    elif _lies_in(instant, covered):
        result.covered += 1
    elif instant == recorded.held or recorded.decided_through is None or instant > recorded.decided_through:
        result.waiting += 1
    else:
        result.unaccounted.append(instant)


def _lies_in(instant: datetime, covered: list[tuple[datetime, datetime]]) -> bool:
    at = bisect_right(covered, instant - INSTANT, key=lambda span: span[0])
    return any(after < instant <= through for after, through in covered[:at])
