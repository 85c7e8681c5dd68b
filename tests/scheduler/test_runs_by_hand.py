"""Runs by hand: of a schedule or of a target, admitted at once, refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from duly import Blocked, DefinitionError, SchedulerClosed
from duly.journal.entries import RunAdmittedManually
from tests.scheduler.embedding import QUARTERLY, Program, refused


def test_a_run_by_hand_is_of_a_schedule_or_of_a_target_and_is_recorded_with_who_and_why(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x", input={"day": "monday"}, limits={"max_steps": 3})
    run = scheduler.run_now("a", actor="eve", note="the customer waits")
    assert (run.manual, run.state, run.schedule_id, run.target) == (True, "pending", "a", "x")
    assert (run.input, run.limits, run.scheduled_at, run.revision) == ({"day": "monday"}, {"max_steps": 3}, None, 1)
    entry = program.last()
    assert isinstance(entry, RunAdmittedManually)
    assert (entry.actor, entry.note) == ("eve", "the customer waits")
    alone = scheduler.run_now(target="y", input={"a.b": 1}, limits={"timeout": 9})
    assert (alone.schedule_id, alone.input, alone.limits) == (None, {"a": {"b": 1}}, {"timeout": 9})
    other = scheduler.run_now("a", target="z", input={}, limits={})
    assert (other.target, other.input, other.limits) == ("z", {}, {})
    assert [run.id for run in scheduler.poll().offered] == [run.id, alone.id, other.id]


BAD: list[tuple[str, dict[str, Any]]] = [
    ("target", {}),
    ("target", {"target": 7}),
    ("target", {"target": ""}),
    ("target", {"target": "x" * 201}),
    ("target", {"target": "\ud800"}),
    ("target", {"schedule_id": "a", "target": ""}),
    ("input", {"target": "x", "input": {"a": 1, "a.b": 2}}),
    ("input", {"target": "x", "input": 7}),
    ("limits.max_steps", {"target": "x", "limits": {"max_steps": 0}}),
    ("limits", {"target": "x", "limits": 7}),
]


@pytest.mark.parametrize(("field", "arguments"), BAD)
def test_a_run_by_hand_that_cannot_be_meant_is_refused(program: Program, field: str, arguments: dict[str, Any]):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    assert refused(program, lambda: scheduler.run_now(**arguments), DefinitionError).field == field


def test_a_run_by_hand_is_refused_for_blocked_and_stopped_but_not_for_capacity_or_pause(program: Program):
    scheduler = program.open(task_slots=1)
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.start(scheduler.run_now("a").id)
    scheduler.pause("a")
    assert scheduler.run_now("a").state == "pending"
    scheduler.block("a", "wait")
    error = refused(program, lambda: scheduler.run_now("a"), Blocked)
    assert (error.schedule_id, error.reason) == ("a", "wait")
    assert scheduler.run_now(target="x").state == "pending"
    scheduler.stop_admitting()
    refused(program, lambda: scheduler.run_now(target="x"), SchedulerClosed)
