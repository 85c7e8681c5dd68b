"""Golden outputs of what makes or changes something: export, salvage, report, archive, ctl, and the diff of two hosts.

Each is printed about journals of its own: JOURNAL is that of `recorded`, DAMAGED a journal with a hole, NARROW and WIDE
two hosts with the same schedules, NEW what is made. `python -m tests.tools.golden_made` prints them anew into
tests/tools/golden_made/; what changed is then read in the diff.
"""

from __future__ import annotations

import re
import tempfile
from datetime import timedelta
from pathlib import Path

from duly import Cron, ManualClock, Scheduler
from tests.tools.eventful import BEGIN
from tests.tools.golden import print_of
from tests.tools.golden_whatif import make_all

FOLDER = Path(__file__).parent / "golden_made"
ANN = ["--actor", "ann", "--note", "the disk is full"]
COMMANDS: dict[str, list[str]] = {
    "export": ["export", "JOURNAL", "--to", "NEW", "--slice", "70:80"],
    "export-redacted": ["export", "JOURNAL", "--to", "NEW", "--schedule", "nightly", "--redact"],
    "export.json": ["export", "JOURNAL", "--to", "NEW", "--slice", "70:80", "--json"],
    "salvage": ["salvage", "DAMAGED", "--to", "NEW"],
    "salvage.json": ["salvage", "DAMAGED", "--to", "NEW", "--json"],
    "report": ["report", "JOURNAL", "--output", "NEW"],
    "report.json": ["report", "JOURNAL", "--output", "NEW", "--json"],
    "archive": ["archive", "JOURNAL", "--to", "NEW"],
    "ctl-pause": ["ctl", "pause", "nightly", "-j", "JOURNAL", *ANN],
    "ctl-unpause.json": ["ctl", "unpause", "nightly", "-j", "JOURNAL", *ANN, "--json"],
    "ctl-delete": ["ctl", "delete", "tally", "-j", "JOURNAL", *ANN],
    "ctl-run-now": ["ctl", "run-now", "nightly", "-j", "JOURNAL", *ANN],
    "ctl-of-nobody": ["ctl", "pause", "nightyl", "-j", "JOURNAL", *ANN],
    "diff-of-two-hosts": ["diff", "NARROW", "WIDE"],
    "diff-of-two-hosts.json": ["diff", "NARROW", "WIDE", "--json"],
}


def make_host(path: Path, task_slots: int) -> Path:
    """Two schedules for three hours on a host with so many task slots."""
    clock = ManualClock(BEGIN)
    with Scheduler.open(path, task_slots=task_slots, clock=clock, actor="test") as scheduler:
        for name in ("copy", "fetch"):
            scheduler.create(name, Cron("0 * * * *", zone="UTC"), target=name, misfire="skip", lateness=timedelta(0))
        for _ in range(3):
            clock.advance(timedelta(hours=1))
            for run in scheduler.poll(start=True).offered:
                scheduler.complete(run.id)
    return path


def printed(name: str, folder: Path) -> str:
    """What the command prints, without what differs from machine to machine and from time to time."""
    made = {**make_all(folder), "DAMAGED": folder / "damaged", "NEW": folder / "new"}
    made |= {"NARROW": make_host(folder / "narrow", 1), "WIDE": make_host(folder / "wide", 2)}
    text = print_of([str(made[word]) if word in made else word for word in COMMANDS[name]], made["JOURNAL"])
    for word, path in made.items():
        text = text.replace(str(path), word)
    return re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "<now>", text)


def write_all() -> None:
    """Print all of them anew."""
    FOLDER.mkdir(exist_ok=True)
    for name in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            (FOLDER / f"{name}.txt").write_text(printed(name, Path(folder)), encoding="utf-8")


if __name__ == "__main__":
    write_all()
