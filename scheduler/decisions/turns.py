"""One schedule's turns within a poll, and what its instants are measured by.

Rules: an occurrence is timely up to its deadline and missed from then on; a calendar period is spent by the set of
what ran in it, never by the newest row.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime, timedelta
from typing import Final

from duly.journal.entries import OncePerRule
from duly.projections import ranges
from duly.projections.schedules import ScheduleState
from duly.scheduler.decisions.occurrences import Due
from duly.scheduler.periods import period_end

TICK: Final = timedelta(microseconds=1)


def deadline(schedule: ScheduleState, instant: datetime) -> datetime:
    """The first instant at which an occurrence is missed."""
    rule = schedule.definition.trigger
    if isinstance(rule, OncePerRule):
        return period_end(instant, rule.period, rule.zone)
    return instant + schedule.definition.lateness + TICK


def spending(schedule: ScheduleState, instant: datetime) -> int | None:
    """The lowest sequence that spent the calendar period of `instant`, or None: always None without periods."""
    rule = schedule.definition.trigger
    if not isinstance(rule, OncePerRule) or not schedule.spent:
        return None
    end = period_end(instant, rule.period, rule.zone)
    first = bisect_left(schedule.spent, (instant, 0))
    last = bisect_left(schedule.spent, (end, 0))
    return min((sequence for _, sequence in schedule.spent[first:last]), default=None)


class Turn:
    """How far one schedule has come within this poll."""

    __slots__ = ("active", "blocking", "candidate", "due", "finished", "kept", "position", "schedule", "through")

    def __init__(self, schedule: ScheduleState) -> None:
        self.schedule = schedule
        self.through = schedule.consumed_through
        self.candidate = schedule.candidate
        self.kept = schedule.kept
        self.active = len(schedule.active)
        self.blocking = schedule.active[0] if schedule.active else 0
        self.due: Due | None = None
        self.position = 0
        self.finished = False

    @property
    def limit(self) -> int:
        return self.schedule.definition.max_active_runs or 1

    def keep(self, instant: datetime) -> None:
        """Notes a decision that stays. If it makes ranges join, what lies between them counts as decided from now on,
        and what is due has to be asked anew."""
        joins = len(self.kept) >= ranges.MOST and ranges.joined_gap(self.kept, instant, self.through) is not None
        self.kept = ranges.extended(self.kept, instant, self.through)
        if joins:
            self.due = None
            self.position = 0
