"""Questions: the next occurrence of one schedule and of all, the last decisions about one, and why one was decided so;
beside APScheduler in memory and an indexed SQLite table, for few schedules and entries and for many.

`python -m tests.bench.questions`. The schedule that is asked about has as many entries in the long journal as in the
short one, about five hundred. Its index is written before, as a running owner has written it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from duly import ManualClock, Scheduler
from duly.projections.indexed import IndexedJournal, index_journal
from tests.bench.measuring import Case, Contender, Line, Measured, alternate, run_axis
from tests.bench.one_decision import opened
from tests.bench.scenes import START, idle, name_of, record_history

CASES = [
    *(Case(f"next, {size}", {"schedules": count}) for size, count in (("small", 1_000), ("large", 100_000))),
    Case("record, short", {"entries": 10_000, "steps": 100}),
    Case("record, long", {"entries": 1_000_000, "steps": 100}),
]
OWN_ENTRIES = 500
ASKED = 4
"""The number of the schedule that is asked about: one that skips, too."""


def measure(case: Measured) -> Iterator[Line]:
    """Seconds of one question."""
    yield from following(case) if case.name.startswith("next") else recorded(case)


def following(case: Measured) -> Iterator[Line]:
    """What comes next."""
    schedules = case.sizes["schedules"]
    scheduler = Scheduler.open(case.folder / "journal", clock=ManualClock(START))
    scheduler.create_many(list(idle(0, schedules)))
    asked = name_of(ASKED)
    theirs = jobs(schedules)
    yield from alternate(
        [
            Contender("duly-next", lambda: [scheduler.next_due(asked) for _ in range(100)], per=100),
            Contender("apscheduler-next", lambda: [theirs.get_job(asked).next_run_time for _ in range(100)], per=100),
            Contender("duly-100", scheduler.upcoming),
        ],
        steps=100,
    )


def jobs(count: int) -> Any:
    """APScheduler with its in-memory store."""
    base: Any = import_module("apscheduler.schedulers.background").BackgroundScheduler
    trigger: Any = import_module("apscheduler.triggers.date").DateTrigger(datetime(2090, 1, 1, tzinfo=UTC))
    scheduler = base(timezone=UTC)
    scheduler.start(paused=True)
    for number in range(count):
        scheduler.add_job(print, trigger, id=name_of(number))
    return scheduler


def recorded(case: Measured) -> Iterator[Line]:
    """What was."""
    entries, steps = case.sizes["entries"], case.sizes["steps"]
    schedules = max(entries // OWN_ENTRIES, 10)

    def seed(folder: Path) -> None:
        record_history(folder, schedules, entries)
        index_journal(folder)

    path = case.seeded(f"history-{entries}", seed)
    asked = name_of(ASKED)
    clock = ManualClock(START + timedelta(days=1))
    scheduler = Scheduler.open(path, clock=clock, clock_tolerance=timedelta(days=300))
    index = IndexedJournal(path)
    rows = scheduler.occurrences(asked, limit=1_000_000).items
    instant = rows[-1].scheduled_at
    second = scheduler.occurrences(asked, limit=100).next
    database = opened(case.folder / "rows.db")
    database.executemany(
        "insert into log(schedule, due, at, kind, attempt) values(?, ?, ?, 'admitted', 0)",
        ((name_of(number % schedules), 29_800_000 + number, 1788000000.25) for number in range(entries)),
    )
    last = "select seq, due, at, kind from log where schedule = ? order by seq desc limit 100"
    yield from alternate(
        [
            Contender("duly-last", lambda: index.ask(lambda parts: parts.newest(asked, 100))),
            # The owner keeps the history that was asked for last: once it is asked about another schedule before.
            Contender(
                "duly-occurrences",
                lambda: scheduler.occurrences(asked, limit=100),
                lambda: scheduler.occurrences(name_of(ASKED + 1), limit=1),
            ),
            Contender("duly-page", lambda: scheduler.occurrences(asked, after=second, limit=100)),
            Contender("duly-explain", lambda: scheduler.explain(asked, instant)),
            Contender("sqlite", lambda: database.execute(last, (asked,)).fetchall()),
        ],
        steps=steps,
    )


if __name__ == "__main__":
    run_axis("questions", measure, CASES)
