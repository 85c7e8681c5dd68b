"""Runs that somebody else ends while the host executes them: their work ends, and until it has, it takes its room."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from duly import Completed, ManualClock, NoTaskSlot, Run, Scheduler, WrongRunState
from duly.projections import replay
from duly.scheduler.triggers import Cron
from duly.service import Command, Host, Interruption, Warned, Work
from duly.service.at_work import AtWork
from duly.service.callables import ThreadActivity
from tests.service.hosting import Seen, due, just_now, outcomes, running, until

SHORT = timedelta(seconds=0.1)


class GivenUp(NamedTuple):
    host: Host
    first: Run
    second: Run
    begun: list[int]
    go: threading.Event


@pytest.mark.skipif(os.name != "posix", reason="commands need process groups")
@pytest.mark.parametrize("heed", ["", "trap '' TERM; "])
def test_the_command_of_an_abandoned_run_is_ended_and_the_next_one_waits_for_that(tmp_path: Path, heed: str):
    mark, seen = tmp_path / "mark", Seen()
    command = Command(f"{heed}[ ! -e {mark} ] || exit 0; touch {mark}; while :; do sleep 0.01; done")
    host = Host.open(
        tmp_path / "j", {"c": command}, task_slots=1, kill_grace=SHORT, drain_grace=SHORT, observers=[seen]
    )
    with running(host):
        first = host.scheduler.run_now(target="c")
        until(mark.exists)
        host.scheduler.abandon(first.id, note="enough")
        second = host.scheduler.run_now(target="c")
        until(lambda: host.scheduler.run(second.id).ended)
        assert host.at_work == ()
    assert [run.state for run in replay(tmp_path / "j").runs()] == ["abandoned", "completed"]
    assert [one.run_id for one in seen if isinstance(one, Warned)] == [first.id]


@contextmanager
def one_given_up(path: Path) -> Generator[GivenUp]:
    """A host with one task slot, whose first run was given up and hears nothing; the second is started, by the record,
    and waits for room."""
    go, begun = threading.Event(), list[int]()

    def works(work: Work) -> None:
        begun.append(work.run.id)
        if len(begun) == 1:
            go.wait(30)

    with running(Host.open(path, {"works": works}, task_slots=1)) as host:
        first = host.scheduler.run_now(target="works")
        until(lambda: begun)
        host.scheduler.abandon(first.id)
        second = host.scheduler.run_now(target="works")
        until(lambda: host.scheduler.run(second.id).state == "started")
        try:
            yield GivenUp(host, first, second, begun, go)
        finally:
            go.set()


def test_no_more_is_at_work_than_there_are_task_slots_whatever_the_record_says(tmp_path: Path):
    """A thread hears nothing: its run has ended in the record, and its slot is taken all the same."""
    with one_given_up(tmp_path / "j") as (host, first, second, begun, go):  # it is its turn, by the record
        host.call(lambda: None).result(30)
        assert (begun, host.at_work) == ([first.id], (first.id,))
        go.set()
        until(lambda: host.scheduler.run(second.id).ended)
    assert begun == [first.id, second.id]
    assert [run.state for run in replay(tmp_path / "j").runs()] == ["abandoned", "completed"]


def test_a_schedule_does_not_run_beside_its_run_that_was_given_up(tmp_path: Path):
    clock, go, begun = ManualClock(just_now()), threading.Event(), list[int]()

    def works(work: Work) -> None:
        begun.append(work.run.id)
        if len(begun) == 1:
            go.wait(30)

    with running(Host.open(tmp_path / "j", {"works": works}, clock=clock)) as host:  # it advances while the host waits
        host.scheduler.declare("works", Cron("* * * * *", zone="UTC"), target="works")
        until(lambda: begun)
        host.scheduler.abandon(begun[0])
        until(lambda: host.scheduler.runs(state="started"))
        host.call(lambda: None).result(30)
        assert len(begun) == 1
        go.set()
        until(lambda: len(begun) > 1)


def test_what_was_held_back_for_want_of_room_is_cancelled_with_the_host(tmp_path: Path):
    go, begun = threading.Event(), list[int]()

    def works(work: Work) -> None:
        begun.append(work.run.id)
        go.wait(30)

    with running(
        Host.open(tmp_path / "j", {"works": works}, task_slots=1, drain_grace=SHORT, kill_grace=SHORT)
    ) as host:
        first = host.scheduler.run_now(target="works")
        until(lambda: begun)
        host.scheduler.abandon(first.id)
        second = host.scheduler.run_now(target="works")
        until(lambda: host.scheduler.run(second.id).state == "started")
    go.set()
    assert begun == [first.id]
    states = [(run.state, run.error and run.error.type) for run in replay(tmp_path / "j").runs()]
    assert states == [("abandoned", None), ("failed", "Cancelled")]


def test_what_was_held_back_and_is_given_up_itself_never_begins(tmp_path: Path):
    with one_given_up(tmp_path / "j") as (host, first, second, begun, go):
        host.scheduler.abandon(second.id)
        go.set()
        third = host.scheduler.run_now(target="works")
        until(lambda: host.scheduler.run(third.id).ended)
    assert begun == [first.id, third.id]


def test_an_abandoned_coroutine_is_cancelled(tmp_path: Path):
    cancelled = threading.Event()

    async def waits(_work: Work) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with running(Host.open(tmp_path / "j", {"waits": waits}, drain_grace=SHORT, kill_grace=SHORT)) as host:
        due(host, "waits")
        [run_id] = until(lambda: host.at_work)
        host.scheduler.abandon(run_id)
        until(cancelled.is_set)
        until(lambda: not host.at_work)
    assert outcomes(tmp_path / "j") == {"waits": "abandoned"}


def test_a_run_is_not_resumed_while_its_work_goes_on(tmp_path: Path):
    """A client says "interrupted" of a run that the host executes, and resumes it: it is never executed twice."""
    go, attempts = threading.Event(), list[int | None]()

    def works(work: Work) -> str:
        attempts.append(work.attempt_id)
        if work.attempt_id is None:
            go.wait(30)
            raise Interruption("mine")
        return f"went on from {work.checkpoint}"

    with running(Host.open(tmp_path / "j", {"works": works})) as host:
        due(host, "works")
        [run_id] = until(lambda: host.at_work)
        host.scheduler.interrupt(run_id, checkpoint="theirs")
        with pytest.raises(WrongRunState, match="goes on here"):
            host.resume(run_id)
        assert attempts == [None]
        go.set()
        until(lambda: not host.at_work)
        attempt = host.resume(run_id)
        until(lambda: host.scheduler.run(run_id).ended)
    assert attempts == [None, attempt.attempt_id]
    assert outcomes(tmp_path / "j") == {"works": "went on from theirs"}


def test_nothing_is_resumed_where_work_that_was_given_up_takes_the_slot(tmp_path: Path):
    go = threading.Event()

    def works(work: Work) -> None:
        if work.run.target == "saves" and work.attempt_id is None:
            raise Interruption(1)
        if work.run.target == "stays":
            go.wait(30)

    with running(Host.open(tmp_path / "j", dict.fromkeys(("saves", "stays"), works), task_slots=1)) as host:
        saved = host.scheduler.run_now(target="saves")
        until(lambda: host.scheduler.run(saved.id).state == "interrupted")
        stays = host.scheduler.run_now(target="stays")
        until(lambda: host.at_work)
        host.scheduler.abandon(stays.id)
        with pytest.raises(NoTaskSlot):
            host.resume(saved.id)
        go.set()
        until(lambda: not host.at_work)
        host.resume(saved.id)
        until(lambda: host.scheduler.run(saved.id).ended)


def test_a_late_result_of_an_attempt_before_is_no_result(tmp_path: Path):
    with Scheduler.open(tmp_path / "j") as scheduler:
        run = scheduler.run_now(target="t")
        scheduler.start(run.id)
        scheduler.interrupt(run.id)
        attempt = scheduler.resume(run.id)
    at_work = AtWork(1, SHORT)
    at_work.add(ThreadActivity(Work(attempt.run, attempt.attempt_id), lambda _: None, lambda _: None))
    assert at_work.settle(Completed(run.id, None, "of the first one")) is None
    assert run.id in at_work
    mine = Completed(run.id, attempt.attempt_id, "mine")
    assert at_work.settle(mine) == mine
