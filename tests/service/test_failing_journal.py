"""A journal that fails while work is under way: the work goes on, the host gets it back, nothing is lost."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from duly import Cron, JournalError, JournalPoisoned, Scheduler
from duly.journal import RealDisk, read, verify
from duly.journal.entries import JournalOpened, RunStarted
from duly.scheduler.accounting import account
from duly.scheduler.engine import engine_check
from duly.service import Closed, Command, Host, JournalFailed, Opened, Outputs
from tests.service.hosting import Seen, due, ended, outcomes, running, until


class FailingDisk(RealDisk):
    """A disk on which no fsync succeeds while it fails."""

    failing = False

    def sync(self, file: int) -> None:
        if self.failing:
            raise OSError(errno.EIO, "the disk is gone")
        super().sync(file)


@pytest.fixture
def disk() -> FailingDisk:
    return FailingDisk()


def opened(journal: Path) -> int:
    return sum(isinstance(record.entry, JournalOpened) for record in read(journal))


def test_work_goes_on_and_its_results_are_recorded_when_the_journal_is_back(tmp_path: Path, disk: FailingDisk):
    go, seen = threading.Event(), Seen()

    def slow(_work: object) -> str:
        go.wait(30)
        return "it never noticed"

    host = Host.open(tmp_path / "j", {"slow": slow, "quick": lambda _: "done"}, disk=disk, observers=[seen])
    with running(host):
        due(host, "slow")
        until(lambda: host.at_work)
        disk.failing = True
        with pytest.raises(JournalPoisoned):
            host.ask(lambda scheduler: scheduler.run_now(target="quick"))
        until(lambda: host.state == "reopening")
        assert isinstance(host.failure, JournalPoisoned)
        go.set()  # it ends while nobody can record it
        until(lambda: not host.at_work)
        until(lambda: len([one for one in seen if isinstance(one, JournalFailed)]) > 1)
        disk.failing = False
        until(lambda: host.state == "admitting")
        until(ended(host))
        assert host.failure is None
    assert outcomes(tmp_path / "j")["slow"] == "it never noticed"
    assert opened(tmp_path / "j") == 2
    assert [one.again for one in seen if isinstance(one, Opened)] == [False, True]
    assert (verify(tmp_path / "j").intact, engine_check(tmp_path / "j").ok) == (True, True)


def test_what_is_still_at_work_at_the_reopening_stays_as_it_is(tmp_path: Path, disk: FailingDisk):
    command = Command(f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done; exit 75")
    with running(Host.open(tmp_path / "j", {"c": command}, disk=disk)) as host:
        due(host, "c")
        [run_id] = until(lambda: host.at_work)
        until(lambda: host.scheduler.run(run_id).notes)
        before = host.scheduler
        disk.failing = True
        host.wake()
        with pytest.raises(JournalPoisoned):
            host.ask(lambda scheduler: scheduler.run_now(target="c"))
        disk.failing = False
        until(lambda: host.scheduler is not before)
        assert [run.id for run in host.scheduler.recovery.running] == [run_id]
        (tmp_path / "go").touch()
        until(lambda: host.scheduler.run(run_id).state == "interrupted")


def test_nothing_is_started_while_the_journal_is_out_of_reach(tmp_path: Path, disk: FailingDisk):
    begun: list[int] = []

    def works(work: Any) -> None:
        begun.append(work.run.id)

    with running(Host.open(tmp_path / "j", {"works": works}, disk=disk)) as host:
        until(lambda: host.last_poll)
        disk.failing = True
        with pytest.raises(JournalPoisoned):
            host.ask(lambda scheduler: scheduler.run_now(target="works"))
        until(lambda: host.state == "reopening")
        assert begun == []
        disk.failing = False
        until(lambda: host.state == "admitting")
        run = host.scheduler.run_now(target="works")
        until(lambda: host.scheduler.run(run.id).ended)
    started = {one.entry.run_id for one in read(tmp_path / "j") if isinstance(one.entry, RunStarted)}
    assert set(begun) == started


def test_a_command_waits_at_its_gate_until_it_can_be_noted(tmp_path: Path, disk: FailingDisk):
    """The start is durable, and the note fails: the command runs when the journal has it, and not before."""

    class FailingAtTheNote(FailingDisk):
        armed = False

        def sync(self, file: int) -> None:
            if self.armed and threading.current_thread().name.startswith("duly run"):
                self.failing, self.armed = True, False
            super().sync(file)

    failing = FailingAtTheNote()
    with running(Host.open(tmp_path / "j", {"c": Command(("touch", str(tmp_path / "ran")))}, disk=failing)) as host:
        failing.armed = True
        due(host, "c")
        until(lambda: host.state == "reopening")
        assert not (tmp_path / "ran").exists()
        failing.failing = False
        until(lambda: host.state == "admitting")
        until(ended(host))
        assert (tmp_path / "ran").exists()
    assert outcomes(tmp_path / "j") == {"c": {"exit_code": 0}}


def test_a_host_that_stops_without_its_journal_says_what_it_could_not_record(tmp_path: Path, disk: FailingDisk):
    seen = Seen()
    host = Host.open(tmp_path / "j", {"slow": lambda work: work.wait(60)}, disk=disk, observers=[seen])
    with running(host):
        due(host, "slow")
        [run_id] = until(lambda: host.at_work)
        disk.failing = True
        with pytest.raises(JournalPoisoned):
            host.ask(lambda scheduler: scheduler.run_now(target="slow"))
        until(lambda: host.state == "reopening")
        host.stop()
        until(lambda: host.state == "draining")
        host.stop()
        until(lambda: host.state == "closed")
    [closed] = [one for one in seen if isinstance(one, Closed)]
    assert [result.run_id for result in closed.unrecorded] == [run_id]
    with Scheduler.open(tmp_path / "j") as scheduler:
        assert scheduler.run(run_id).state == "abandoned"


def test_a_host_that_stops_still_records_if_its_journal_comes_back(tmp_path: Path, disk: FailingDisk):
    go = threading.Event()
    with running(Host.open(tmp_path / "j", {"slow": lambda _: go.wait(30)}, disk=disk)) as host:
        due(host, "slow")
        until(lambda: host.at_work)
        disk.failing = True
        host.stop()
        until(lambda: host.state == "draining")
        go.set()
        until(lambda: host.failure)
        disk.failing = False
        until(lambda: host.state == "closed")
    assert outcomes(tmp_path / "j") == {"slow": True}


def test_what_is_called_while_the_journal_is_out_of_reach_is_done_when_it_is_back(tmp_path: Path, disk: FailingDisk):
    with running(Host.open(tmp_path / "j", {"f": lambda _: "done"}, disk=disk)) as host:
        until(lambda: host.last_poll)
        disk.failing = True
        with pytest.raises(JournalPoisoned):
            host.call(lambda: host.scheduler.run_now(target="f")).result(30)
        later = host.call(lambda: host.scheduler.run_now(target="f", note="later"))
        until(lambda: host.state == "reopening")
        disk.failing = False
        run = later.result(30)
        until(lambda: host.scheduler.run(run.id).ended)


def test_once_gives_up_a_journal_that_does_not_come_back(tmp_path: Path, disk: FailingDisk):
    host = Host.open(tmp_path / "j", {"f": lambda _: setattr(disk, "failing", True)}, disk=disk)
    with host:
        due(host, "f")
        with pytest.raises(JournalError):
            host.once(patience=timedelta(seconds=0.5))


class SmallDisk(RealDisk):
    """A disk with so much room for files to grow: what goes beyond is written in part, and then refused."""

    room: int | None = None

    def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
        if self.room is None:
            return super().write(file, offset, data)
        fits = max(self.size(file) + self.room - offset, 0)
        if not fits:
            raise OSError(errno.ENOSPC, "No space left on device")
        before = self.size(file)
        written = super().write(file, offset, data[:fits])
        self.room -= self.size(file) - before
        return written


@contextmanager
def no_room(disk: SmallDisk, _journal: Path) -> Generator[None]:
    disk.room = 3_000
    try:
        yield
    finally:
        disk.room = None


@contextmanager
def no_longer_files(_disk: SmallDisk, journal: Path) -> Generator[None]:
    """The system itself refuses to let the journal's file grow."""
    import resource

    longest = max(path.stat().st_size for path in journal.iterdir())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (longest + 3_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def write_on(host: Host) -> None:
    for number in range(10_000):
        host.scheduler.note_run(host.at_work[0], f"{number:01000}")


@pytest.mark.skipif(os.name != "posix", reason="commands need process groups")
@pytest.mark.parametrize("full", [no_room, no_longer_files])
def test_a_full_disk_stops_nothing_that_runs_and_the_host_goes_on_when_there_is_room(
    tmp_path: Path, full: Callable[[SmallDisk, Path], AbstractContextManager[None]]
):
    disk, journal, seen = SmallDisk(), tmp_path / "j", Seen()
    command = Command(f"echo $DULY_RUN_ID >> {tmp_path}/begun; while [ ! -e {tmp_path}/go ]; do sleep 0.01; done")
    host = Host.open(journal, {"c": command}, outputs=Outputs(tmp_path / "out"), observers=[seen], disk=disk)
    with running(host):
        host.scheduler.create("cron", Cron("0 0 29 2 *", zone="UTC"), target="c")
        due(host, "c")
        until((tmp_path / "begun").exists)
        with full(disk, journal):
            with pytest.raises(JournalPoisoned):
                write_on(host)
            host.wake()
            until(lambda: host.state == "reopening")
            (tmp_path / "go").touch()
            until(lambda: not host.at_work)
            until(lambda: len([one for one in seen if isinstance(one, JournalFailed)]) > 2)
        until(lambda: host.state == "admitting")
        until(ended(host))
        run = host.scheduler.run_now("cron")
        until(lambda: host.scheduler.run(run.id).ended)
    assert outcomes(journal) == {"c": {"exit_code": 0}, "cron": {"exit_code": 0}}
    assert len((tmp_path / "begun").read_text(encoding="ascii").split()) == 2
    assert (verify(journal).intact, account(journal).balanced) == (True, True)
