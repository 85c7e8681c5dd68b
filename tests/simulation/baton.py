"""Threads that run one at a time, in an order that a seed decides.

Rules: each thread is a real one, so that locks and thread identities mean what they always mean; it runs until it
pauses (before a disk call that changes something, and before it takes a lock), and then the source of choices says who
goes on. A thread that waits for a lock is not chosen. When nobody can go on, that is a deadlock and an error.
"""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from random import Random
from types import TracebackType

from duly import Scheduler


class Deadlock(AssertionError):
    """Every thread waits for another."""


class _Task:
    def __init__(self, work: Callable[[], None], number: int) -> None:
        self.work = work
        self.number = number
        self.begun = False
        self.gate = threading.Semaphore(0)
        self.waits_for: BatonLock | None = None
        self.done = False
        self.error: BaseException | None = None


_queues: list[SimpleQueue[Callable[[], None]]] = []


def _queue_of(number: int) -> SimpleQueue[Callable[[], None]]:
    """Where the thread of this number takes its work from. Threads are kept: making one costs more than a switch."""
    while len(_queues) <= number:
        queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
        _queues.append(queue)
        threading.Thread(target=_serve, args=(queue,), daemon=True).start()
    return _queues[number]


def _serve(queue: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        queue.get()()


class Baton:
    """Hands the right to run from one thread to the next."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._tasks: list[_Task] = []
        self._current: _Task | None = None
        self._home = threading.Semaphore(0)

    def run(self, works: Sequence[Callable[[], None]]) -> None:
        """Runs all of them to their end, interleaved. Raises what one of them lets through."""
        self._tasks = [_Task(work, number) for number, work in enumerate(works)]
        self._pass_on()
        self._home.acquire()
        self._current = None
        for task in self._tasks:
            if task.error is not None:
                raise task.error

    def pause(self) -> None:
        """Lets another thread go on, or nobody; does nothing outside of `run`."""
        if self._current is not None:
            self._yield()

    def wait_for(self, lock: BatonLock) -> None:
        """Lets others go on until the lock is free."""
        task = self._current
        assert task is not None, "the lock is held, and nobody is left to release it"
        task.waits_for = lock
        try:
            self._yield()
        finally:
            task.waits_for = None

    def _yield(self) -> None:
        task = self._current
        assert task is not None
        if self._pass_on() is not task:
            task.gate.acquire()

    def _pass_on(self) -> _Task | None:
        """Chooses who runs next, wakes it if it is another, and says who it is."""
        before = self._current
        able = [one for one in self._tasks if not one.done and (one.waits_for is None or not one.waits_for.held)]
        if not able:
            if all(one.done for one in self._tasks):
                self._home.release()
                return None
            error = Deadlock("every thread waits for a lock")
            for one in self._tasks:
                one.error = one.error or error
            self._home.release()
            return None
        chosen = self._random.choice(able)
        self._current = chosen
        if not chosen.begun:
            chosen.begun = True
            _queue_of(chosen.number).put(lambda: self._carry(chosen))
        elif chosen is not before:
            chosen.gate.release()
        return chosen

    def _carry(self, task: _Task) -> None:
        try:
            task.work()
        except BaseException as error:  # it is raised again by `run`, in the thread of the test
            task.error = error
        task.done = True
        self._pass_on()


class BatonLock:
    """A lock whose waiting is the baton's affair. It stands in for `threading.Lock`."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self.held = False

    def acquire(self, blocking: bool = True) -> bool:
        self._baton.pause()
        while self.held:
            if not blocking:
                return False
            self._baton.wait_for(self)
        self.held = True
        return True

    def release(self) -> None:
        assert self.held, "a lock was released that nobody held"
        self.held = False

    def locked(self) -> bool:
        return self.held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def interleave(scheduler: Scheduler, baton: Baton) -> None:
    """From here on the scheduler's and the journal's locks pass through the baton."""
    journal = scheduler._journal
    for owner, name in ((scheduler, "_lock"), (journal, "_queue_lock"), (journal, "_commit_lock")):
        lock: threading.Lock = getattr(owner, name)
        assert not lock.locked(), name
        setattr(owner, name, BatonLock(baton))
    vars(journal).update(_gate=BatonLock(baton), _new_gate=partial(BatonLock, baton))
