"""The host's thread: it polls, begins what is offered, records how it ended, and keeps the journal open.

Rules:
- a run is begun only after its start is durable; nothing is begun while the journal is out of reach or the host stops;
- a result is kept until the journal holds it, over any number of failures and reopenings;
- everything reaches this thread through its inbox, and whoever puts something in wakes it: it never looks again "just
  in case";
- observers are told on this thread; one that raises is logged, and stops nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from threading import Condition, get_ident
from typing import Any, Final, Literal, TypeAlias

from duly.journal import Json
from duly.journal.errors import JournalError, JournalPoisoned
from duly.projections import Run
from duly.scheduler.decisions.runs import Failed, Result
from duly.scheduler.embedded import Scheduler
from duly.scheduler.errors import DefinitionError, NoTaskSlot, SchedulerClosed, SchedulerError, TriggerError
from duly.scheduler.execution import Attempt
from duly.scheduler.polls import Poll
from duly.scheduler.reconciling import EvidenceSource
from duly.scheduler.wording import describe_value
from duly.service.at_work import AtWork, Cancelled
from duly.service.events import Began, Closed, Draining, Ended, Event, JournalFailed, Observer, Opened, Polled, Warned
from duly.service.handlers import Handler, Workshop
from duly.service.knowledge import Knowledge
from duly.service.outliving import AdoptedActivity
from duly.service.output import Outputs
from duly.service.work import Work

HostState: TypeAlias = Literal["ready", "admitting", "reopening", "draining", "closed"]
"""`ready`: the journal is owned and recovered, and nothing runs yet."""
Call: TypeAlias = tuple[Callable[[], Any], "Future[Any]"]

FIRST_RETRY: Final = 0.1
LONGEST_RETRY: Final = 30.0
"""Seconds between two attempts to open a journal that failed."""
LAST_PATIENCE: Final = 5.0
"""Seconds in which a host that stops still tries to record what it knows."""
REAPING: Final = 1.0
"""Seconds for a killed process to be gone."""

_log: Final = logging.getLogger("duly.service")


class Loop:
    """What the host's thread does."""

    def __init__(  # noqa: PLR0913 - what a host brings
        self,
        open_scheduler: Callable[[EvidenceSource, Workshop], Scheduler],
        handlers: Mapping[str, Handler],
        *,
        outputs: Outputs,
        observers: Iterable[Observer] = (),
        drain_grace: timedelta = timedelta(seconds=30),
        kill_grace: timedelta = timedelta(seconds=5),
        resume_at_start: bool = False,
        evidence: EvidenceSource | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._observers = list(observers)
        self.drain_grace: Final = drain_grace
        self._kill_grace = kill_grace
        self._inbox: SimpleQueue[Result | Call | None] = SimpleQueue()
        self._calls: deque[Call] = deque()
        self._stops = 0
        self._broken: Exception | None = None
        self._retry_at = 0.0
        self._retry = FIRST_RETRY
        self._thread: int | None = None
        self._changed = Condition()
        self._at_work = AtWork(kill_grace)
        self._knowledge = Knowledge(self._at_work, evidence)
        self._workshop = Workshop(handlers, outputs, self._post, self._note, loop)
        self._open: Callable[[], Scheduler] = lambda: open_scheduler(self._knowledge, self._workshop)
        self._state: HostState = "ready"
        self.last_poll: tuple[Poll, float] | None = None
        """The newest poll, and when it was, on the monotonic clock in seconds."""
        self._scheduler = self._open()
        self._to_resume = deque(run.id for run in self._scheduler.recovery.interrupted if resume_at_start)

    # What reaches the thread

    def _post(self, item: Result | Call | None) -> None:
        self._inbox.put(item)
        self._scheduler.wake()

    def _note(self, run_id: int, data: Json) -> None:
        """Records JSON about a run, from any thread, over any failure of the journal. Raises SchedulerClosed."""
        while True:
            scheduler = self._scheduler
            try:
                scheduler.note_run(run_id, data)
            except (JournalError, SchedulerClosed):
                self._post(None)
                if not self._is_replaced(scheduler):
                    raise
            else:
                self._post(None)  # for those who watch the record
                return

    def _is_replaced(self, scheduler: Scheduler) -> bool:
        """Waits until another scheduler has taken this one's place, or the host is closed; whether one has."""
        with self._changed:
            self._changed.wait_for(lambda: self._scheduler is not scheduler or self._state == "closed")
        return self._scheduler is not scheduler

    def _take(self, seconds: float | None) -> None:
        """Waits for something to come in."""
        with suppress(Empty):
            self._keep(self._inbox.get(timeout=seconds))

    def _collect(self) -> None:
        """Takes what has come in."""
        with suppress(Empty):
            while True:
                self._keep(self._inbox.get_nowait())

    def _keep(self, item: Result | Call | None) -> None:
        if isinstance(item, tuple):
            self._calls.append(item)
            if self._state in ("draining", "closed"):
                self._refuse_calls()
        elif item is not None:
            result = self._at_work.settle(item)
            if result is not None:
                self._knowledge.unrecorded[result.run_id] = result

    def _tell(self, event: Event) -> None:
        for observer in tuple(self._observers):
            try:
                observer(event)
            except Exception:
                _log.exception("an observer raised, and was told %s", type(event).__name__)

    # One pass

    def _pass(self) -> None:
        self._poll_once()
        self._collect()
        self._make_calls()
        self._record()
        pause = self._at_work.enforce()
        if self.last_poll is not None:
            self._scheduler.wait(self.last_poll[0], pause)

    def _poll_once(self) -> None:
        self._resume_waiting()
        poll = self._scheduler.poll(start=True)
        self.last_poll = poll, time.monotonic()
        for run in poll.offered:
            self._begin(Work(run))
        self._tell(Polled(poll))

    def _begin(self, work: Work) -> None:
        try:
            activity = self._workshop.activity(work, {*self._at_work.ids, work.run.id})
            self._at_work.add(activity)
            activity.begin()
        except Exception as error:  # whatever keeps a run from beginning is how it ended
            self._at_work.discard(work.run.id)
            self._knowledge.unrecorded[work.run.id] = work.failed(error)
            self._post(None)
        self._tell(Began(work.run, work.attempt_id))

    def _make_calls(self) -> None:
        while self._calls:
            work, future = self._calls.popleft()
            try:
                future.set_result(work())
            except Exception as error:
                future.set_exception(error)
                if isinstance(error, JournalPoisoned):
                    raise

    def _refuse_calls(self) -> None:
        while self._calls:
            _, future = self._calls.popleft()
            future.set_exception(SchedulerClosed("the host does nothing more", hint="It is stopping: open another one"))

    def _resume(self, run_id: int) -> Attempt:
        attempt = self._scheduler.resume(run_id)
        self._begin(Work(attempt.run, attempt.attempt_id, attempt.checkpoint))
        return attempt

    def _resume_waiting(self) -> None:
        while self._to_resume:
            try:
                self._resume(self._to_resume[0])
            except NoTaskSlot:
                return
            except SchedulerError as error:
                self._tell(Warned(f"run {self._to_resume[0]} is not resumed: {error}", self._to_resume[0]))
            self._to_resume.popleft()

    # Results

    def _record(self) -> None:
        """Records all results that there are, in one fsync if the scheduler accepts every one of them."""
        results = tuple(self._knowledge.unrecorded.values())
        if not results:
            return
        try:
            runs = self._scheduler.report(results)
        except (JournalError, SchedulerClosed):
            raise
        except Exception:  # one of them is refused, or does something when it is looked at
            for result in results:
                self._record_one(result)
        else:
            for run, result in zip(runs, results, strict=True):
                self._recorded(run, result)

    def _record_one(self, result: Result) -> None:
        try:
            (run,) = self._scheduler.report([result])
        except (JournalError, SchedulerClosed):
            raise
        except Exception as error:
            if isinstance(error, SchedulerError) and not isinstance(error, DefinitionError):
                del self._knowledge.unrecorded[result.run_id]
                self._tell(Warned(f"the result of run {result.run_id} was refused: {error}", result.run_id))
                return
            # It is no JSON, or too much of it, or cannot even be looked at: the run has ended all the same.
            result = Failed(result.run_id, result.attempt_id, error)
            self._knowledge.unrecorded[result.run_id] = result
            (run,) = self._scheduler.report([result])
        self._recorded(run, result)

    def _recorded(self, run: Run, result: Result) -> None:
        del self._knowledge.unrecorded[run.id]
        self._tell(Ended(run, result))

    # A journal that fails

    def _guarded(self, step: Callable[[], None]) -> bool:
        """Does the step; whether the journal could take it."""
        try:
            step()
        except JournalError as error:
            self._scheduler.close()
            self._retry = FIRST_RETRY
            self._failed(error)
            return False
        except SchedulerClosed:  # somebody has closed it: nothing can be done any more
            self._stops = max(self._stops, 1)
            return False
        return True

    def _failed(self, error: Exception) -> None:
        self._broken = error
        self._retry_at = time.monotonic() + self._retry
        self._tell(JournalFailed(error, timedelta(seconds=self._retry)))

    def _mend(self) -> None:
        try:
            scheduler = self._open()
        except (JournalError, OSError) as error:
            self._retry = min(2 * self._retry, LONGEST_RETRY)
            self._failed(error)
            return
        self._broken = None
        self._scheduler = scheduler
        if self._stops:
            scheduler.stop_admitting()
        with self._changed:
            self._changed.notify_all()
        self._guarded(self._took_over)

    def _took_over(self) -> None:
        """What the journal took as evidence is recorded."""
        for result in tuple(self._knowledge.unrecorded.values()):
            run = self._scheduler.run(result.run_id)
            if run.state != "started" or run.attempt_id != result.attempt_id:
                self._recorded(run, result)
        self._tell(Opened(self._scheduler.recovery, again=True))
        self._adopt()

    def _adopt(self) -> None:
        """Watches what a dead host has left running."""
        for run, process, log in self._knowledge.outlived.values():
            work = Work(run, run.attempt_id, run.checkpoint)
            activity = AdoptedActivity(work, self._post, process, log, self._workshop.keeper)
            self._at_work.add(activity)
            activity.begin()
        self._knowledge.outlived.clear()

    # Waiting, and the end

    def _attend(self, seconds: float | None, enough: Callable[[], bool]) -> None:
        """Takes results and records them, mends the journal and ends what takes too long, until it is enough, or for
        so many seconds."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            self._collect()
            pauses = [self._at_work.enforce()]
            if self._broken is not None and self._retry_at <= time.monotonic():
                self._mend()
            if self._broken is None:
                self._guarded(self._record)
            if enough():
                return
            now = time.monotonic()
            if until is not None and until <= now:
                return
            pauses.append(None if until is None else until - now)
            pauses.append(None if self._broken is None else max(self._retry_at - now, 0.0))
            self._take(min((pause for pause in pauses if pause is not None), default=None))

    @contextmanager
    def _living(self, *, leave_adopted: bool = False) -> Generator[None]:
        if self._state != "ready":
            raise SchedulerClosed("the host has run already", hint="Open another one")
        self._thread = get_ident()
        self._state = "admitting"
        try:
            self._tell(Opened(self._scheduler.recovery))
            self._adopt()
            yield
        finally:
            self._shut_down(leave_adopted=leave_adopted)

    def _shut_down(self, *, leave_adopted: bool) -> None:
        """Reaches its end whatever is raised: the journal is released, and whoever waits for it is told."""
        try:
            self._drain(leave_adopted=leave_adopted)
        except BaseException:
            self._at_work.kill()
            raise
        finally:
            self._end(tuple(self._knowledge.unrecorded.values()))

    def _drain(self, *, leave_adopted: bool) -> None:
        self._stops = max(self._stops, 1)
        self._state = "draining"
        self._scheduler.stop_admitting()
        self._refuse_calls()
        if leave_adopted:
            self._at_work.leave_adopted()
        self._tell(Draining(self._at_work.ids, self.drain_grace))
        self._attend(self.drain_grace.total_seconds(), lambda: not self._at_work or self._stops > 1)
        if self._at_work:
            self._end_work()
        patience = LAST_PATIENCE if self._stops == 1 else FIRST_RETRY
        self._attend(patience, lambda: not self._knowledge.unrecorded)

    def _end_work(self) -> None:
        reason = Cancelled("cancelled at shutdown")
        self._at_work.cancel(reason)
        if self._stops == 1:
            self._attend(self._kill_grace.total_seconds(), lambda: not self._at_work or self._stops > 1)
        self._at_work.kill()
        self._attend(REAPING, lambda: not self._at_work.killable)
        for current in self._at_work:  # what cannot be ended from outside
            self._keep(current.activity.work.failed(reason))

    def _end(self, unrecorded: tuple[Result, ...]) -> None:
        try:
            self._scheduler.close()
        finally:
            self._state = "closed"
            with self._changed:
                self._changed.notify_all()
        self._collect()
        self._workshop.close()
        for result in unrecorded:
            _log.error("the journal was not told of %s", describe_value(result))
        self._tell(Closed(unrecorded))

    def _waiting(self, now: datetime) -> set[str]:
        """The schedules of which something was due at `now`, and is not decided."""
        found: set[str] = set()
        for schedule in self._scheduler.schedules():
            due = schedule.candidate
            with suppress(TriggerError):
                due = due or self._scheduler.next_due(schedule.id)
            if due is not None and due <= now:
                found.add(schedule.id)
        return found
