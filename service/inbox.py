"""What reaches a host's thread: results, calls of other threads, and the mere wish that it looks.

Rules: putting something in takes no lock that a signal handler could meet; a call is made on the host's thread or
refused, and one that its caller has cancelled is neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from duly.journal.errors import JournalPoisoned
from duly.scheduler.clock import take
from duly.scheduler.decisions.runs import Result
from duly.scheduler.errors import SchedulerClosed

Call: TypeAlias = tuple[Callable[[], Any], "Future[Any]"]
Item: TypeAlias = Result | Call | None


class Inbox:
    """The inbox of one host."""

    def __init__(self, keep: Callable[[Result], None]) -> None:
        """`keep` takes the results, on the host's thread."""
        self._keep = keep
        self._items: SimpleQueue[Item] = SimpleQueue()
        self._calls: deque[Call] = deque()

    def put(self, item: Item) -> None:
        """Puts something in, from any thread."""
        self._items.put(item)

    def wait(self, seconds: float | None) -> None:
        """Waits for something to come in."""
        with suppress(Empty):
            self._take(take(self._items, seconds))

    def collect(self) -> None:
        """Takes what has come in."""
        with suppress(Empty):
            while True:
                self._take(self._items.get_nowait())

    def make_calls(self) -> None:
        """Makes the calls that were collected. Raises JournalPoisoned if one of them found that."""
        for work, future in self._taken():
            try:
                outcome = work()
            except BaseException as error:
                future.set_exception(error)
                if isinstance(error, JournalPoisoned) or not isinstance(error, Exception):
                    raise
            else:
                future.set_result(outcome)

    def refuse_calls(self) -> None:
        """Refuses the calls that were collected."""
        for _, future in self._taken():
            future.set_exception(SchedulerClosed("the host does nothing more", hint="It is stopping: open another one"))

    def _taken(self) -> Iterator[Call]:
        with suppress(IndexError):  # another thread may refuse calls, once the host is closed
            while True:
                work, future = self._calls.popleft()
                if future.set_running_or_notify_cancel():
                    yield work, future

    def _take(self, item: Item) -> None:
        if isinstance(item, tuple):
            self._calls.append(item)
        elif item is not None:
            self._keep(item)
