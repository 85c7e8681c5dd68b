"""Runs through the API: what is refused and what its error shows, what is all or none, and who may still report."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from duly import (
    Attempt,
    Blocked,
    Completed,
    NoTaskSlot,
    Scheduler,
    SchedulerClosed,
    StaleAttempt,
    UnknownRun,
    WrongRunState,
)
from duly.journal.entries import ErrorInfo
from tests.scheduler.embedding import QUARTERLY, Program, Task, at, begun, refused


def attempted(scheduler: Scheduler) -> Attempt:
    run = begun(scheduler)
    scheduler.interrupt(run.id, checkpoint={"page": 3})
    return scheduler.resume(run.id)


ENDINGS: dict[str, tuple[Callable[[Scheduler, int], object], dict[str, Any]]] = {
    "completed": (
        lambda scheduler, run_id: scheduler.complete(run_id, result={"rows": 12}),
        {"state": "completed", "result": {"rows": 12}, "error": None},
    ),
    "failed": (
        lambda scheduler, run_id: scheduler.fail(run_id, error=OSError("the disk is full")),
        {"state": "failed", "result": None, "error": ErrorInfo("OSError", "the disk is full")},
    ),
    "abandoned": (
        lambda scheduler, run_id: scheduler.abandon(run_id, note="not now"),
        {"state": "abandoned", "result": None, "error": None},
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_second_word_about_an_ended_run_is_refused_and_shows_what_is_recorded(program: Program, ending: str):
    end, recorded = ENDINGS[ending]
    scheduler = program.open()
    run = begun(scheduler)
    end(scheduler, run.id)
    for again in (
        lambda: scheduler.complete(run.id, result=1),
        lambda: scheduler.fail(run.id, error="no"),
        lambda: scheduler.interrupt(run.id),
        lambda: scheduler.abandon(run.id),
        lambda: scheduler.start(run.id),
        lambda: scheduler.resume(run.id),
        lambda: scheduler.note_run(run.id, 1),
    ):
        error = refused(program, again, WrongRunState)
        assert (error.run_id, error.state) == (run.id, ending)
        assert error.recorded == recorded | {"ended_at": at("09:00")}
        assert ending in str(error)


def test_what_a_run_is_not_ready_for_is_refused(program: Program):
    scheduler = program.open()
    pending = scheduler.run_now(target="x")
    for early in (scheduler.complete, scheduler.interrupt, scheduler.resume):
        assert refused(program, lambda early=early: early(pending.id), WrongRunState).state == "pending"  # type: ignore[misc]  # bound at once
    assert scheduler.fail(pending.id, error="cannot begin").state == "failed"
    started = begun(scheduler)
    assert refused(program, lambda: scheduler.start(started.id), WrongRunState).state == "started"
    assert refused(program, lambda: scheduler.resume(started.id), WrongRunState).state == "started"


@pytest.mark.parametrize("run_id", [0, -1, 999_999, 1, 2, "2", None, 2.5])
def test_an_unknown_run_is_refused(program: Program, run_id: Any):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    for work in (
        lambda: scheduler.run(run_id),
        lambda: scheduler.start(run_id),
        lambda: scheduler.complete(run_id),
        lambda: scheduler.fail(run_id, error="no"),
        lambda: scheduler.interrupt(run_id),
        lambda: scheduler.resume(run_id),
        lambda: scheduler.abandon(run_id),
        lambda: scheduler.note_run(run_id, 1),
    ):
        assert isinstance(refused(program, work, UnknownRun), LookupError)


def test_runs_start_together_or_not_at_all(program: Program):
    scheduler = program.open(task_slots=2)
    runs = [scheduler.run_now(target="x") for _ in range(3)]
    refused(program, lambda: scheduler.start(*(run.id for run in runs)), NoTaskSlot)
    refused(program, lambda: scheduler.start(runs[0].id, 999), UnknownRun)
    started = scheduler.start(runs[0].id)
    assert [run.state for run in started] == ["started"]
    refused(program, lambda: scheduler.start(runs[1].id, runs[0].id), WrongRunState)
    refused(program, lambda: scheduler.start(runs[1].id, runs[2].id), NoTaskSlot)
    assert [run.state for run in scheduler.runs()] == ["started", "pending", "pending"]
    assert [run.id for run in scheduler.start(runs[2].id, runs[2].id)] == [runs[2].id] * 2, "named twice, started once"
    assert program.kinds().count("RunStarted") == 2


def test_a_blocked_schedules_runs_neither_start_nor_resume_but_their_results_count(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    runs = [scheduler.run_now("a") for _ in range(3)]
    scheduler.start(runs[0].id, runs[1].id)
    scheduler.interrupt(runs[1].id)
    scheduler.block("a", "wait")
    assert refused(program, lambda: scheduler.start(runs[2].id), Blocked).reason == "wait"
    assert refused(program, lambda: scheduler.resume(runs[1].id), Blocked).schedule_id == "a"
    assert scheduler.poll().offered == ()
    assert scheduler.complete(runs[0].id).state == "completed"
    assert scheduler.abandon(runs[1].id).state == "abandoned"
    assert scheduler.fail(runs[2].id, error="no").state == "failed"


SWITCHES = ["pause", "disable", "delete"]


@pytest.mark.parametrize("switch", SWITCHES)
def test_runs_of_a_schedule_that_is_switched_off_are_offered_started_resumed_and_reported(
    program: Program, switch: str
):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    runs = [scheduler.run_now("a") for _ in range(2)]
    scheduler.start(runs[0].id)
    scheduler.interrupt(runs[0].id, checkpoint=1)
    getattr(scheduler, switch)("a")
    assert [run.id for run in scheduler.poll().offered] == [runs[1].id]
    attempt = scheduler.resume(runs[0].id)
    scheduler.start(runs[1].id)
    scheduler.report([Completed(runs[0].id, attempt.attempt_id), Completed(runs[1].id)])
    assert [run.state for run in scheduler.runs()] == ["completed", "completed"]
    assert program.consistent(scheduler)


@pytest.mark.parametrize("given", [None, 1, "ACTIVE", -1])
def test_a_result_that_does_not_name_the_active_attempt_is_refused(program: Program, given: Any):
    scheduler = program.open()
    attempt = attempted(scheduler)
    run_id = attempt.run.id
    for work in (
        lambda: scheduler.complete(run_id, attempt_id=given),
        lambda: scheduler.fail(run_id, attempt_id=given, error="no"),
        lambda: scheduler.interrupt(run_id, attempt_id=given),
    ):
        error = refused(program, work, StaleAttempt)
        assert (error.run_id, error.given, error.active) == (run_id, given, attempt.attempt_id)
    assert scheduler.complete(run_id, attempt_id=attempt.attempt_id).state == "completed"


def test_a_result_of_an_attempt_that_is_over_is_refused(program: Program):
    scheduler = program.open()
    first = attempted(scheduler)
    run_id = first.run.id
    scheduler.interrupt(run_id, attempt_id=first.attempt_id, checkpoint={"page": 5})
    assert refused(program, lambda: scheduler.complete(run_id, attempt_id=first.attempt_id), WrongRunState)
    second = scheduler.resume(run_id)
    assert (second.checkpoint, second.attempt_id > first.attempt_id) == ({"page": 5}, True)
    error = refused(program, lambda: scheduler.complete(run_id, attempt_id=first.attempt_id), StaleAttempt)
    assert (error.given, error.active) == (first.attempt_id, second.attempt_id)


def test_a_result_that_names_an_attempt_where_none_is_active_is_refused(program: Program):
    scheduler = program.open()
    run = begun(scheduler)
    error = refused(program, lambda: scheduler.complete(run.id, attempt_id=7), StaleAttempt)
    assert (error.given, error.active) == (7, None)


def test_a_run_is_interrupted_and_resumed_any_number_of_times_also_across_restarts(program: Program):
    scheduler = program.open()
    run = begun(scheduler)
    scheduler.interrupt(run.id, checkpoint=0)
    for page in range(1, 30):
        attempt = scheduler.resume(run.id)
        assert attempt.checkpoint == page - 1
        scheduler.interrupt(run.id, attempt_id=attempt.attempt_id, checkpoint=page)
        if page % 10 == 0:
            scheduler.close()
            scheduler = program.open()
    assert scheduler.run(run.id).checkpoint == 29
    assert program.consistent(scheduler)


def test_a_resume_needs_a_task_slot_and_an_interrupt_frees_one(program: Program):
    scheduler = program.open(task_slots=1)
    first = begun(scheduler)
    scheduler.interrupt(first.id)
    second = begun(scheduler)
    assert refused(program, lambda: scheduler.resume(first.id), NoTaskSlot).run_id == first.id
    scheduler.complete(second.id)
    assert scheduler.resume(first.id).run.state == "started"


def test_after_stop_admitting_runs_start_and_end_but_none_is_resumed(program: Program):
    scheduler = program.open()
    interrupted = begun(scheduler)
    scheduler.interrupt(interrupted.id)
    pending = scheduler.run_now(target="x")
    scheduler.stop_admitting()
    assert scheduler.start(pending.id)[0].state == "started"
    assert scheduler.complete(pending.id).state == "completed"
    refused(program, lambda: scheduler.resume(interrupted.id), SchedulerClosed)


def test_two_threads_that_resume_the_same_run_a_thousand_times_get_exactly_one_attempt_each_time(program: Program):
    scheduler = program.open()
    run = begun(scheduler)
    scheduler.interrupt(run.id)
    barrier = threading.Barrier(2)
    attempts: list[list[int]] = [[], []]

    def claim(mine: list[int]) -> None:
        for _ in range(1_000):
            barrier.wait(10)
            try:
                mine.append(scheduler.resume(run.id).attempt_id)
            except WrongRunState:
                mine.append(0)
            barrier.wait(10)
            if mine[-1]:
                scheduler.interrupt(run.id, attempt_id=mine[-1])

    for task in [Task(lambda: claim(attempts[0])), Task(lambda: claim(attempts[1]))]:
        task.outcome(60)
    won = [max(pair) for pair in zip(*attempts, strict=True)]
    assert [min(pair) for pair in zip(*attempts, strict=True)] == [0] * 1_000
    assert won == sorted(set(won))
    assert program.kinds().count("ResumeMarked") == 1_000
    assert program.consistent(scheduler)
