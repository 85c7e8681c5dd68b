"""A host that polls often enough and does its work: what ran, and when, between two instants."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from duly import ManualClock, Run, Scheduler
from tests.scheduler.memory_disk import MemoryDisk


class Ran(NamedTuple):
    schedule_id: str
    due: datetime | None
    started_at: datetime


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@dataclass
class Watch:
    """The host. A run takes no time, unless `takes` says how long those of its schedule do."""

    start: datetime
    task_slots: int = 8
    takes: dict[str, timedelta] = field(default_factory=dict[str, timedelta])
    disk: MemoryDisk = field(default_factory=MemoryDisk)
    ran: list[Ran] = field(default_factory=list[Ran])
    warnings: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.clock = ManualClock(self.start)
        self._ends: list[tuple[datetime, int]] = []
        self.scheduler = self._open()

    def close(self) -> None:
        self.scheduler.close()

    def crash(self, **settings: Any) -> None:
        """The machine dies, and the host starts again, at once and without any memory."""
        self.disk = self.disk.crashed()
        self.scheduler.close()
        self._ends = []
        self.scheduler = self._open(**settings)

    def until(self, end: str, *, every: timedelta = timedelta(hours=1)) -> None:
        """Lets time pass up to and including `end`, with a poll whenever something is due and `every` so often."""
        last = utc(end)
        while True:
            poll = self._work()
            now = self.clock.now()
            if now >= last:
                return
            times = [last, now + every, *[at for at, _ in self._ends]]
            times += [poll] if poll is not None and poll > now else []
            self.clock.advance(min(times) - now)

    def due(self, schedule_id: str) -> list[datetime | None]:
        return [ran.due for ran in self.ran if ran.schedule_id == schedule_id]

    def _work(self) -> datetime | None:
        """Ends what has come to its end, polls, and starts what is offered; returns when something is due next."""
        while True:
            now = self.clock.now()
            for at, run_id in [end for end in self._ends if end[0] <= now]:
                self._ends.remove((at, run_id))
                self.scheduler.complete(run_id)
            poll = self.scheduler.poll()
            self.warnings += poll.warnings
            for run in poll.offered:
                self._begin(run)
            if not poll.offered and not poll.more:
                return poll.next_due

    def _begin(self, run: Run) -> None:
        self.scheduler.start(run.id)
        now = self.clock.now()
        self.ran.append(Ran(run.schedule_id or "", run.scheduled_at, now))
        takes = self.takes.get(run.schedule_id or "", timedelta())
        if takes:
            self._ends.append((now + takes, run.id))
        else:
            self.scheduler.complete(run.id)

    def _open(self, **settings: Any) -> Scheduler:
        return Scheduler.open(
            Path("/journal"), clock=self.clock, disk=self.disk, task_slots=self.task_slots, **settings
        )
