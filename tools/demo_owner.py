"""One owner of the demo's journal: a process of its own, that lives through a part of the two weeks and can be killed.

    python -m duly.tools.demo_owner JOURNAL CRONTAB --zone Z --begin INSTANT --end INSTANT [--work-at INSTANT]

Rules kept here:
- it does what any host does (open, declare, poll, start, report), only its clock is a `ManualClock` that goes from one
  due instant to the next, and how long a run takes is a function of its occurrence;
- it says what it does on standard output, one JSON object a line;
- from `--work-at` on, the first run that it starts is real work that never ends: its parent kills it there.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import sys
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

from duly.projections import Run
from duly.scheduler.clock import ManualClock
from duly.scheduler.decisions.runs import Completed, Failed
from duly.scheduler.embedded import Scheduler
from duly.scheduler.triggers import OccurrenceSource
from duly.tools.crontab import parse_crontab
from duly.tools.declaring import declare_entry
from duly.tools.moments import parse_instant

TASK_SLOTS = 3
SHORTEST, LONGEST = timedelta(seconds=2), timedelta(minutes=90)
GRACE = timedelta(hours=6)
"""How long after its end an owner waits for a moment in which nothing runs."""


def simulated_duration(source: OccurrenceSource, occurrence_id: str, scheduled_at: datetime) -> timedelta:
    """How long a run takes: a few percent of the time to the next one, and now and then longer than that time."""
    dice = crc32(occurrence_id.encode())
    following = source.next_after(scheduled_at)
    interval = following - scheduled_at if following is not None else timedelta(hours=1)
    if dice % 61 == 0 and interval <= timedelta(hours=2):
        return interval * 1.4
    seconds = round(interval.total_seconds() * (0.01 + dice % 1000 / 40_000))
    return min(max(timedelta(seconds=seconds), SHORTEST), LONGEST)


def simulated_result(run: Run) -> Completed | Failed:
    """What a run reports: about one in a hundred fails."""
    if crc32(f"result of {run.occurrence_id}".encode()) % 101 == 0:
        return Failed(run.id, error="exit status 1")
    return Completed(run.id, result={"exit_status": 0})


@dataclass
class Owner:
    """The host: what it has at work, and until when."""

    scheduler: Scheduler
    clock: ManualClock
    begin: datetime
    end: datetime
    work_at: datetime | None
    at_work: list[tuple[datetime, int, Completed | Failed]] = field(
        default_factory=list[tuple[datetime, int, Completed | Failed]]
    )

    def live(self) -> None:
        """From due instant to due instant, until the end and then until nothing is at work."""
        day = self.clock.now().date()
        while True:
            self.report_ended()
            more, next_due = self.poll()
            if more:
                continue
            if self.clock.now() >= self.end and (not self.at_work or self.clock.now() >= self.end + GRACE):
                return
            ahead = [instant for instant in (next_due, self.at_work[0][0] if self.at_work else None) if instant]
            if self.clock.now() < self.end:
                ahead.append(self.end)
            self.go_to(min(ahead, default=self.end))
            if self.clock.now().date() != day:
                day = self.clock.now().date()
                announce("day", at=self.clock.now())

    def drain(self) -> None:
        """Admit nothing more and wait for what is at work, as a host does before its machine goes down."""
        self.scheduler.stop_admitting()
        while self.at_work:
            self.go_to(self.at_work[0][0])
            self.report_ended()

    def poll(self) -> tuple[bool, datetime | None]:
        if self.work_at is not None and self.clock.now() >= self.work_at:
            poll = self.scheduler.poll()
            if poll.offered:
                self.work_for_real(poll.offered)
        else:
            poll = self.scheduler.poll(start=True)
            for run in poll.offered:
                self.begin_work(run)
        return poll.more, poll.next_due

    def begin_work(self, run: Run) -> None:
        if run.schedule_id is None or run.scheduled_at is None or run.occurrence_id is None:
            return  # a manual run, of which the demo has none
        schedule = self.scheduler.schedule(run.schedule_id)
        takes = simulated_duration(schedule.trigger, run.occurrence_id, run.scheduled_at)
        heapq.heappush(self.at_work, (self.clock.now() + takes, run.id, simulated_result(run)))

    def work_for_real(self, offered: tuple[Run, ...] | list[Run]) -> None:
        """Start the first run that is offered, and be at it until killed; the others stay pending."""
        first, *others = offered
        self.scheduler.start(first.id)
        announce(
            "working",
            at=self.clock.now(),
            run_id=first.id,
            schedule_id=first.schedule_id,
            pending=[one.id for one in others],
        )
        sys.stdin.read()  # until killed; or until the parent has died, with which this ends
        os._exit(1)

    def report_ended(self) -> None:
        ended: list[Completed | Failed] = []
        while self.at_work and self.at_work[0][0] <= self.clock.now():
            ended.append(heapq.heappop(self.at_work)[2])
        if ended:
            self.scheduler.report(ended)

    def go_to(self, instant: datetime) -> None:
        # An instant that is past already (something waits for a free slot) must not hold the clock.
        self.clock.advance(max(instant - self.clock.now(), timedelta(seconds=1)))


def announce(event: str, *, at: datetime, **said: Any) -> None:
    """Tell the parent."""
    print(json.dumps({"event": event, "at": at.isoformat(), **said}), flush=True)


def main() -> int:
    """Own the journal for a while."""
    arguments = _arguments()
    crontab = parse_crontab(
        Path(arguments.crontab).read_text(encoding="utf-8", errors="surrogateescape"),
        source=arguments.crontab,
        system=arguments.system,
        zone=arguments.zone,
    )
    clock = ManualClock(arguments.begin)
    with Scheduler.open(arguments.journal, task_slots=TASK_SLOTS, clock=clock, actor="demo") as scheduler:
        for entry in crontab.entries:
            declare_entry(scheduler, entry, actor="demo", note=f"crontab line {entry.line}")
        announce("opened", at=clock.now(), schedules=len(crontab.entries))
        owner = Owner(scheduler, clock, arguments.begin, arguments.end, arguments.work_at)
        owner.live()
        owner.drain()
        announce("closing", at=clock.now())
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m duly.tools.demo_owner", description=__doc__)
    parser.add_argument("journal")
    parser.add_argument("crontab")
    parser.add_argument("--zone", required=True)
    parser.add_argument("--system", action="store_true")
    parser.add_argument("--begin", type=parse_instant, required=True)
    parser.add_argument("--end", type=parse_instant, required=True)
    parser.add_argument("--work-at", type=parse_instant)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
