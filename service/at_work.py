"""What is at work: each run with its activity, its time, and why it was asked to end.

Rules: only the host's thread changes this; no more is executed at once than there are task slots, whatever the record
says of the runs; work that was asked to end is given its reason once, and only an interruption is still believed of it
afterwards; a word about work that is no longer there, or no longer asked for, is no result.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final

import msgspec

from duly.projections import Run
from duly.scheduler.decisions.runs import Failed, Interrupted, Result
from duly.service.work import Activity

FOREVER: Final = 1e9
"""Seconds; a longer limit is none."""

_log: Final = logging.getLogger("duly.service")


class TimedOut(Exception):
    """A run that took longer than its `limits.timeout`."""


class Cancelled(Exception):
    """A run that was ended because its host shut down, or because it was given up."""


class Current(msgspec.Struct):
    """One activity; times are of the monotonic clock, in seconds.

    One that has not `begun` waits for room. One that is `given_up` has ended in the record, by somebody's word, and
    goes on.
    """

    activity: Activity
    begun: bool = False
    given_up: bool = False
    ends_at: float | None = None
    reason: Exception | None = None
    kill_at: float | None = None

    @property
    def run(self) -> Run:
        """The run that is executed."""
        return self.activity.work.run


class AtWork:
    """All that is being executed, or is about to be, by run id."""

    def __init__(self, task_slots: int, kill_grace: timedelta) -> None:
        self._current: dict[int, Current] = {}
        self._task_slots = task_slots
        self._kill_grace = kill_grace.total_seconds()
        self.ended = 0
        """How many were at work and are not any more."""

    def __len__(self) -> int:
        return len(self._current)

    def __iter__(self) -> Iterator[Current]:
        return iter(tuple(self._current.values()))

    def __contains__(self, run_id: int) -> bool:
        return run_id in self._current

    @property
    def ids(self) -> tuple[int, ...]:
        """The runs that are executed, in the order in which they began."""
        return tuple(current.run.id for current in self if current.begun)

    @property
    def own(self) -> tuple[int, ...]:
        """Those that this host has begun itself, or will."""
        return tuple(current.run.id for current in self if not current.activity.adopted)

    @property
    def killable(self) -> tuple[int, ...]:
        """Those whose end can be brought about from outside."""
        return tuple(current.run.id for current in self if current.activity.killable)

    @property
    def full(self) -> bool:
        """Whether there is no room for another one."""
        return len(self) >= self._task_slots

    def add(self, activity: Activity) -> None:
        """Takes note of an activity that is to begin when there is room."""
        self._current[activity.work.run.id] = Current(activity)

    def begin(self, fail: Callable[[Activity, Exception], None]) -> None:
        """Begins what there is room for, the oldest first; `fail` is told what could not begin, and why.

        Room is a task slot, and a schedule whose runs that were given up have ended.
        """
        for current in self:
            if not current.begun and self._has_room_for(current):
                self._begin(current, fail)

    def adopt(self, activity: Activity, fail: Callable[[Activity, Exception], None]) -> None:
        """Watches what runs already."""
        self.add(activity)
        self._begin(self._current[activity.work.run.id], fail)

    def leave_adopted(self) -> None:
        """Forgets what a dead host began: it is left alone, unless it was asked to end."""
        for current in self:
            if current.activity.adopted and current.reason is None:
                del self._current[current.run.id]
                current.activity.leave()

    def give_up(self, run_id: int, reason: Exception) -> None:
        """The record says that this run, or this attempt of it, has ended: its work is asked to end, too."""
        current = self._current[run_id]
        current.given_up = True
        if not current.begun:
            del self._current[run_id]
        elif current.reason is None:
            self._ask(current, reason, time.monotonic())

    def settle(self, result: Result) -> Result | None:
        """The result as it is to be recorded, now that its activity has ended; None if it is no word of one."""
        current = self._current.get(result.run_id)
        if current is None or current.activity.work.attempt_id != result.attempt_id:
            return None
        del self._current[result.run_id]
        self.ended += 1
        if current.given_up:
            return None
        if current.reason is None or isinstance(result, Interrupted):
            return result
        return Failed(result.run_id, result.attempt_id, current.reason)

    def enforce(self) -> float | None:
        """Ends what has taken too long; seconds until there may be more to enforce, None if nothing waits for it."""
        now = time.monotonic()
        following: list[float] = []
        for current in self:
            if current.reason is None and current.ends_at is not None and current.ends_at <= now:
                limit = current.run.limits["timeout"]
                self._ask(current, TimedOut(f"timed out after {limit} s"), now)
            elif current.kill_at is not None and current.kill_at <= now:
                self._kill(current)
            due = current.ends_at if current.reason is None else current.kill_at
            if due is not None:
                following.append(due)
        return max(min(following) - now, 0.0) if following else None

    def cancel(self, reason: Exception) -> None:
        """Asks everything to end."""
        now = time.monotonic()
        for current in self:
            if current.reason is None:
                self._ask(current, reason, now)

    def kill(self) -> None:
        """Ends everything that can be ended."""
        for current in self:
            self._kill(current)

    def _has_room_for(self, current: Current) -> bool:
        if len(self.ids) >= self._task_slots:
            return False
        schedule_id = current.run.schedule_id
        if schedule_id is None or current.run.manual:
            return True
        return not any(one.given_up and one.run.schedule_id == schedule_id and not one.run.manual for one in self)

    def _begin(self, current: Current, fail: Callable[[Activity, Exception], None]) -> None:
        limit = current.run.limits.get("timeout")
        current.begun = True
        if isinstance(limit, int | float):
            current.ends_at = time.monotonic() + min(limit, FOREVER) - current.activity.elapsed
        try:
            current.activity.begin()
        except Exception as error:  # whatever keeps a run from beginning is how it ended
            fail(current.activity, error)

    def _ask(self, current: Current, reason: Exception, now: float) -> None:
        current.reason = reason
        current.kill_at = now + self._kill_grace
        try:
            current.activity.ask_to_stop()
        except Exception:  # it may still end by itself, and is killed later
            _log.exception("run %s could not be asked to end", current.run.id)

    def _kill(self, current: Current) -> None:
        current.kill_at = None
        try:
            current.activity.kill()
        except Exception:
            _log.exception("run %s could not be ended", current.run.id)
