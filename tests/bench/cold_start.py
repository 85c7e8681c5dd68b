"""Opening a large journal, from the constructor to the end of the first poll, beside a full replay of it.

`python -m tests.bench.cold_start`. The journal was closed cleanly by its last owner, so that what an owner leaves for
a quick start is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from duly import ManualClock, Scheduler
from duly.projections import replay
from tests.bench.measuring import Case, Line, Measured, forget_peak, resident, run_axis, timed
from tests.bench.scenes import START, record_history

SIZES = {"schedules": 100_000, "entries": 1_000_000}
CASES = [Case("open", SIZES), Case("replay", SIZES)]


def measure(case: Measured) -> Iterator[Line]:
    """Seconds and peak bytes, each way in a process of its own."""
    path = case.seeded("journal", lambda folder: record_history(folder, **case.sizes))
    forget_peak()
    before = resident()
    line = timed(lambda: opened(path) if case.name == "open" else replay(path))
    yield {"peer": "duly", **line, "peak": resident("VmHWM") - before}


def opened(path: Path) -> Scheduler:
    """Ready, and polled once: nothing is due yet."""
    scheduler = Scheduler.open(path, clock=ManualClock(START + timedelta(seconds=1)), clock_tolerance=timedelta(days=9))
    scheduler.poll()
    return scheduler


if __name__ == "__main__":
    run_axis("cold start", measure, CASES)
