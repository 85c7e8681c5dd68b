"""Group commit, seen from the API: many threads that report at once share their fsyncs."""

from __future__ import annotations

import time
from functools import partial

from duly import ManualClock, Scheduler
from tests.journal.simulated_disk import SimulatedDisk
from tests.simulation.test_real_threads import JOURNAL, START, at_once


class SlowDisk(SimulatedDisk):
    """Its syncs take as long as `pause` says, in which others queue."""

    syncs = 0
    pause = 0.0

    def sync(self, file: int) -> None:
        self.syncs += 1
        time.sleep(self.pause)
        super().sync(file)


def test_reports_of_sixteen_threads_share_their_fsyncs() -> None:
    disk = SlowDisk()
    with Scheduler.open(JOURNAL, disk=disk, clock=ManualClock(START), task_slots=200) as scheduler:
        runs = [scheduler.run_now(target="work") for _ in range(160)]
        scheduler.start(*[run.id for run in runs])
        before, disk.pause = disk.syncs, 0.02

        def report(place: int) -> None:
            for run in runs[place::16]:
                scheduler.complete(run.id, result=run.id)

        assert at_once([partial(report, place) for place in range(16)]) == [None] * 16
        assert disk.syncs - before <= 80, "160 reports, one fsync for two of them at most"
        assert {run.state for run in scheduler.runs()} == {"completed"}
