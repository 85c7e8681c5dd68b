"""Idempotency keys: a command that is sent again takes effect once, also after a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from duly import DefinitionError, DuplicateSchedule, Scheduler
from duly.projections import facts
from duly.scheduler.definitions import LONGEST_WORDS
from tests.scheduler.embedding import QUARTERLY, Program, at


def test_a_create_that_is_sent_again_gives_the_schedule_as_it_is_now(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x", request="k1")
    scheduler.edit("a", expected_revision=1, target="y")
    before = program.bytes()
    again = scheduler.create("a", QUARTERLY, target="x", request="k1")
    assert (again.revision, again.target) == (2, "y")
    assert program.bytes() == before
    scheduler.close()
    reopened = program.open()
    assert reopened.create("a", QUARTERLY, target="x", request="k1").revision == 2
    with pytest.raises(DuplicateSchedule):
        reopened.create("a", QUARTERLY, target="x", request="k2")


def test_a_declaration_that_is_sent_late_does_not_undo_a_newer_one(program: Program):
    scheduler = program.open()
    scheduler.declare("a", QUARTERLY, target="old", request="k1")
    scheduler.declare("a", QUARTERLY, target="new", request="k2")
    assert scheduler.declare("a", QUARTERLY, target="old", request="k1").target == "new"
    assert program.kinds() == ["ScheduleCreated", "ScheduleEdited"]


def test_a_run_by_hand_that_is_sent_again_is_the_same_run_whatever_became_of_it(program: Program):
    scheduler = program.open()
    run = scheduler.run_now(target="x", request="k1")
    assert scheduler.run_now(target="x", request="k1").id == run.id
    scheduler.start(run.id)
    scheduler.complete(run.id, result=7)
    scheduler.stop_admitting()
    again = scheduler.run_now(target="x", request="k1")
    assert (again.id, again.state, again.result) == (run.id, "completed", 7)
    scheduler.close()
    reopened = program.open()
    assert reopened.run_now(target="x", request="k1").id == run.id
    assert reopened.run_now(target="x", request="k2").id != run.id


def test_a_run_by_hand_that_ended_long_ago_is_still_the_same_run(program: Program):
    scheduler = program.open(task_slots=2_000)
    first = scheduler.run_now(target="x", request="k1")
    scheduler.fail(first.id, error="no")
    for _ in range(1_001):
        scheduler.fail(scheduler.run_now(target="x").id, error="no")
    assert scheduler.run_now(target="x", request="k1").id == first.id


def test_an_external_run_that_is_sent_again_is_recorded_once(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    for _ in range(3):
        scheduler.record_external_run("a", at("08:00"), request="k1")
    assert program.kinds() == ["ScheduleCreated", "ExternalRunRecorded"]


def test_a_key_that_was_used_for_something_else_is_refused_and_nothing_is_recorded(program: Program):
    """Otherwise a command would be answered as done that never was."""
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x", request="k1")
    scheduler.create("other", QUARTERLY, target="x")
    before = program.bytes()
    with pytest.raises(DefinitionError, match="k1"):
        scheduler.create("b", QUARTERLY, target="x", request="k1")
    with pytest.raises(DefinitionError, match="k1"):
        scheduler.declare("b", QUARTERLY, target="x", request="k1")
    with pytest.raises(DefinitionError, match="k1"):
        scheduler.run_now(target="x", request="k1")
    with pytest.raises(DefinitionError, match="k1"):
        scheduler.record_external_run("other", at("08:00"), request="k1")
    assert program.bytes() == before


Command: TypeAlias = Callable[[Scheduler], object]

FIRST: dict[str, Command] = {
    "create": lambda scheduler: scheduler.create("b", QUARTERLY, target="x", request="k"),
    "create_many": lambda scheduler: scheduler.create_many([MANY], request="k"),
    "declare": lambda scheduler: scheduler.declare("b", QUARTERLY, target="x", request="k"),
    "declare, edited": lambda scheduler: scheduler.declare("a", QUARTERLY, target="y", request="k"),
    "external": lambda scheduler: scheduler.record_external_run("a", at("08:00"), request="k"),
    "target": lambda scheduler: scheduler.run_now(target="x", input={"n": 1}, limits={"own": 1}, request="k"),
    "schedule": lambda scheduler: scheduler.run_now("a", request="k"),
}
MANY: dict[str, Any] = {"schedule_id": "b", "trigger": QUARTERLY, "target": "x"}
ANOTHER: list[tuple[str, Command]] = [
    ("create", lambda scheduler: scheduler.create("b", QUARTERLY, target="y", request="k")),
    ("create_many", lambda scheduler: scheduler.create_many([MANY | {"misfire": "skip"}], request="k")),
    ("declare", lambda scheduler: scheduler.declare("b", QUARTERLY, target="y", request="k")),
    ("declare, edited", lambda scheduler: scheduler.declare("a", QUARTERLY, target="z", request="k")),
    ("external", lambda scheduler: scheduler.record_external_run("a", at("08:01"), request="k")),
    ("target", lambda scheduler: scheduler.run_now(target="y", input={"n": 1}, limits={"own": 1}, request="k")),
    ("target", lambda scheduler: scheduler.run_now(target="x", input={"n": 2}, limits={"own": 1}, request="k")),
    ("target", lambda scheduler: scheduler.run_now(target="x", limits={"own": 1}, request="k")),
    ("target", lambda scheduler: scheduler.run_now(target="x", input={"n": 1}, request="k")),
    ("schedule", lambda scheduler: scheduler.run_now("a", target="y", request="k")),
    ("schedule", lambda scheduler: scheduler.run_now("a", input={"n": 1}, request="k")),
    ("schedule", lambda scheduler: scheduler.run_now("a", limits={"own": 1}, request="k")),
]


@pytest.mark.parametrize(("first", "another"), ANOTHER)
def test_a_key_answers_for_no_other_content_than_that_of_its_command(program: Program, first: str, another: Command):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x", limits={"own": 7})
    once = FIRST[first](scheduler)
    before = program.bytes()
    with pytest.raises(DefinitionError, match=r"another|began at") as caught:
        another(scheduler)
    assert caught.value.field == "request"
    assert FIRST[first](scheduler) == once
    assert program.bytes() == before


def test_what_was_left_to_a_schedule_is_not_compared_once_the_schedule_is_another(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x", input={"n": 1})
    run = scheduler.run_now("a", request="k")
    scheduler.edit("a", expected_revision=1, target="y", input={"n": 2}, limits={"own": 1})
    assert scheduler.run_now("a", request="k").id == run.id
    with pytest.raises(DefinitionError, match="another input"):
        scheduler.run_now("a", input={"n": 2}, request="k")


def test_an_external_run_that_is_sent_again_once_its_schedule_is_deleted_is_answered(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.record_external_run("a", at("08:00"), request="k")
    scheduler.delete("a")
    assert scheduler.record_external_run("a", at("08:00"), request="k").deleted


def test_creations_take_effect_once_however_many_keys_were_used_since(
    program: Program, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(facts, "RECENT_REQUESTS", 10)
    many = [{"schedule_id": f"j{number:02}", "trigger": QUARTERLY, "target": "x"} for number in range(30)]
    scheduler = program.open()
    run = scheduler.run_now(target="x", request="before")
    scheduler.create("one", QUARTERLY, target="x", request="k1")
    scheduler.declare("two", QUARTERLY, target="x", request="k2")
    scheduler.create_many(many[:20], request="k3")
    assert scheduler.run_now(target="x", request="before").id == run.id
    for number in range(11):
        scheduler.run_now(target="x", request=f"other {number}")
    assert scheduler.run_now(target="x", request="before").id != run.id
    scheduler.close()
    scheduler = program.open()
    assert len(scheduler.create_many(many, request="k3")) == 30
    before = program.bytes()
    assert len(scheduler.create_many(many, request="k3")) == 30
    assert scheduler.create("one", QUARTERLY, target="x", request="k1").id == "one"
    assert scheduler.declare("two", QUARTERLY, target="x", request="k2").id == "two"
    assert program.bytes() == before
    with pytest.raises(DuplicateSchedule):
        scheduler.create_many(many, request="k4")
    with pytest.raises(DefinitionError, match="another target"):
        scheduler.create_many([many[0] | {"target": "y"}], request="k3")


@pytest.mark.parametrize("request_key", [7, None, "x" * (LONGEST_WORDS + 1), "\ud800"])
def test_a_key_is_a_short_text(program: Program, request_key: Any):
    scheduler = program.open()
    before = program.bytes()
    with pytest.raises(DefinitionError) as caught:
        scheduler.create("a", QUARTERLY, target="x", request=request_key)
    assert caught.value.field == "request"
    assert program.bytes() == before
