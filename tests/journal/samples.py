"""What the journal's unit tests append, and disks that count or fail on purpose."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from duly.journal import Entry, Journal, RealDisk
from duly.journal.entries import JournalOpened, RunNoted

NOW = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)


def note(number: int, data: object = None) -> RunNoted:
    """An entry unlike every other."""
    return RunNoted(at=NOW, run_id=number, data=data)


def notes(*numbers: int) -> list[Entry]:
    """Several of them."""
    return [note(number) for number in numbers]


def opened(host: str = "payroll-1", pid: int = 4711) -> JournalOpened:
    """What an owner appends first."""
    return JournalOpened(
        at=NOW,
        host=host,
        pid=pid,
        duly="0.1.0",
        croniter="7.0.0",
        tzdata="2026.1",
        python="3.11.7",
        task_slots=4,
        batch=1000,
        clock_tolerance=timedelta(minutes=5),
    )


def fill(folder: Path, lines: int, *, segment_bytes: int = 64 * 1024, each: int = 1) -> None:
    """A journal with so many lines of so many entries each, closed again."""
    with Journal.open(folder, now=NOW, segment_bytes=segment_bytes) as journal:
        for line in range(lines):
            journal.append(notes(*range(line * each + 1, line * each + each + 1)), NOW)


def segments(folder: Path) -> list[Path]:
    """The journal's segments, oldest first."""
    return sorted(folder.glob("*-*.jsonl"))


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below the folder and what it holds."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class CountingDisk(RealDisk):
    """The real disk, with its calls counted and, where a test says so, replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.before: Callable[[str], None] = lambda call: None

    def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
        self.calls["write"] += 1
        self.before("write")
        return super().write(file, offset, data)

    def sync(self, file: int) -> None:
        self.calls["sync"] += 1
        self.before("sync")
        super().sync(file)

    def sync_folder(self, folder: Path) -> None:
        self.calls["sync_folder"] += 1
        self.before("sync_folder")
        super().sync_folder(folder)

    def lock(self, file: int) -> bool:
        self.before("lock")
        return super().lock(file)

    def create(self, path: Path) -> int:
        self.calls["create"] += 1
        self.before("create")
        return super().create(path)


def fail(call: str, code: int = errno.EIO) -> Callable[[str], None]:
    """A `before` that lets this call fail."""

    def before(made: str) -> None:
        if made == call:
            raise OSError(code, os.strerror(code))

    return before
