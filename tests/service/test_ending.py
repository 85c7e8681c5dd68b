"""How work ends that does not end by itself: timeouts, a stop, a second one; and how `once` ends."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from duly import Cron, ManualClock, Run, Scheduler, SchedulerClosed
from duly.service import Command, Ended, Event, Host, Interruption, Work, commands, loop
from duly.service.processes import process_of
from tests.service.hosting import PATIENCE, due, ended, just_now, outcomes, running, until


def test_a_run_that_takes_too_long_is_asked_to_end_and_has_failed(tmp_path: Path):
    async def waits(_work: Work) -> None:
        await asyncio.sleep(60)

    def listens(work: Work) -> str:
        work.wait(60)
        return "well, it is over"

    handlers = {"waits": waits, "listens": listens}
    with running(Host.open(tmp_path / "j", handlers)) as host:
        due(host, *handlers, limits={"timeout": 0.05})
        until(ended(host))
    assert outcomes(tmp_path / "j") == {"waits": "TimedOut", "listens": "TimedOut"}


def test_a_coroutine_that_will_not_end_is_let_go_without_a_word(tmp_path: Path):
    async def stubborn(_work: Work) -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    grace = timedelta(seconds=0.05)
    with running(Host.open(tmp_path / "j", {"c": stubborn}, drain_grace=grace, kill_grace=grace)) as host:
        due(host, "c")
        until(lambda: host.at_work)
    assert outcomes(tmp_path / "j") == {"c": "Cancelled"}


def test_a_coroutine_may_answer_its_end_with_a_checkpoint(tmp_path: Path):
    async def saves(_work: Work) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise Interruption({"at": 7}) from None

    with running(Host.open(tmp_path / "j", {"saves": saves})) as host:
        due(host, "saves", limits={"timeout": 0.05})
        until(ended(host))
    assert outcomes(tmp_path / "j") == {"saves": ("interrupted", {"at": 7})}


def test_what_runs_may_end_within_the_grace(tmp_path: Path):
    with running(Host.open(tmp_path / "j", {"slow": lambda _: time.sleep(0.3)})) as host:
        due(host, "slow")
        until(lambda: host.at_work)
    assert outcomes(tmp_path / "j") == {"slow": None}


def test_what_does_not_end_within_the_grace_is_recorded_as_cancelled(tmp_path: Path):
    forever = threading.Event()

    async def sleeps(_work: Work) -> None:
        await asyncio.sleep(60)

    def asks(work: Work) -> bool:
        return work.wait(60)

    def ignores(_work: Work) -> bool:
        return forever.wait(60)

    handlers = {"sleeps": sleeps, "asks": asks, "ignores": ignores}
    grace = timedelta(seconds=0.1)
    with running(Host.open(tmp_path / "j", handlers, drain_grace=grace, kill_grace=grace)) as host:
        due(host, *handlers)
        until(lambda: len(host.at_work) == 3)
    forever.set()
    assert outcomes(tmp_path / "j") == dict.fromkeys(handlers, "Cancelled")


def test_a_second_stop_ends_everything_at_once(tmp_path: Path):
    with running(Host.open(tmp_path / "j", {"slow": lambda work: work.wait(60)})) as host:
        due(host, "slow")
        until(lambda: host.at_work)
        began = time.monotonic()
        host.stop()
        until(lambda: host.state == "draining")
        host.stop()
    assert time.monotonic() - began < host.drain_grace.total_seconds() / 2
    assert outcomes(tmp_path / "j") == {"slow": "Cancelled"}


def test_a_host_that_is_stopped_admits_and_resumes_nothing(tmp_path: Path):
    go = threading.Event()
    with running(Host.open(tmp_path / "j", {"slow": lambda _: go.wait(30)})) as host:
        due(host, "slow")
        until(lambda: host.at_work)
        host.stop()
        until(lambda: host.state == "draining")
        host.scheduler.create("late", Cron("* * * * *", zone="UTC"), target="slow")
        with pytest.raises(SchedulerClosed):
            host.scheduler.run_now("late")
        with pytest.raises(SchedulerClosed):
            host.resume(1)
        go.set()
        until(lambda: host.state == "closed")
    assert outcomes(tmp_path / "j") == {"slow": True}


@pytest.mark.skipif(os.name != "posix", reason="commands need process groups")
def test_a_command_that_lives_on_is_not_called_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It stands for one in the middle of a system call, which not even SIGKILL ends."""

    def unheard(_group: int, _number: int) -> None:
        """The signal waits until the call is over."""

    monkeypatch.setattr(commands, "signal_group", unheard)
    monkeypatch.setattr(loop, "REAPING", 0.1)
    grace = timedelta(seconds=0.05)
    command = Command(f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done")
    with running(Host.open(tmp_path / "j", {"c": command}, drain_grace=grace, kill_grace=grace)) as host:
        due(host, "c")
        [run_id] = until(lambda: host.at_work)
        until(lambda: host.scheduler.run(run_id).notes)
    assert outcomes(tmp_path / "j") == {"c": "started"}
    with running(Host.open(tmp_path / "j", {"c": command})) as host:
        assert [run.id for run in host.scheduler.recovery.running] == [run_id]
        (tmp_path / "go").touch()
        until(ended(host))
    assert outcomes(tmp_path / "j") == {"c": "OutlivedItsHost"}


@pytest.mark.skipif(os.name != "posix", reason="commands need process groups")
def test_the_end_of_a_command_is_recorded_after_its_process_has_ended(tmp_path: Path):
    alive: list[bool] = []

    def looks(event: Event) -> None:
        if isinstance(event, Ended):
            [note] = event.run.notes
            alive.append(process_of(note["process"]) is not None)

    grace, line = timedelta(seconds=0.05), "trap '' TERM; while :; do sleep 0.01; done"
    host = Host.open(
        tmp_path / "j", {"c": Command(line)}, drain_grace=grace, kill_grace=grace, observers=[looks], task_slots=4
    )
    with running(host):
        runs = [host.scheduler.run_now(target="c") for _ in range(4)]
        until(lambda: all(host.scheduler.run(run.id).notes for run in runs))
    assert alive == [False] * 4
    assert outcomes(tmp_path / "j") == {"c": "Cancelled"}


def test_once_executes_what_is_due_and_leaves(tmp_path: Path):
    clock = ManualClock(just_now())
    with Host.open(tmp_path / "j", {"f": lambda _: "done"}, clock=clock) as host:
        host.scheduler.declare("f", Cron("* * * * *", zone="UTC"), target="f")
        assert host.once() == ()
    clock.advance(timedelta(minutes=1))
    with Host.open(tmp_path / "j", {"f": lambda _: "done"}, clock=clock) as host:
        assert [run.result for run in host.once()] == ["done"]


def test_once_polls_again_for_what_found_no_slot_and_for_nothing_else(tmp_path: Path):
    clock = ManualClock(just_now())

    def works(_work: Work) -> None:
        clock.advance(timedelta(minutes=1))  # so that each schedule is due again when the run has ended

    with Host.open(tmp_path / "j", dict.fromkeys("abc", works), clock=clock, task_slots=1) as host:
        for name, misfire in (("a", "latest"), ("b", "skip"), ("c", "latest")):
            lateness = timedelta(hours=1)
            host.scheduler.declare(
                name,
                Cron("* * * * *", zone="UTC"),
                target=name,
                misfire=misfire,  # type: ignore[arg-type]  # a literal, as the loop gives it
                lateness=lateness,
            )
        clock.advance(timedelta(minutes=1))
        assert sorted(run.schedule_id or "" for run in host.once()) == ["a", "b", "c"]


@pytest.mark.parametrize("raised", [ZeroDivisionError("a fault"), KeyboardInterrupt()])
def test_a_host_that_breaks_off_releases_its_journal_and_lets_nobody_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException
):
    """Whatever is raised where, in the work and in the shutdown that follows."""
    seen: list[BaseException] = []
    host = Host.open(tmp_path / "j", {"quick": lambda _: 1})

    def breaks(_results: object) -> tuple[Run, ...]:
        raise raised

    def runs() -> None:
        try:
            host.run()
        except BaseException as error:
            seen.append(error)

    due(host, "quick")
    monkeypatch.setattr(host.scheduler, "report", breaks)  # it stands for a fault that nobody thought of
    thread = threading.Thread(target=runs)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    host.close()
    assert (host.state, seen) == ("closed", [raised])
    with Scheduler.open(tmp_path / "j") as scheduler:
        assert [run.state for run in scheduler.runs()] == ["abandoned"]
