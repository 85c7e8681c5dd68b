"""Work: what a handler is given, what it may give back, and how the host keeps hold of it.

Rules: a handler sees one run or one attempt of it; whatever it raises is a result; only the host's thread asks work to
end, and a result is given exactly once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import Event as Flag
from typing import TypeAlias

from duly.journal.entries import Json
from duly.projections import Run
from duly.scheduler.decisions.runs import Completed, Failed, Interrupted, Result

Report: TypeAlias = Callable[[Result], None]
"""Takes the result of an activity, from any thread."""


class Interruption(Exception):
    """Raised by a handler that stops in the middle and can go on from `checkpoint`, which is JSON."""

    checkpoint: Json = None  # also of a class of a handler's own that does not call this one's __init__

    def __init__(self, checkpoint: Json = None) -> None:
        super().__init__("interrupted")
        self.checkpoint = checkpoint


class Work:
    """One execution of a run: what a handler is given.

    `run` is the run as it was admitted; `attempt_id` and `checkpoint` tell what a resumed run goes on from, and are
    None otherwise.
    """

    def __init__(self, run: Run, attempt_id: int | None = None, checkpoint: Json = None) -> None:
        self.run = run
        self.attempt_id = attempt_id
        self.checkpoint = checkpoint
        self._stop = Flag()

    @property
    def stopping(self) -> bool:
        """Whether the work was asked to end: its time is over, or the host shuts down."""
        return self._stop.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleeps up to `seconds`, less if the work is asked to end; whether it was."""
        return self._stop.wait(seconds)

    def ask_to_stop(self) -> None:
        """Lets `stopping` be true. The host calls it."""
        self._stop.set()

    def completed(self, result: Json) -> Completed:
        """This work's success."""
        return Completed(self.run.id, self.attempt_id, result)

    def failed(self, error: BaseException | str) -> Failed:
        """This work's failure."""
        return Failed(self.run.id, self.attempt_id, error)

    def interrupted(self, checkpoint: Json) -> Interrupted:
        """This work's interruption."""
        return Interrupted(self.run.id, self.attempt_id, checkpoint)

    def ended_by(self, error: BaseException) -> Result:
        """The result of work that raised."""
        if not isinstance(error, Interruption):
            return self.failed(error)
        try:
            return self.interrupted(error.checkpoint)
        except BaseException as raised:  # a property of the handler's own may do anything
            return self.failed(raised)


class Activity(ABC):
    """Work that is being executed, somewhere."""

    adopted = False
    """Whether another, dead host began it."""
    killable = False
    """Whether it can be ended from outside."""
    elapsed = 0.0
    """Seconds that it had been at work when this host came to know it."""

    def __init__(self, work: Work, report: Report) -> None:
        self.work = work
        self.report = report

    @abstractmethod
    def begin(self) -> None:
        """Sets it going, and returns at once."""

    def leave(self) -> None:
        """Lets go of it: it goes on, and nothing is reported of it any more."""
        self.report = _unheard

    def ask_to_stop(self) -> None:
        """Asks it to end by itself."""
        self.work.ask_to_stop()

    def kill(self) -> None:
        """Ends it, where that can be done."""
        self.work.ask_to_stop()


def _unheard(_result: Result) -> None:
    """Takes what nobody waits for."""
