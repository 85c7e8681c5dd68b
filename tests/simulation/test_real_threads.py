"""Real threads: claims are exclusive, and a host outlives its journal while its work runs on."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from duly import (
    Completed,
    Every,
    JournalError,
    JournalPoisoned,
    ManualClock,
    NoTaskSlot,
    Run,
    Scheduler,
    SchedulerClosed,
    StillRunning,
    WrongRunState,
)
from duly.journal import Reader
from duly.journal.entries import Entry, OccurrenceAdmitted, RunAbandoned
from tests.journal.crash_images import seeded
from tests.journal.simulated_disk import Call, Fault, Root, SimulatedDisk
from tests.simulation.chronicle import Chronicle

JOURNAL = Root / "journal"
START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def entries_of(disk: SimulatedDisk) -> list[Entry]:
    return [record.entry for record in Reader(JOURNAL, disk=disk).records()]


def at_once(calls: Iterable[Callable[[], object]]) -> list[object]:
    """What each call returns or raises, all of them made at the same moment."""
    works = list(calls)
    barrier = threading.Barrier(len(works))

    def made(call: Callable[[], object]) -> object:
        barrier.wait()
        try:
            return call()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(made, works))


def test_of_two_threads_that_resume_one_run_exactly_one_gets_it_every_time() -> None:
    disk = SimulatedDisk()
    with Scheduler.open(JOURNAL, disk=disk, clock=ManualClock(START), task_slots=4) as scheduler:
        run = scheduler.run_now(target="work")
        scheduler.start(run.id)
        scheduler.interrupt(run.id)
        for _ in range(300):
            outcomes = at_once([lambda: scheduler.resume(run.id)] * 2)
            assert sorted(type(one).__name__ for one in outcomes) == ["Attempt", "WrongRunState"]
            scheduler.interrupt(run.id, attempt_id=scheduler.run(run.id).attempt_id)
        Chronicle(enumerate(entries_of(disk), 1))


def test_of_many_threads_that_start_many_runs_each_run_is_started_once_and_within_the_slots() -> None:
    disk = SimulatedDisk()
    with Scheduler.open(JOURNAL, disk=disk, clock=ManualClock(START), task_slots=3) as scheduler:
        runs = [scheduler.run_now(target="work") for _ in range(5)]
        outcomes = at_once([partial(scheduler.start, run.id) for run in runs for _ in range(3)])
        assert sum(isinstance(one, tuple) for one in outcomes) == 3
        assert all(isinstance(one, tuple | NoTaskSlot | WrongRunState) for one in outcomes), outcomes
        Chronicle(enumerate(entries_of(disk), 1))


class SurvivingHost:
    """The documented loop of a host that outlives its journal: it keeps what runs and what is unreported."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.clock = ManualClock(START)
        self.begun: Counter[int] = Counter()
        self.executing: set[int] = set()
        self.unreported: dict[int, Completed] = {}
        self.openings = 0
        self.scheduler = self.opened()

    def of(self, run: Run, /) -> Completed | StillRunning | None:
        result = self.unreported.get(run.id)
        if result is not None:
            return result
        return StillRunning(run.id) if run.id in self.executing else None

    def runs(self) -> Iterable[tuple[int, str]]:
        return ()

    def opened(self) -> Scheduler:
        while True:
            self.openings += 1
            try:
                return Scheduler.open(JOURNAL, disk=self.disk, clock=self.clock, evidence=self, task_slots=6)
            except JournalError:
                continue

    def recover(self) -> None:
        """The journal failed: it is opened again, in this process, while the work goes on."""
        self.scheduler.close()
        self.scheduler = self.opened()

    def work(self, run: Run) -> None:
        """What a worker does: it works, and reports until somebody takes it."""
        time.sleep(0.001 * (run.id % 3))
        result = Completed(run.id, None, f"said-{run.id}")
        self.unreported[run.id] = result
        self.executing.discard(run.id)
        while True:
            scheduler = self.scheduler
            try:
                scheduler.report([result])
            except (JournalPoisoned, SchedulerClosed):
                time.sleep(0.001)
                continue
            except WrongRunState as already:
                if already.state != "completed":
                    raise
            self.unreported.pop(run.id)
            return


def test_a_host_outlives_its_failing_journal_and_nothing_is_lost_abandoned_or_begun_twice() -> None:
    disk = SimulatedDisk()
    random = seeded("a failing disk")
    failing = True

    def fault_for(number: int, call: Call, path: Path) -> Fault | None:
        if failing and call in ("sync", "write") and path.suffix == ".jsonl" and random.random() < 0.03:
            return Fault(OSError(5, "EIO"), kept=random.randrange(60))
        return None

    host = SurvivingHost(disk)
    host.scheduler.create_many(
        [
            {
                "schedule_id": name,
                "trigger": Every(1, "minute", anchor=START),
                "target": name,
                "overlap": "parallel",
                "max_active_runs": 3,
            }
            for name in ("a", "b", "c")
        ]
    )
    disk.fault_for = fault_for
    with ThreadPoolExecutor(6) as workers:
        for _ in range(250):
            try:
                poll = host.scheduler.poll(start=True)
            except JournalPoisoned:
                host.recover()
                continue
            for run in poll.offered:
                host.begun[run.id] += 1
                host.executing.add(run.id)
                workers.submit(host.work, run)
            host.clock.advance(timedelta(seconds=20))
        failing = False
        host.recover()
    host.scheduler.close()
    entries = entries_of(disk)
    chronicle = Chronicle(enumerate(entries, 1))
    assert host.openings > 5, "the disk hardly failed"
    assert set(host.begun.values()) == {1}
    assert host.unreported == {}
    assert {run_id for run_id in host.begun if chronicle.runs[run_id].state != "completed"} == set()
    abandoned = {entry.run_id for entry in entries if isinstance(entry, RunAbandoned)}
    assert not abandoned & set(host.begun), "work that ran on was abandoned"
    admitted = {number for number, entry in enumerate(entries, 1) if isinstance(entry, OccurrenceAdmitted)}
    assert admitted == set(host.begun) | abandoned | {run.id for run in chronicle.pending}
