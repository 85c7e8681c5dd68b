"""Closing never raises and never hangs; what is used after it says so; an opening that fails leaves nothing behind."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest

from duly import (
    ClockUnusable,
    Completed,
    DefinitionError,
    JournalLocked,
    ManualClock,
    Scheduler,
    SchedulerClosed,
    SystemClock,
)
from duly.journal.entries import JournalClosed
from tests.scheduler.embedding import NINE, QUARTERLY, EveryMinutes, Program, Task, at

USES: dict[str, Callable[[Scheduler], object]] = {
    "poll": lambda scheduler: scheduler.poll(),
    "create": lambda scheduler: scheduler.create("b", QUARTERLY, target="x"),
    "create_many": lambda scheduler: scheduler.create_many([]),
    "declare": lambda scheduler: scheduler.declare("a", QUARTERLY, target="x"),
    "edit": lambda scheduler: scheduler.edit("a", expected_revision=1, target="y"),
    "pause": lambda scheduler: scheduler.pause("a"),
    "block": lambda scheduler: scheduler.block("a", "wait"),
    "unblock": lambda scheduler: scheduler.unblock("a"),
    "rebaseline": lambda scheduler: scheduler.rebaseline("a", at("08:00")),
    "record_external_run": lambda scheduler: scheduler.record_external_run("a", at("08:00")),
    "run_now": lambda scheduler: scheduler.run_now("a"),
    "start": lambda scheduler: scheduler.start(3),
    "complete": lambda scheduler: scheduler.complete(3),
    "fail": lambda scheduler: scheduler.fail(3, error="no"),
    "interrupt": lambda scheduler: scheduler.interrupt(3),
    "report": lambda scheduler: scheduler.report([Completed(3)]),
    "resume": lambda scheduler: scheduler.resume(3),
    "abandon": lambda scheduler: scheduler.abandon(3),
    "note_run": lambda scheduler: scheduler.note_run(3, 1),
    "find": lambda scheduler: scheduler.find("a"),
    "schedule": lambda scheduler: scheduler.schedule("a"),
    "schedules": lambda scheduler: scheduler.schedules(),
    "run": lambda scheduler: scheduler.run(3),
    "runs": lambda scheduler: scheduler.runs(),
    "next_due": lambda scheduler: scheduler.next_due("a"),
    "upcoming": lambda scheduler: scheduler.upcoming(),
    "occurrences": lambda scheduler: scheduler.occurrences("a"),
    "digest": lambda scheduler: scheduler.digest(),
}


@pytest.mark.parametrize("use", USES)
def test_whoever_uses_a_closed_scheduler_is_told_that_reopening_is_the_way(program: Program, use: str):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.start(scheduler.run_now("a").id)
    scheduler.close()
    before = program.bytes()
    with pytest.raises(SchedulerClosed, match="evidence"):
        USES[use](scheduler)
    assert program.bytes() == before


def test_a_closed_scheduler_waits_for_nothing_and_its_loop_is_over(program: Program):
    scheduler = program.open()
    poll = scheduler.poll()
    scheduler.close()
    scheduler.wake()
    scheduler.stop_admitting()
    scheduler.wait(poll)
    assert program.clock.now() == NINE
    assert list(scheduler.polls()) == []
    assert scheduler.stopping


def test_closing_twice_leaves_one_mark(program: Program):
    scheduler = program.open(actor="eve")
    scheduler.close()
    scheduler.close()
    closed = program.last()
    assert isinstance(closed, JournalClosed)
    assert (closed.actor, closed.at) == ("eve", NINE)
    assert len(program.records()) == 2


def test_many_threads_may_close_at_once(program: Program):
    scheduler = program.open()
    barrier = threading.Barrier(8)

    def close() -> None:
        barrier.wait(10)
        scheduler.close()

    for task in [Task(close) for _ in range(8)]:
        task.outcome()
    assert len(program.records()) == 2
    program.open()


def test_a_block_closes_also_when_it_raises(program: Program):
    with pytest.raises(ValueError, match="later"), program.open() as scheduler:
        raise ValueError("later")
    with pytest.raises(SchedulerClosed):
        scheduler.poll()


def work_until_closed(scheduler: Scheduler, begun: threading.Semaphore, acknowledged: list[int]) -> None:
    with contextlib.suppress(SchedulerClosed):
        while True:
            run = scheduler.run_now(target="x")
            begun.release()
            scheduler.start(run.id)
            scheduler.complete(run.id, result=run.id)
            acknowledged.append(run.id)


def test_closing_while_threads_are_inside_hangs_nobody_and_loses_nothing_that_was_acknowledged(program: Program):
    for _ in range(10):
        scheduler = program.open(clock=SystemClock(), task_slots=100)
        acknowledged: list[int] = []
        begun = threading.Semaphore(0)

        workers = [Task(lambda: work_until_closed(scheduler, begun, acknowledged)) for _ in range(4)]  # noqa: B023 - joined below
        looping = Task(lambda: list(scheduler.polls()))  # noqa: B023 - joined below
        for _ in range(8):
            assert begun.acquire(timeout=10)
        scheduler.close()
        for task in workers:
            task.outcome()
        looping.outcome()
        again = program.open()
        assert [again.run(run_id).result for run_id in acknowledged] == acknowledged
        again.close()


def test_a_loop_ends_without_an_error_whenever_another_thread_closes(program: Program):
    for _ in range(20):
        scheduler = program.open(clock=SystemClock())
        began = threading.Event()

        def loop(scheduler: Scheduler = scheduler, began: threading.Event = began) -> int:
            polls = 0
            for _ in scheduler.polls():
                polls += 1
                began.set()
                scheduler.wake()
            return polls

        task = Task(loop)
        assert began.wait(10)
        scheduler.close()
        assert task.outcome() >= 1


class BrokenClock(ManualClock):
    broken = False

    def now(self) -> datetime:
        if self.broken:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return super().now()


def test_closing_does_not_raise_though_the_clock_does(program: Program):
    clock = BrokenClock(NINE)
    scheduler = program.open(clock=clock)
    clock.broken = True
    scheduler.close()
    assert program.open().recovery.replayed == 1


def test_closing_does_not_raise_though_the_disk_does_and_the_journal_is_free_again(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")

    def failing() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    program.disk.before_sync = failing
    scheduler.close()
    program.disk.before_sync = lambda: None
    assert program.open().schedule("a").id == "a"


@pytest.mark.parametrize("year", [1960, 2200])
def test_closing_on_an_unusable_clock_leaves_its_mark(program: Program, year: int):
    scheduler = program.open()
    program.clock.step(NINE.replace(year=year) - NINE)
    with pytest.raises(ClockUnusable):
        scheduler.create("a", QUARTERLY, target="x")
    scheduler.close()
    assert isinstance(program.last(), JournalClosed)


# Opening


def test_one_owner_at_a_time(program: Program):
    scheduler = program.open()
    with pytest.raises(JournalLocked, match="this process owns the journal already"):
        program.open()
    scheduler.close()
    program.open()


def test_whoever_waits_for_the_lock_gets_it_when_the_other_leaves(program: Program):
    first = program.open()
    opening = Task(lambda: program.open(lock_timeout=10))
    opening.thread.join(0.05)
    assert opening.running
    first.close()
    assert opening.outcome().recovery.replayed == 2


BAD_SETTINGS: dict[str, dict[str, Any]] = {
    "task_slots": {"task_slots": 0},
    "batch": {"batch": 0},
    "clock_tolerance": {"clock_tolerance": timedelta(seconds=-1)},
    "actor": {"actor": 7},
}
MORE_BAD_SETTINGS: list[tuple[str, Any]] = [
    ("task_slots", True),
    ("task_slots", 1.5),
    ("task_slots", "4"),
    ("batch", -1),
    ("batch", None),
    ("clock_tolerance", timedelta(days=366)),
    ("clock_tolerance", 300),
    ("clock_tolerance", None),
    ("actor", "\ud800"),
]


@pytest.mark.parametrize(("field", "value"), [*((f, s[f]) for f, s in BAD_SETTINGS.items()), *MORE_BAD_SETTINGS])
def test_a_setting_that_cannot_be_meant_is_refused_and_no_journal_is_made(program: Program, field: str, value: Any):
    settings: Any = {field: value}
    with pytest.raises(DefinitionError) as caught:
        program.open(**settings)
    assert caught.value.field == field
    assert not program.path.exists()


def test_without_create_a_journal_must_be_there(program: Program):
    with pytest.raises(Exception, match=r"."):
        program.open(create=False)
    assert not program.path.exists()
    program.open().close()
    program.open(create=False)


class BrokenEvidence:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def of(self, run: object) -> None:
        raise self.error

    def runs(self) -> Iterable[tuple[int, str]]:
        raise self.error


def test_an_opening_that_is_interrupted_gives_the_journal_up_again(program: Program):
    scheduler = program.open()
    scheduler.start(scheduler.run_now(target="x").id)
    scheduler.close()
    with pytest.raises(KeyboardInterrupt):
        program.open(evidence=BrokenEvidence(KeyboardInterrupt()))
    assert program.open().recovery.decisions, "what the interrupted opening would have decided"


def test_an_opening_whose_fsync_fails_gives_the_journal_up_again(program: Program):
    program.open().close()

    def failing() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    program.disk.before_sync = failing
    with pytest.raises(Exception, match="No space"):
        program.open()
    program.disk.before_sync = lambda: None
    program.open()


def test_evidence_that_cannot_list_its_runs_stops_no_opening(program: Program):
    """What it says about each run is asked for all the same; that nothing could be compared is a warning."""
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.close()
    again = program.open(evidence=BrokenEvidence(RuntimeError("the store is down")))
    assert any("the store is down" in warning for warning in again.recovery.warnings)
    assert "the store is down" in str(again.recovery)


@pytest.mark.parametrize("answer", [5, "done", Completed(1, None, {1, 2}), Completed(1, None, "x" * 300_000)])
def test_evidence_that_is_nonsense_blocks_the_runs_schedule_and_leaves_the_run(program: Program, answer: Any):
    class Evidence:
        def of(self, run: object) -> Any:
            return answer

        def runs(self) -> Iterable[tuple[int, str]]:
            return ()

    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.create("b", QUARTERLY, target="x")
    (run,) = scheduler.start(scheduler.run_now("a").id)
    scheduler.close()
    again = program.open(evidence=Evidence())
    blocked = again.schedule("a").blocked
    assert blocked is not None
    assert f"evidence of run {run.id}" in blocked.reason
    assert again.run(run.id).state == "started"
    assert [run.schedule_id for run in program.poll_at(again, "09:15").admitted] == ["b"]


@pytest.mark.parametrize("known", [[(1, "a")], [(2, "a")], [(999, "a")], [(3, "b"), (3, "a")]])
def test_a_run_that_the_journal_never_admitted_blocks_the_schedule_that_the_host_names(
    program: Program, known: list[tuple[int, str]]
):
    """Sequence 1 is the opening and 2 the creation: they are no admissions, and 3 is none of b."""

    class Evidence:
        def of(self, run: object) -> None:
            return None

        def runs(self) -> Iterable[tuple[int, str]]:
            return known

    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.run_now("a")
    scheduler.create("b", QUARTERLY, target="x")
    scheduler.close()
    again = program.open(evidence=Evidence())
    strange = "b" if known[0][1] == "b" else "a"
    assert [one.id for one in again.schedules() if one.blocked is not None] == [strange]


def test_a_source_that_raises_while_the_scheduler_opens_blocks_its_schedule(program: Program):
    source = EveryMinutes(15)
    scheduler = program.open(sources=source.factory())
    scheduler.create("a", source, target="x")
    scheduler.create("b", QUARTERLY, target="x")
    scheduler.close()

    class Broken(EveryMinutes):
        def next_after(self, instant: datetime, /) -> datetime | None:
            raise RuntimeError("no network")

    again = program.open(sources={"minutes": lambda _: Broken()})
    assert [run.schedule_id for run in program.poll_at(again, "09:15").admitted] == ["b"]
    blocked = again.schedule("a").blocked
    assert blocked is not None
    assert "no network" in blocked.reason
