"""What is watched: a host, or a scheduler that a program polls by itself, behind one face.

Rules: nothing here waits for the journal longer than one question takes; a scheduler without a host has no poll that
could be seen, and says so with None.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol, TypeVar

import msgspec

from duly.journal.errors import JournalError
from duly.scheduler.embedded import Scheduler
from duly.scheduler.errors import SchedulerClosed
from duly.scheduler.execution import Attempt
from duly.scheduler.polls import LONGEST_WAIT, Poll
from duly.service.loop import HostState

T = TypeVar("T")
OLDEST_POLL: Final = timedelta(seconds=2 * LONGEST_WAIT)
"""A host that has not polled for so long is stuck."""


class Watched(Protocol):
    """What a service serves: a `Host` is one."""

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler as it is now."""
        ...

    @property
    def state(self) -> HostState:
        """Where in its life it is."""
        ...

    @property
    def failure(self) -> Exception | None:
        """Why the journal is out of reach, or None."""
        ...

    @property
    def at_work(self) -> tuple[int, ...]:
        """The runs that are being executed."""
        ...

    @property
    def last_poll(self) -> tuple[Poll, float] | None:
        """The newest poll, and when it was, on the monotonic clock."""
        ...

    def ask(self, question: Callable[[Scheduler], T]) -> T:
        """Asks, or tells, the scheduler something."""
        ...

    def resume(self, run_id: int) -> Attempt:
        """Resumes an interrupted run."""
        ...


class Alone:
    """A scheduler that its program polls: it is ready as long as it answers."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.last_poll: tuple[Poll, float] | None = None
        self.at_work: tuple[int, ...] = ()

    @property
    def state(self) -> HostState:
        """`admitting`, or `draining` once it was stopped."""
        return "draining" if self.scheduler.stopping else "admitting"

    @property
    def failure(self) -> Exception | None:
        """Why it does not answer, or None."""
        try:
            self.scheduler.find("")
        except (JournalError, SchedulerClosed) as error:
            return error
        return None

    def ask(self, question: Callable[[Scheduler], T]) -> T:
        """Asks, or tells, the scheduler something."""
        return question(self.scheduler)

    def resume(self, run_id: int) -> Attempt:
        """Resumes an interrupted run; whoever asked for it executes it."""
        return self.scheduler.resume(run_id)


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the journal is owned and can be written, and the last poll is young; `problem` says what is not so.

    `poll_age` is in seconds, None without a poll that can be seen.
    """

    ready: bool
    state: HostState
    problem: str = ""
    poll_age: float | None = None


def health_of(watched: Watched, now: Callable[[], float] = time.monotonic) -> Health:
    """How it is."""
    state, last = watched.state, watched.last_poll
    age = None if last is None else max(now() - last[1], 0.0)
    problem = _problem(watched, state, age)
    return Health(ready=not problem, state=state, problem=problem, poll_age=age)


def _problem(watched: Watched, state: HostState, age: float | None) -> str:
    failure = watched.failure
    if failure is not None:
        return f"the journal is out of reach: {failure}"
    if state != "admitting":
        return f"the host is {state}"
    if age is not None and age > OLDEST_POLL.total_seconds():
        return f"the last poll was {age:.0f} s ago"
    return ""
