"""Questions: what is there, what comes next, what became of it; page by page while the record grows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

import pytest

from duly import Completed, Cron, Error, OneShot, Scheduler, UnknownRun, UnknownSchedule
from duly.projections import Row
from duly.scheduler.roster import Ordering
from tests.scheduler.embedding import MINUTE, NINE, QUARTERLY, EveryMinutes, Program, at

HOURLY = Cron("0 * * * *", zone="UTC")


def coming(scheduler: Scheduler, limit: int = 6) -> list[tuple[str, str]]:
    return [(one.schedule_id, f"{one.scheduled_at:%H:%M}") for one in scheduler.upcoming(limit)]


# What comes next


def test_upcoming_is_the_occurrences_of_all_schedules_in_order(program: Program):
    scheduler = program.open()
    scheduler.create("b", QUARTERLY, target="x")
    scheduler.create("a", HOURLY, target="x")
    scheduler.create("once", OneShot(at("09:30")), target="x")
    assert coming(scheduler, 8) == [
        ("b", "09:15"),
        ("b", "09:30"),
        ("once", "09:30"),
        ("b", "09:45"),
        ("a", "10:00"),
        ("b", "10:00"),
        ("b", "10:15"),
        ("b", "10:30"),
    ]
    assert scheduler.upcoming(1)[0].occurrence_id == "b@2026-03-02T09:15:00Z"
    assert scheduler.upcoming(0) == ()


def test_upcoming_leaves_out_what_is_switched_off_blocked_deleted_or_finished(program: Program):
    scheduler = program.open()
    for schedule_id in ("paused", "disabled", "deleted", "blocked", "live"):
        scheduler.create(schedule_id, HOURLY, target="x")
    scheduler.create("once", OneShot(at("09:30")), target="x")
    scheduler.pause("paused")
    scheduler.disable("disabled")
    scheduler.delete("deleted")
    scheduler.block("blocked", "wait")
    scheduler.pause("once")
    assert {one for one, _ in coming(scheduler)} == {"live"}
    for schedule_id in ("paused", "disabled", "blocked", "once"):
        assert scheduler.next_due(schedule_id) is None
    scheduler.unpause("once")
    assert coming(scheduler, 1) == [("once", "09:30")]
    program.poll_at(scheduler, "09:30")
    assert scheduler.next_due("once") is None
    assert {one for one, _ in coming(scheduler)} == {"live"}


def test_what_is_due_and_undecided_comes_first_and_what_is_decided_comes_no_more(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    program.clock.advance(20 * MINUTE)
    assert coming(scheduler, 2) == [("a", "09:15"), ("a", "09:30")]
    assert scheduler.next_due("a") == at("09:15")
    scheduler.poll()
    assert coming(scheduler, 2) == [("a", "09:30"), ("a", "09:45")]
    assert scheduler.next_due("a") == at("09:30")


def test_schedules_and_runs_come_in_pieces_whose_sum_is_the_whole(program: Program):
    scheduler = program.open()
    for name in ("c", "a", "d", "b", "gone"):
        scheduler.create(name, HOURLY, target="x")
    scheduler.delete("gone")
    runs = [scheduler.run_now(name).id for name in ("a", "b", "a")]
    assert [one.id for one in scheduler.schedules(limit=3)] == ["a", "b", "c"]
    assert [one.id for one in scheduler.schedules(after="c", limit=3)] == ["d"]
    assert [one.id for one in scheduler.schedules(after="bb")] == ["c", "d"]
    scheduler.create("bc", HOURLY, target="x")
    assert [one.id for one in scheduler.schedules(after="b", limit=2)] == ["bc", "c"]
    assert [one.id for one in scheduler.schedules()] == ["a", "b", "bc", "c", "d"]
    assert [one.id for one in scheduler.runs(limit=2)] == runs[:2]
    assert [one.id for one in scheduler.runs(after=runs[1], limit=2)] == runs[2:]
    assert [one.id for one in scheduler.runs(schedule_id="a", after=runs[0])] == runs[2:]
    scheduler.complete(scheduler.start(runs[1])[0].id)
    assert [one.id for one in scheduler.runs(limit=2)] == runs[:2]
    assert [one.id for one in scheduler.runs(after=runs[0])] == runs[1:]


class CountedIds(dict[str, int]):
    """Counts how often it is looked through."""

    looks = 0

    def __iter__(self) -> Iterator[str]:
        self.looks += 1
        return super().__iter__()


def test_an_order_is_made_once_for_all_pieces_and_again_for_what_is_new():
    ids = CountedIds({f"{n * 7919 % 1000:03}": n for n in range(1000)})
    ordering, last, seen = Ordering(), None, list[str]()
    while piece := list(islice(ordering.behind(last, ids), 10)):
        seen += piece
        last = piece[-1]
    assert (seen, ids.looks) == ([f"{n:03}" for n in range(1000)], 1)
    ids["0005"] = 0
    assert (list(islice(ordering.behind("000", ids), 3)), ids.looks) == (["0005", "001", "002"], 2)


def test_upcoming_jumps_over_what_is_decided_ahead(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    for run in program.poll_at(scheduler, "09:15", start=True).offered:
        scheduler.complete(run.id)
    program.clock.step(NINE - program.clock.now())
    scheduler.poll()
    assert coming(scheduler, 2) == [("a", "09:30"), ("a", "09:45")]


@pytest.mark.parametrize("schedule_id", ["nobody", "deleted"])
def test_a_question_about_a_schedule_that_is_not_there_is_refused_but_find_answers(program: Program, schedule_id: str):
    scheduler = program.open()
    scheduler.create("deleted", QUARTERLY, target="x")
    scheduler.delete("deleted")
    with pytest.raises(UnknownSchedule):
        scheduler.schedule(schedule_id)
    with pytest.raises(UnknownSchedule):
        scheduler.next_due(schedule_id)
    found = scheduler.find(schedule_id)
    assert (found is not None and found.deleted) is (schedule_id == "deleted")
    assert scheduler.schedules() == ()


def test_a_schedule_is_shown_whole(program: Program):
    scheduler = program.open(task_slots=1)
    scheduler.create("a", QUARTERLY, target="x", lateness=5 * MINUTE, limits={"max_steps": 3}, input={"day": 1})
    scheduler.start(scheduler.run_now(target="y").id)
    program.poll_at(scheduler, "09:15")
    shown = scheduler.schedule("a")
    assert shown.trigger == QUARTERLY
    assert (shown.revision, shown.target, shown.overlap, shown.misfire) == (1, "x", "skip", "latest")
    assert (shown.lateness, shown.limits, shown.max_active_runs) == (5 * MINUTE, {"max_steps": 3}, None)
    assert (shown.candidate, shown.consumed_through, shown.created_at) == (at("09:15"), at("09:15"), NINE)
    assert (shown.paused, shown.disabled, shown.deleted, shown.exhausted, shown.blocked) == (False,) * 4 + (None,)


# Runs


def test_runs_are_told_by_schedule_and_by_state_in_the_order_of_their_ids(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.create("b", QUARTERLY, target="x")
    runs = [scheduler.run_now(one) for one in ("b", "a", "b")]
    scheduler.start(runs[0].id, runs[1].id)
    scheduler.complete(runs[0].id)
    assert [run.id for run in scheduler.runs()] == [run.id for run in runs]
    assert [run.id for run in scheduler.runs(schedule_id="b")] == [runs[0].id, runs[2].id]
    assert [run.id for run in scheduler.runs(state="started")] == [runs[1].id]
    assert scheduler.runs(schedule_id="b", state="started") == ()


def test_a_run_that_ended_long_ago_is_found_as_it_ended(program: Program):
    scheduler = program.open(task_slots=2_000)
    first = scheduler.run_now(target="x", input={"day": 1})
    scheduler.start(first.id)
    scheduler.interrupt(first.id, checkpoint=3)
    attempt = scheduler.resume(first.id)
    ended = scheduler.complete(first.id, attempt_id=attempt.attempt_id, result={"rows": 12})
    for _ in range(2):
        runs = [scheduler.run_now(target="x") for _ in range(600)]
        scheduler.start(*(run.id for run in runs))
        scheduler.report([Completed(run.id) for run in runs])
    assert first.id not in {run.id for run in scheduler.runs()}
    assert scheduler.run(first.id) == ended
    scheduler.close()
    again = program.open()
    assert again.run(first.id) == ended
    with pytest.raises(UnknownRun):
        again.run(first.id - 1)


# Occurrences, page by page


def grown(program: Program, quarters: int, schedule_id: str = "a") -> Scheduler:
    """A schedule with so many quarters of an hour behind it."""
    scheduler = program.open()
    scheduler.create(schedule_id, QUARTERLY, target="x")
    grow(program, scheduler, quarters)
    return scheduler


def grow(program: Program, scheduler: Scheduler, quarters: int) -> None:
    for _ in range(quarters):
        program.clock.advance(15 * MINUTE)
        for run in scheduler.poll(start=True).offered:
            scheduler.complete(run.id)


def pages(scheduler: Scheduler, limit: int) -> list[Row]:
    rows: list[Row] = []
    page = scheduler.occurrences("a", limit=limit)
    rows += page.items
    while page.next is not None:
        assert len(page.items) == limit
        page = scheduler.occurrences("a", after=page.next, limit=limit)
        rows += page.items
    return rows


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_of_any_size_are_the_whole_without_gap_or_double(program: Program, limit: int):
    scheduler = grown(program, 9)
    scheduler.pause("a")
    program.clock.advance(20 * MINUTE)
    scheduler.unpause("a")
    program.clock.advance(20 * MINUTE)
    whole = scheduler.occurrences("a", limit=1_000)
    assert whole.next is None
    assert pages(scheduler, limit) == list(whole.items)
    kinds = [row.disposition for row in whole.items]
    assert kinds == ["interval", *["admitted"] * 9, "interval", "waiting"]


def test_a_page_boundary_between_a_row_and_a_span_that_end_at_the_same_instant_loses_neither(program: Program):
    """The clock steps back behind an admitted run, and a pause then covers up to that very instant."""
    scheduler = grown(program, 2)
    program.clock.step(at("09:20") - program.clock.now())
    scheduler.poll()
    program.clock.step(at("09:30") - program.clock.now())
    scheduler.pause("a")
    whole = scheduler.occurrences("a", limit=1_000).items
    assert [(row.disposition, row.scheduled_at) for row in whole][-2:] == [
        ("admitted", at("09:30")),
        ("interval", at("09:30")),
    ] or [(row.disposition, row.scheduled_at) for row in whole][-2:] == [
        ("interval", at("09:30")),
        ("admitted", at("09:30")),
    ]
    assert pages(scheduler, 1) == list(whole)


def test_new_occurrences_between_two_pages_move_no_row_to_another_page(program: Program):
    scheduler = grown(program, 6)
    before = scheduler.occurrences("a", limit=1_000).items
    first = scheduler.occurrences("a", limit=3)
    grow(program, scheduler, 4)
    assert first.next is not None
    second = scheduler.occurrences("a", after=first.next, limit=3)
    grow(program, scheduler, 1)
    assert second.next is not None
    third = scheduler.occurrences("a", after=second.next, limit=100)
    rows = [*first.items, *second.items, *third.items]
    assert rows[: len(before)] == list(before)
    assert [row.scheduled_at for row in rows[1:]] == [NINE + 15 * MINUTE * n for n in range(1, 12)]


def test_a_row_that_is_waiting_keeps_its_place_when_it_is_decided(program: Program):
    scheduler = grown(program, 2)
    program.clock.advance(30 * MINUTE)
    first = scheduler.occurrences("a", limit=4)
    assert [row.disposition for row in first.items] == ["interval", "admitted", "admitted", "waiting"]
    scheduler.poll()
    assert first.next is not None
    rest = scheduler.occurrences("a", after=first.next)
    assert [(row.disposition, row.scheduled_at) for row in rest.items] == [("admitted", at("10:00"))]
    again = scheduler.occurrences("a", limit=4)
    assert [row.key for row in again.items] == [row.key for row in first.items]


def test_rows_that_were_handed_out_change_nothing_and_change_no_more(program: Program):
    scheduler = grown(program, 1)
    program.clock.advance(15 * MINUTE)
    [run] = scheduler.poll(start=True).offered
    before = scheduler.occurrences("a").items
    assert [row.run_state for row in before] == [None, "completed", "started"]
    before[1].run_state = "failed"
    scheduler.complete(run.id)
    assert [row.run_state for row in scheduler.occurrences("a").items] == [None, "completed", "completed"]
    assert [row.run_state for row in before] == [None, "failed", "started"]


def test_what_waits_says_what_for(program: Program):
    scheduler = program.open()
    for schedule_id in ("free", "blocked"):
        scheduler.create(schedule_id, QUARTERLY, target="x")
    scheduler.block("blocked", "wait")
    program.clock.advance(15 * MINUTE)
    waiting = {one: scheduler.occurrences(one).items[-1] for one in ("free", "blocked")}
    assert {row.disposition for row in waiting.values()} == {"waiting"}
    assert (waiting["free"].detail, waiting["blocked"].detail) == ("", "blocked since #4")


def test_a_scan_that_is_capped_shows_the_newest_of_what_waits(program: Program):
    source = EveryMinutes(1)
    scheduler = program.open(sources=source.factory())
    scheduler.create("a", source, target="x")
    program.clock.advance(timedelta(days=30))
    rows = scheduler.occurrences("a").items
    assert [row.disposition for row in rows] == ["interval", "waiting"]
    assert rows[-1].scheduled_at == NINE + timedelta(days=30)


def test_a_deleted_schedules_history_stays_and_an_unknown_ones_is_refused(program: Program):
    scheduler = grown(program, 2)
    scheduler.delete("a")
    assert [row.disposition for row in scheduler.occurrences("a").items] == ["interval", "admitted", "admitted"]
    with pytest.raises(UnknownSchedule):
        scheduler.occurrences("nobody")


@pytest.mark.parametrize("cursor", ["", "x", "2026-03-02T09:15:00|a@x", "2026-03-02|", "|", 7, "9" * 500])
def test_what_is_no_cursor_is_refused(program: Program, cursor: Any):
    scheduler = grown(program, 2)
    with pytest.raises(Error) as caught:
        scheduler.occurrences("a", after=cursor)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "3", None])
def test_a_limit_is_a_count(program: Program, limit: Any):
    """Otherwise a page of nothing would look like the end."""
    scheduler = grown(program, 2)
    with pytest.raises(Error) as caught:
        scheduler.occurrences("a", limit=limit)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("limit", [-1, "3", None])
def test_upcoming_takes_a_count(program: Program, limit: Any):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    with pytest.raises(Error) as caught:
        scheduler.upcoming(limit)
    assert isinstance(caught.value, ValueError)
