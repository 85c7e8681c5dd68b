"""A host executes what is offered, each kind of handler in its own way, and records how it ended."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from duly import Cron, OneShot, Scheduler, SchedulerClosed, WrongRunState
from duly.journal import RealDisk, read
from duly.journal.entries import RunStarted
from duly.service import Began, Closed, Draining, Ended, Event, Host, Interruption, Opened, Polled, Warned, Work
from tests.service.hosting import Seen, due, ended, just_now, outcomes, running, until


def test_a_function_is_executed_and_its_value_is_the_result(tmp_path: Path):
    with running(Host.open(tmp_path / "j", {"f": lambda work: {"ran": work.run.occurrence_id}})) as host:
        due(host, "f")
        until(ended(host))
    [run] = Scheduler.open(tmp_path / "j").runs()
    assert run.result == {"ran": run.occurrence_id}


def test_what_a_handler_raises_is_how_its_run_failed(tmp_path: Path):
    def fails(_work: Work) -> None:
        raise TimeoutError("no answer")

    def leaves(_work: Work) -> None:
        raise SystemExit(3)

    async def fails_too(_work: Work) -> None:
        await asyncio.sleep(0)
        raise KeyError("x")

    handlers = {"fails": fails, "leaves": leaves, "fails-too": fails_too}
    with running(Host.open(tmp_path / "j", handlers)) as host:
        due(host, *handlers)
        until(ended(host))
    assert outcomes(tmp_path / "j") == {"fails": "TimeoutError", "leaves": "SystemExit", "fails-too": "KeyError"}


def test_a_result_that_is_no_json_fails_openly_and_the_others_are_recorded(tmp_path: Path):
    gate = threading.Barrier(2)

    def wrong(_work: Work) -> object:
        gate.wait(5)
        return object()

    def right(_work: Work) -> str:
        gate.wait(5)
        return "done"

    host = Host.open(tmp_path / "j", {"wrong": wrong, "right": right})
    with running(host):
        due(host, "wrong", "right")
        until(ended(host))
    assert outcomes(tmp_path / "j") == {"wrong": "DefinitionError", "right": "done"}


class Detached:
    def __repr__(self) -> str:
        raise LookupError("no session")


class Torn(dict[str, int]):
    def items(self) -> Any:
        raise LookupError("no session")


def test_a_result_that_cannot_even_be_shown_costs_its_own_run_alone(tmp_path: Path):
    gate = threading.Barrier(5)
    deep: list[Any] = []
    for _ in range(2_000):
        deep = [deep]
    values: dict[str, Any] = {"shown": Detached(), "looked": Torn(), "deep": deep, "right": 1}

    def handler(work: Work) -> object:
        gate.wait(5)
        return values[work.run.target]

    def interrupted(_work: Work) -> None:
        gate.wait(5)
        raise Interruption(deep)

    host = Host.open(tmp_path / "j", {**dict.fromkeys(values, handler), "kept": interrupted}, task_slots=5)
    with running(host):
        due(host, *values, "kept")
        until(ended(host))
    wrong = dict.fromkeys(("shown", "looked", "deep", "kept"), "DefinitionError")
    assert outcomes(tmp_path / "j") == {**wrong, "right": 1}


def test_coroutines_share_one_loop_and_run_side_by_side(tmp_path: Path):
    together: list[asyncio.AbstractEventLoop] = []
    met = asyncio.Event()

    async def meets(_work: Work) -> int:
        together.append(asyncio.get_running_loop())
        if len(together) == 3:
            met.set()
        await met.wait()
        return len({id(loop) for loop in together})

    with running(Host.open(tmp_path / "j", dict.fromkeys("abc", meets))) as host:
        due(host, *"abc")
        until(ended(host))
    assert outcomes(tmp_path / "j") == {"a": 1, "b": 1, "c": 1}


def test_coroutines_run_on_the_loop_that_is_given(tmp_path: Path):
    async def main() -> bool:
        mine = asyncio.get_running_loop()

        async def where(_work: Work) -> bool:
            return asyncio.get_running_loop() is mine

        host = await asyncio.to_thread(Host.open, tmp_path / "j", {"where": where}, loop=mine)
        serving = asyncio.create_task(asyncio.to_thread(host.run))
        await asyncio.to_thread(due, host, "where")
        await asyncio.to_thread(until, ended(host))
        host.stop()
        await serving
        return True

    assert asyncio.run(main())
    assert outcomes(tmp_path / "j") == {"where": True}


def test_no_more_runs_are_at_work_than_there_are_task_slots(tmp_path: Path):
    lock, at_once, most = threading.Lock(), 0, 0

    def works(_work: Work) -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.01)
        with lock:
            at_once -= 1

    host = Host.open(tmp_path / "j", {"works": works}, task_slots=3)
    for _ in range(12):
        host.scheduler.run_now(target="works")
    with running(host):
        until(lambda: len(host.scheduler.runs(state="completed")) == 12)
    assert most == 3


def test_a_run_is_recorded_as_started_before_it_is_executed(tmp_path: Path):
    def looks(work: Work) -> bool:
        return any(isinstance(one.entry, RunStarted) and one.confirmed for one in read(tmp_path / "j", work.run.id))

    with running(Host.open(tmp_path / "j", {"looks": looks})) as host:
        due(host, "looks")
        until(ended(host))
    assert outcomes(tmp_path / "j") == {"looks": True}


def test_a_target_without_a_handler_is_refused_before_it_becomes_a_run(tmp_path: Path):
    with running(Host.open(tmp_path / "j", {})) as host:
        due(host, "nothing")
        [row] = until(lambda: [row for row in host.scheduler.occurrences("nothing").items if row.reason])
        assert (row.disposition, row.reason) == ("skipped", "preflight")


def test_a_run_whose_handler_is_gone_fails_openly(tmp_path: Path):
    with Scheduler.open(tmp_path / "j") as scheduler:
        scheduler.run_now(target="gone")
    with running(Host.open(tmp_path / "j", {})) as host:
        until(ended(host))
    assert outcomes(tmp_path / "j") == {"gone": "UnknownTarget"}


def test_an_interrupted_run_goes_on_when_it_is_asked_for(tmp_path: Path):
    def works(work: Work) -> object:
        if work.checkpoint is None:
            raise Interruption({"page": 3})
        return [work.attempt_id, work.checkpoint]

    with running(Host.open(tmp_path / "j", {"works": works})) as host:
        due(host, "works")
        until(ended(host))
        [run] = host.scheduler.runs(state="interrupted")
        attempt = host.resume(run.id)
        until(ended(host))
        with pytest.raises(WrongRunState):
            host.resume(run.id)
    assert outcomes(tmp_path / "j") == {"works": [attempt.attempt_id, {"page": 3}]}


def test_what_was_interrupted_is_resumed_at_the_start_if_that_is_wanted(tmp_path: Path):
    def works(work: Work) -> str:
        if work.attempt_id is None:
            raise Interruption("half")
        return f"went on from {work.checkpoint}"

    for resume in (False, False, True):
        with running(Host.open(tmp_path / "j", {"works": works}, resume_at_start=resume, task_slots=1)) as host:
            if not host.scheduler.schedules():
                due(host, "works")
            until(ended(host))
    assert outcomes(tmp_path / "j") == {"works": "went on from half"}


def test_a_result_of_a_run_that_somebody_gave_up_is_dropped_with_a_warning(tmp_path: Path):
    go, seen = threading.Event(), Seen()
    with running(Host.open(tmp_path / "j", {"slow": lambda _: go.wait(30)}, observers=[seen])) as host:
        due(host, "slow")
        [run_id] = until(lambda: host.at_work)
        host.scheduler.abandon(run_id, note="enough")
        go.set()
        until(lambda: not host.at_work)
        [warning] = until(lambda: [one for one in seen if isinstance(one, Warned)])
    assert (warning.run_id, outcomes(tmp_path / "j")) == (run_id, {"slow": "abandoned"})


def test_observers_are_told_everything_in_order_and_one_that_raises_stops_nothing(tmp_path: Path):
    seen = Seen()

    def raises(event: Event) -> None:
        raise RuntimeError(type(event).__name__)

    host = Host.open(tmp_path / "j", {"f": lambda _: "done"}, observers=[raises, seen])
    with running(host):
        due(host, "f")
        until(ended(host))
    without_polls = [one for one in seen if not isinstance(one, Polled)]
    assert [type(one) for one in without_polls] == [Opened, Began, Ended, Draining, Closed]
    assert host.state == "closed"


def test_a_change_by_another_thread_is_seen_by_the_very_next_poll(tmp_path: Path):
    with running(Host.open(tmp_path / "j", {"f": lambda _: None})) as host:
        until(lambda: host.last_poll)
        host.scheduler.run_now(target="f")
        until(ended(host))  # far below the minute that an idle host sleeps


def test_an_occurrence_runs_when_it_is_due_and_not_before(tmp_path: Path):
    instant = just_now() + timedelta(seconds=2)
    with running(Host.open(tmp_path / "j", {"f": lambda _: None})) as host:
        host.scheduler.declare("f", OneShot(instant), target="f")
        [run] = until(host.scheduler.runs)
    assert run.admitted_at >= instant


def test_calls_are_made_on_the_thread_that_polls(tmp_path: Path):
    host = Host.open(tmp_path / "j", {})
    with running(host):
        thread = host.call(threading.get_ident).result(30)
        assert thread != threading.get_ident()
        assert host.call(threading.get_ident).result(30) == thread
    with pytest.raises(SchedulerClosed):
        host.call(threading.get_ident).result(30)
    with pytest.raises(SchedulerClosed):
        host.run()


def test_results_that_come_together_share_one_fsync(tmp_path: Path):
    class CountingDisk(RealDisk):
        syncs = 0

        def sync(self, file: int) -> None:
            self.syncs += 1
            super().sync(file)

    disk, counted = CountingDisk(), list[int]()
    finished = threading.Semaphore(0)
    host = Host.open(tmp_path / "j", {"f": lambda _: finished.release()}, disk=disk)

    def waits(event: Event) -> None:
        """Holds the host's thread until all have ended."""
        if isinstance(event, Polled) and len(event.poll.offered) == 8:
            for _ in range(8):
                finished.acquire()
            time.sleep(0.1)
            counted.append(disk.syncs)
        elif isinstance(event, Ended):
            counted.append(disk.syncs)

    host.observe(waits)
    due(host, *(["f"]))
    for _ in range(7):
        host.scheduler.run_now(target="f")
    with running(host):
        until(lambda: len(counted) == 9)
    assert [count - counted[0] for count in counted[1:]] == [1] * 8


def test_leaving_the_host_while_it_runs_elsewhere_lets_it_end_first(tmp_path: Path):
    with Host.open(tmp_path / "j", {"slow": lambda _: time.sleep(0.2)}) as host:
        thread = threading.Thread(target=host.run)
        thread.start()
        due(host, "slow")
        until(lambda: host.at_work)
    assert host.state == "closed"
    thread.join(30)
    assert outcomes(tmp_path / "j") == {"slow": None}


def test_an_idle_host_sleeps(tmp_path: Path):
    seen = Seen()
    host = Host.open(tmp_path / "j", {"f": lambda _: None}, observers=[seen])
    for number in range(100):
        host.scheduler.declare(f"s{number}", Cron("0 0 29 2 *", zone="UTC"), target="f")
    with running(host):
        until(lambda: host.last_poll)
        time.sleep(1)
        assert seen.kinds() == ["Opened", "Polled"]
