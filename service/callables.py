"""Python handlers: functions in threads of their own, coroutines on one event loop.

Rules: a handler's return value is the run's result, what it raises is the run's failure; a thread cannot be ended from
outside, a coroutine is cancelled.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from threading import Lock, Thread
from typing import TypeAlias, TypeGuard

from duly.journal.entries import Json
from duly.scheduler.decisions.runs import Result
from duly.service.work import Activity, Report, Work

Function: TypeAlias = Callable[[Work], Json]
CoroutineFunction: TypeAlias = Callable[[Work], Awaitable[Json]]


def is_coroutine_function(handler: object) -> TypeGuard[CoroutineFunction]:
    """Whether calling the handler gives a coroutine: an `async def`, or an object whose `__call__` is one."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004 - its kind is asked for, not whether there is one


class ThreadActivity(Activity):
    """A function, in a thread of its own."""

    def __init__(self, work: Work, report: Report, function: Function) -> None:
        super().__init__(work, report)
        self._function = function

    def begin(self) -> None:
        """Starts the thread. It is a daemon: a function that ignores `stopping` must not keep a program alive."""
        Thread(target=self._execute, name=f"duly run {self.work.run.id}", daemon=True).start()

    def _execute(self) -> None:
        try:
            result = self._function(self.work)
        except BaseException as error:  # whatever a handler raises, SystemExit too, is how its run ended
            self.report(self.work.ended_by(error))
        else:
            self.report(self.work.completed(result))


class CoroutineActivity(Activity):
    """A coroutine, as a task of an event loop."""

    def __init__(
        self, work: Work, report: Report, function: CoroutineFunction, loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        super().__init__(work, report)
        self._function = function
        self._loop = loop()
        self._task: asyncio.Task[Result] | None = None

    def begin(self) -> None:
        """Hands the coroutine to the loop. Raises RuntimeError if the loop is closed."""
        self._loop.call_soon_threadsafe(self._make_task)

    def ask_to_stop(self) -> None:
        """Cancels the task, which may still clean up, or answer with an Interruption."""
        super().ask_to_stop()
        try:
            self._loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:  # the loop is closed, and whatever became of the task, it never goes on
            self.report(self.work.failed("its event loop is closed"))

    def _make_task(self) -> None:
        self._task = self._loop.create_task(self._executed())
        # Told by the task, and not from within: one that is cancelled before its first step never comes inside.
        self._task.add_done_callback(self._tell)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _tell(self, task: asyncio.Task[Result]) -> None:
        self.report(self.work.failed("cancelled") if task.cancelled() else task.result())

    async def _executed(self) -> Result:
        try:
            result = await self._function(self.work)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # whatever a handler raises is how its run ended
            return self.work.ended_by(error)
        return self.work.completed(result)


class LoopThread:
    """One event loop in a thread of its own, which begins when it is first needed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    def __call__(self) -> asyncio.AbstractEventLoop:
        """The loop, running."""
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = Thread(target=self._run, args=(loop,), name="duly coroutines", daemon=True)
                try:
                    thread.start()
                except BaseException:
                    loop.close()
                    raise
                self._loop, self._thread = loop, thread
            return self._loop

    def close(self) -> None:
        """Ends the loop, if it ever began."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(5)

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
            # What was cancelled at shutdown and is not over yet gets a last chance to clean up.
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=1))
        finally:
            loop.close()
