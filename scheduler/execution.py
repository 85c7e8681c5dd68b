"""Runs, as the host reports them: starting, results, resuming, giving up.

Rules: the host executes, never this; a start is durable before it returns, so that a crash afterwards means abandoned
and never a second start; what is refused is not recorded. These commands work on any clock reading, and results are
accepted for runs of paused, disabled, deleted and blocked schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager

import msgspec

from duly.journal.entries import Entry, ErrorInfo, Json
from duly.projections import Run
from duly.projections.runs import RunEntry, advanced
from duly.scheduler.copies import run_copies
from duly.scheduler.decisions.runs import (
    Completed,
    Failed,
    Interrupted,
    Result,
    decide_abandon,
    decide_note,
    decide_results,
    decide_resume,
    decide_start,
    error_info,
    has_ended,
    run_of,
)
from duly.scheduler.definitions import check_json, check_words
from duly.scheduler.errors import DefinitionError, SchedulerClosed, UnknownRun
from duly.scheduler.inspection import Inspection


class Attempt(msgspec.Struct, frozen=True):
    """A resume that is under way: the run, the attempt's id, and the checkpoint to go on from."""

    run: Run
    attempt_id: int
    checkpoint: Json


class RunContext:
    """A run inside `with scheduler.running(…)`: set `result` to what it should be completed with."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.result: Json = None


class Execution(Inspection):
    """The part of the Scheduler that the host's workers talk to."""

    def start(self, *run_ids: int) -> tuple[Run, ...]:
        """Records that the host begins to execute these runs, all or none; durable when it returns.

        Raises UnknownRun, WrongRunState (drop the run: somebody has it), Blocked, NoTaskSlot.
        """
        slots = self._settings().task_slots
        return self._about_runs(run_ids, lambda: decide_start(self._state, run_ids, slots, self._clock.now()))

    def complete(self, run_id: int, *, attempt_id: int | None = None, result: Json = None) -> Run:
        """Records that the run succeeded. Raises UnknownRun, WrongRunState, StaleAttempt, DefinitionError."""
        return self.report([Completed(run_id, attempt_id, result)])[0]

    def fail(self, run_id: int, *, attempt_id: int | None = None, error: BaseException | str | ErrorInfo) -> Run:
        """Records that the run failed; also legal for a pending run. Raises as `complete` does."""
        return self.report([Failed(run_id, attempt_id, error)])[0]

    def interrupt(self, run_id: int, *, attempt_id: int | None = None, checkpoint: Json = None) -> Run:
        """Records that the run stopped with a checkpoint; it stays resumable, also across restarts. Raises as
        `complete` does."""
        return self.report([Interrupted(run_id, attempt_id, checkpoint)])[0]

    def report(self, results: Iterable[Result]) -> tuple[Run, ...]:
        """Records many results in one fsync, all or none. Raises as `complete` does."""
        checked = [checked_result(result) for result in results]
        run_ids = tuple(result.run_id for result in checked)
        outcome = self._about_runs(run_ids, lambda: decide_results(self._state, checked, self._clock.now()))
        self.wake()
        return outcome

    def resume(self, run_id: int) -> Attempt:
        """Claims an interrupted run; only when this returns may the host execute it again, from its checkpoint.

        Raises UnknownRun, WrongRunState, Blocked, NoTaskSlot; SchedulerClosed after `stop_admitting`.
        """

        def decide() -> tuple[Entry, ...]:
            if not self._admitting:
                raise SchedulerClosed("the scheduler resumes nothing any more", run_id=run_id, hint="Reopen it first")
            return decide_resume(self._state, run_id, self._settings().task_slots, self._clock.now())

        (run,) = self._about_runs((run_id,), decide)
        return Attempt(run, run.attempt_id or 0, run.checkpoint)

    def abandon(self, run_id: int, *, actor: str = "", note: str = "") -> Run:
        """Ends a pending, started or interrupted run by an operator's word. Raises UnknownRun, WrongRunState."""
        who = check_words("actor", actor or self._actor)
        why = check_words("note", note)

        def decide() -> tuple[Entry, ...]:
            return decide_abandon(self._state, run_id, actor=who, note=why, now=self._clock.now())

        (run,) = self._about_runs((run_id,), decide)
        self.wake()
        return run

    def note_run(self, run_id: int, data: Json) -> Run:
        """Records JSON about a run that has not ended, for example its process group. Raises UnknownRun,
        WrongRunState, DefinitionError."""
        noted = check_json("data", data)
        (run,) = self._about_runs((run_id,), lambda: decide_note(self._state, run_id, noted, self._clock.now()))
        return run

    @contextmanager
    def running(self, run: Run) -> Generator[RunContext]:
        """Starts the run; completes it when the block ends, with the context's `result`, or fails it and re-raises.

        A block that has reported something itself, an interruption for example, has had its say.
        """
        self.start(run.id)
        context = RunContext(run)
        try:
            yield context
        except BaseException as error:
            if self.run(run.id).state == "started":
                self.fail(run.id, error=error)
            raise
        if self.run(run.id).state == "started":
            self.complete(run.id, result=context.result)

    def _about_runs(self, run_ids: Sequence[int], decide: Callable[[], tuple[Entry, ...]]) -> tuple[Run, ...]:
        def work() -> tuple[Run, ...]:
            entries = decide()
            runs = {run_id: run_of(self._state, run_id) for run_id in run_ids}
            first = self._record(entries, entries[0].at) if entries else 0
            for sequence, entry in enumerate(entries, first):
                if isinstance(entry, RunEntry):
                    runs[entry.run_id] = advanced(runs[entry.run_id], sequence, entry)
            return run_copies(runs[run_id] for run_id in run_ids)

        try:
            return self._exclusively(work)
        except UnknownRun as unknown:
            ended = self._recorded_run(unknown.run_id or 0)
            if ended is None:
                raise
            raise has_ended(ended) from None


def checked_result(result: Result) -> Result:
    """The result with a copy of its JSON, as it can be recorded. Raises DefinitionError."""
    match result:
        case Completed(run_id, attempt_id, value):
            return Completed(run_id, attempt_id, check_json("result", value))
        case Failed(run_id, attempt_id, error):
            return Failed(run_id, attempt_id, _checked_error(error))
        case Interrupted(run_id, attempt_id, checkpoint):
            return Interrupted(run_id, attempt_id, check_json("checkpoint", checkpoint))
    raise DefinitionError("result", result, "is no result", "Give Completed, Failed or Interrupted.")


_LONGEST_ERROR = 40_000


def _checked_error(error: ErrorInfo | BaseException | str) -> ErrorInfo:
    """An error as it can be recorded. A caught exception is cut to size: a failure must not get lost over its words."""
    if not isinstance(error, ErrorInfo | BaseException | str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all typed
        raise DefinitionError("error", error, "is no error", "Give an exception or a str.")
    info = error_info(error)
    if isinstance(error, BaseException):
        return ErrorInfo(_cut(info.type), _cut(info.message))
    check_json("error", {"type": info.type, "message": info.message})
    return info


def _cut(text: str) -> str:
    clean = text.encode("utf-8", "replace").decode()
    return clean if len(clean) <= _LONGEST_ERROR else f"{clean[:_LONGEST_ERROR]}…"
