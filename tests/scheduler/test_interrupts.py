"""An interrupt at any moment: afterwards the scheduler is what its journal says, or says that it is finished.

Python raises KeyboardInterrupt between two bytecodes of the main thread. Here it is raised at the n-th bytecode inside
the packages' own code, for many n; and afterwards nothing hangs, nothing is ahead of the journal, and whatever is still
usable decides everything that is due.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from duly import JournalPoisoned, Scheduler, State
from duly.projections import replay
from tests.scheduler.embedding import MINUTE, QUARTERLY, Program, Task, at

OURS = tuple(f"{Path(function.__code__.co_filename).parent}/" for function in (Scheduler.poll, State.apply))
CHECKED = {"RESUME", "JUMP_BACKWARD", "CALL", "CALL_KW", "CALL_FUNCTION_EX"}
"""The instructions after which the interpreter looks for a signal."""


class Blow:
    """Raises once, at the n-th place in our code where a signal may be delivered."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.seen: list[str] = []
        self.struck = ""
        self._armed: dict[FrameType, bool] = {}

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event != "opcode" or self.struck:
            return self.trace
        due = self._armed.pop(frame, False)
        self._armed[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]] in CHECKED
        if due:
            self.seen.append(f"{frame.f_code.co_qualname}:{frame.f_lineno}")
            if len(self.seen) == self.number:
                self.struck = self.seen[-1]
                raise KeyboardInterrupt
        return self.trace


def worked(scheduler: Scheduler, work: str, blow: Blow) -> None:
    """Does the work, in a thread of its own: what an interrupt leaves behind in a thread ends with it."""
    sys.settrace(blow.trace)
    try:
        WORK[work](scheduler)
    finally:
        sys.settrace(None)


def prepared(program: Program, name: str) -> Scheduler:
    """A scheduler with something to offer, something due, something held back, and a run that is started."""
    program.path = program.path.parent / name
    program.clock.step(at("09:00") - program.clock.now())
    scheduler = program.open(task_slots=3)
    for schedule_id in ("a", "b", "c"):
        scheduler.create(schedule_id, QUARTERLY, target="x", input={"day": [1]})
    scheduler.start(scheduler.run_now("a").id)
    program.clock.advance(15 * MINUTE)
    return scheduler


WORK: dict[str, Callable[[Scheduler], object]] = {
    "poll": lambda scheduler: scheduler.poll(start=True),
    "complete": lambda scheduler: scheduler.complete(scheduler.runs(state="started")[0].id, result={"rows": [1]}),
    "edit": lambda scheduler: scheduler.edit("a", expected_revision=1, target="y"),
    "pause and unpause": lambda scheduler: [scheduler.pause("b"), scheduler.unpause("b")],
}


def places(program: Program, work: str) -> list[int]:
    """Each line of ours in this work behind which a signal may be delivered: the first time it is reached, and the
    last."""
    scheduler = prepared(program, "uninterrupted")
    blow = Blow(0)
    Task(lambda: worked(scheduler, work, blow)).outcome()
    first = {place: number for number, place in reversed(list(enumerate(blow.seen, 1)))}
    last = {place: number for number, place in enumerate(blow.seen, 1)}
    return sorted({*first.values(), *last.values()})


@pytest.mark.parametrize("work", WORK)
def test_after_an_interrupt_the_state_is_the_journals_or_nothing_is_answered(program: Program, work: str):
    numbers = places(program, work)
    assert len(numbers) > 50
    outcomes: set[str] = set()
    for number in numbers:
        scheduler = prepared(program, f"{number}")
        blow = Blow(number)
        with suppress(KeyboardInterrupt):
            Task(lambda scheduler=scheduler, blow=blow: worked(scheduler, work, blow)).outcome()  # type: ignore[misc]  # bound at once
        outcomes.add(Task(lambda scheduler=scheduler, blow=blow: judged(program, scheduler, blow)).outcome())  # type: ignore[misc]  # bound at once
        Task(scheduler.close).outcome()
    assert outcomes == {"consistent", "poisoned"}


def judged(program: Program, scheduler: Scheduler, blow: Blow) -> str:
    """What became of the scheduler; and that what is due is decided by it, or by the next one."""
    try:
        live = scheduler.digest()
    except JournalPoisoned:
        scheduler.close()
        again = program.open(task_slots=3)
        decided_all(program, again, blow)
        return "poisoned"
    assert live == replay(program.path).digest(), f"the state is not the record after {blow.struck}"
    decided_all(program, scheduler, blow)
    assert program.consistent(scheduler), f"after {blow.struck}"
    return "consistent"


def decided_all(program: Program, scheduler: Scheduler, blow: Blow) -> None:
    """Polls until nothing is left, and a quarter of an hour later again: each schedule's instants were decided once."""
    for instant in (at("09:15"), at("09:30")):
        program.clock.advance(max(instant - program.clock.now(), timedelta()))
        for _ in range(4):
            scheduler.poll(start=True)
            for run in scheduler.runs(state="started"):
                scheduler.complete(run.id)
        for schedule in scheduler.schedules():
            if schedule.paused and instant == at("09:30"):
                continue
            rows = [row for row in scheduler.occurrences(schedule.id).items if row.scheduled_at == instant]
            decided = [row for row in rows if row.disposition in {"admitted", "interval", "skipped"}]
            assert len(rows) == len(decided) == 1, f"{schedule.id} is forgotten after {blow.struck}: {rows}"
