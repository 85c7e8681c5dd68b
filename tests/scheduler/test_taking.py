"""Waiting for another thread's word: no sleep is long, and all of them together are as long as was asked."""

from __future__ import annotations

import os
import signal
import threading
import time
from queue import Empty, SimpleQueue

import pytest

from duly.scheduler import clock
from duly.scheduler.clock import MOMENT, take


class Watched(SimpleQueue[int]):
    """Notes how long it sleeps, and after the last sleep has something."""

    def __init__(self, sleeps: int) -> None:
        super().__init__()
        self.sleeps: list[float] = []
        self._wanted = sleeps

    def get(self, block: bool = True, timeout: float | None = None) -> int:
        assert block
        assert timeout is not None
        self.sleeps.append(timeout)
        if len(self.sleeps) < self._wanted:
            raise Empty
        return 7


def test_a_signal_that_comes_before_the_sleep_is_met_after_a_moment():
    for seconds in (None, 3600.0):
        queue = Watched(5)
        assert (take(queue, seconds), queue.sleeps) == (7, [MOMENT] * 5)


def test_no_moment_adds_to_the_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clock, "MOMENT", 0.001)
    begun = time.monotonic()
    with pytest.raises(Empty):
        take(SimpleQueue[int](), 0.5)
    assert 0.5 <= time.monotonic() - begun < 2


def test_what_is_there_is_taken_without_a_sleep():
    queue = Watched(0)
    queue.put(3)
    assert (take(queue, 0), queue.sleeps) == (3, [])
    with pytest.raises(Empty):
        take(queue, -1)


@pytest.mark.skipif(os.name != "posix", reason="signals between threads")
def test_a_signal_wakes_at_once():
    queue = SimpleQueue[int]()
    before = signal.signal(signal.SIGUSR1, lambda _number, _frame: queue.put(1))
    try:
        sender = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        sender.start()
        assert take(queue, 30) == 1
        sender.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
