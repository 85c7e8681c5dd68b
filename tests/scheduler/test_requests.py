"""Idempotency keys: a command that is sent again takes effect once, also after a restart."""

from __future__ import annotations

from typing import Any

import pytest

from duly import DefinitionError, DuplicateSchedule
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


@pytest.mark.parametrize("request_key", [7, None, "x" * (LONGEST_WORDS + 1), "\ud800"])
def test_a_key_is_a_short_text(program: Program, request_key: Any):
    scheduler = program.open()
    before = program.bytes()
    with pytest.raises(DefinitionError) as caught:
        scheduler.create("a", QUARTERLY, target="x", request=request_key)
    assert caught.value.field == "request"
    assert program.bytes() == before
