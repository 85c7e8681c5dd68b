"""The face of a host: how it is opened, run, asked and stopped.

Rules: opening executes nothing; `run` and `once` make the calling thread the host's thread; everything else may be
called from any thread, and what a signal handler may call takes no lock.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import get_ident
from types import TracebackType
from typing import Final, Self, TypedDict, TypeVar, Unpack

from duly.journal import Disk, RealDisk
from duly.journal.errors import JournalError
from duly.projections import Run
from duly.scheduler.answers import Preflight, Targets
from duly.scheduler.clock import Clock
from duly.scheduler.embedded import Scheduler
from duly.scheduler.errors import SchedulerClosed, SchedulerError, TriggerError
from duly.scheduler.execution import Attempt
from duly.scheduler.polls import Poll
from duly.scheduler.reconciling import EvidenceSource
from duly.scheduler.sources import SourceFactory
from duly.service.events import Ended, Observer
from duly.service.handlers import Handler, Workshop
from duly.service.loop import HostState, Loop
from duly.service.output import Outputs
from duly.service.settings import Settings, check_duration, check_parts, check_path, check_settings

T = TypeVar("T")
RESUME_PATIENCE: Final = 10.0
"""Seconds in which the host's thread must come to a resume."""


class Opening(TypedDict, total=False):
    """What `Host.open` passes on to `Scheduler.open`."""

    clock: Clock | None
    targets: Targets | None
    preflight: Preflight | None
    sources: Mapping[str, SourceFactory] | None
    batch: int
    clock_tolerance: timedelta
    create: bool
    lock_timeout: timedelta | float | None
    actor: str
    disk: Disk | None


class Host:
    """Executes what a scheduler offers, and reports back. Open one with `Host.open`; `run` it on a thread of yours."""

    def __init__(self, loop: Loop) -> None:
        """Not for users: `Host.open` is."""
        self._loop = loop

    @classmethod
    def open(  # noqa: PLR0913 - what a host may settle
        cls,
        path: Path | str,
        handlers: Mapping[str, Handler],
        *,
        outputs: Outputs | None = None,
        observers: Sequence[Observer] = (),
        task_slots: int = 8,
        drain_grace: timedelta = timedelta(seconds=30),
        kill_grace: timedelta = timedelta(seconds=5),
        resume_at_start: bool = False,
        evidence: EvidenceSource | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        **opening: Unpack[Opening],
    ) -> Self:
        """Owns and recovers the journal at `path`; executes nothing yet.

        `handlers` maps each target to a function or a coroutine function that is given a `Work`, to a `Command`, or to
        a `CommandOf`. `outputs` says where commands print to (`PATH-output`, if left out). No more than `task_slots`
        are at work at once. On `stop`, what runs may end within `drain_grace`; what is asked to end has `kill_grace`.
        `resume_at_start` resumes what was interrupted before. `loop` executes coroutines, instead of a loop of the
        host's own. `evidence` is asked about runs that the host cannot know of. All other arguments are those of
        `Scheduler.open`; `targets` are the handlers, if left out. Raises what `Scheduler.open` raises.
        """
        settings = Settings(
            task_slots=task_slots,
            drain_grace=drain_grace,
            kill_grace=kill_grace,
            resume_at_start=resume_at_start,
            evidence=evidence,
            loop=loop,
        )
        check_settings(settings)
        check_parts(handlers, outputs, observers)
        # Where it is found again must not depend on the folder that the process is in by then.
        place = os.path.abspath(check_path(path))  # noqa: PTH100 - it follows no links
        disk = opening.get("disk") or RealDisk()

        def open_scheduler(knowledge: EvidenceSource, workshop: Workshop, again: bool) -> Scheduler:
            told: Opening = {"targets": workshop.target, **opening, "disk": disk}
            if again:
                told["create"] = False
            return Scheduler.open(place, evidence=knowledge, task_slots=task_slots, **told)

        to = Outputs(Path(f"{Path(path)}-output")) if outputs is None else outputs
        return cls(Loop(open_scheduler, disk, settings, handlers=handlers, outputs=to, observers=observers))

    # What any thread may ask

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler as it is now; another one after the journal was reopened. Any thread may call it."""
        return self._loop.scheduler

    @property
    def state(self) -> HostState:
        """Where in its life the host is."""
        state = self._loop.state
        return "reopening" if self.failure is not None and state == "admitting" else state

    @property
    def failure(self) -> Exception | None:
        """Why the journal is out of reach, or None if it is not."""
        return self._loop.tenure.failure

    @property
    def at_work(self) -> tuple[int, ...]:
        """The runs that are being executed."""
        return self._loop.at_work.ids

    @property
    def last_poll(self) -> tuple[Poll, float] | None:
        """The newest poll, and when it was, on the monotonic clock in seconds."""
        return self._loop.last_poll

    @property
    def drain_grace(self) -> timedelta:
        """How long what runs may go on after `stop`."""
        return self._loop.settings.drain_grace

    def observe(self, observer: Observer) -> None:
        """Tells this observer everything from now on."""
        self._loop.observers.append(observer)

    def ask(self, question: Callable[[Scheduler], T]) -> T:
        """Asks, or tells, the scheduler something. If that finds the journal failed, the host begins to reopen it, and
        the error is raised all the same: what was told is indeterminate. While the journal is out of reach, the reason
        of that is raised, and nothing was told."""
        while True:
            asked = self.scheduler
            try:
                return question(asked)
            except JournalError:
                self.wake()
                raise
            except SchedulerClosed:
                failure = self.failure
                if failure is not None:
                    raise failure from None
                if asked is self.scheduler:
                    raise

    def call(self, work: Callable[[], T]) -> Future[T]:
        """Has the host's thread do this between two polls. A signal handler may use it."""
        future: Future[T] = Future()
        self._loop.post((work, future))
        if self._loop.state == "closed":
            self._loop.inbox.collect()
            self._loop.inbox.refuse_calls()
        return future

    def resume(self, run_id: int) -> Attempt:
        """Resumes an interrupted run, and executes it. Raises what `Scheduler.resume` raises, and WrongRunState while
        the host still executes it; SchedulerClosed once the host is stopping. Waits for the host's thread: if that
        does not come to it within ten seconds, nothing is resumed, and SchedulerError or the journal's failure says
        so."""
        if self._loop.thread == get_ident():
            return self._loop.resume(run_id)
        future = self.call(lambda: self._loop.resume(run_id))
        try:
            return future.result(RESUME_PATIENCE)
        except TimeoutError:
            if not future.cancel():
                return future.result()
        hint = "Try again later"
        raise self.failure or SchedulerError("the host is busy: nothing was resumed", run_id=run_id, hint=hint)

    def wake(self) -> None:
        """Lets the host look at once. Takes no lock, so that a signal handler may call it."""
        self._loop.post(None)

    def stop(self) -> None:
        """Ends `run`: what is at work may end within the grace; called again, everything ends at once.

        Takes no lock, so that a signal handler may call it.
        """
        self._loop.stops += 1
        self.scheduler.stop_admitting()
        self.wake()

    # The host's thread

    def run(self) -> None:
        """Polls and executes until `stop`; then drains, records and closes. Raises SchedulerClosed if it has run."""
        with self._loop.living():
            while not self._loop.stops:
                self._loop.go_on()

    def once(self, *, patience: timedelta = timedelta(seconds=30)) -> tuple[Run, ...]:
        """Polls, executes what is offered, and closes; the runs that have ended, with their results.

        It polls again only for what was due at the first poll, or was to be resumed, and found no task slot. Commands
        of an earlier host that still run are left alone. Raises JournalError if the journal fails and does not come
        back within `patience`.
        """
        check_duration("patience", patience)
        loop, ended, waiting = self._loop, list[Run](), set[str]()

        def poll() -> None:
            nonlocal waiting
            loop.poll()
            waiting = _left_undecided(loop)

        self.observe(lambda event: ended.append(event.run) if isinstance(event, Ended) else None)
        with loop.living(leave_adopted=True):
            left: set[str] | None = None
            while not loop.stops:
                loop.attend(patience.total_seconds(), lambda: not (self.failure or loop.results) or loop.stops > 0)
                if self.failure is not None:
                    raise self.failure
                before = loop.at_work.ended
                if not loop.guarded(poll) or self.last_poll is None:
                    continue
                polled = self.last_poll[0]
                admitted = {run.schedule_id or "" for run in polled.admitted}
                left = waiting if left is None else (left & waiting) - admitted
                if not polled.more and not self._has_room_again(before, wanted=bool(left or loop.to_resume)):
                    break
        if loop.results and self.failure is not None:
            raise self.failure
        return tuple(ended)

    def _has_room_again(self, before: int, *, wanted: bool) -> bool:
        """Waits for work to end; whether some has ended, beyond what had before the poll, and that is wanted."""
        loop = self._loop
        loop.attend(None, lambda: not loop.at_work.own or loop.stops > 0 or (wanted and loop.at_work.ended > before))
        return wanted and loop.at_work.ended > before

    def close(self) -> None:
        """Closes the journal; a host that runs is stopped first, and waited for, except by its own thread. Never
        raises; closing again does nothing."""
        loop = self._loop
        if loop.state == "ready":
            loop.end()
            return
        if loop.state != "closed" and not loop.stops:
            self.stop()
        if loop.thread == get_ident():
            return
        with loop.changed:
            loop.changed.wait_for(lambda: loop.state == "closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _left_undecided(loop: Loop) -> set[str]:
    """The schedules of which something was due at the last poll, and is not decided."""
    found: set[str] = set()
    for schedule in loop.scheduler.schedules():
        due = schedule.candidate
        with suppress(TriggerError):
            due = due or loop.scheduler.next_due(schedule.id)
        if due is not None and loop.last_poll is not None and due <= loop.last_poll[0].now:
            found.add(schedule.id)
    return found
