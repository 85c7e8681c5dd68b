"""What nobody meant a host to be given: it costs its giver, or one run, and never the host."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from duly import Completed, DefinitionError, Interrupted, Run, SchedulerClosed, SchedulerError
from duly.journal import RealDisk
from duly.journal.entries import ErrorInfo
from duly.scheduler.decisions.runs import Failed, Result
from duly.service import Began, Closed, Event, Host, Interruption, Work
from duly.service import host as face
from duly.service.results import recordable
from tests.service.hosting import Seen, due, ended, outcomes, running, until

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"drain_grace": 3}, "drain_grace: 3 is no timedelta. Write timedelta(seconds=3)."),
    ({"kill_grace": 0.5}, "kill_grace: 0.5 is no timedelta. Write timedelta(seconds=0.5)."),
    ({"drain_grace": None}, "drain_grace: None is no timedelta. Give a timedelta, such as timedelta(seconds=30)."),
    ({"drain_grace": True}, "drain_grace: True is no timedelta. Give a timedelta, such as timedelta(seconds=30)."),
    (
        {"kill_grace": timedelta(seconds=-1)},
        "kill_grace: datetime.timedelta(days=-1, seconds=86399) is negative. Give a timedelta of 0 or more.",
    ),
    ({"resume_at_start": "yes"}, "resume_at_start: 'yes' is no bool. Give True or False."),
    ({"evidence": 3}, "evidence: 3 is no EvidenceSource. Give an object with of(run) and runs()."),
    ({"loop": 3}, "loop: 3 is no event loop. Give asyncio.get_running_loop(), or leave it out."),
    ({"outputs": "out"}, "outputs: 'out' is no Outputs. Give Outputs(folder), or leave it out."),
    ({"observers": 3}, "observers: 3 are no observers. Give a list of functions that take an event."),
    ({"observers": [3]}, "observers: [3] are no observers. Give a list of functions that take an event."),
    ({"handlers": ["x"]}, "handlers: ['x'] is no mapping. Give a dict of targets to handlers."),
    (
        {"handlers": {"x": 3}},
        "handlers.x: 3 is no handler. Give a function, a coroutine function, a Command or a CommandOf.",
    ),
    ({"handlers": {3: print}}, "handlers: 3 is no target's name. Give a str."),
    ({"path": 3}, "path: 3 is no path. Give the journal's folder, as a str or a Path."),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_an_argument_that_cannot_be_meant_is_refused_before_anything_is_touched(
    tmp_path: Path, given: dict[str, Any], said: str
):
    told: dict[str, Any] = {"path": tmp_path / "j", "handlers": {}, **given}
    with pytest.raises(DefinitionError) as refusal:
        Host.open(**told)
    assert (str(refusal.value), list(tmp_path.iterdir())) == (said, [])


def test_the_patience_of_once_is_a_timedelta(tmp_path: Path):
    patience: Any = 2
    with (
        Host.open(tmp_path / "j", {}) as host,
        pytest.raises(DefinitionError, match=r"patience: 2 .* timedelta\(seconds=2\)"),
    ):
        host.once(patience=patience)


def test_times_that_never_come_are_waited_for(tmp_path: Path):
    """A grace for ever, and a timeout that no clock reaches."""
    go = threading.Event()
    host = Host.open(
        tmp_path / "j", {"slow": lambda _: go.wait(30)}, drain_grace=timedelta.max, kill_grace=timedelta.max
    )
    with running(host):
        due(host, "slow")
        until(lambda: host.at_work)
        host.stop()
        until(lambda: host.state == "draining")
        go.set()
        until(lambda: host.state == "closed")
    assert outcomes(tmp_path / "j") == {"slow": True}
    with Host.open(tmp_path / "k", {"quick": lambda _: time.sleep(0.05)}) as other:
        for limit in (1e10, 1e308, 2**52):
            other.scheduler.run_now(target="quick", limits={"timeout": limit})
        assert [run.state for run in other.once()] == ["completed"] * 3


def test_a_call_that_its_caller_has_cancelled_is_not_made(tmp_path: Path):
    gate, made = threading.Event(), list[str]()
    with running(Host.open(tmp_path / "j", {})) as host:
        host.call(lambda: gate.wait(30))
        given_up = host.call(lambda: made.append("given up"))
        wanted = host.call(lambda: made.append("wanted"))
        assert given_up.cancel()
        gate.set()
        wanted.result(30)
        assert made == ["wanted"]


def test_a_call_that_is_cancelled_while_the_host_stops_breaks_nothing(tmp_path: Path):
    gate, calls, seen = threading.Event(), list[Future[Any]](), Seen()
    host = Host.open(tmp_path / "j", {"slow": lambda _: time.sleep(0.2)}, observers=[seen])
    with running(host):
        due(host, "slow")
        until(lambda: host.at_work)
        calls.append(host.call(lambda: gate.wait(30)))
        until(calls[0].running)
        calls.extend(host.call(lambda: None) for _ in range(2))
        assert calls[1].cancel()
        threading.Timer(0.2, gate.set).start()
    with pytest.raises(SchedulerClosed):
        calls[2].result(30)
    assert outcomes(tmp_path / "j") == {"slow": None}
    assert len([one for one in seen if isinstance(one, Closed)]) == 1


def test_what_a_call_raises_goes_to_its_caller_alone(tmp_path: Path):
    def fails() -> None:
        raise ZeroDivisionError("mine")

    with running(Host.open(tmp_path / "j", {})) as host:
        with pytest.raises(ZeroDivisionError):
            host.call(fails).result(30)
        assert host.call(lambda: "still here").result(30) == "still here"


def test_a_fault_in_the_bookkeeping_of_one_run_fails_that_run_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It stands for one that nobody thought of."""
    host = Host.open(tmp_path / "j", {"odd": lambda _: 1, "even": lambda _: 2})
    report = host.scheduler.report

    def breaks(results: Any) -> tuple[Run, ...]:
        told: list[Result] = list(results)
        if any(isinstance(one, Completed) and one.result == 1 for one in told):
            raise ZeroDivisionError("a fault")
        return report(told)

    monkeypatch.setattr(host.scheduler, "report", breaks)
    with running(host):
        due(host, "odd", "even")
        until(ended(host))
    assert outcomes(tmp_path / "j") == {"odd": "ZeroDivisionError", "even": 2}


class Unshowable(BaseException):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class Hostile(dict[str, int]):
    def items(self) -> Any:
        raise SystemExit(3)


def test_a_value_that_raises_when_it_is_looked_at_costs_its_own_run_alone(tmp_path: Path):
    def hostile(_work: Work) -> object:
        return Hostile(a=1)

    def unshowable(_work: Work) -> None:
        raise Unshowable

    async def checkpoint(_work: Work) -> None:
        raise Interruption(Hostile(a=1))

    handlers: dict[str, Any] = {"hostile": hostile, "unshowable": unshowable, "checkpoint": checkpoint}
    with running(Host.open(tmp_path / "j", handlers)) as host:
        due(host, *handlers)
        until(ended(host))
    found = outcomes(tmp_path / "j")
    assert found["unshowable"] == "Unshowable"
    assert {found["hostile"], found["checkpoint"]} <= {"SystemExit", "DefinitionError"}


def test_a_result_is_recordable_or_a_failure_that_says_why():
    assert recordable(Completed(1, None, (1, 2))) == Completed(1, None, [1, 2])
    assert recordable(Interrupted(1, 7, {"a": 1})) == Interrupted(1, 7, {"a": 1})
    refused = recordable(Completed(1, 7, object()))
    assert isinstance(refused, Failed)
    assert isinstance(refused.error, ErrorInfo)
    assert (refused.attempt_id, refused.error.type) == (7, "DefinitionError")
    assert recordable(Failed(1, None, Unshowable())) == Failed(1, None, ErrorInfo("Unshowable", "it cannot be shown"))


def test_a_coroutine_that_is_asked_to_end_before_its_first_step_has_ended(tmp_path: Path):
    """Another one holds the loop, so that its task is made and cancelled at once."""
    blocked, go = threading.Event(), threading.Event()

    async def blocks(_work: Work) -> None:
        blocked.set()
        go.wait(30)

    async def never(_work: Work) -> str:
        return "it began"

    grace = timedelta(seconds=0.1)
    handlers = {"blocks": blocks, "never": never}
    with running(Host.open(tmp_path / "j", handlers, drain_grace=grace, kill_grace=grace)) as host:
        due(host, "blocks")
        assert blocked.wait(30)
        due(host, "never", limits={"timeout": 0.05})
        until(lambda: len(host.at_work) == 2)
        time.sleep(0.2)
        go.set()
        until(ended(host))
    assert outcomes(tmp_path / "j") == {"blocks": None, "never": "TimedOut"}


def test_a_coroutine_whose_loop_is_closed_has_ended_when_it_is_asked_to(tmp_path: Path):
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def waits(_work: Work) -> None:
        await asyncio.sleep(60)

    with running(Host.open(tmp_path / "j", {"waits": waits}, loop=loop)) as host:
        due(host, "waits", limits={"timeout": 1})
        until(lambda: host.at_work)
        until(lambda: asyncio.all_tasks(loop))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.01))
        loop.close()
        until(ended(host))
    assert outcomes(tmp_path / "j")["waits"] in ("TimedOut", "")


def test_closing_on_the_hosts_own_thread_lets_it_end_first(tmp_path: Path):
    seen = Seen()

    def closes(event: Event) -> None:
        if isinstance(event, Began):
            host.close()

    host = Host.open(tmp_path / "j", {"slow": lambda _: time.sleep(0.2)}, observers=[seen, closes])
    due(host, "slow")
    host.run()
    assert [kind for kind in seen.kinds() if kind != "Polled"] == ["Opened", "Began", "Draining", "Ended", "Closed"]
    assert (host.state, outcomes(tmp_path / "j")) == ("closed", {"slow": None})


def test_once_goes_on_while_there_is_something_to_resume(tmp_path: Path):
    def works(work: Work) -> str:
        if work.attempt_id is None:
            raise Interruption("half")
        return "whole"

    with running(Host.open(tmp_path / "j", {"works": works})) as host:
        for _ in range(3):
            host.scheduler.run_now(target="works")
        until(lambda: len(host.scheduler.runs(state="interrupted")) == 3)
    with Host.open(tmp_path / "j", {"works": works}, task_slots=1, resume_at_start=True) as host:
        assert [run.result for run in host.once()] == ["whole"] * 3


def test_what_ends_while_others_are_recorded_has_ended_in_time(tmp_path: Path):
    class SlowDisk(RealDisk):
        slow = False

        def sync(self, file: int) -> None:
            if self.slow and threading.current_thread() is hosts_thread:
                self.slow = False
                go.set()
                time.sleep(0.6)
            super().sync(file)

    disk, go, begun = SlowDisk(), threading.Event(), threading.Event()

    def limited(_work: Work) -> str:
        begun.set()
        go.wait(30)
        return "in time"

    def first(_work: Work) -> None:
        begun.wait(30)
        disk.slow = True

    host = Host.open(tmp_path / "j", {"limited": limited, "first": first}, disk=disk)
    host.scheduler.run_now(target="limited", limits={"timeout": 0.5})
    host.scheduler.run_now(target="first")
    hosts_thread = threading.Thread(target=host.run)
    hosts_thread.start()
    until(ended(host))
    host.stop()
    hosts_thread.join(30)
    assert outcomes(tmp_path / "j") == {"first": None, "limited": "in time"}


def test_a_resume_that_the_hosts_thread_does_not_come_to_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(face, "RESUME_PATIENCE", 0.05)
    gate = threading.Event()

    def saves(work: Work) -> None:
        if work.attempt_id is None:
            raise Interruption(1)

    with running(Host.open(tmp_path / "j", {"saves": saves})) as host:
        run = host.scheduler.run_now(target="saves")
        until(lambda: host.scheduler.run(run.id).state == "interrupted")
        busy = host.call(lambda: gate.wait(30))
        until(busy.running)
        with pytest.raises(SchedulerError, match="nothing was resumed"):
            host.resume(run.id)
        gate.set()
        host.call(lambda: None).result(30)
        assert host.scheduler.run(run.id).state == "interrupted"
        monkeypatch.setattr(face, "RESUME_PATIENCE", 30)
        host.resume(run.id)
        until(lambda: host.scheduler.run(run.id).ended)
