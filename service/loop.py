"""The host's thread: it polls, begins what is offered, records how it ended, and keeps the journal open.

Rules:
- a run is begun only after its start is durable; nothing is begun while the journal is out of reach or the host stops;
- everything reaches this thread through its inbox, and whoever puts something in wakes it: it never looks again "just
  in case";
- observers are told on this thread; one that raises is logged, and stops nothing.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import timedelta
from threading import Condition, get_ident
from typing import Final, Literal, TypeAlias

from duly.journal import Disk, Json
from duly.journal.errors import Error, JournalError, JournalPoisoned
from duly.scheduler.decisions.runs import Result
from duly.scheduler.embedded import Scheduler
from duly.scheduler.errors import NoTaskSlot, SchedulerClosed, SchedulerError, WrongRunState
from duly.scheduler.execution import Attempt
from duly.scheduler.polls import Poll
from duly.scheduler.reconciling import EvidenceSource
from duly.scheduler.wording import describe_value
from duly.service.at_work import AtWork, Cancelled, Current
from duly.service.events import Began, Closed, Draining, Event, JournalFailed, Observer, Opened, Polled, Warned
from duly.service.handlers import Handler, Workshop
from duly.service.inbox import Inbox, Item
from duly.service.knowledge import Knowledge
from duly.service.outliving import AdoptedActivity, noted
from duly.service.output import Outputs
from duly.service.results import Results, recordable
from duly.service.settings import Settings
from duly.service.tenure import Tenure
from duly.service.work import Activity, Work

HostState: TypeAlias = Literal["ready", "admitting", "reopening", "draining", "closed"]
"""`ready`: the journal is owned and recovered, and nothing runs yet."""
OpenScheduler: TypeAlias = Callable[[EvidenceSource, Workshop, bool], Scheduler]

LAST_PATIENCE: Final = 5.0
"""Seconds in which a host that stops still tries to record what it knows."""
LAST_WORDS: Final = 0.1
"""The same, after a second stop."""
REAPING: Final = 5.0
"""Seconds for a killed process to be gone, on a machine that has much else to do."""

_log: Final = logging.getLogger("duly.service")


class Loop:
    """What the host's thread does; a `Host` is its face."""

    def __init__(  # noqa: PLR0913 - what a host brings
        self,
        open_scheduler: OpenScheduler,
        disk: Disk,
        settings: Settings,
        *,
        handlers: Mapping[str, Handler],
        outputs: Outputs,
        observers: Iterable[Observer],
    ) -> None:
        self.settings: Final = settings
        self.observers: Final = list(observers)
        self.changed: Final = Condition()
        """Told of each other scheduler, and of the end."""
        self.at_work: Final = AtWork(settings.task_slots, settings.kill_grace)
        self.results: Final = Results(self.tell)
        self.inbox: Final = Inbox(self._settle)
        self.state: HostState = "ready"
        self.thread: int | None = None
        self.stops = 0
        self.last_poll: tuple[Poll, float] | None = None
        self._leaves_adopted = False
        self._knowledge = Knowledge(self.at_work, self.results.unrecorded, settings.evidence)
        self._workshop = Workshop(handlers, outputs, self._report, self._note, settings.loop)

        def open_with_evidence(again: bool) -> Scheduler:
            self._knowledge.forget()
            return open_scheduler(self._knowledge, self._workshop, again)

        self.tenure: Final = Tenure(open_with_evidence, disk)
        interrupted = self.scheduler.recovery.interrupted
        self.to_resume: Final = deque(run.id for run in interrupted if settings.resume_at_start)

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler as it is now."""
        return self.tenure.scheduler

    # What reaches the thread

    def post(self, item: Item) -> None:
        """Puts something into the inbox, and wakes the thread. Takes no lock."""
        self.inbox.put(item)
        self.scheduler.wake()

    def _report(self, result: Result) -> None:
        self.post(recordable(result))

    def _settle(self, result: Result) -> None:
        settled = self.at_work.settle(result)
        if settled is not None:
            self.results.keep(settled)

    def _note(self, run_id: int, data: Json) -> None:
        """Records JSON about a run, from any thread, over any failure of the journal. Raises SchedulerClosed."""
        while True:
            scheduler = self.scheduler
            try:
                scheduler.note_run(run_id, data)
            except (JournalPoisoned, SchedulerClosed):
                self.post(None)
                if not self._is_replaced(scheduler):
                    raise
            else:
                self.post(None)  # for those who watch the record
                return

    def _is_replaced(self, scheduler: Scheduler) -> bool:
        """Waits until another scheduler has taken this one's place, or the host is closed; whether one has."""
        with self.changed:
            self.changed.wait_for(lambda: self.scheduler is not scheduler or self.state == "closed")
        return self.scheduler is not scheduler

    def tell(self, event: Event) -> None:
        """Tells all observers."""
        for observer in tuple(self.observers):
            try:
                observer(event)
            except Exception:
                _log.exception("an observer raised, and was told %s", type(event).__name__)

    # One pass

    def go_on(self) -> None:
        """One pass, or, while the journal is out of reach, the wait for it."""
        if self.tenure.failure is None:
            self.guarded(self._pass)
        else:
            self.attend(None, lambda: self.tenure.failure is None or self.stops > 0)

    def _pass(self) -> None:
        self.poll()
        self.inbox.make_calls()
        self.results.record(self.scheduler)
        self.inbox.collect()  # what has ended during the sync has ended in time
        pause = self.at_work.enforce()
        if self.last_poll is not None:
            self.scheduler.wait(self.last_poll[0], 0.0 if self.results else pause)

    def poll(self) -> None:
        """Resumes, polls, and begins what there is room for."""
        self._resume_waiting()
        poll = self.scheduler.poll(start=True)
        self.last_poll = poll, time.monotonic()
        for run in poll.offered:
            self._prepare(Work(run))
        self.inbox.collect()
        self._begin()
        self.tell(Polled(poll))

    def _prepare(self, work: Work) -> None:
        """Takes note of work whose start is recorded."""
        try:
            self.at_work.add(self._workshop.activity(work, {*self.at_work.ids, work.run.id}))
        except Exception as error:  # whatever keeps a run from beginning is how it ended
            self.results.keep(recordable(work.failed(error)))
            self.post(None)
            self.tell(Began(work.run, work.attempt_id))

    def _begin(self) -> None:
        """Begins what there is room for. Whoever was given up is seen first: his slot is free in the record alone."""
        self._end_what_was_given_up()
        waiting = [current for current in self.at_work if not current.begun]
        self.at_work.begin(self._cannot_begin)
        for current in waiting:
            if current.begun:
                self.tell(Began(current.run, current.activity.work.attempt_id))

    def _cannot_begin(self, activity: Activity, error: Exception) -> None:
        self._report(activity.work.failed(error))

    def _end_what_was_given_up(self) -> None:
        for current in self.at_work:
            word = "" if current.given_up else self._given_up(current)
            if word:
                self.tell(Warned(f"run {current.run.id} {word}: its work is asked to end", current.run.id))
                self.at_work.give_up(current.run.id, Cancelled(f"the run {word}"))

    def _given_up(self, current: Current) -> str:
        """What the record says of a run at work that somebody else has ended; nothing if it is still started."""
        try:
            run = self.scheduler.run(current.run.id)
        except (JournalPoisoned, SchedulerClosed):
            raise
        except (SchedulerError, JournalError):  # it has ended so long ago that it cannot even be looked up
            return "has ended in the record"
        if run.state == "started":
            same = run.attempt_id == current.activity.work.attempt_id
            return "" if same else "was resumed by somebody else"
        return f"is {run.state} in the record"

    def resume(self, run_id: int) -> Attempt:
        """Resumes an interrupted run, and executes it."""
        if run_id in self.at_work:
            hint = "Try again when it has ended"
            raise WrongRunState(f"the work of run {run_id} goes on here", run_id=run_id, state="started", hint=hint)
        if self.at_work.full:
            hint = "Wait for a run to end; it stays resumable"
            raise NoTaskSlot(f"run {run_id} cannot be resumed: all task slots are taken", run_id=run_id, hint=hint)
        attempt = self.scheduler.resume(run_id)
        self._prepare(Work(attempt.run, attempt.attempt_id, attempt.checkpoint))
        self._begin()
        return attempt

    def _resume_waiting(self) -> None:
        while self.to_resume:
            try:
                self.resume(self.to_resume[0])
            except NoTaskSlot:
                return
            except SchedulerError as error:
                self.tell(Warned(f"run {self.to_resume[0]} is not resumed: {error}", self.to_resume[0]))
            self.to_resume.popleft()

    # A journal that fails

    def guarded(self, step: Callable[[], None]) -> bool:
        """Does the step; whether the journal could take it."""
        try:
            step()
        except JournalError as error:
            self.tell(JournalFailed(error, timedelta(seconds=self.tenure.fail(error))))
            return False
        except SchedulerClosed:  # somebody has closed it: nothing can be done any more
            self.stops = max(self.stops, 1)
            return False
        return True

    def _mend(self) -> None:
        pause, error = self.tenure.reopen(), self.tenure.failure
        if pause is not None and error is not None:
            self.tell(JournalFailed(error, timedelta(seconds=pause)))
            return
        if self.stops:
            self.scheduler.stop_admitting()
        with self.changed:
            self.changed.notify_all()
        self.guarded(self._take_over)

    def _take_over(self) -> None:
        self.results.compare(self.scheduler)
        self.tell(Opened(self.scheduler.recovery, again=True))
        self._adopt()

    def _adopt(self) -> None:
        """Watches what a dead host has left running."""
        if self._leaves_adopted:
            self._knowledge.forget()
        for run, process, log in self._knowledge.outlived.values():
            work = Work(run, run.attempt_id, run.checkpoint)
            activity = AdoptedActivity(work, self._report, process, log, self._workshop.keeper)
            self.at_work.adopt(activity, self._cannot_begin)
        self._knowledge.forget()

    # Waiting, and the end

    def attend(self, seconds: float | None, enough: Callable[[], bool]) -> None:
        """Takes results and records them, mends the journal and ends what takes too long, until it is enough, or for
        so many seconds."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            self._take_what_came()
            if self.tenure.retry_in() == 0:
                self._mend()
            kept_up = self.tenure.failure is None and self.guarded(self._keep_up)
            self._take_what_came()
            pauses = [self.at_work.enforce(), self.tenure.retry_in()]
            if enough():
                return
            if self.results and kept_up:  # they came during the sync
                pauses.append(0.0)
            if until is not None:
                pauses.append(until - time.monotonic())
            if until is not None and until <= time.monotonic():
                return
            self.inbox.wait(min((max(one, 0.0) for one in pauses if one is not None), default=None))

    def _take_what_came(self) -> None:
        self.inbox.collect()
        if self.state in ("draining", "closed"):
            self.inbox.refuse_calls()

    def _keep_up(self) -> None:
        self.results.record(self.scheduler)
        if self.stops:
            self._end_what_was_given_up()
        else:
            self._begin()

    @contextmanager
    def living(self, *, leave_adopted: bool = False) -> Generator[None]:
        """The host's life, on the calling thread. Raises SchedulerClosed if it has lived."""
        if self.state != "ready":
            raise SchedulerClosed("the host has run already", hint="Open another one")
        self.thread = get_ident()
        self.state = "admitting"
        try:
            self.tell(Opened(self.scheduler.recovery))
            self._adopt()
            yield
        finally:
            self._shut_down(leave_adopted=leave_adopted)

    def _shut_down(self, *, leave_adopted: bool) -> None:
        """Reaches its end whatever is raised: the journal is released, and whoever waits for it is told."""
        try:
            self._drain(leave_adopted=leave_adopted)
        except BaseException:
            self.at_work.kill()
            raise
        finally:
            self.end()

    def _drain(self, *, leave_adopted: bool) -> None:
        self.stops = max(self.stops, 1)
        self.state = "draining"
        self.tenure.hasten()
        self.scheduler.stop_admitting()
        self._take_what_came()
        self._leaves_adopted = leave_adopted
        if leave_adopted:
            self.at_work.leave_adopted()
        reason = Cancelled("cancelled at shutdown")
        for current in self.at_work:
            if not current.begun:
                self._settle(current.activity.work.failed(reason))
        self.tell(Draining(self.at_work.ids, self.settings.drain_grace))
        self.attend(self.settings.drain_grace.total_seconds(), lambda: not self.at_work or self.stops > 1)
        if self.at_work:
            self._end_work(reason)
        self.tenure.hasten()
        self.attend(LAST_PATIENCE if self.stops == 1 else LAST_WORDS, lambda: not self.results)

    def _end_work(self, reason: Exception) -> None:
        self.at_work.cancel(reason)
        if self.stops == 1:
            self.attend(self.settings.kill_grace.total_seconds(), lambda: not self.at_work or self.stops > 1)
        self.at_work.kill()
        self.attend(REAPING, lambda: not self.at_work.killable)
        for current in self.at_work:  # what cannot be ended from outside
            if current.activity.killable and self._lives(current.run.id):
                _log.error("run %s stays started: its process hears no SIGKILL", current.run.id)
            else:
                self._settle(current.activity.work.failed(reason))

    def _lives(self, run_id: int) -> bool:
        """Whether the next opening would find the run's process alive."""
        try:
            run = self.scheduler.run(run_id)
            return noted(run.notes, run.attempt_id) is not None
        except Error:  # the journal is out of reach: nothing is recorded of it anyway
            return False
        except OSError:  # whether it lives cannot be told now, and so it is not called finished
            return True

    def end(self) -> None:
        """Closes the journal, and tells whoever waits for that."""
        unrecorded = tuple(self.results.unrecorded.values())
        try:
            self.scheduler.close()
        finally:
            self.state = "closed"
            with self.changed:
                self.changed.notify_all()
        self._take_what_came()
        self._workshop.close()
        for result in unrecorded:
            _log.error("the journal was not told of %s", describe_value(result))
        self.tell(Closed(unrecorded))
