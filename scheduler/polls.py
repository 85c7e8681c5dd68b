"""Polling: the shell around admission, and the waiting between polls.

Rules: one clock reading for each poll; nothing is decided before its instant, however early a wait ends; a poll that
decides nothing writes nothing. Waiting measures the monotonic clock, and never longer than `LONGEST_WAIT`, so that a
suspended machine or a stepped clock is noticed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from duly.journal.entries import ClockJumped, Entry, OccurrenceAdmitted
from duly.projections import Run
from duly.scheduler.copies import entry_copy, run_copy
from duly.scheduler.decisions.admission import decide_poll, decide_regression
from duly.scheduler.decisions.plans import PollPlan, PollRequest
from duly.scheduler.errors import SchedulerClosed
from duly.scheduler.instants import describe_instant, in_range
from duly.scheduler.shell import Shell

LONGEST_WAIT: Final = 60.0
"""Seconds."""

_NO_TIME: Final = timedelta()
_NOTHING: Final = PollPlan((), (), (), {}, False)
_log: Final = logging.getLogger("duly")


class Poll(msgspec.Struct, frozen=True, kw_only=True):
    """What one poll did.

    `offered` are the runs to start, oldest first; `admitted` those of them, or beyond them, that this poll admitted;
    `decisions` all entries with their sequences. `next_due` is when there will be something to decide, in UTC, or None.
    `more` means that the batch was full: poll again at once. `warnings` are for people.
    """

    now: datetime
    admitted: tuple[Run, ...] = ()
    offered: tuple[Run, ...] = ()
    decisions: tuple[tuple[int, Entry], ...] = ()
    next_due: datetime | None = None
    more: bool = False
    warnings: tuple[str, ...] = ()
    changes: int = 0


class Polling(Shell):
    """The part of the Scheduler that decides occurrences."""

    _last_reading: tuple[datetime, float] | None = None

    def poll(self, *, start: bool = False) -> Poll:
        """Decides what is due, and offers runs; all of it is durable when this returns.

        With `start`, the runs that are offered are recorded as started, in the same fsync. Raises JournalPoisoned,
        SchedulerClosed.
        """
        poll = self._exclusively(lambda: self._poll(start))
        for warning in poll.warnings:
            _log.warning("%s", warning)
        return poll

    def wait(self, poll: Poll, timeout: float | None = None) -> None:
        """Lets time pass until there may be something to decide: the poll's `next_due`, a change by another thread, a
        stop, `timeout` seconds, or a minute, whichever comes first. A ManualClock is advanced instead."""
        if poll.more or self.stopping:
            return
        seconds = LONGEST_WAIT if timeout is None else min(max(timeout, 0.0), LONGEST_WAIT)
        if poll.next_due is not None:
            seconds = min(seconds, max((poll.next_due - self._clock.now()).total_seconds(), 0.0))
        self._sleep(seconds, poll.changes)

    def polls(self, *, start: bool = False) -> Iterator[Poll]:
        """Polls and waits, again and again, until the scheduler is stopped."""
        while not self.stopping:
            try:
                poll = self.poll(start=start)
            except SchedulerClosed:
                return
            yield poll
            self.wait(poll)

    @property
    def stopping(self) -> bool:
        """Whether `stop_admitting` or `close` was called."""
        return self._closed or not self._admitting

    def stop_admitting(self) -> None:
        """From now on polls decide and offer nothing; what is due stays due.

        Takes no lock, so that a signal handler may call it.
        """
        self._admitting = False
        self.wake()

    def _poll(self, start: bool) -> Poll:
        now = self._clock.now()
        if not in_range(now):
            text = f"the clock reads {now.isoformat()}, outside of 1972 to 2100: nothing is decided"
            return Poll(now=now, warnings=(text,), changes=self._changes)
        if not self._admitting:
            return Poll(now=now, next_due=self._agenda.next_due(), changes=self._changes)
        changes = self._changes
        decisions, warnings = self._observe_clock(now)
        plan = self._decide(now, start, decisions) if self._may_decide(now) else _NOTHING
        if not (decisions or warnings or plan.offered):
            return Poll(now=now, next_due=self._agenda.next_due(), changes=changes)
        runs = self._state.runs_open
        offered = {run_id: run_copy(runs[run_id]) for run_id in plan.offered}
        admitted = [sequence for sequence, entry in decisions if isinstance(entry, OccurrenceAdmitted)]
        return Poll(
            now=now,
            admitted=tuple(offered[run_id] if run_id in offered else run_copy(runs[run_id]) for run_id in admitted),
            offered=tuple(offered.values()),
            decisions=tuple((sequence, entry_copy(entry)) for sequence, entry in decisions),
            next_due=self._agenda.next_due(),
            more=plan.more,
            warnings=tuple(warnings),
            changes=changes,
        )

    def _may_decide(self, now: datetime) -> bool:
        """Whether there is anything to decide or to offer; a look at the index, and at nothing else."""
        if self._agenda.due(now) or self._state.pending:
            return True
        return bool(self._agenda.queued) and len(self._state.started) < self._settings().task_slots

    def _decide(self, now: datetime, start: bool, decisions: list[tuple[int, Entry]]) -> PollPlan:
        settings = self._settings()
        request = PollRequest(
            now=now,
            task_slots=settings.task_slots,
            batch=settings.batch,
            due=self._agenda.due(now),
            queued=self._agenda.queued,
            source_of=self._source_for,
            start=start,
            asks_target=self._answers.has_targets,
            asks_preflight=self._answers.has_preflight,
        )
        plan = self._answers.drive(decide_poll(self._state, request))
        decisions.extend(enumerate(plan.entries, self._record(plan.entries, now, plan.upcoming)))
        decided = {getattr(entry, "schedule_id", None) for entry in plan.entries}
        for schedule_id, instant in plan.upcoming.items():
            if schedule_id not in decided:
                self._agenda.place(self._state.by_id[schedule_id], instant)
        self._agenda.wait(plan.waiting, looking=self._answers.has_targets)
        return plan

    def _observe_clock(self, now: datetime) -> tuple[list[tuple[int, Entry]], list[str]]:
        """Records what the clock did wrong, before anything is decided by it."""
        tolerance = self._settings().clock_tolerance
        observed: list[Entry] = []
        warnings: list[str] = []
        ahead = self._compare_clocks(now)
        if ahead > tolerance:
            observed.append(ClockJumped(at=now, ahead=ahead))
            warnings.append(f"the clock jumped ahead by {ahead}, to {describe_instant(now)}")
        regression = decide_regression(self._state, now, tolerance)
        if regression is not None:
            observed.append(regression)
            warnings.append(
                f"the clock reads {describe_instant(now)}, and the journal's time is ahead of it, at "
                f"{describe_instant(regression.highest)}: every schedule goes on from now"
            )
        if not observed:
            return [], warnings
        return list(enumerate(observed, self._record(observed, now))), warnings

    def _compare_clocks(self, now: datetime) -> timedelta:
        """How far the wall clock ran ahead of the monotonic one since this was last asked; never less than nothing."""
        passed = self._clock.monotonic()
        last, self._last_reading = self._last_reading, (now, passed)
        if last is None:
            return _NO_TIME
        wall, elapsed = now - last[0], passed - last[1]
        return wall - timedelta(seconds=elapsed) if wall.total_seconds() > elapsed else _NO_TIME
