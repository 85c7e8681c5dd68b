"""Coming back after a long time: what a gap costs by its length, how often the calendar is asked, and how ten thousand
schedules are dealt with in polls of bounded size.

`python -m tests.bench.missed`. Each schedule fires every minute; the polls go on until there is nothing more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from duly import ManualClock, Scheduler
from duly.journal.entries import SourceRule
from duly.scheduler.decisions.occurrences import SCAN_CAP
from tests.bench.measuring import Case, Line, Measured, run_axis
from tests.bench.scenes import EVERY_MINUTE, START, name_of

DAY, YEARS = 1_440, 1_576_800
CASES = [
    *(Case(f"{kind}, {name}", {"schedules": 100}) for kind in ("gap", "calls") for name in ("one day", "three years")),
    Case("long downtime", {"schedules": 10_000}),
]
BATCH = 1_000


class CountedSource:
    """Every minute, and how often that was asked."""

    asked = 0

    def __init__(self, parameters: Any = None) -> None:
        self.rule = SourceRule("counted", parameters)

    def next_after(self, instant: datetime) -> datetime | None:
        """The next minute."""
        CountedSource.asked += 1
        return EVERY_MINUTE.next_after(instant)

    def prev_before(self, instant: datetime) -> datetime | None:
        """The minute before."""
        CountedSource.asked += 1
        return EVERY_MINUTE.prev_before(instant)


def measure(case: Measured) -> Iterator[Line]:
    """Seconds, calls, or the sizes of polls."""
    schedules = case.sizes["schedules"]
    minutes = DAY if case.name.endswith("one day") else YEARS
    trigger = CountedSource() if case.name.startswith("calls") else EVERY_MINUTE
    clock = ManualClock(START)
    scheduler = Scheduler.open(
        case.folder / "journal", clock=clock, task_slots=schedules, batch=BATCH, sources={"counted": CountedSource}
    )
    wanted: list[dict[str, Any]] = [
        {"schedule_id": name_of(number), "trigger": trigger, "target": "work"} for number in range(schedules)
    ]
    if case.name == "long downtime":
        scheduler.create_many(wanted)
    else:
        for one in wanted:
            # At another instant each: the calendar is asked once only for those that are decided up to the same one.
            clock.advance(timedelta(milliseconds=1))
            scheduler.create(**one)
    clock.advance(timedelta(minutes=minutes))
    CountedSource.asked = 0
    began = time.process_time()
    first, whole, sizes = _caught_up(scheduler, schedules)
    used = time.process_time() - began
    if case.name.startswith("calls"):
        yield {"peer": "duly", "value": CountedSource.asked / schedules, "unit": "calls", "cap": SCAN_CAP}
        return
    yield {"peer": "duly", "seconds": whole / schedules, "cpu_seconds": used / schedules}
    if case.name == "long downtime":
        yield {"peer": "first poll", "seconds": first}
        yield {"peer": "all polls", "seconds": whole, "polls": len(sizes)}
        yield {"peer": "largest poll", "value": max(sizes), "unit": "decisions"}
        yield {"peer": "batch", "value": BATCH, "unit": "decisions"}


def _caught_up(scheduler: Scheduler, schedules: int) -> tuple[float, float, list[int]]:
    """Seconds of the first poll and of all, and how many decisions each poll made."""
    sizes: list[int] = []
    admitted: set[str] = set()
    begun = time.perf_counter()
    first = 0.0
    while True:
        poll = scheduler.poll(start=True)
        first = first or time.perf_counter() - begun
        sizes.append(len(poll.decisions))
        admitted.update(str(run.schedule_id) for run in poll.admitted)
        if not poll.more:
            break
    whole = time.perf_counter() - begun
    assert len(admitted) == schedules, "each schedule's newest occurrence is admitted"
    return first, whole, sizes


if __name__ == "__main__":
    run_axis("missed", measure, CASES)
