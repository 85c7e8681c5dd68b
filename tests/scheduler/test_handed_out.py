"""What is handed out, and what is handed in, is nobody's state: changing it afterwards changes no record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from duly import Completed, Invocation, Scheduler, Target
from tests.scheduler.embedding import QUARTERLY, Program, Task


def spoil(value: Any, seen: set[int] | None = None) -> None:
    """Changes everything that can be changed inside a value."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    anything: Any = value
    if isinstance(value, dict):
        spoil(tuple(anything.values()), seen)
        anything["spoilt"] = True
    elif isinstance(value, list):
        spoil(tuple(anything), seen)
        anything.append("spoilt")
    elif isinstance(value, tuple):
        for inner in anything:
            spoil(inner, seen)
    elif hasattr(value, "__struct_fields__"):
        for name in value.__struct_fields__:
            spoil(getattr(value, name), seen)


def worked(program: Program) -> Scheduler:
    """A scheduler that holds something of everything, with empty containers beside full ones."""
    scheduler = program.open(targets=lambda name: Target(name, "r1", {"image": {"tag": "1"}} if name == "full" else []))
    deep: dict[str, Any] = {"own": {"deep": [1, {"x": []}]}}
    scheduler.create("full", QUARTERLY, target="full", input=deep, limits=deep)
    scheduler.create("empty", QUARTERLY, target="empty")
    for _ in range(2):
        scheduler.start(scheduler.run_now("full").id, scheduler.run_now("empty").id)
    started = scheduler.runs(state="started")
    scheduler.report([Completed(started[0].id, None, {"rows": []}), Completed(started[1].id, None, {})])
    scheduler.interrupt(started[2].id, checkpoint={"page": [1]})
    scheduler.note_run(started[3].id, {"pids": []})
    return scheduler


HANDED_OUT: dict[str, Callable[[Program, Scheduler], object]] = {
    "schedule": lambda program, scheduler: [scheduler.schedule("full"), scheduler.schedule("empty")],
    "find": lambda program, scheduler: [scheduler.find("full"), scheduler.find("empty")],
    "schedules": lambda program, scheduler: scheduler.schedules(),
    "runs": lambda program, scheduler: scheduler.runs(),
    "run": lambda program, scheduler: [scheduler.run(run.id) for run in scheduler.runs()],
    "poll": lambda program, scheduler: program.poll_at(scheduler, "09:15"),
    "poll(start=True)": lambda program, scheduler: program.poll_at(scheduler, "09:15", start=True),
    "occurrences": lambda program, scheduler: scheduler.occurrences("full"),
    "recovery": lambda program, scheduler: scheduler.recovery,
    "resume": lambda program, scheduler: scheduler.resume(scheduler.runs(state="interrupted")[0].id),
    "complete": lambda program, scheduler: scheduler.complete(scheduler.runs(state="started")[0].id, result={"a": []}),
    "note_run": lambda program, scheduler: scheduler.note_run(scheduler.runs(state="started")[0].id, []),
    "run_now": lambda program, scheduler: [scheduler.run_now("full"), scheduler.run_now("empty")],
    "create": lambda program, scheduler: scheduler.create("new", QUARTERLY, target="x", limits={"own": {}}),
    "edit": lambda program, scheduler: scheduler.edit("full", expected_revision=1, target="empty"),
    "pause": lambda program, scheduler: scheduler.pause("full"),
}


@pytest.mark.parametrize("name", HANDED_OUT)
def test_whatever_is_done_to_what_was_handed_out_the_state_is_the_record(program: Program, name: str):
    scheduler = worked(program)
    spoil(HANDED_OUT[name](program, scheduler))
    assert program.consistent(scheduler)
    assert "spoilt" not in repr([scheduler.runs(), scheduler.schedules()])


def test_what_recovery_hands_out_is_a_copy_too(program: Program):
    worked(program).close()
    scheduler = program.open()
    spoil(scheduler.recovery)
    assert program.consistent(scheduler)


def test_what_a_preflight_is_shown_is_a_copy(program: Program):
    shown: list[Invocation] = []
    scheduler = program.open(preflight=shown.append, targets=lambda name: Target(name, None, {}))
    scheduler.create("a", QUARTERLY, target="x", limits={"own": {}})
    program.poll_at(scheduler, "09:15")
    scheduler.run_now("a")
    spoil(tuple(shown))
    assert len(shown) == 2
    assert program.consistent(scheduler)


def test_what_evidence_is_shown_and_gives_is_copied(program: Program):
    result: dict[str, Any] = {"rows": []}

    class Evidence:
        def of(self, run: object) -> Completed:
            spoil(run)
            return Completed(getattr(run, "id", 0), None, result)

        def runs(self) -> list[tuple[int, str]]:
            return []

    scheduler = program.open()
    scheduler.start(scheduler.run_now(target="x", input={"day": {}}).id)
    scheduler.close()
    again = program.open(evidence=Evidence())
    spoil(result)
    (run,) = again.runs()
    assert (run.input, run.result) == ({"day": {}}, {"rows": []})
    assert program.consistent(again)


HANDED_IN: dict[str, Callable[[Scheduler, Any], object]] = {
    "limits": lambda scheduler, value: scheduler.create("a", QUARTERLY, target="x", limits={"own": value}),
    "input": lambda scheduler, value: scheduler.create("a", QUARTERLY, target="x", input={"own": value}),
    "run_now": lambda scheduler, value: scheduler.run_now(target="x", input={"own": value}, limits={"own": value}),
    "result": lambda scheduler, value: scheduler.complete(started(scheduler), result=value),
    "checkpoint": lambda scheduler, value: scheduler.interrupt(started(scheduler), checkpoint=value),
    "note": lambda scheduler, value: scheduler.note_run(started(scheduler), value),
}


def started(scheduler: Scheduler) -> int:
    return scheduler.start(scheduler.run_now(target="x").id)[0].id


@pytest.mark.parametrize("name", HANDED_IN)
def test_whatever_is_done_to_what_was_handed_in_the_state_is_the_record(program: Program, name: str):
    scheduler = program.open()
    value: dict[str, Any] = {"deep": {"list": [1, {}]}, "empty": []}
    HANDED_IN[name](scheduler, value)
    spoil(value)
    assert program.consistent(scheduler)


def test_readers_in_other_threads_see_values_that_stay_as_they_are(program: Program):
    scheduler = program.open(task_slots=500)
    scheduler.create("a", QUARTERLY, target="x", overlap="parallel", max_active_runs=1_000)
    seen = [scheduler.schedule("a")]
    text = repr(seen[0])

    def work() -> None:
        for _ in range(100):
            scheduler.start(scheduler.run_now("a").id)

    Task(work).outcome()
    program.poll_at(scheduler, "09:15")
    scheduler.pause("a")
    assert repr(seen[0]) == text
