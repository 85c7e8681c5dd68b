"""What the host answers: whatever it says, raises or calls, one schedule has its reason and all others go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from duly import DefinitionError, Invocation, Scheduler, SchedulerError, Target
from duly.journal.entries import OccurrenceSkipped
from duly.projections import replay
from tests.scheduler.embedding import MINUTE, QUARTERLY, Program, Task


class Unspeakable(Exception):
    """An exception that cannot even be told."""

    def __str__(self) -> str:
        raise RuntimeError("not even this")


class Unshowable:
    """A value that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __str__(self) -> str:
        raise RuntimeError("no str")


class Verbose:
    def __repr__(self) -> str:
        return "v" * 1_000_000


def raising(error: BaseException) -> Callable[[object], Any]:
    def callback(_: object) -> Any:
        raise error

    return callback


TARGETS: dict[str, tuple[Callable[[str], Any], str]] = {
    "raises": (raising(RuntimeError("the registry is down")), "RuntimeError: the registry is down"),
    "raises an error of ours": (raising(SchedulerError("from elsewhere")), "SchedulerError: from elsewhere"),
    "raises a surrogate": (raising(ValueError("bad \ud800")), "ValueError: bad"),
    "raises what cannot be told": (raising(Unspeakable()), "Unspeakable"),
    "raises at length": (raising(ValueError("x" * 1_000_000)), "ValueError: xxx"),
    "knows nothing": (lambda name: None, "'bad' is unknown"),
    "gives a str": (lambda name: "bad", "no Target"),
    "gives what cannot be shown": (lambda name: Unshowable(), ""),
    "gives what is shown at length": (lambda name: Verbose(), "Target"),
    "pins what is not JSON": (lambda name: Target(name, None, {"tags": {1, 2}}), "set"),
    "pins too much": (lambda name: Target(name, None, "x" * 300_000), "262,144"),
    "pins a surrogate": (lambda name: Target(name, None, "\ud800"), "surrogate"),
    "has a number for a revision": (lambda name: Target(name, 5), "revision"),  # type: ignore[arg-type]  # on purpose
    "has a surrogate in its revision": (lambda name: Target(name, "\ud800"), "revision"),
    "has a revision without end": (lambda name: Target(name, "r" * 5_000_000), "revision"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_targets_does_is_a_skip_with_its_text_and_the_others_go_on(program: Program, name: str):
    callback, told = TARGETS[name]

    def targets(asked: str) -> Target | None:
        return callback(asked) if asked == "bad" else Target(asked)

    scheduler = program.open(targets=targets)
    for schedule_id in ("a", "bad", "c"):
        scheduler.create(schedule_id, QUARTERLY, target=schedule_id)
    poll = program.poll_at(scheduler, "09:15")
    assert [run.schedule_id for run in poll.admitted] == ["a", "c"]
    assert_skipped_once(poll.decisions, "bad", told)
    assert scheduler.digest() == replay(program.path).digest()


PREFLIGHTS: dict[str, tuple[Callable[[Invocation], Any], str]] = {
    "refuses": (lambda invocation: "the month is closed", "the month is closed"),
    "refuses without a word": (lambda invocation: "", ""),
    "answers True": (lambda invocation: True, "True"),
    "answers a number": (lambda invocation: 0, "0"),
    "answers what cannot be shown": (lambda invocation: Unshowable(), ""),
    "answers at length": (lambda invocation: "x" * 1_000_000, "xxx"),
    "answers a surrogate": (lambda invocation: "\ud800", "?"),
    "raises": (raising(RuntimeError("no schema")), "RuntimeError: no schema"),
    "raises an error of ours": (raising(DefinitionError("a", 1, "b", "c")), "DefinitionError: a: 1 b"),
    "raises what cannot be told": (raising(Unspeakable()), "Unspeakable"),
}


@pytest.mark.parametrize("name", PREFLIGHTS)
def test_whatever_preflight_does_is_a_skip_with_its_text_and_the_others_go_on(program: Program, name: str):
    callback, told = PREFLIGHTS[name]
    scheduler = program.open(preflight=lambda invocation: callback(invocation) if invocation.target == "bad" else None)
    for schedule_id in ("a", "bad", "c"):
        scheduler.create(schedule_id, QUARTERLY, target=schedule_id)
    poll = program.poll_at(scheduler, "09:15")
    assert [run.schedule_id for run in poll.admitted] == ["a", "c"]
    assert_skipped_once(poll.decisions, "bad", told)


def assert_skipped_once(decisions: tuple[tuple[int, object], ...], schedule_id: str, told: str) -> None:
    skips = [entry for _, entry in decisions if isinstance(entry, OccurrenceSkipped)]
    assert [(skip.schedule_id, skip.reason) for skip in skips] == [(schedule_id, "preflight")]
    assert told in skips[0].detail
    assert len(skips[0].detail) < 5_000


CALLS: dict[str, Callable[[Scheduler], object]] = {
    "poll": lambda scheduler: scheduler.poll(),
    "schedules": lambda scheduler: scheduler.schedules(),
    "upcoming": lambda scheduler: scheduler.upcoming(),
    "runs": lambda scheduler: scheduler.runs(),
    "occurrences": lambda scheduler: scheduler.occurrences("a"),
    "pause": lambda scheduler: scheduler.pause("a"),
    "run_now": lambda scheduler: scheduler.run_now(target="x"),
    "complete": lambda scheduler: scheduler.complete(1),
    "create": lambda scheduler: scheduler.create("d", QUARTERLY, target="d"),
    "digest": lambda scheduler: scheduler.digest(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("callback", ["targets", "preflight"])
def test_a_callback_that_calls_the_scheduler_gets_an_error_and_no_deadlock(program: Program, callback: str, call: str):
    caught: list[SchedulerError] = []

    def calling(asked: Any) -> Any:
        name = asked if isinstance(asked, str) else asked.target
        if name == "b":
            try:
                CALLS[call](scheduler)
            except SchedulerError as error:
                caught.append(error)
                raise
        return Target(name) if callback == "targets" else None

    scheduler = program.open(targets=calling) if callback == "targets" else program.open(preflight=calling)
    for schedule_id in ("a", "b", "c"):
        scheduler.create(schedule_id, QUARTERLY, target=schedule_id)
    poll = Task(lambda: program.poll_at(scheduler, "09:15")).outcome()
    assert [run.schedule_id for run in poll.admitted] == ["a", "c"]
    assert_skipped_once(poll.decisions, "b", "called from inside")
    assert [type(error) for error in caught] == [SchedulerError]
    assert len(scheduler.schedules()) == 3, "afterwards it answers as before"


@pytest.mark.parametrize("callback", ["targets", "preflight"])
def test_a_callback_that_closes_the_scheduler_does_not_hang_and_is_told_nothing(program: Program, callback: str):
    def closing(asked: Any) -> Any:
        scheduler.close()
        return Target(asked) if callback == "targets" else None

    scheduler = program.open(targets=closing) if callback == "targets" else program.open(preflight=closing)
    scheduler.create("a", QUARTERLY, target="a")
    program.clock.advance(15 * MINUTE)
    Task(scheduler.poll).outcome()
    assert scheduler.stopping
    Task(scheduler.close).outcome()
    assert program.kinds()[-1] == "OccurrenceAdmitted", "what was being decided is recorded"


def test_a_callback_may_wake_and_stop_the_scheduler(program: Program):
    def targets(name: str) -> Target:
        scheduler.wake()
        scheduler.stop_admitting()
        return Target(name)

    scheduler = program.open(targets=targets)
    scheduler.create("a", QUARTERLY, target="a")
    assert len(program.poll_at(scheduler, "09:15").admitted) == 1
    assert scheduler.stopping
    assert program.poll_at(scheduler, "09:30").decisions == ()


def test_one_poll_asks_each_target_once_and_each_preflight_once(program: Program):
    asked: list[str] = []
    checked: list[str | None] = []

    def targets(name: str) -> Target:
        asked.append(name)
        return Target(name)

    def preflight(invocation: Invocation) -> None:
        checked.append(invocation.occurrence_id)

    scheduler = program.open(targets=targets, preflight=preflight, task_slots=50)
    for number in range(10):
        scheduler.create(f"s{number}", QUARTERLY, target="odd" if number % 2 else "even")
    program.poll_at(scheduler, "09:15")
    assert sorted(asked) == ["even", "odd"]
    assert checked == [f"s{number}@2026-03-02T09:15:00Z" for number in range(10)]
    program.poll_at(scheduler, "09:20")
    assert len(asked) == 2, "nothing due, nobody asked"


def test_the_environment_of_a_target_is_pinned_whatever_the_host_does_with_its_own(program: Program):
    environment = {"image": "sha256:1", "mounts": ["/data"]}
    scheduler = program.open(targets=lambda name: Target(name, "r1", environment))
    scheduler.create("a", QUARTERLY, target="a")
    (run,) = program.poll_at(scheduler, "09:15").admitted
    environment["image"] = "sha256:2"
    environment["mounts"] = []
    assert scheduler.run(run.id).environment == {"image": "sha256:1", "mounts": ["/data"]}
    assert program.consistent(scheduler)


def test_a_preflight_that_changes_the_invocation_changes_neither_the_record_nor_the_schedule(program: Program):
    def preflight(invocation: Invocation) -> None:
        invocation.input["day"] = "changed"
        invocation.limits["max_steps"] = 99
        invocation.environment["image"] = "changed"

    scheduler = program.open(preflight=preflight, targets=lambda name: Target(name, None, {"image": "sha256:1"}))
    scheduler.create("a", QUARTERLY, target="a", input={"day": "monday"}, limits={"max_steps": 3})
    (run,) = program.poll_at(scheduler, "09:15").admitted
    recorded = scheduler.run(run.id)
    assert (recorded.input, recorded.limits, recorded.environment) == (
        {"day": "monday"},
        {"max_steps": 3},
        {"image": "sha256:1"},
    )
    assert scheduler.schedule("a").limits == {"max_steps": 3}
    assert program.consistent(scheduler)


def test_run_now_tells_its_caller_what_the_callbacks_say_and_records_nothing(program: Program):
    def preflight(invocation: Invocation) -> str | None:
        return "the month is closed" if invocation.input else None

    scheduler = program.open(targets=lambda name: None if name == "gone" else Target(name), preflight=preflight)
    before = program.bytes()
    with pytest.raises(DefinitionError, match="'gone' is unknown"):
        scheduler.run_now(target="gone")
    with pytest.raises(DefinitionError, match="the month is closed"):
        scheduler.run_now(target="report", input={"day": 1})
    assert program.bytes() == before
    assert scheduler.run_now(target="report").state == "pending"


def test_run_now_refuses_what_callbacks_break(program: Program):
    scheduler = program.open(targets=raising(RuntimeError("the registry is down")))
    with pytest.raises(DefinitionError, match="the registry is down"):
        scheduler.run_now(target="report")


def test_an_interrupt_in_a_callback_goes_through_and_the_next_poll_decides_all(program: Program):
    blows: list[BaseException] = [KeyboardInterrupt(), SystemExit(3)]

    def targets(name: str) -> Target:
        if blows:
            raise blows.pop()
        return Target(name)

    scheduler = program.open(targets=targets)
    for schedule_id in ("a", "b"):
        scheduler.create(schedule_id, QUARTERLY, target=schedule_id)
    program.clock.advance(15 * MINUTE)
    with pytest.raises(SystemExit):
        scheduler.poll()
    with pytest.raises(KeyboardInterrupt):
        scheduler.poll()
    assert [run.schedule_id for run in scheduler.poll().admitted] == ["a", "b"]
    assert program.consistent(scheduler)
