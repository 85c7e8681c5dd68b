"""Results on their way into the journal.

Rules: a result is made recordable where it comes from, so that nobody has to look at a handler's value afterwards; it
is kept until the journal holds it, over any number of failures; what one of them does, costs its own run alone; the end
of a run is told once.
"""

from __future__ import annotations

import logging
from typing import Final

from duly.journal.entries import ErrorInfo
from duly.journal.errors import JournalError, JournalPoisoned
from duly.projections import Run
from duly.projections.runs import RunState
from duly.scheduler.decisions.runs import Completed, Failed, Interrupted, Result
from duly.scheduler.embedded import Scheduler
from duly.scheduler.errors import SchedulerClosed, StaleAttempt, UnknownRun, WrongRunState
from duly.scheduler.execution import checked_result
from duly.service.events import Ended, Observer, Warned

STATE_AFTER: Final[dict[type[Result], RunState]] = {
    Completed: "completed",
    Failed: "failed",
    Interrupted: "interrupted",
}
REFUSALS: Final = (UnknownRun, WrongRunState, StaleAttempt, JournalError)
"""What the record says of a result that it does not take; a JournalError is of the look for a run that ended long
ago, as a journal that failed raises JournalPoisoned."""

_log: Final = logging.getLogger("duly.service")


def recordable(result: Result) -> Result:
    """The result as it can be recorded: a copy of its JSON, or else a failure that says why there is none."""
    try:
        return checked_result(result)
    except BaseException as error:  # a value of a handler may do anything when it is looked at
        raised = result.error if isinstance(result, Failed) and isinstance(result.error, BaseException) else error
        return _failure(result, raised)


def _failure(result: Result, error: BaseException) -> Failed:
    try:
        told = checked_result(Failed(result.run_id, result.attempt_id, error))
    except BaseException:
        told = None
    if isinstance(told, Failed):
        return told
    return Failed(result.run_id, result.attempt_id, ErrorInfo(type(error).__qualname__, "it cannot be shown"))


class Results:
    """What has ended, and is not recorded yet."""

    def __init__(self, tell: Observer) -> None:
        self.unrecorded: Final[dict[int, Result]] = {}
        """By run."""
        self._tell = tell

    def __len__(self) -> int:
        return len(self.unrecorded)

    def keep(self, result: Result) -> None:
        """Takes a result that is recordable."""
        self.unrecorded[result.run_id] = result

    def record(self, scheduler: Scheduler) -> None:
        """Records all that there are, in one fsync if the scheduler takes every one of them. Raises JournalPoisoned,
        SchedulerClosed."""
        results = tuple(self.unrecorded.values())
        if not results:
            return
        try:
            runs = scheduler.report(results)
        except (JournalPoisoned, SchedulerClosed):
            raise
        except Exception:  # one of them is refused
            for result in results:
                self._record_one(scheduler, result)
        else:
            for run, result in zip(runs, results, strict=True):
                self._recorded(run, result)

    def compare(self, scheduler: Scheduler) -> None:
        """What a journal that was opened again holds already, as evidence or because its last append was durable, is
        told; the others stay. Raises JournalPoisoned, SchedulerClosed."""
        for result in tuple(self.unrecorded.values()):
            try:
                run = scheduler.run(result.run_id)
            except (JournalPoisoned, SchedulerClosed):
                raise
            except REFUSALS as error:
                self._refused(result, error)
                continue
            if run.state == STATE_AFTER[type(result)]:
                self._recorded(run, result)
            elif run.state != "started" or run.attempt_id != result.attempt_id:
                self._refused(result, f"it is {run.state}")

    def _record_one(self, scheduler: Scheduler, result: Result, *, again: bool = False) -> None:
        try:
            (run,) = scheduler.report([result])
        except (JournalPoisoned, SchedulerClosed):
            raise
        except REFUSALS as error:
            self._refused(result, error)
        except Exception as error:
            if again:
                raise
            # Nobody thought of this one. The run has ended all the same, and keeps no slot because of it.
            _log.exception("the result of run %s cannot be recorded", result.run_id)
            failed = _failure(result, error)
            self.keep(failed)
            self._record_one(scheduler, failed, again=True)
        else:
            self._recorded(run, result)

    def _recorded(self, run: Run, result: Result) -> None:
        del self.unrecorded[run.id]
        self._tell(Ended(run, result))

    def _refused(self, result: Result, why: object) -> None:
        del self.unrecorded[result.run_id]
        self._tell(Warned(f"the result of run {result.run_id} was refused: {why}", result.run_id))
