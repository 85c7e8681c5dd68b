"""A journal of a million entries and few schedules, as a host writes it, and how much memory a command takes for it.

`python -m tests.tools.long_journal PATH ENTRIES` makes one.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from duly.journal import Journal
from duly.journal.entries import (
    CronRule,
    Definition,
    Entry,
    JournalOpened,
    OccurrenceAdmitted,
    RunCompleted,
    RunStarted,
    ScheduleCreated,
)

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SCHEDULES = 100
EACH = 3 * SCHEDULES
"""Entries a minute: each schedule is admitted, started and completed."""


class Taken(NamedTuple):
    """What a command took."""

    code: int
    peak: int
    """The most memory that it held at once, in KiB."""
    lines: int
    """How many lines it printed."""
    err: str


def make_long(path: Path, entries: int) -> Path:
    """A journal of as many entries as that, in a few lines more or less."""
    with Journal.open(path, now=BEGIN) as journal:
        for batch in _batches(entries):
            journal.enqueue(batch, batch[0].at)
        journal.sync()
    return path


def minute_of(entries: int) -> datetime:
    """An instant in the middle of such a journal at which every schedule ran."""
    return BEGIN + MINUTE * (entries // EACH // 2)


def _batches(entries: int) -> Iterator[tuple[Entry, ...]]:
    names = [f"job-{number}" for number in range(SCHEDULES)]
    definition = Definition(trigger=CronRule("* * * * *", "UTC"), target="work")
    opened = JournalOpened(
        at=BEGIN,
        host="host",
        pid=1,
        duly="0.1.0",
        croniter="6.2.4",
        tzdata="2026.1",
        python="3.13.1",
        task_slots=SCHEDULES,
        batch=1000,
        clock_tolerance=timedelta(minutes=5),
    )
    yield (opened,)
    yield tuple(
        ScheduleCreated(at=BEGIN, schedule_id=name, covers_through=BEGIN, definition=definition) for name in names
    )
    sequence = 1 + SCHEDULES
    for minute in range(1, max(entries - sequence, 0) // EACH + 1):
        at = BEGIN + minute * MINUTE
        admitted: list[Entry] = []
        runs: list[tuple[int, str]] = []
        for name in names:
            runs.append((sequence + len(admitted) + 1, name))
            admitted.append(OccurrenceAdmitted(at=at, schedule_id=name, scheduled_at=at, target="work"))
            admitted.append(RunStarted(at=at, run_id=runs[-1][0], schedule_id=name))
        later = at + MINUTE / 2
        yield tuple(admitted)
        yield tuple(
            RunCompleted(at=later, run_id=run_id, schedule_id=name, result={"ok": True}) for run_id, name in runs
        )
        sequence += EACH


_MEASURED = """
import sys
from duly.tools.cli import main
code = main(sys.argv[1:])
with open("/proc/self/status") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
print(peak, file=sys.stderr)
sys.exit(code)
"""


def taken_by(*words: object) -> Taken:
    """Runs a command line in a process of its own, on Linux."""
    command = [sys.executable, "-P", "-c", _MEASURED, *map(str, words)]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        lines = sum(1 for _ in process.stdout or ())
        code = process.wait()
        errors.seek(0)
        *said, peak = errors.read().decode().splitlines()
    return Taken(code, int(peak), lines, "\n".join(said))


if __name__ == "__main__":
    make_long(Path(sys.argv[1]), int(sys.argv[2]))
