"""What an edit, a declaration or a deletion changes, and what it is refused for."""

from __future__ import annotations

from typing import Any

import pytest

from duly import DefinitionError, OncePer
from duly.scheduler.accounting import account
from duly.scheduler.decisions.turns import TICK
from tests.scheduler.embedding import NINE, QUARTERLY, Program, at, refused
from tests.scheduler.timeline import check


def test_an_edit_to_a_one_shot_that_is_past_beyond_its_lateness_is_refused():
    check("""
        10:00  create a cron="0 0 * * *"
        10:30  edit a once=10:15 raises=DefinitionError
        10:30  poll                                      -> nothing
        10:30  schedule a revision=1
    """)


def test_a_declaration_of_a_one_shot_that_is_past_beyond_its_lateness_is_refused():
    check("""
        10:00  create a cron="0 0 * * *"
        10:30  declare a once=10:15 raises=DefinitionError
        10:30  declare b once=10:15 raises=DefinitionError
        10:30  poll                                      -> nothing
        10:30  declare a once=10:45                      -> edit a
        10:45  poll                                      -> admit a@10:45
    """)


def test_the_lateness_that_an_edit_brings_along_decides_whether_its_one_shot_is_past():
    check("""
        10:00  create a cron="0 0 * * *" lateness=1h
        10:30  edit a once=10:15 lateness=60s raises=DefinitionError
        10:30  edit a once=10:45 lateness=60s
        10:45  poll                                      -> admit a@10:45
    """)


def test_a_held_one_shot_may_be_declared_anew_with_another_target():
    check("""
        open slots=1
        09:00  create hog once=09:01
        09:00  create late once=09:05
        09:01  poll start=yes                            -> admit hog@09:01, start hog@09:01
        09:05  poll                                      -> hold late@09:05
        09:06  declare late once=09:05 target=other      -> skip late@09:05 edited, edit late
        09:07  complete hog@09:01
        09:08  poll                                      -> nothing
        09:09  declare late once=09:05 target=other      -> nothing
    """)


def test_a_held_one_shot_may_be_edited_in_everything_but_an_instant_that_is_decided():
    check("""
        open slots=1
        09:00  create hog once=09:01
        09:00  create late once=09:05
        09:01  poll start=yes                            -> admit hog@09:01, start hog@09:01
        09:05  poll                                      -> hold late@09:05
        09:05  edit late once=09:04 raises=DefinitionError
        09:06  edit late lateness=1h                     -> skip late@09:05 edited
        09:06  schedule late revision=2
    """)


JSON_OF_ITS_OWN: list[tuple[Any, Any]] = [
    (1, True),
    (True, 1),
    (0, False),
    (1, 1.0),
    ([1], [True]),
    ({"n": 0}, {"n": False}),
]


@pytest.mark.parametrize(("before", "after"), JSON_OF_ITS_OWN)
@pytest.mark.parametrize("field", ["input", "limits"])
def test_what_is_equal_to_python_and_not_to_json_is_a_change(program: Program, field: Any, before: Any, after: Any):
    scheduler = program.open()
    old: dict[str, Any] = {field: {"x": before}}
    new: dict[str, Any] = {field: {"x": after}}
    scheduler.create("a", QUARTERLY, target="x", **old)
    assert scheduler.edit("a", expected_revision=1, **new).revision == 2
    assert scheduler.declare("a", QUARTERLY, target="x", **old).revision == 3
    assert scheduler.declare("a", QUARTERLY, target="x", **old).revision == 3
    assert program.kinds() == ["ScheduleCreated", "ScheduleEdited", "ScheduleEdited"]
    assert program.consistent(scheduler)


@pytest.mark.parametrize(("period", "last"), [("day", "2026-03-01"), ("week", "2026-03-01"), ("month", "2026-02-28")])
def test_deleting_a_calendar_period_covers_the_period_that_it_ends_in(period: str, last: str):
    check(f"""
        09:00  create a once_per={period}
        09:20  delete a covers={last}T23:59:59.999999Z..09:20
        09:21  poll                                      -> nothing
    """)


def test_the_account_of_a_deleted_calendar_period_holds_its_last_period(program: Program):
    scheduler = program.open()
    scheduler.create("a", OncePer("day", zone="UTC"), target="x")
    scheduler.delete("a")
    begin = at("00:00")
    spans = [(row.after, row.scheduled_at) for row in scheduler.occurrences("a").items]
    assert [span for span in spans if span[0] is not None and span[0] < begin <= span[1]] == [(begin - TICK, NINE)]
    (told,) = account(program.path).schedules
    assert (told.balanced, told.due) == (True, 1)


NEVER: dict[str, dict[str, object]] = {
    "a path of 40 parts": {".".join("p" * 40): 1},
    "a path that makes a value too deep": {".".join("p" * 31): [[1]]},
}


@pytest.mark.parametrize("name", sorted(NEVER))
def test_an_input_that_can_never_resolve_is_refused_when_it_is_defined(program: Program, name: str):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    unusable = NEVER[name]
    refused(program, lambda: scheduler.create("b", QUARTERLY, target="x", input=unusable), DefinitionError)
    refused(program, lambda: scheduler.declare("b", QUARTERLY, target="x", input=unusable), DefinitionError)
    refused(program, lambda: scheduler.edit("a", expected_revision=1, input=unusable), DefinitionError)
    refused(program, lambda: scheduler.run_now(target="x", input=unusable), DefinitionError)
    scheduler.edit("a", expected_revision=1, input={".".join("p" * 31): 1})
    assert len(program.poll_at(scheduler, "09:15").admitted) == 1


@pytest.mark.parametrize("name", ["max_steps", "timeout"])
def test_a_limit_of_none_is_refused(program: Program, name: str):
    scheduler = program.open()
    limits = {name: None}
    error = refused(program, lambda: scheduler.create("a", QUARTERLY, target="x", limits=limits), DefinitionError)
    assert f"limits.{name}" in str(error)
    refused(program, lambda: scheduler.run_now(target="x", limits=limits), DefinitionError)
    scheduler.create("a", QUARTERLY, target="x", limits={"of the host's own": None})
