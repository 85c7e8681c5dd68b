"""What a host does in places that nobody looks at twice: a stop between two attempts to reopen, a note that fails right
after a poll, an interruption of a handler's own, and a thread that cannot be had."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from duly import JournalPoisoned, Run, Scheduler
from duly.projections import replay
from duly.scheduler.decisions.runs import StillRunning
from duly.scheduler.errors import SchedulerClosed
from duly.service import (
    Began,
    Closed,
    Command,
    Draining,
    Event,
    Host,
    Interruption,
    JournalFailed,
    Opened,
    Outputs,
    Polled,
    stopped_by_signals,
    tenure,
)
from duly.service.callables import LoopThread
from duly.service.outliving import note_of
from duly.service.processes import process_of
from tests.service.hosting import due, outcomes, running, until
from tests.service.test_failing_journal import FailingDisk


class Mine(Interruption):
    def __init__(self, left: int) -> None:  # and none of Interruption's own
        self.left = left


class Odd(Interruption):
    @property
    def checkpoint(self) -> Any:
        raise ValueError("no checkpoint today")

    @checkpoint.setter
    def checkpoint(self, _value: Any) -> None:
        pass


def test_an_interruption_of_a_handler_s_own_is_one(tmp_path: Path):
    def function(_work: object) -> None:
        raise Mine(3)

    async def coroutine(_work: object) -> None:
        raise Mine(3)

    def odd(_work: object) -> None:
        raise Odd

    host = Host.open(tmp_path / "j", {"function": function, "coroutine": coroutine, "odd": odd})
    with running(host):
        due(host, "function", "coroutine", "odd")
        until(lambda: host.scheduler.runs() and not [run for run in host.scheduler.runs() if run.state == "started"])
        found = {run.schedule_id: (run.state, run.error and run.error.type) for run in host.scheduler.runs()}
    assert found == {
        "function": ("interrupted", None),
        "coroutine": ("interrupted", None),
        "odd": ("failed", "ValueError"),
    }


def test_a_host_that_stops_between_two_attempts_tries_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tenure, "FIRST_PAUSE", 60.0)
    disk, go, events = FailingDisk(), threading.Event(), list[Event]()
    host = Host.open(tmp_path / "j", {"slow": lambda _: go.wait(30)}, disk=disk, observers=[events.append])
    with running(host):
        due(host, "slow")
        until(lambda: host.at_work)
        disk.failing = True
        host.wake()
        go.set()
        until(lambda: host.failure)
        disk.failing = False
    assert outcomes(tmp_path / "j") == {"slow": True}
    assert [event.unrecorded for event in events if isinstance(event, Closed)] == [()]


def test_once_goes_on_when_the_journal_fails_right_after_its_poll(tmp_path: Path):
    disk = FailingDisk()
    failed = threading.Event()

    def fail_for_a_moment(event: Event) -> None:
        if isinstance(event, Polled) and event.poll.offered and not failed.is_set():
            failed.set()
            disk.failing = True
            until((tmp_path / "out" / "a").exists)
            with pytest.raises(Exception, match="poisoned"):
                host.scheduler.run_now(target="a")
            threading.Timer(0.3, lambda: setattr(disk, "failing", False)).start()

    command = Command("true")
    host = Host.open(
        tmp_path / "j", {"a": command}, disk=disk, observers=[fail_for_a_moment], outputs=Outputs(tmp_path / "out")
    )
    due(host, "a")
    # Whether the run by hand is in the record is indeterminate.
    assert [run.state for run in host.once() if run.schedule_id is not None] == ["completed"]


def test_a_journal_that_fails_tells_why_before_its_scheduler_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    disk, reasons, close = FailingDisk(), list[object](), Scheduler.close
    host = Host.open(tmp_path / "j", {"f": lambda _: None}, disk=disk)

    def closing(scheduler: Scheduler) -> None:
        reasons.append(host.failure)
        close(scheduler)

    monkeypatch.setattr(Scheduler, "close", closing)
    with running(host):
        until(lambda: host.last_poll)
        disk.failing = True
        with pytest.raises(JournalPoisoned):
            host.call(lambda: host.scheduler.run_now(target="f")).result(30)
        until(lambda: host.failure)
        disk.failing = False
    assert isinstance(reasons[0], JournalPoisoned)


def test_a_question_to_a_scheduler_that_was_just_replaced_is_asked_of_the_next(tmp_path: Path):
    disk = FailingDisk()
    host = Host.open(tmp_path / "j", {"f": lambda _: None}, disk=disk)
    asked: list[Scheduler] = []

    def question(scheduler: Scheduler) -> str:
        asked.append(scheduler)
        if len(asked) == 1:  # meanwhile, the host reopens
            disk.failing = True
            with pytest.raises(JournalPoisoned):
                host.call(lambda: scheduler.run_now(target="f")).result(30)
            disk.failing = False
            until(lambda: host.scheduler is not scheduler and host.failure is None)
            raise SchedulerClosed("the one that was asked is closed")
        return "answered"

    with running(host):
        until(lambda: host.last_poll)
        assert host.ask(question) == "answered"
    assert len(asked) == 2


@pytest.mark.skipif(not hasattr(signal, "SIGCHLD"), reason="children are waited for otherwise")
def test_a_parent_that_ignored_its_children_takes_no_exit_code_away(tmp_path: Path):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        host = Host.open(tmp_path / "j", {"a": Command("exit 3")})
        due(host, "a")
        with stopped_by_signals(host):
            [run] = host.once()
        assert signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert run.error is not None
    assert run.error.message.startswith("exit code 3")


def test_a_loop_whose_thread_could_not_be_started_is_made_anew(monkeypatch: pytest.MonkeyPatch):
    made = LoopThread()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_more_threads)
        with pytest.raises(RuntimeError):
            made()
    loop = made()
    assert asyncio.run_coroutine_threadsafe(asyncio.sleep(0, "done"), loop).result(30) == "done"
    made.close()


def no_more_threads(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_what_once_leaves_alone_it_leaves_alone_over_a_reopening_too(tmp_path: Path):
    disk, go = FailingDisk(), threading.Event()
    with Host.open(tmp_path / "j", {"a": Command("sleep 60")}, outputs=Outputs(tmp_path / "out")) as dead:
        due(dead, "a")
        [left] = dead.scheduler.poll(start=True).offered
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60"], start_new_session=True) as process:
        try:
            found = process_of(process.pid)
            with Scheduler.open(tmp_path / "j", evidence=Outliving(left.id)) as scheduler:
                scheduler.note_run(
                    left.id, note_of(process.pid, found, None, tmp_path / "out" / "a" / f"{left.id}.log")
                )
            seen: list[Event] = []

            def fail_for_a_moment(event: Event) -> None:
                seen.append(event)
                if isinstance(event, Began):
                    host.stop()
                if isinstance(event, Draining):
                    disk.failing = True
                    go.set()
                if isinstance(event, JournalFailed):
                    disk.failing = False

            observers = [fail_for_a_moment]
            host = Host.open(tmp_path / "j", {"b": lambda _: go.wait(30)}, disk=disk, observers=observers)
            due(host, "b")
            assert [run.schedule_id for run in host.once()] == ["b"]
            assert process.poll() is None
            assert [event.again for event in seen if isinstance(event, Opened)] == [False, True]
        finally:
            process.kill()
    last = replay(tmp_path / "j").known_run(left.id)
    assert last is not None
    assert last.state == "started"


class Outliving:
    """Evidence that a run goes on."""

    def __init__(self, run_id: int) -> None:
        self._run_id = run_id

    def of(self, run: Run, /) -> StillRunning:
        return StillRunning(run.id)

    def runs(self) -> tuple[tuple[int, str], ...]:
        return ()
