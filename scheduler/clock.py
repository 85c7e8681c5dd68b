"""The one clock: the only module of the core that may read the time.

Rules: eligibility uses the wall clock, waiting uses the monotonic clock, and both come from one `Clock`, so that tests
can stand in their own. A wait may end early; nothing is ever decided by a timer's word. No thread sleeps longer than a
moment at a time: Python runs the handler of a signal between two steps of the main thread, and one that comes after the
last of them, before the thread is asleep, is not met until it awakes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from queue import Empty, SimpleQueue
from typing import Final, Protocol, TypeVar

from duly.scheduler.errors import ClockUnusable
from duly.scheduler.instants import require_aware
from duly.scheduler.wording import describe_value

T = TypeVar("T")
MOMENT: Final = 1.0
"""Seconds."""
Wakeup = Callable[[float], bool]
"""Blocks up to so many seconds; True if something woke it."""


class Clock(Protocol):
    """Where a Scheduler learns the time."""

    def now(self) -> datetime:
        """The wall clock, as an aware datetime in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary beginning that no step of the wall clock changes."""
        ...

    def wait(self, seconds: float, wakeup: Wakeup) -> None:
        """Lets up to `seconds` pass, or less if `wakeup` wakes."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """The monotonic clock, in seconds."""
        return time.monotonic()

    def wait(self, seconds: float, wakeup: Wakeup) -> None:
        """Blocks until woken, or `seconds` long."""
        wakeup(seconds)


class CheckedClock:
    """Another clock, held to its word: its readings are aware, and come out in UTC."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        """The wall clock, in UTC. Raises ClockUnusable for a reading that names no instant."""
        reading = self._clock.now()
        if type(reading) is datetime and reading.tzinfo is UTC:
            return reading
        if not _is_aware(reading):
            raise ClockUnusable(
                f"the clock gave {describe_value(reading)}, which names no instant",
                hint="Let now() return an aware datetime in UTC",
            )
        return reading.astimezone(UTC)

    def monotonic(self) -> float:
        """The monotonic clock, in seconds."""
        return self._clock.monotonic()

    def wait(self, seconds: float, wakeup: Wakeup) -> None:
        """Waits as the other clock does."""
        self._clock.wait(seconds, wakeup)


def _is_aware(reading: object) -> bool:
    return isinstance(reading, datetime) and reading.utcoffset() is not None


class ManualClock:
    """A clock that stands still until it is told otherwise: for tests and simulations.

    `advance` lets time pass, on both clocks; `step` sets the wall clock forward or back while no time passes, as an
    administrator or a time server does. Waiting on it advances it at once.
    """

    def __init__(self, start: datetime) -> None:
        require_aware(start, "start")
        self._now = start.astimezone(UTC)
        self._elapsed = timedelta()

    def now(self) -> datetime:
        """The instant at which this clock stands, in UTC."""
        return self._now

    def monotonic(self) -> float:
        """How much time has passed, in seconds."""
        return self._elapsed.total_seconds()

    def advance(self, delta: timedelta) -> None:
        """Lets `delta` pass. Raises ValueError for a negative one: time does not run back, clocks are stepped back."""
        if delta < timedelta():
            raise ValueError(f"time cannot pass backwards ({delta}); use step() to set the clock back")
        self._now += delta
        self._elapsed += delta

    def step(self, delta: timedelta) -> None:
        """Sets the wall clock by `delta`, forward or back, while no time passes."""
        self._now += delta

    def wait(self, seconds: float, wakeup: Wakeup) -> None:
        """Advances by `seconds` at once, unless something has woken it already."""
        if not wakeup(0.0):
            self.advance(timedelta(seconds=seconds))


def take(queue: SimpleQueue[T], seconds: float | None) -> T:
    """What comes out of the queue within so many seconds, or ever. Raises queue.Empty."""
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        left = MOMENT if until is None else until - time.monotonic()
        try:
            return queue.get_nowait() if left <= 0 else queue.get(timeout=min(left, MOMENT))
        except Empty:
            if left <= 0:
                raise
