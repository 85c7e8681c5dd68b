"""What the host of a simulation knows of its runs when a journal is opened, and what section 8's table makes of it.

Rules: every answer is written down, so that the verdict can be told from the table and the journal alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from duly import Completed, Failed, Interrupted, Run, StillRunning
from duly.journal.entries import (
    AttemptCleared,
    Entry,
    RunAbandoned,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    ScheduleBlocked,
)
from tests.simulation.chronicle import Chronicle, RunLife

Answer: TypeAlias = Completed | Failed | Interrupted | StillRunning | None
Verdict: TypeAlias = tuple[str, int | str | None, int | None, str]
"""The kind of an entry, its run or schedule, its attempt, and its cause or what was said."""


class BrokenStore(Exception):
    """The host's own store cannot be read."""


class Memory:
    """Evidence for one opening: `answer` says what is known of a run, `strangers` what only the host knows."""

    def __init__(
        self, answer: Callable[[int, int | None], Answer], strangers: tuple[tuple[int, str], ...] = ()
    ) -> None:
        self._answer = answer
        self.strangers = strangers
        self.given: dict[int, Answer | BrokenStore] = {}
        self.asked: dict[int, int | None] = {}
        """The ACTIVE attempt of each run that was asked about."""

    def of(self, run: Run, /) -> Answer:
        assert run.id not in self.given, "evidence is asked for once"
        self.asked[run.id] = run.attempt_id
        try:
            answer = self._answer(run.id, run.attempt_id)
        except BrokenStore as error:
            self.given[run.id] = error
            raise
        self.given[run.id] = answer
        return answer

    def runs(self) -> Iterable[tuple[int, str]]:
        return self.strangers


def expected_verdicts(before: Chronicle, memory: Memory | None) -> list[Verdict]:
    """What opening must append, after its own mark, to a journal that says `before`."""
    given = {} if memory is None else memory.given
    started = {run.id for run in before.started}
    assert memory is None or set(given) == started, f"evidence was asked for {set(given)}, and {started} are started"
    verdicts: list[Verdict] = []
    doubted: set[str] = set() if memory is None else {schedule_id for _, schedule_id in memory.strangers}
    for run_id, run in sorted(before.runs.items()):
        answer = given.get(run_id)
        if isinstance(answer, BrokenStore):
            doubted |= {run.schedule_id} if run.schedule_id is not None else set()
        elif run.state == "started":
            verdicts += _of_started(run, answer)
        elif run.attempt_id is not None:
            verdicts.append(("AttemptCleared", run_id, run.attempt_id, ""))
    for schedule_id in sorted(doubted):
        schedule = before.schedules.get(schedule_id)
        if schedule is not None and schedule.block_cause in ("", "trigger") and not schedule.deleted:
            verdicts.append(("ScheduleBlocked", schedule_id, None, "evidence"))
    return verdicts


def _of_started(run: RunLife, answer: Answer) -> list[Verdict]:
    if isinstance(answer, StillRunning):
        return []
    cleared: list[Verdict] = [] if run.attempt_id is None else [("AttemptCleared", run.id, run.attempt_id, "")]
    if answer is None or answer.attempt_id != run.attempt_id:
        cause = "crash" if run.attempt_id is None else "ambiguous"
        return [("RunAbandoned", run.id, run.attempt_id, cause), *cleared]
    match answer:
        case Completed():
            return [("RunCompleted", run.id, run.attempt_id, str(answer.result)), *cleared]
        case Failed():
            return [("RunFailed", run.id, run.attempt_id, str(answer.error)), *cleared]
        case Interrupted():
            return [("RunInterrupted", run.id, run.attempt_id, str(answer.checkpoint)), *cleared]


def verdict_of(entry: Entry) -> Verdict:  # noqa: PLR0911 - one return for each kind
    """What an entry that opening appended says, in the words of `expected_verdicts`."""
    match entry:
        case RunCompleted():
            return "RunCompleted", entry.run_id, entry.attempt_id, str(entry.result)
        case RunFailed():
            return "RunFailed", entry.run_id, entry.attempt_id, entry.error.message
        case RunInterrupted():
            return "RunInterrupted", entry.run_id, entry.attempt_id, str(entry.checkpoint)
        case RunAbandoned():
            return "RunAbandoned", entry.run_id, entry.attempt_id, entry.cause
        case AttemptCleared():
            return "AttemptCleared", entry.run_id, entry.attempt_id, ""
        case ScheduleBlocked():
            return "ScheduleBlocked", entry.schedule_id, None, entry.cause
        case _:
            return type(entry).__name__, None, None, "recovery decides nothing of this kind"
