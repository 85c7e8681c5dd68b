"""Golden outputs of what supposes and compares: whatif, the engine check, diff and simulate; and of a log with a hole.

JOURNAL is that of `recorded`, EVENTFUL the one that it goes on from, SALVAGED a salvage of JOURNAL with a hole, CRONTAB
a small one. `python -m tests.tools.golden_whatif` prints them anew into tests/tools/golden_whatif/; what changed is
then read in the diff.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from duly.journal import salvage
from tests.tools.eventful import make_eventful
from tests.tools.golden import print_of
from tests.tools.recorded import make_recorded

FOLDER = Path(__file__).parent / "golden_whatif"
CRONTAB = """\
30 2 * * * backup
*/15 * * * * check
# duly: misfire=skip lateness=2m
0 * * * * roll
61 * * * * never
"""
A_NIGHT = [
    *("simulate", "CRONTAB", "--zone", "Europe/Berlin"),
    *("--from", "2026-03-29T00:30:00Z", "--to", "2026-03-29T02:30:00Z"),
    *("--duration", "backup=50m,check=20m", "--slots", "1"),
]
COMMANDS: dict[str, list[str]] = {
    "engine-check": ["replay", "JOURNAL", "--engine-check"],
    "engine-check.json": ["replay", "JOURNAL", "--engine-check", "--json"],
    "engine-check-of-a-salvage": ["replay", "SALVAGED", "--engine-check"],
    "whatif-nothing": ["whatif", "JOURNAL"],
    "whatif-nothing.json": ["whatif", "JOURNAL", "--json"],
    "whatif-latest": ["whatif", "JOURNAL", "--set", "often.misfire=latest", "-n", "5"],
    "whatif-slots": ["whatif", "JOURNAL", "--set", "task_slots=4", "--duration", "*=10m"],
    "whatif-one-slot": ["whatif", "JOURNAL", "--set", "task_slots=1", "--duration", "*=10m"],
    "whatif-several": [
        *("whatif", "EVENTFUL", "--set", "often.overlap=parallel", "--set", "often.max_active_runs=2"),
        *("--set", "*.lateness=2h"),
    ],
    "whatif-cron": ["whatif", "EVENTFUL", "--set", "nightly.cron=0 3 * * *", "--duration", "nightly=1h"],
    "whatif-of-a-salvage": ["whatif", "SALVAGED"],
    "whatif.json": ["whatif", "EVENTFUL", "--set", "nightly.misfire=skip", "--json"],
    "whatif.jsonl": ["whatif", "EVENTFUL", "--set", "task_slots=3", "--format", "jsonl"],
    "log-of-a-salvage": ["log", "SALVAGED", "--since", "2026-03-29T17:00:00Z"],
    "log-of-a-salvaged-schedule": ["log", "SALVAGED", "-s", "capped", "--since", "2026-03-29T17:00:00Z"],
    "diff-equal": ["diff", "JOURNAL", "JOURNAL"],
    "diff-goes-on": ["diff", "EVENTFUL", "JOURNAL"],
    "diff-goes-on.json": ["diff", "EVENTFUL", "JOURNAL", "--json"],
    "diff-salvaged": ["diff", "JOURNAL", "SALVAGED"],
    "diff-salvaged.jsonl": ["diff", "JOURNAL", "SALVAGED", "--format", "jsonl"],
    "simulate": A_NIGHT,
    "simulate.json": [*A_NIGHT, "--json"],
}


def make_all(folder: Path) -> dict[str, Path]:
    """Everything that the commands are about."""
    crontab = folder / "crontab"
    crontab.write_text(CRONTAB, encoding="utf-8")
    made = {
        "JOURNAL": make_recorded(folder / "recorded"),
        "EVENTFUL": make_eventful(folder / "eventful"),
        "SALVAGED": folder / "salvaged",
        "CRONTAB": crontab,
    }
    damaged = folder / "damaged"
    shutil.copytree(made["JOURNAL"], damaged)
    [segment] = damaged.glob("*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if b"OccurrenceSkipped" in line and b"overlap" in line)
    segment.write_bytes(b"".join([*lines[:place], b"x" * (len(lines[place]) - 1) + b"\n", *lines[place + 1 :]]))
    salvage(damaged, made["SALVAGED"], datetime(2026, 4, 1, tzinfo=UTC))
    return made


def printed(name: str, made: Mapping[str, Path]) -> str:
    """What the command prints, without what differs from machine to machine."""
    text = print_of([str(made[word]) if word in made else word for word in COMMANDS[name]], made["JOURNAL"])
    for word, path in made.items():
        text = text.replace(str(path), word)
    return text


def write_all() -> None:
    """Print all of them anew."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = make_all(Path(folder))
        for name in COMMANDS:
            (FOLDER / f"{name}.txt").write_text(printed(name, made), encoding="utf-8")


if __name__ == "__main__":
    write_all()
