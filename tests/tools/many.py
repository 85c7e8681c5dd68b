"""Journals of much: of many schedules over many days, written entry by entry so that it costs next to nothing, and of a
very long time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from duly import Cron, ManualClock, Scheduler
from duly.journal import Journal
from duly.journal.entries import (
    CronRule,
    Definition,
    Entry,
    ErrorInfo,
    JournalClosed,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    RunCompleted,
    RunFailed,
    RunStarted,
    ScheduleCreated,
)

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
LINE = 600
"""Entries a line."""


def make_many(path: Path, *, schedules: int = 50, days: int = 90, minutely: int = 0) -> Path:
    """Make a journal of so many daily schedules, and of some that are due each minute, and return its folder.

    A daily run fails now and then, and is refused now and then; a run of each minute fails at noon.
    """
    crons = {f"daily-{number:02}": f"{number * 7 % 60} {number * 5 % 24} * * *" for number in range(schedules)}
    crons |= {f"every-minute-{number}": "* * * * *" for number in range(minutely)}
    begin = BEGIN - MINUTE
    opened = JournalOpened(
        at=begin,
        host="host",
        pid=1,
        duly="0",
        croniter="0",
        tzdata="0",
        python="3",
        task_slots=50,
        batch=1_000,
        clock_tolerance=timedelta(minutes=5),
    )
    created = [
        ScheduleCreated(
            at=begin,
            schedule_id=name,
            definition=Definition(CronRule(expression, "UTC"), f"job of {name}"),
            covers_through=begin,
            actor="ann",
        )
        for name, expression in crons.items()
    ]
    line: list[Entry] = [opened, *created]
    sequence = len(line)
    with Journal.open(path, now=begin) as journal:
        for at, name in _due(crons, days):
            entries = _lived(sequence + 1, name, at, (at - BEGIN) // DAY)
            sequence += len(entries)
            line += entries
            if len(line) >= LINE:
                journal.enqueue(line, at)
                line = []
        end = BEGIN + days * DAY
        journal.append([*line, JournalClosed(at=end)], end)
    return path


def make_seventy_years(path: Path) -> Path:
    """A journal of two days that lie seventy years apart."""
    clock = ManualClock(datetime(2026, 3, 2, 9, 0, tzinfo=UTC))
    with Scheduler.open(path, clock=clock) as scheduler:
        scheduler.create("a", Cron("@daily", zone="UTC"), target="x")
        for days in (1, 70 * 365):
            clock.advance(timedelta(days=days))
            for run in scheduler.poll(start=True).offered:
                scheduler.complete(run.id)
    return path


def _due(crons: dict[str, str], days: int) -> Iterator[tuple[datetime, str]]:
    for day in range(days):
        due: list[tuple[datetime, str]] = []
        for name, expression in crons.items():
            minute, hour, *_ = expression.split()
            if minute == "*":
                due += [(BEGIN + day * DAY + number * MINUTE, name) for number in range(1_440)]
            else:
                due.append((BEGIN + day * DAY + int(hour) * 60 * MINUTE + int(minute) * MINUTE, name))
        yield from sorted(due)


def _lived(sequence: int, name: str, at: datetime, day: int) -> list[Entry]:
    number = sum(map(ord, name)) + day
    minutely = name.startswith("every-minute")
    if not minutely and number % 23 == 0:
        refused = OccurrenceSkipped(
            at=at, schedule_id=name, scheduled_at=at, reason="preflight", detail="the disk is full"
        )
        return [refused]
    took = timedelta(seconds=20) if minutely else timedelta(minutes=4 + number % 50)
    fails = (at.hour, at.minute) == (12, 0) if minutely else number % 17 == 0
    ended: Entry = RunCompleted(at=at + took, run_id=sequence, schedule_id=name, result={"rows": number})
    if fails:
        error = ErrorInfo("OSError", f"no route to host {number}")
        ended = RunFailed(at=at + took, run_id=sequence, schedule_id=name, error=error)
    return [
        OccurrenceAdmitted(at=at, schedule_id=name, scheduled_at=at, target=f"job of {name}"),
        RunStarted(at=at, run_id=sequence, schedule_id=name),
        ended,
    ]
