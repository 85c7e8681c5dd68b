"""Golden outputs: what a command printed when its output was last looked at and found right.

`python -m tests.tools.golden` prints them anew into tests/tools/golden/; what changed is then read in the diff.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from pathlib import Path
from unittest.mock import patch

from duly.tools.cli import main
from tests.tools.eventful import make_eventful, without_what_differs

FOLDER = Path(__file__).parent / "golden"
COMMANDS: dict[str, list[str]] = {
    "verify": ["verify", "JOURNAL"],
    "verify.json": ["verify", "JOURNAL", "--json"],
    "replay": ["replay", "JOURNAL"],
    "replay.json": ["replay", "JOURNAL", "--json"],
    "replay-until": ["replay", "JOURNAL", "--until", "2026-03-28T01:00:00Z"],
    "dump": ["dump", "JOURNAL", "--until", "31"],
    "dump.json": ["dump", "JOURNAL", "--json", "--until", "31"],
    "dump-runs.jsonl": ["dump", "JOURNAL", "--projection", "runs", "--format", "jsonl", "--until", "18"],
    "log": ["log", "JOURNAL"],
    "log.json": ["log", "JOURNAL", "--json", "--until", "20"],
    "log.jsonl": ["log", "JOURNAL", "--format", "jsonl", "--schedule", "nightly"],
    "log-since": ["log", "JOURNAL", "--since", "2026-03-28T01:00:00Z", "--until", "30", "--schedule", "often"],
    "log-last": ["log", "JOURNAL", "-n", "3"],
    "head": ["head", "JOURNAL"],
    "head.json": ["head", "JOURNAL", "--json"],
    "next": ["next", "nightly", "-j", "JOURNAL", "-n", "3", "--after", "2026-03-27T12:00:00Z"],
    "next.json": ["next", "nightly", "-j", "JOURNAL", "-n", "3", "--after", "2026-03-27T12:00:00Z", "--json"],
    "next-of-deleted": ["next", "gone", "-j", "JOURNAL", "-n", "1", "--after", "2026-03-27T12:00:00Z"],
    "next-of-once": ["next", "once", "-j", "JOURNAL", "--after", "2026-03-28T12:00:00Z"],
    "next-in-a-fold": ["next", "--cron", "30 1 * * *", "--zone", "America/New_York", "--after", "2026-10-31T12:00:00Z"],
    "next-in-a-fold.jsonl": [
        *("next", "--cron", "30 1 * * *", "--zone", "America/New_York", "--after", "2026-10-31T12:00:00Z"),
        *("--format", "jsonl", "--count", "2"),
    ],
}


def printed(name: str, journal: Path) -> str:
    """What the command prints about the journal, without what differs from machine to machine."""
    return print_of(COMMANDS[name], journal)


def print_of(command: list[str], journal: Path) -> str:
    """What a command line prints, JOURNAL in it standing for the journal's folder."""
    arguments = [str(journal) if word == "JOURNAL" else word for word in command]
    text = io.StringIO()
    with patch.dict(os.environ, {"COLUMNS": "160", "NO_COLOR": "1"}), contextlib.redirect_stdout(text):
        code = main(arguments)
    lines = [line.rstrip() for line in without_what_differs(text.getvalue(), journal).splitlines()]
    return "\n".join([*lines, f"exit code {code}", ""])


def write_all() -> None:
    """Print all of them anew."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        journal = make_eventful(Path(folder) / "journal")
        for name in COMMANDS:
            (FOLDER / f"{name}.txt").write_text(printed(name, journal), encoding="utf-8")


if __name__ == "__main__":
    write_all()
