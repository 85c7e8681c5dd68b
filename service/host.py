"""The face of a host: how it is opened, run, asked and stopped.

Rules: opening executes nothing; `run` and `once` make the calling thread the host's thread; everything else may be
called from any thread, and what a signal handler may call takes no lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from threading import get_ident
from types import TracebackType
from typing import Self, TypedDict, TypeVar, Unpack

from duly.journal import Disk
from duly.journal.errors import JournalError
from duly.projections import Run
from duly.scheduler.answers import Preflight, Targets
from duly.scheduler.clock import Clock
from duly.scheduler.embedded import Scheduler
from duly.scheduler.errors import SchedulerClosed
from duly.scheduler.execution import Attempt
from duly.scheduler.reconciling import EvidenceSource
from duly.scheduler.sources import SourceFactory
from duly.service.events import Ended, Observer
from duly.service.handlers import Handler, Workshop
from duly.service.loop import HostState, Loop
from duly.service.output import Outputs

T = TypeVar("T")


class Opening(TypedDict, total=False):
    """What `Host.open` passes on to `Scheduler.open`."""

    task_slots: int
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


class Host(Loop):
    """Executes what a scheduler offers, and reports back. Open one with `Host.open`; `run` it on a thread of yours."""

    @classmethod
    def open(  # noqa: PLR0913 - what a host may settle
        cls,
        path: Path | str,
        handlers: Mapping[str, Handler],
        *,
        outputs: Outputs | None = None,
        observers: Iterable[Observer] = (),
        drain_grace: timedelta = timedelta(seconds=30),
        kill_grace: timedelta = timedelta(seconds=5),
        resume_at_start: bool = False,
        evidence: EvidenceSource | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        **opening: Unpack[Opening],
    ) -> Self:
        """Owns and recovers the journal at `path`; executes nothing yet.

        `handlers` maps each target to a function or a coroutine function that is given a `Work`, to a `Command`, or to
        a `CommandOf`. `outputs` says where commands print to (`PATH-output`, if left out). On `stop`, what runs may end
        within `drain_grace`; what is asked to end has `kill_grace`. `resume_at_start` resumes what was interrupted
        before. `loop` executes coroutines, instead of a loop of the host's own. `evidence` is asked about runs that
        the host cannot know of. All other arguments are those of `Scheduler.open`; `targets` are the handlers, if left
        out. Raises what `Scheduler.open` raises.
        """

        def open_scheduler(knowledge: EvidenceSource, workshop: Workshop) -> Scheduler:
            settings: Opening = {"targets": workshop.target, **opening}
            return Scheduler.open(path, evidence=knowledge, **settings)

        return cls(
            open_scheduler,
            handlers,
            outputs=Outputs(Path(f"{Path(path)}-output")) if outputs is None else outputs,
            observers=observers,
            drain_grace=drain_grace,
            kill_grace=kill_grace,
            resume_at_start=resume_at_start,
            evidence=evidence,
            loop=loop,
        )

    # What any thread may ask

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler as it is now; another one after the journal was reopened. Any thread may call it."""
        return self._scheduler

    @property
    def state(self) -> HostState:
        """Where in its life the host is."""
        return "reopening" if self._broken is not None and self._state == "admitting" else self._state

    @property
    def failure(self) -> Exception | None:
        """Why the journal is out of reach, or None if it is not."""
        return self._broken

    @property
    def at_work(self) -> tuple[int, ...]:
        """The runs that are being executed."""
        return self._at_work.ids

    def observe(self, observer: Observer) -> None:
        """Tells this observer everything from now on."""
        self._observers.append(observer)

    def ask(self, question: Callable[[Scheduler], T]) -> T:
        """Asks, or tells, the scheduler something. If that finds the journal failed, the host begins to reopen it, and
        the error is raised all the same: what was told is indeterminate. While the journal is out of reach, the reason
        of that is raised, and nothing was told."""
        try:
            return question(self._scheduler)
        except JournalError:
            self.wake()
            raise
        except SchedulerClosed:
            if self._broken is None:
                raise
            raise self._broken from None

    def call(self, work: Callable[[], T]) -> Future[T]:
        """Has the host's thread do this between two polls. A signal handler may use it."""
        future: Future[T] = Future()
        self._post((work, future))
        if self._state == "closed":
            self._collect()
        return future

    def resume(self, run_id: int) -> Attempt:
        """Resumes an interrupted run, and executes it. Raises what `Scheduler.resume` raises; SchedulerClosed once the
        host is stopping. Waits for the host's thread."""
        if self._thread == get_ident():
            return self._resume(run_id)
        return self.call(lambda: self._resume(run_id)).result()

    def wake(self) -> None:
        """Lets the host look at once. Takes no lock, so that a signal handler may call it."""
        self._post(None)

    def stop(self) -> None:
        """Ends `run`: what is at work may end within the grace; called again, everything ends at once.

        Takes no lock, so that a signal handler may call it.
        """
        self._stops += 1
        self._scheduler.stop_admitting()
        self.wake()

    # The host's thread

    def run(self) -> None:
        """Polls and executes until `stop`; then drains, records and closes. Raises SchedulerClosed if it has run."""
        with self._living():
            while not self._stops:
                if self._broken is None:
                    self._guarded(self._pass)
                else:
                    self._attend(None, lambda: self._broken is None or self._stops > 0)

    def once(self, *, patience: timedelta = timedelta(seconds=30)) -> tuple[Run, ...]:
        """Polls, executes what is offered, and closes; the runs that have ended, with their results.

        It polls again only for what was due at the first poll and found no task slot. Commands of an earlier host that
        still run are left alone. Raises JournalError if the journal fails and does not come back within `patience`.
        """
        ended: list[Run] = []
        self.observe(lambda event: ended.append(event.run) if isinstance(event, Ended) else None)
        with self._living(leave_adopted=True):
            left: set[str] | None = None
            while not self._stops:
                self._attend(patience.total_seconds(), lambda: self._broken is None or self._stops > 0)
                if self._broken is not None:
                    raise self._broken
                if not self._guarded(self._poll_once) or self.last_poll is None:
                    continue
                poll = self.last_poll[0]
                waiting = self._waiting(poll.now)
                left = waiting if left is None else (left & waiting) - {run.schedule_id or "" for run in poll.admitted}
                if not poll.more and not (self._at_work.own and self._finish(left)):
                    break
        if self._knowledge.unrecorded and self._broken is not None:
            raise self._broken
        return tuple(ended)

    def _finish(self, left: set[str]) -> bool:
        """Waits for work to end; whether one of the schedules that are left may have found a slot by that."""
        if not left:
            self._attend(None, lambda: not self._at_work.own or self._stops > 0)
            return False
        count = len(self._at_work.own)
        self._attend(None, lambda: len(self._at_work.own) < count or self._stops > 0)
        return True

    def close(self) -> None:
        """Closes the journal; a host that runs on another thread is stopped first, and waited for. Never raises;
        closing again does nothing."""
        if self._thread in (None, get_ident()):
            if self._state != "closed":
                self._end(())
            return
        if self._state not in ("draining", "closed"):
            self.stop()
        with self._changed:
            self._changed.wait_for(lambda: self._state == "closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
