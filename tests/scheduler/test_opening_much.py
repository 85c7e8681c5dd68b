"""Opening a journal with much to reconcile: it takes as many lines as it needs, and it always comes to an end."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from duly import Completed, Cron, ManualClock, Run, Scheduler
from duly.journal.entries import AttemptCleared, RunCompleted, ScheduleBlocked, SourceRule
from tests.scheduler.embedding import QUARTERLY, EveryMinutes, Program

LONG = "x" * 250_000


class Finished:
    """A host whose store holds a result of every run."""

    def __init__(self, result: str) -> None:
        self.result = result

    def of(self, run: Run, /) -> Completed:
        return Completed(run.id, run.attempt_id, self.result)

    def runs(self) -> Iterable[tuple[int, str]]:
        return ()


class Tides(EveryMinutes):
    """A source like others, under a name and parameters of its own for each schedule."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.rule = SourceRule("tides", number)


def no_table(_: Any) -> EveryMinutes:
    raise RuntimeError("\x01" * 5_000)


def lines_of(program: Program) -> list[list[object]]:
    """The entries of each line, in order."""
    lines: dict[tuple[str, int], list[object]] = {}
    for record in program.records():
        lines.setdefault((record.segment, record.offset), []).append(record.entry)
    return list(lines.values())


def test_results_that_no_line_could_hold_together_are_all_recorded_at_opening(program: Program):
    scheduler = program.open(task_slots=20)
    ids = [scheduler.run_now(target="x").id for _ in range(20)]
    scheduler.start(*ids)
    scheduler.close()
    reopened = program.open(task_slots=20, evidence=Finished(LONG))
    assert [(run.id, run.state, run.result == LONG) for run in reopened.runs()] == [
        (run_id, "completed", True) for run_id in ids
    ]
    assert [entry.run_id for _, entry in reopened.recovery.decisions if isinstance(entry, RunCompleted)] == ids
    assert program.consistent(reopened)


def test_blocks_that_no_line_could_hold_together_are_all_recorded_at_opening(program: Program):
    scheduler = program.open(sources={"tides": Tides})
    scheduler.create_many({"schedule_id": f"s{n:03}", "trigger": Tides(n), "target": "x"} for n in range(400))
    scheduler.close()
    reopened = program.open(sources={"tides": no_table})
    blocked = [entry.schedule_id for _, entry in reopened.recovery.decisions if isinstance(entry, ScheduleBlocked)]
    assert blocked == [f"s{n:03}" for n in range(400)]
    assert program.consistent(reopened)
    reopened.close()
    assert program.open(sources={"tides": no_table}).recovery.decisions == ()


def test_a_result_and_the_end_of_its_attempt_share_a_line_wherever_a_line_is_full(
    program: Program, monkeypatch: pytest.MonkeyPatch
):
    scheduler = program.open(task_slots=20)
    ids = [scheduler.run_now(target="x").id for _ in range(12)]
    scheduler.start(*ids)
    for run_id in ids:
        scheduler.interrupt(run_id)
        scheduler.resume(run_id)
    scheduler.close()
    monkeypatch.setattr("duly.scheduler.shell.CHUNK_ENTRIES", 4)
    reopened = program.open(task_slots=20, evidence=Finished("done"))
    assert [run.state for run in reopened.runs()] == ["completed"] * 12
    lines = [line for line in lines_of(program) if any(isinstance(entry, RunCompleted) for entry in line)]
    assert len(lines) > 1
    for line in lines:
        ended = [entry.run_id for entry in line if isinstance(entry, RunCompleted)]
        assert [entry.run_id for entry in line if isinstance(entry, AttemptCleared)] == ended


def test_a_visitor_without_the_hosts_sources_leaves_its_schedules_as_they_are(program: Program):
    source = EveryMinutes(15)
    scheduler = program.open(sources=source.factory())
    scheduler.create("own", source, target="x")
    scheduler.close()
    visitor = program.open(block_unevaluable=False)
    assert visitor.recovery.decisions == ()
    visitor.create("another", QUARTERLY, target="x")
    assert (visitor.schedule("own").blocked, repr(visitor.schedule("own").trigger)[:11]) == (None, "Unevaluable")
    visitor.close()
    host = program.open(sources=source.factory())
    assert sorted(run.schedule_id or "" for run in program.poll_at(host, "09:15").admitted) == ["another", "own"]


def test_a_process_without_the_sources_blocks_their_schedules_unless_it_is_told_not_to(program: Program):
    source = EveryMinutes(15)
    scheduler = program.open(sources=source.factory())
    scheduler.create("own", source, target="x")
    scheduler.close()
    blocked = program.open().schedule("own").blocked
    assert blocked is not None
    assert (blocked.cause, "tides" in blocked.reason, "minutes" in blocked.reason) == ("trigger", False, True)


def test_a_visit_decides_the_rest_of_what_opening_decides(program: Program):
    scheduler = program.open()
    run = scheduler.run_now(target="x")
    scheduler.start(run.id)
    scheduler.close()
    visitor = program.open(block_unevaluable=False, evidence=Finished("done"))
    assert visitor.run(run.id).state == "completed"
    assert visitor.recovery.replayed == 4


def test_schedules_of_one_rule_go_on_each_from_where_it_was(tmp_path: Path):
    """Of those that are decided up to one instant, and have nothing decided ahead, the calendar is asked once."""
    clock = ManualClock(datetime(2026, 3, 2, 0, 30, tzinfo=UTC))
    hourly = Cron("0 * * * *", zone="UTC")
    with Scheduler.open(tmp_path / "j", clock=clock) as scheduler:
        scheduler.create("ahead", hourly, target="t")
        clock.advance(timedelta(hours=1))
        scheduler.poll()
        clock.step(-timedelta(hours=1))
        scheduler.poll()  # what was admitted ahead stays admitted
        for name in ("alike", "alike-too"):
            scheduler.create(name, hourly, target="t")
        clock.advance(timedelta(hours=1))
        scheduler.create("later", hourly, target="t")
    with Scheduler.open(tmp_path / "j", clock=clock) as scheduler:
        coming = {one.schedule_id: one.scheduled_at.hour for one in reversed(scheduler.upcoming(20))}
    assert coming == {"alike": 1, "alike-too": 1, "later": 2, "ahead": 2}
