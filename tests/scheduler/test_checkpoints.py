"""A Scheduler's checkpoints: made in the background and at a close, used at the next opening, never waited for."""

from __future__ import annotations

import logging
import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duly import Completed, Cron, ManualClock, Scheduler
from duly.journal import Disk, RealDisk
from duly.journal.checkpoint import CHECKPOINT, CHECKPOINT_NEW
from duly.projections import replay
from duly.projections.archiving import archive

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def opened(path: Path, clock: ManualClock, *, every: int | None = 50, disk: Disk | None = None) -> Scheduler:
    return Scheduler.open(path, clock=clock, checkpoint_every=every, disk=disk)


def work(scheduler: Scheduler, clock: ManualClock, minutes: int) -> None:
    if scheduler.find("job-0") is None:
        trigger = Cron("* * * * *", zone="UTC")
        scheduler.create_many({"schedule_id": f"job-{n}", "trigger": trigger, "target": "t"} for n in range(8))
    for _ in range(minutes):
        clock.advance(MINUTE)
        scheduler.report([Completed(run.id) for run in scheduler.poll(start=True).offered])


def background() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "duly-checkpoint"]


def wait_for_background() -> None:
    for thread in background():
        thread.join(30)


def test_where_no_thread_can_be_had_none_is_made_and_the_next_time_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with Scheduler.open(tmp_path / "j", checkpoint_every=2) as scheduler:
        scheduler.run_now(target="a")
        wait_for_background()
        (tmp_path / "j" / CHECKPOINT).unlink()
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            runs = [scheduler.run_now(target="a").id for _ in range(2)]
        assert "no checkpoint was made, so the next opening reads more: can't start new thread" in caplog.text
        runs += [scheduler.run_now(target="a").id for _ in range(2)]
        wait_for_background()
        assert (tmp_path / "j" / CHECKPOINT).exists()
        assert [run.id for run in scheduler.runs()][1:] == runs


def test_one_is_made_in_the_background_and_the_next_opening_goes_on_from_it(tmp_path: Path):
    clock = ManualClock(START)
    path = tmp_path / "journal"
    scheduler = opened(path, clock)
    work(scheduler, clock, 4)
    wait_for_background()
    work(scheduler, clock, 1)
    assert (path / CHECKPOINT).exists()
    digest = scheduler.digest()
    dead = tmp_path / "dead"
    shutil.copytree(path, dead, ignore=shutil.ignore_patterns("*.new"))  # another may be in the making
    scheduler.close()
    path = dead
    with opened(path, clock) as again:
        recovery = again.recovery
        assert 0 < recovery.checkpoint < recovery.replayed == 1 + 8 + 5 * 24
        assert f"replayed on the checkpoint at {recovery.checkpoint}" in str(recovery)
        assert recovery.warnings == ()
        assert again.digest() == replay(path).digest()
        assert replay(path, until=recovery.replayed).digest() == digest
        assert again.poll().decisions == ()


class SlowDisk(RealDisk):
    """Makes no checkpoint before it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.begun = threading.Event()

    def create(self, path: Path) -> int:
        if path.name == CHECKPOINT_NEW:
            self.begun.set()
            assert self.go_on.wait(30)
        return super().create(path)


def test_decisions_go_on_while_one_is_made(tmp_path: Path):
    clock, disk = ManualClock(START), SlowDisk()
    with opened(tmp_path / "journal", clock, disk=disk) as scheduler:
        work(scheduler, clock, 3)
        assert disk.begun.wait(30)
        before = replay(scheduler.path).sequence
        work(scheduler, clock, 20)
        assert replay(scheduler.path).sequence == before + 20 * 24
        assert len(background()) == 1
        disk.go_on.set()
        wait_for_background()
        assert (tmp_path / "journal" / CHECKPOINT).exists()


def test_a_close_ends_what_is_being_made_and_makes_the_last_one_itself(tmp_path: Path):
    clock = ManualClock(START)
    path = tmp_path / "journal"
    with opened(path, clock, every=200) as scheduler:
        work(scheduler, clock, 20)
    assert background() == []
    with opened(path, clock) as again:
        assert again.recovery.checkpoint >= again.recovery.replayed - 200
        assert again.digest() == replay(path).digest()


def test_a_close_after_few_entries_makes_none_and_none_is_made_where_none_is_wanted(tmp_path: Path):
    clock = ManualClock(START)
    for every, minutes in ((100_000, 5), (None, 50)):
        path = tmp_path / f"journal-{every}"
        with opened(path, clock, every=every) as scheduler:
            work(scheduler, clock, minutes)
        assert not (path / CHECKPOINT).exists()


class FullDisk(RealDisk):
    """Has no space for a checkpoint."""

    def create(self, path: Path) -> int:
        if path.name == CHECKPOINT_NEW:
            raise OSError(28, "No space left on device")
        return super().create(path)


def test_one_that_cannot_be_written_is_a_warning_and_no_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    clock = ManualClock(START)
    path = tmp_path / "journal"
    with caplog.at_level(logging.WARNING, logger="duly.scheduler"), opened(path, clock, disk=FullDisk()) as scheduler:
        work(scheduler, clock, 3)
        wait_for_background()
        work(scheduler, clock, 1)
    assert "no checkpoint was made, so the next opening reads more: [Errno 28] No space left on device" in caplog.text
    assert replay(path).anomalies == []


def test_a_run_that_is_archived_is_no_stranger(tmp_path: Path):
    clock = ManualClock(START)
    path = tmp_path / "journal"
    with opened(path, clock) as scheduler:
        work(scheduler, clock, 2)
        run_id = scheduler.runs()[0].id
    archive(path, tmp_path / "old", now=clock.now())

    class Host:
        def of(self, run: object) -> None:
            return None

        def runs(self) -> list[tuple[int, str]]:
            return [(run_id, "job-0"), (99_999, "job-1")]

    with Scheduler.open(path, clock=clock, evidence=Host()) as again:
        assert [again.schedule(f"job-{n}").blocked is None for n in range(2)] == [True, False]
        work(again, clock, 1)
        assert again.schedule("job-0").consumed_through == clock.now()
        assert again.run(run_id).id == run_id
