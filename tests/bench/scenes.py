"""Schedulers made ready to be measured, through the public API alone.

Rules kept here:
- The clock is a ManualClock, which `rearm` advances, so that the same schedules are due again; the journal is on the
  real disk, with an fsync for each poll and command, as by default. What `rearm` does is not timed.
- `due` schedules fire every minute or two, the others once a year, so that no rearming makes them due.
- A *mixed* scene decides what a real one does: of the schedules that are due, four in ten are admitted, three in ten
  are skipped because their run is still at work, and of three in ten one occurrence is superseded by a newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from duly import Completed, Cron, ManualClock, Run, Scheduler
from duly.journal import RealDisk
from duly.scheduler.polls import Poll

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
EVERY_MINUTE = Cron("* * * * *", zone="UTC")
EVERY_OTHER = Cron("*/2 * * * *", zone="UTC")
SLOW = frozenset({1, 4, 7})
"""The last digits of the schedules whose runs are still at work when the next occurrence is due."""
MISSING = frozenset({2, 5, 8})
"""The last digits of the schedules that are due twice at a time."""


class UnsyncedDisk(RealDisk):
    """The real disk without its fsyncs: for writing what is measured later, never for what is measured."""

    def sync(self, file: int) -> None:
        """Nothing."""

    def sync_folder(self, folder: Path) -> None:
        """Nothing."""


def name_of(number: int) -> str:
    return f"job-{number:08d}"


def idle_triggers() -> list[Cron]:
    """1,440 triggers that fire once a year, in January."""
    return [Cron(f"{minute} {hour} 1 1 *", zone="UTC") for hour in range(24) for minute in range(60)]


def idle(first: int, count: int) -> Iterator[dict[str, Any]]:
    """Definitions of schedules that are not due."""
    triggers = idle_triggers()
    for number in range(first, first + count):
        yield {"schedule_id": name_of(number), "trigger": triggers[number % 1440], "target": "work"}


class Scene:
    """`schedules` schedules of which `due` are due once at each `poll`, each of them an admission."""

    step = timedelta(minutes=1)

    def __init__(self, folder: Path, schedules: int, due: int, *, parallel: bool = False) -> None:
        """With `parallel`, runs may stay open: then `advance` alone makes the schedules due again, and writes
        nothing."""
        self.clock = ManualClock(START)
        self.due = due
        self.policy: dict[str, Any] = {"overlap": "parallel", "max_active_runs": 10_000} if parallel else {}
        self.scheduler = Scheduler.open(
            folder / "journal", clock=self.clock, task_slots=10 * due + 8, batch=max(1000, 4 * due)
        )
        self.offered: list[int] = []
        self.scheduler.create_many([*self.busy(), *idle(due, schedules - due)])

    def busy(self) -> Iterator[dict[str, Any]]:
        """The definitions of what is due at each poll."""
        for number in range(self.due):
            yield {"schedule_id": name_of(number), "trigger": EVERY_MINUTE, "target": "work", **self.policy}

    def poll(self) -> Poll:
        """What is timed."""
        poll = self.scheduler.poll()
        self.offered = [run.id for run in poll.offered]
        return poll

    def rearm(self) -> None:
        """Ends what was offered, and lets time pass."""
        if self.offered:
            self.scheduler.start(*self.offered)
            self.scheduler.report([Completed(run_id) for run_id in self.offered])
            self.offered = []
        self.advance()

    def advance(self) -> None:
        """Lets time pass."""
        self.clock.advance(self.step)


class MixedScene(Scene):
    """A poll decides admissions, skips and supersessions."""

    step = timedelta(minutes=2)

    def __init__(self, folder: Path, schedules: int, due: int) -> None:
        """The runs that the skipped schedules wait for begin here."""
        super().__init__(folder, schedules, due)
        self.advance()
        first = self.scheduler.poll(start=True)
        ended = [Completed(run.id) for run in first.offered if number_of(run) % 10 not in SLOW]
        if ended:
            self.scheduler.report(ended)

    def busy(self) -> Iterator[dict[str, Any]]:
        """The definitions of what is due at each poll."""
        return (lively(number) for number in range(self.due))


class ReportingScene(MixedScene):
    """What is timed is a turn of a whole loop: the results of the turn before are reported, in one call, and the poll
    decides and starts."""

    def poll(self) -> Poll:
        """Two fsyncs: the report's, and the poll's with its starts."""
        if self.offered:
            self.scheduler.report([Completed(run_id) for run_id in self.offered])
        poll = self.scheduler.poll(start=True)
        self.offered = [run.id for run in poll.offered]
        return poll

    def rearm(self) -> None:
        """Lets time pass."""
        self.advance()


SCENES: dict[str, Callable[[Path, int, int], Scene]] = {
    "duly": Scene,
    "duly-mixed": MixedScene,
    "duly-reports": ReportingScene,
}


def record_history(folder: Path, schedules: int, entries: int) -> None:
    """A journal of a scheduler's life, written without fsyncs: admissions, starts, results, skips and supersessions of
    `schedules` schedules, at least `entries` of them; at the end nothing is at work any more."""
    clock = ManualClock(START)
    with Scheduler.open(folder, clock=clock, task_slots=schedules + 8, disk=UnsyncedDisk()) as scheduler:
        scheduler.create_many([lively(number) for number in range(schedules)])
        recorded = schedules
        held: list[int] = []
        while recorded < entries:
            clock.advance(timedelta(minutes=2))
            offered, decided = turn(scheduler)
            slow = [run for run in offered if number_of(run) % 10 in SLOW]
            ended = [*held, *(run.id for run in offered if number_of(run) % 10 not in SLOW)]
            held = [run.id for run in slow]
            for first in range(0, len(ended), 1000):
                scheduler.report([Completed(run_id) for run_id in ended[first : first + 1000]])
            recorded += decided + len(ended)
        for first in range(0, len(held), 1000):
            scheduler.report([Completed(run_id) for run_id in held[first : first + 1000]])


def turn(scheduler: Scheduler) -> tuple[list[Run], int]:
    """Polls until there is nothing more: what was offered, and how many entries were made."""
    offered: list[Run] = []
    decided = 0
    while True:
        poll = scheduler.poll(start=True)
        offered.extend(poll.offered)
        decided += len(poll.decisions)
        if not poll.more:
            return offered, decided


def number_of(run: Run) -> int:
    return int(str(run.schedule_id).removeprefix("job-"))


def lively(number: int) -> dict[str, Any]:
    """The definition of a schedule in a mixed scene: three in ten have two occurrences where the others have one."""
    return {
        "schedule_id": name_of(number),
        "trigger": EVERY_MINUTE if number % 10 in MISSING else EVERY_OTHER,
        "target": "work",
        "lateness": timedelta(seconds=30),
    }
