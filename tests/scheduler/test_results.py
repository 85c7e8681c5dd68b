"""Results: what can be recorded, what is refused, and a block that reports by itself."""

from __future__ import annotations

from typing import Any

import pytest

from duly import (
    Completed,
    DefinitionError,
    Failed,
    Interrupted,
    Run,
    StaleAttempt,
    UnknownRun,
    WrongRunState,
)
from duly.journal.entries import ErrorInfo, RunFailed
from tests.scheduler.embedding import Detached, Program, begun, refused


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


class Torn(dict[str, int]):
    def items(self) -> Any:
        raise LookupError("no session")


NOT_JSON: dict[str, Any] = {
    "what has no repr": Detached(),
    "a key that has no repr": {Detached(): 1},
    "what cannot be looked into": Torn(),
    "two thousand levels": nested(2_000),
    "a set": {1, 2},
    "an object": object(),
    "not a number": float("nan"),
    "bytes": b"x",
    "a number for a key": {1: 2},
    "a surrogate": "\ud800",
    "an integer of 2**53": 2**53,
    "forty levels": nested(40),
    "a byte too many": "x" * (256 * 1024 - 1),
}


@pytest.mark.parametrize("name", NOT_JSON)
def test_a_result_that_cannot_be_recorded_is_refused_and_the_run_stays_started(program: Program, name: str):
    value = NOT_JSON[name]
    scheduler = program.open()
    run = begun(scheduler)
    assert refused(program, lambda: scheduler.complete(run.id, result=value), DefinitionError).field == "result"
    assert (
        refused(program, lambda: scheduler.interrupt(run.id, checkpoint=value), DefinitionError).field == "checkpoint"
    )
    assert refused(program, lambda: scheduler.note_run(run.id, value), DefinitionError).field == "data"
    assert scheduler.run(run.id).state == "started"
    assert scheduler.complete(run.id, result="x" * (256 * 1024 - 2)).state == "completed"


@pytest.mark.parametrize("result", [None, 7, "done", (1, None, 2), {"run_id": 1}])
def test_a_report_of_what_is_no_result_is_refused(program: Program, result: Any):
    scheduler = program.open()
    run = begun(scheduler)
    error = refused(program, lambda: scheduler.report([Completed(run.id), result]), DefinitionError)
    assert error.field == "result"


def test_a_report_counts_whole_or_not_at_all(program: Program):
    scheduler = program.open()
    runs = [begun(scheduler) for _ in range(3)]
    for bad, kind in (
        (Completed(999), UnknownRun),
        (Completed(runs[0].id), WrongRunState),
        (Completed(runs[2].id, 7), StaleAttempt),
        (Completed(runs[2].id, None, {1, 2}), DefinitionError),
    ):
        refused(program, lambda bad=bad: scheduler.report([Completed(runs[0].id), Failed(runs[1].id), bad]), kind)  # type: ignore[misc]  # bound at once
    after = scheduler.report([Completed(runs[0].id, None, 1), Failed(runs[1].id, None, "no"), Interrupted(runs[2].id)])
    assert [run.state for run in after] == ["completed", "failed", "interrupted"]


def test_one_report_may_interrupt_nothing_twice_and_end_nothing_twice(program: Program):
    scheduler = program.open()
    run = begun(scheduler)
    refused(program, lambda: scheduler.report([Interrupted(run.id), Completed(run.id)]), WrongRunState)
    refused(program, lambda: scheduler.report([Completed(run.id), Completed(run.id)]), WrongRunState)


ERRORS: list[tuple[Any, ErrorInfo]] = [
    (OSError(28, "No space left"), ErrorInfo("OSError", "[Errno 28] No space left")),
    (KeyboardInterrupt(), ErrorInfo("KeyboardInterrupt", "")),
    ("it did not work", ErrorInfo("", "it did not work")),
    (ErrorInfo("Exit", "code 3"), ErrorInfo("Exit", "code 3")),
    (ValueError("bad \ud800"), ErrorInfo("ValueError", "bad ?")),
]


@pytest.mark.parametrize(("error", "recorded"), ERRORS)
def test_an_error_is_recorded_by_type_and_message(program: Program, error: Any, recorded: ErrorInfo):
    scheduler = program.open()
    run = begun(scheduler)
    assert scheduler.fail(run.id, error=error).error == recorded
    entry = program.last()
    assert isinstance(entry, RunFailed)
    assert entry.error == recorded


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


@pytest.mark.parametrize("error", [Unspeakable(), ValueError("x" * 5_000_000), ValueError("\x00" * 300_000)])
def test_a_failure_is_never_lost_over_its_words(program: Program, error: Exception):
    scheduler = program.open()
    run = begun(scheduler)
    recorded = scheduler.fail(run.id, error=error).error
    assert recorded is not None
    assert recorded.type == type(error).__qualname__
    assert program.consistent(scheduler)


@pytest.mark.parametrize("error", [5, None, ["no"], b"no", "\ud800", "x" * 300_000, ErrorInfo("T", "x" * 300_000)])
def test_words_of_the_host_about_a_failure_are_checked(program: Program, error: Any):
    scheduler = program.open()
    run = begun(scheduler)
    assert refused(program, lambda: scheduler.fail(run.id, error=error), DefinitionError).field == "error"


def test_notes_are_kept_in_the_record_and_the_newest_in_memory(program: Program):
    scheduler = program.open()
    run = begun(scheduler)
    for n in range(20):
        scheduler.note_run(run.id, {"pid": n})
    assert [note["pid"] for note in scheduler.run(run.id).notes] == list(range(4, 20))
    assert program.kinds().count("RunNoted") == 20


# with scheduler.running(run)


def test_a_run_in_a_block_is_started_and_completed_with_its_result(program: Program):
    scheduler = program.open()
    with scheduler.running(scheduler.run_now(target="x")) as context:
        assert scheduler.run(context.run.id).state == "started"
        context.result = {"rows": 12}
    run = scheduler.run(context.run.id)
    assert (run.state, run.result) == ("completed", {"rows": 12})


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_a_block_that_raises_fails_its_run_and_raises_on(program: Program, error: BaseException):
    scheduler = program.open()
    run = scheduler.run_now(target="x")
    with pytest.raises(type(error)) as caught, scheduler.running(run):
        raise error
    assert caught.value is error
    failed = scheduler.run(run.id)
    assert (failed.state, failed.error) == ("failed", ErrorInfo(type(error).__name__, str(error)))


def test_a_block_for_a_run_that_somebody_has_is_not_entered(program: Program):
    scheduler = program.open()
    run = begun(scheduler)
    entered = False
    with pytest.raises(WrongRunState), scheduler.running(run):
        entered = True
    assert not entered
    assert scheduler.run(run.id).state == "started", "whoever has it goes on"


def test_a_block_whose_result_cannot_be_recorded_says_so_and_the_run_stays_started(program: Program):
    scheduler = program.open()
    run = scheduler.run_now(target="x")
    with pytest.raises(DefinitionError), scheduler.running(run) as context:
        context.result = {1, 2}
    assert scheduler.run(run.id).state == "started"


def fail_after(run: Run) -> None:
    raise ValueError(f"{run.id}, and later")


def test_a_block_that_has_reported_by_itself_says_no_more(program: Program):
    scheduler = program.open()
    run = scheduler.run_now(target="x")
    with scheduler.running(run):
        scheduler.interrupt(run.id, checkpoint={"page": 3})
    assert scheduler.run(run.id).state == "interrupted"
    other = scheduler.run_now(target="x")
    with pytest.raises(ValueError, match="later"), scheduler.running(other):
        fail_after(scheduler.complete(other.id, result=1))
    assert scheduler.run(other.id).result == 1
