"""Many at once: results of more runs than memory keeps, schedules of a request that is sent again, and candidates that
are held while nothing is free."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from duly import Completed, Cron, DefinitionError, DuplicateSchedule
from duly.scheduler.roster import Roster
from tests.scheduler.embedding import MINUTE, QUARTERLY, Program, agenda_of, at, hold, refused

MINUTELY = Cron("* * * * *", zone="UTC")


def listed(*ids: str, target: str = "x") -> list[dict[str, Any]]:
    return [{"schedule_id": one, "trigger": QUARTERLY, "target": target} for one in ids]


def test_a_report_of_more_results_than_memory_keeps_returns_them_all_in_the_order_of_the_report(program: Program):
    scheduler = program.open(task_slots=1_500, batch=5_000)
    scheduler.create_many({"schedule_id": f"s{n:04}", "trigger": MINUTELY, "target": "x"} for n in range(1_500))
    program.clock.advance(MINUTE)
    ids = [run.id for run in scheduler.poll(start=True).offered]
    assert len(ids) == 1_500
    backwards = list(reversed(ids))
    ended = scheduler.report([Completed(run_id, None, run_id) for run_id in backwards])
    assert [(run.id, run.state, run.result) for run in ended] == [(one, "completed", one) for one in backwards]


def test_many_that_are_created_again_with_their_request_take_effect_once(program: Program):
    scheduler = program.open()
    scheduler.create_many(listed("a", "b"), request="k")
    scheduler.edit("b", expected_revision=1, target="y")
    before = program.bytes()
    again = scheduler.create_many(listed("a", "b"), request="k")
    assert [(one.id, one.revision, one.target) for one in again] == [("a", 1, "x"), ("b", 2, "y")]
    assert program.bytes() == before
    scheduler.close()
    assert [one.id for one in program.open().create_many(listed("a", "b"), request="k")] == ["a", "b"]


def test_a_request_of_which_a_crash_left_the_first_line_creates_the_rest_when_it_is_sent_again(
    program: Program, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("duly.scheduler.shell.CHUNK_ENTRIES", 2)
    scheduler = program.open()
    scheduler.create_many(listed("a", "b"), request="k")
    whole = listed("a", "b", "c", "d", "e")
    assert [one.id for one in scheduler.create_many(whole, request="k")] == ["a", "b", "c", "d", "e"]
    assert program.kinds() == ["ScheduleCreated"] * 5
    assert program.consistent(scheduler)


def test_many_without_a_request_are_refused_the_second_time(program: Program):
    scheduler = program.open()
    scheduler.create_many(listed("a", "b"))
    refused(program, lambda: scheduler.create_many(listed("c", "b")), DuplicateSchedule)


def test_many_that_are_sent_again_and_mean_others_are_refused_whole(program: Program):
    scheduler = program.open()
    scheduler.create_many(listed("a", "b"), request="k")
    changed = [*listed("c"), *listed("b", target="y")]
    error = refused(program, lambda: scheduler.create_many(changed, request="k"), DefinitionError)
    assert "target" in str(error)
    assert scheduler.find("c") is None


@pytest.mark.parametrize(
    "changed", [{"target": "y"}, {"lateness": MINUTE * 5}, {"input": {"n": 1}}, {"misfire": "skip"}]
)
def test_a_creation_that_is_sent_again_and_means_another_schedule_is_refused(program: Program, changed: dict[str, Any]):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x", request="k")
    policy: dict[str, Any] = {"target": "x", **changed}
    error = refused(program, lambda: scheduler.create("a", QUARTERLY, request="k", **policy), DefinitionError)
    assert next(iter(changed)) in str(error)
    refused(program, lambda: scheduler.create("a", MINUTELY, target="x", request="k"), DefinitionError)


class Unopened(Roster):
    """What must not be walked through."""

    def __len__(self) -> int:
        return 1

    def members(self, after: str | None = None, through: str | None = None) -> Iterator[str]:
        raise AssertionError("looked at what is held")


def test_held_candidates_are_not_looked_at_while_no_slot_is_free(program: Program):
    scheduler = program.open(task_slots=1)
    begun = scheduler.run_now(target="x")
    scheduler.start(begun.id)
    scheduler.create_many(listed("a", "b", "c"))
    program.poll_at(scheduler, "09:15")
    assert [one.candidate for one in scheduler.schedules()] == [at("09:15")] * 3
    agenda = agenda_of(scheduler)
    held = hold(agenda, Unopened())
    assert program.poll_at(scheduler, "09:16").decisions == ()
    hold(agenda, held)
    scheduler.complete(begun.id)
    assert [run.schedule_id for run in scheduler.poll().admitted] == ["a"]
