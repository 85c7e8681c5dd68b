"""What an idle schedule costs in memory and in the garbage collector, with a thousand and more different triggers.

`python -m tests.bench.idle_memory`. `duly` has created its schedules, `duly-opened` has replayed them from their
journal, `apscheduler` holds as many jobs in memory.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from duly import ManualClock, Scheduler
from tests.bench.measuring import Case, Line, Measured, resident, run_axis, timed
from tests.bench.scenes import START, idle

CASES = [Case(peer, {"schedules": 100_000}) for peer in ("duly", "duly-opened", "apscheduler")]


def measure(case: Measured) -> Iterator[Line]:
    """Bytes, objects, and the seconds of a full collection."""
    schedules = case.sizes["schedules"]
    build = {"duly": created, "duly-opened": reopened, "apscheduler": jobs}[case.name](case)
    warm = build(50)
    gc.collect()
    before, objects = resident(), len(gc.get_objects())
    kept = build(schedules)
    gc.collect()
    held = resident() - before
    yield {"peer": case.name, "value": held / schedules, "unit": "bytes"}
    yield {"peer": case.name, "value": (len(gc.get_objects()) - objects) / schedules, "unit": "gc objects"}
    gc.collect()
    yield {"peer": case.name, **timed(gc.collect), "unit": "full collection"}
    del kept, warm


def created(case: Measured) -> Callable[[int], object]:
    """Schedules that were registered by this process."""

    names = iter(("warm", "idle"))

    def build(count: int) -> Scheduler:
        scheduler = Scheduler.open(case.folder / next(names), clock=ManualClock(START))
        scheduler.create_many(list(idle(0, count)))
        return scheduler

    return build


def reopened(case: Measured) -> Callable[[int], object]:
    """Schedules that were registered by another process. The first call warms up."""
    sizes = {"warm": 50, "idle": case.sizes["schedules"]}
    paths = iter([case.seeded(name, partial(register, count=count)) for name, count in sizes.items()])

    def build(_: int) -> Scheduler:
        return Scheduler.open(next(paths), clock=ManualClock(START))

    return build


def register(folder: Path, count: int) -> None:
    """Schedules for another process."""
    with Scheduler.open(folder, clock=ManualClock(START)) as scheduler:
        scheduler.create_many(list(idle(0, count)))


def jobs(case: Measured) -> Callable[[int], object]:
    """APScheduler's jobs, each with a trigger of its own, as its add_job makes them."""
    base: Any = import_module("apscheduler.schedulers.background").BackgroundScheduler
    cron: Any = import_module("apscheduler.triggers.cron").CronTrigger
    expressions = [f"{minute} {hour} * * *" for hour in range(24) for minute in range(60)]
    far = datetime(2090, 1, 1, tzinfo=UTC)

    def build(count: int) -> object:
        scheduler = base(timezone=UTC)
        scheduler.start(paused=True)
        for number in range(count):
            trigger = cron.from_crontab(expressions[number % 1440], timezone=UTC)
            scheduler.add_job(print, trigger, id=f"job-{number:08d}", next_run_time=far)
        return scheduler

    return build


if __name__ == "__main__":
    run_axis("idle memory", measure, CASES)
