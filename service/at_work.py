"""What is at work: each run with its activity, its time, and why it was asked to end.

Rules: only the host's thread changes this; work that was asked to end is given its reason once, and only an
interruption is still believed of it afterwards; a word about work that is no longer there is no result.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import msgspec

from duly.projections import Run
from duly.scheduler.decisions.runs import Failed, Interrupted, Result
from duly.service.work import Activity


class TimedOut(Exception):
    """A run that took longer than its `limits.timeout`."""


class Cancelled(Exception):
    """A run that was ended because its host shut down."""


class Current(msgspec.Struct):
    """One activity; times are of the monotonic clock, in seconds."""

    activity: Activity
    ends_at: float | None = None
    reason: Exception | None = None
    kill_at: float | None = None

    @property
    def run(self) -> Run:
        """The run that is executed."""
        return self.activity.work.run


class AtWork:
    """All that is being executed, by run id."""

    def __init__(self, kill_grace: timedelta) -> None:
        self._current: dict[int, Current] = {}
        self._kill_grace = kill_grace.total_seconds()

    def __len__(self) -> int:
        return len(self._current)

    def __iter__(self) -> Iterator[Current]:
        return iter(tuple(self._current.values()))

    def __contains__(self, run_id: int) -> bool:
        return run_id in self._current

    @property
    def ids(self) -> tuple[int, ...]:
        """The runs, in the order in which they began."""
        return tuple(self._current)

    @property
    def own(self) -> tuple[int, ...]:
        """Those that this host has begun itself."""
        return tuple(run_id for run_id, current in self._current.items() if not current.activity.adopted)

    @property
    def killable(self) -> tuple[int, ...]:
        """Those whose end can be brought about from outside."""
        return tuple(run_id for run_id, current in self._current.items() if current.activity.killable)

    def leave_adopted(self) -> None:
        """Forgets what a dead host began: it is left alone."""
        for run_id in set(self._current) - set(self.own):
            del self._current[run_id]

    def discard(self, run_id: int) -> None:
        """Forgets an activity that could not begin."""
        self._current.pop(run_id, None)

    def add(self, activity: Activity) -> None:
        """Takes note of an activity that is about to begin."""
        limit = activity.work.run.limits.get("timeout")
        ends_at = time.monotonic() + limit if isinstance(limit, int | float) else None
        self._current[activity.work.run.id] = Current(activity, ends_at)

    def settle(self, result: Result) -> Result | None:
        """The result as it is to be recorded, now that its activity has ended; None if it is no word of one."""
        current = self._current.get(result.run_id)
        if current is None or current.activity.work.attempt_id != result.attempt_id:
            return None
        del self._current[result.run_id]
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
                current.kill_at = None
                current.activity.kill()
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
            current.kill_at = None
            current.activity.kill()

    def _ask(self, current: Current, reason: Exception, now: float) -> None:
        current.reason = reason
        current.kill_at = now + self._kill_grace
        current.activity.ask_to_stop()
