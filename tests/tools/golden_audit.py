"""Golden outputs of the commands that explain, account for and show what was decided, about the journal of `recorded`.

`python -m tests.tools.golden_audit` prints them anew into tests/tools/golden_audit/; what changed is then read in the
diff.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from duly.journal import RealDisk
from tests.tools.golden import print_of
from tests.tools.recorded import make_recorded

FOLDER = Path(__file__).parent / "golden_audit"
EXPLAINED = {
    "before-it-began": ("nightly", "2026-03-27 02:30"),
    "overlap": ("often", "2026-03-28T00:30:00Z"),
    "paused-away": ("often", "2026-03-28T01:15:00Z"),
    "in-a-backlog": ("often", "2026-03-28T13:15:00Z"),
    "after-the-end": ("often", "2026-03-29T09:15:00Z"),
    "abandoned": ("nightly", "2026-03-28 02:30"),
    "a-gap": ("nightly", "2026-03-29 02:30"),
    "a-fold": ("nightly", "2026-10-25 02:30"),
    "paused-ahead": ("nightly", "2026-03-30 02:30"),
    "superseded": ("hourly", "2026-03-28T05:00:00Z"),
    "held-and-run": ("hourly", "2026-03-28T01:00:00Z"),
    "disabled": ("hourly", "2026-03-29T06:00:00Z"),
    "voided": ("hourly", "2026-03-30T05:00:00Z"),
    "decided-ahead": ("hourly", "2026-03-31T07:00:00Z"),
    "blocked": ("hourly", "2026-03-29T12:00:00Z"),
    "no-slot": ("capped", "2026-03-29T04:10:00Z"),
    "rebaselined": ("capped", "2026-03-29T08:10:00Z"),
    "waiting": ("capped", "2026-03-29T19:10:00Z"),
    "spent": ("tally", "2026-03-29 00:00"),
    "no-occurrence": ("hourly", "2026-03-29T12:30:00Z"),
    "once": ("once", "2026-03-28T00:20:00Z"),
}
NOW = ["--now", "2026-03-29T20:00:00Z"]
COMMANDS: dict[str, list[str]] = {
    **{f"explain-{name}": ["explain", *what, "-j", "JOURNAL", *NOW] for name, what in EXPLAINED.items()},
    "explain.json": ["explain", *EXPLAINED["voided"], "-j", "JOURNAL", *NOW, "--json"],
    "explain.jsonl": ["explain", *EXPLAINED["a-fold"], "-j", "JOURNAL", *NOW, "--format", "jsonl"],
    "explain-ahead": ["explain", "nightly", "2026-04-02 02:30", "-j", "JOURNAL", *NOW],
    "schedules": ["schedules", "JOURNAL"],
    "schedules.json": ["schedules", "JOURNAL", "--json"],
    "show": ["show", "nightly", "-j", "JOURNAL"],
    "show-blocked": ["show", "hourly", "-j", "JOURNAL"],
    "show.json": ["show", "tally", "-j", "JOURNAL", "--json"],
    "runs": ["runs", "JOURNAL"],
    "runs.jsonl": ["runs", "JOURNAL", "-s", "nightly", "--format", "jsonl"],
    "doctor": ["doctor", "JOURNAL", *NOW],
    "doctor.json": ["doctor", "JOURNAL", *NOW, "--json"],
    "account": ["account", "JOURNAL"],
    "account-since": ["account", "JOURNAL", "--since", "2026-03-29T04:00:00Z"],
    "account.json": ["account", "JOURNAL", "--json"],
    "history": ["history", "often", "-j", "JOURNAL", *NOW],
    "history-narrowed": ["history", "hourly", "-j", "JOURNAL", *NOW, "--since", "2026-03-29T00:00:00Z", "-n", "6"],
    "history.json": ["history", "nightly", "-j", "JOURNAL", *NOW, "--json"],
    "blame": ["blame", "capped", "-j", "JOURNAL"],
    "blame-often": ["blame", "often", "-j", "JOURNAL"],
    "blame.json": ["blame", "capped", "-j", "JOURNAL", "--json"],
}


class _Usage(NamedTuple):
    free: int


def _local(_: RealDisk, __: Path) -> str:
    return "ext4"


def _room(_: Path) -> _Usage:
    return _Usage(1 << 40)


def printed(name: str, journal: Path) -> str:
    """What the command prints about the journal, without what differs from machine to machine: on a disk with room."""
    with (
        patch.object(RealDisk, "file_system", _local),
        patch.object(shutil, "disk_usage", _room),
    ):
        return print_of(COMMANDS[name], journal)


def write_all() -> None:
    """Print all of them anew."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        journal = make_recorded(Path(folder) / "journal")
        for name in COMMANDS:
            (FOLDER / f"{name}.txt").write_text(printed(name, journal), encoding="utf-8")


if __name__ == "__main__":
    write_all()
