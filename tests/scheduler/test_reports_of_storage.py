"""The public reports that are about files, locks, disks and threads: see tests/scheduler/test_reports.py."""

from __future__ import annotations

import errno
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest

from duly import Cron, Error, ManualClock, Scheduler, WrongRunState
from duly.journal import Journal, read, verify
from duly.journal.entries import CronRule, Definition, ResumeMarked, ScheduleCreated
from tests.scheduler.memory_disk import MemoryDisk
from tests.scheduler.watch import Watch, utc

ROUNDS = 1000
STATE = Path("/journal")


@pytest.mark.parametrize("text", [b"4242\n", b"1\n", b"", b"\xff\x00 no number at all"])
def test_b081_text_in_the_lock_file_proves_nothing(tmp_path: Path, text: bytes) -> None:
    Scheduler.open(tmp_path / "state").close()
    (tmp_path / "state" / "LOCK").write_bytes(text)
    with Scheduler.open(tmp_path / "state") as scheduler:
        assert scheduler.schedules() == ()


def test_b085_a_torn_tail_is_cut_before_anything_is_appended() -> None:
    clock, whole = ManualClock(utc("2026-03-02T09:00Z")), MemoryDisk()
    with Journal.open(STATE, now=clock.now(), disk=whole) as journal:
        for number in range(4):
            journal.append([_created(f"s{number}", "UTC", clock)], clock.now())
    ((segment, content),) = _segments(whole).items()
    last = content.rindex(b"\n", 0, -1) + 1
    for size in range(last, len(content)):
        disk = whole.crashed()
        disk.cut(segment, size)
        disk.cut(STATE / "HEAD", 0)  # never authority, and lost with the rest
        with Journal.open(STATE, now=clock.now(), disk=disk) as journal:
            assert (len(list(journal.entries())), len(journal.recovery.torn)) == (3, 0 if size == last else 1)
            journal.append([_created("late", "UTC", clock)], clock.now())
        with Journal.open(STATE, now=clock.now(), disk=disk) as journal:
            assert (len(list(journal.entries())), len(journal.recovery.torn)) == (4, 0)


class FullDisk(MemoryDisk):
    """A disk that writes seven more bytes once it is full."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False

    def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
        if self.full and offset + len(data) > self.size(file):
            super().write(file, offset, data[:7])
            raise OSError(errno.ENOSPC, "no space left on device")
        return super().write(file, offset, data)


def test_b088_a_full_disk_starts_nothing_and_damages_nothing() -> None:
    disk = FullDisk()
    watch = Watch(utc("2015-05-12T09:59:30Z"), disk=disk)
    trigger = Cron("* * * * *", zone="UTC")
    watch.scheduler.create("minutely", trigger, target="work", misfire="latest", lateness=timedelta(seconds=30))
    watch.clock.advance(timedelta(seconds=30))
    disk.full = True
    with pytest.raises((Error, OSError)):
        watch.scheduler.poll()
    watch.scheduler.close()
    before = _segments(disk)
    watch.clock.advance(timedelta(seconds=30))
    with pytest.raises((Error, OSError)):
        Scheduler.open(STATE, clock=watch.clock, disk=disk)
    assert (_segments(disk), watch.ran) == (before, [])
    disk.full = False
    watch.clock.advance(timedelta(seconds=110))
    watch.crash()
    watch.until("2015-05-12T10:04:30Z", every=timedelta(seconds=10))
    assert watch.due("minutely") == [utc(f"2015-05-12T10:0{minute}Z") for minute in (2, 3, 4)]
    assert verify(STATE, disk=watch.disk).intact
    watch.close()


def _segments(disk: MemoryDisk) -> dict[Path, bytes]:
    return {path: content for path, content in disk.contents().items() if path.suffix == ".jsonl"}


@contextmanager
def interrupted(disk: MemoryDisk) -> Generator[tuple[Scheduler, int], None, None]:
    """A scheduler in a new process, and a run that was interrupted with a checkpoint in the former one."""
    clock = ManualClock(utc("2026-07-12T09:59Z"))
    with Scheduler.open(STATE, clock=clock, disk=disk) as scheduler:
        scheduler.create("report", Cron("0 10 * * *", zone="UTC"), target="work")
        clock.advance(timedelta(minutes=1))
        (run,) = scheduler.poll().offered
        scheduler.start(run.id)
        scheduler.interrupt(run.id, checkpoint={"page": 1})
    with Scheduler.open(STATE, clock=clock, disk=disk) as scheduler:
        yield scheduler, run.id


def test_b093_of_two_callers_one_resumes_the_run() -> None:
    disk = MemoryDisk()
    with interrupted(disk) as (scheduler, run_id), ThreadPoolExecutor(2) as pool:
        barrier = Barrier(2)

        def resume() -> int | None:
            barrier.wait()
            try:
                return scheduler.resume(run_id).attempt_id
            except WrongRunState:
                return None

        for _ in range(ROUNDS):
            outcomes = [future.result() for future in [pool.submit(resume), pool.submit(resume)]]
            (attempt,) = [outcome for outcome in outcomes if outcome is not None]
            scheduler.interrupt(run_id, attempt_id=attempt)
    marks = [record for record in read(STATE, disk=disk) if isinstance(record.entry, ResumeMarked)]
    assert len(marks) == ROUNDS


def test_b093_a_run_is_not_resumed_while_it_runs_or_after_it_ended() -> None:
    disk = MemoryDisk()
    with interrupted(disk) as (scheduler, run_id):
        attempt = scheduler.resume(run_id)
        assert attempt.checkpoint == {"page": 1}
        with pytest.raises(WrongRunState):
            scheduler.resume(run_id)
        scheduler.complete(run_id, attempt_id=attempt.attempt_id)
        with pytest.raises(WrongRunState):
            scheduler.resume(run_id)
    marks = [record for record in read(STATE, disk=disk) if isinstance(record.entry, ResumeMarked)]
    assert [mark.sequence for mark in marks] == [attempt.attempt_id]


def test_b020_a_bad_zone_stops_its_own_schedule_alone() -> None:
    watch = Watch(utc("2026-01-05T09:00Z"))
    watch.close()
    with Journal.open(STATE, now=watch.clock.now(), disk=watch.disk) as journal:
        journal.append([_created("a", "Etc/Unknown", watch.clock, "0 9 * * *")], watch.clock.now())
        journal.append([_created("b", "UTC", watch.clock, "*/5 * * * *")], watch.clock.now())
    watch.clock.advance(timedelta(minutes=61))
    watch.crash()
    scheduler = watch.scheduler
    blocked = scheduler.schedule("a").blocked
    assert blocked is not None
    assert "Etc/Unknown" in blocked.reason
    scheduler.pause("b")
    scheduler.unpause("b")
    watch.until("2026-01-05T10:16Z", every=timedelta(minutes=1))
    assert watch.due("b") == [utc(f"2026-01-05T10:{minute:02}Z") for minute in (5, 10, 15)]
    assert watch.due("a") == []
    scheduler.edit("a", expected_revision=1, trigger=Cron("20 10 * * *", zone="UTC"))
    assert scheduler.schedule("a").blocked is None
    watch.until("2026-01-05T10:21Z", every=timedelta(minutes=1))
    assert watch.due("a") == [utc("2026-01-05T10:20Z")]
    scheduler.delete("a")
    watch.close()


def _created(schedule_id: str, zone: str, clock: ManualClock, expression: str = "* * * * *") -> ScheduleCreated:
    definition = Definition(trigger=CronRule(expression, zone), target="work", misfire="skip")
    return ScheduleCreated(at=clock.now(), schedule_id=schedule_id, definition=definition, covers_through=clock.now())
