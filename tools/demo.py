"""The demo: two weeks of a real crontab under a simulated clock, with everything that happens to real machines.

Rules kept here:
- the journal is owned by real processes (`duly.tools.demo_owner`), one after the other; one of them is killed, as by
  `kill -9`, while it works;
- nothing that is shown afterwards comes from those processes: it is read back from the journal alone;
- no fork and no signal: it works wherever Python starts a process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from duly.journal.errors import Error
from duly.scheduler.instants import describe_instant
from duly.tools.crontab import Crontab, parse_crontab

BEGIN = datetime(2026, 3, 22, 23, tzinfo=UTC)
DOWN, UP = datetime(2026, 3, 26, 8, 20, tzinfo=UTC), timedelta(hours=3)
KILLED_FROM = datetime(2026, 4, 1, 0, 30, tzinfo=UTC)
REOPENED_AFTER = timedelta(minutes=4)
END = datetime(2026, 4, 5, 22, tzinfo=UTC)

Progress = Callable[[datetime], None]


class DemoFailed(Error):
    """A process of the demo did not do its part."""


@dataclass(frozen=True, slots=True)
class Kill:
    """When an owner was killed (simulated time), what it was at, and what it had admitted and not started."""

    at: datetime
    run_id: int
    schedule_id: str
    pending: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """What the demo did: where the journal is, what it was given, and what happened to its owners."""

    folder: Path
    journal: Path
    crontab: Crontab
    down_from: datetime
    up_at: datetime
    kill: Kill | None


def new_folder() -> Path:
    """A folder of its own among the machine's temporary ones, that stays."""
    return Path(tempfile.mkdtemp(prefix="duly-demo-"))


def play(  # noqa: PLR0913 - a story has many circumstances
    text: str, folder: Path, *, source: str, zone: str, system: bool = False, progress: Progress | None = None
) -> Story:
    """Live through the two weeks, leave journal and crontab in `folder`, and tell what was done."""
    crontab = parse_crontab(text, source=source, system=system, zone=zone)
    if not crontab.entries:
        raise DemoFailed(f"{source} has no entry that could be kept. See what `duly import --dry-run` says of it.")
    kept = folder / "crontab"
    kept.write_bytes(text.encode("utf-8", "surrogateescape"))
    company = _Company(folder / "journal", kept, zone, system, progress or (lambda at: None))
    down_from = company.owner(BEGIN, DOWN).closed_at
    up_at = down_from + UP
    part = company.owner(up_at, END, KILLED_FROM)
    if part.kill is not None:
        company.owner(part.kill.at + REOPENED_AFTER, END)
    return Story(folder, company.journal, crontab, down_from, up_at, part.kill)


@dataclass(frozen=True, slots=True)
class _Part:
    """How an owner ended: closed in good order at an instant, or killed."""

    closed_at: datetime
    kill: Kill | None


@dataclass(frozen=True, slots=True)
class _Company:
    """The owners of one journal, one after the other."""

    journal: Path
    crontab: Path
    zone: str
    system: bool
    progress: Progress

    def owner(self, begin: datetime, end: datetime, killed_from: datetime | None = None) -> _Part:
        command = [sys.executable, "-X", "utf8", "-P", "-m", "duly.tools.demo_owner"]
        command += [str(self.journal), str(self.crontab), "--zone", self.zone]
        command += ["--begin", describe_instant(begin), "--end", describe_instant(end)]
        command += ["--system"] if self.system else []
        command += ["--work-at", describe_instant(killed_from)] if killed_from is not None else []
        pipe = subprocess.PIPE  # standard input, too: an owner at work ends when its parent has died
        with (
            tempfile.TemporaryFile() as complaints,
            subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=complaints, encoding="utf-8") as process,  # noqa: S603 - our own module
        ):
            try:
                part = self._follow(process)
            finally:
                # Whatever ends the demo (Ctrl-C too), its owner ends with it.
                process.kill()
            process.wait()
            if part is None:
                complaints.seek(0)
                said = complaints.read().decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
                raise DemoFailed(
                    f"an owner of the demo's journal ended too early: {said[-1].rstrip('.')}. "
                    "Try another folder with --keep, on a local disk with room."
                )
        return part

    def _follow(self, process: subprocess.Popen[str]) -> _Part | None:
        closing: datetime | None = None
        for line in process.stdout or ():
            said: dict[str, Any] = json.loads(line)
            at = datetime.fromisoformat(said["at"])
            self.progress(at)
            if said["event"] == "working":
                process.kill()
                return _Part(at, Kill(at, said["run_id"], said["schedule_id"], tuple(said["pending"])))
            if said["event"] == "closing":
                closing = at
        return _Part(closing, None) if closing is not None and process.wait() == 0 else None
