"""One durable decision, beside one raw append and one SQLite commit, alternately in one process.

`python -m tests.bench.one_decision`. The decision is an admission, a skip because the run before is still at work, or
a result; each is one entry, one write and one fsync. The append is 300 bytes and an fsync; the commit is one row in a
table with an index, in WAL mode with synchronous=FULL.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from duly import Scheduler
from tests.bench.measuring import Case, Contender, Line, Measured, alternate, run_axis
from tests.bench.scenes import Scene

CASES = [Case("one", {"steps": 400})]


def measure(case: Measured) -> Iterator[Line]:
    """Seconds of one decision."""
    for name in ("admission", "skip", "report"):
        (case.folder / name).mkdir()
    admitting = Scene(case.folder / "admission", 1000, 1)
    skipping = Scene(case.folder / "skip", 1000, 1)
    skipping.advance()
    skipping.scheduler.poll(start=True)
    yield from alternate(
        [
            Contender("duly", admitting.poll, admitting.rearm),
            Contender("duly-skip", skipping.scheduler.poll, skipping.advance),
            reporting(case.folder / "report"),
            Contender("append", appended(case.folder / "raw", b"x" * 299 + b"\n")),
            Contender("sqlite", inserted(case.folder / "rows.db", 1)),
        ],
        steps=case.sizes["steps"],
    )


def reporting(folder: Path) -> Contender:
    """The result of one run."""
    scene = Scene(folder, 1000, 1)
    scheduler: Scheduler = scene.scheduler
    started: list[int] = []

    def begin() -> None:
        scene.advance()
        started.extend(run.id for run in scheduler.poll(start=True).offered)

    return Contender("duly-report", lambda: scheduler.complete(started.pop()), begin)


def appended(path: Path, data: bytes) -> Callable[[], object]:
    """One write and one fsync."""
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def step() -> None:
        os.write(file, data)
        os.fsync(file)

    return step


def inserted(path: Path, rows: int) -> Callable[[], object]:
    """One transaction of so many rows, WAL and synchronous=FULL."""
    database = opened(path)
    values = [(f"job-{number:08d}", 29_800_000, 1788000000.25, "admitted", 0) for number in range(rows)]

    def step() -> None:
        database.execute("begin immediate")
        database.executemany("insert into log(schedule, due, at, kind, attempt) values(?, ?, ?, ?, ?)", values)
        database.execute("commit")

    return step


def opened(path: Path) -> sqlite3.Connection:
    """A database with a log of decisions and an index on it."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("pragma journal_mode=wal")
    database.execute("pragma synchronous=full")
    database.execute(
        "create table log(seq integer primary key, schedule text, due int, at real, kind text, attempt int)"
    )
    database.execute("create index by_schedule on log(schedule, seq)")
    return database


if __name__ == "__main__":
    run_axis("one decision", measure, CASES)
