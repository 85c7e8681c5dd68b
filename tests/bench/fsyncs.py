"""How often a poll or a command syncs, counted by strace: a figure without noise.

`python -m tests.bench.fsyncs`. Each kind of step runs in a process of its own, which marks where the first one begins
and the last one ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from duly import Completed
from tests.bench.measuring import ROOT, Case, Line, Measured, run_axis
from tests.bench.scenes import EVERY_MINUTE, Scene

STEPS = 8
MARK = "a-mark-of-the-measurement"
"""The name of a file whose fsyncs are no step's: they say where each one begins."""
CASES = [
    Case("idle poll", {"due": 0}),
    Case("poll, 1 due", {"due": 1}),
    Case("poll, 1000 due", {"due": 1000}),
    Case("create", {"due": 0}),
    Case("report of 1000", {"due": 1000}),
]
CALLS = "fsync,fdatasync,msync,sync_file_range,sync,syncfs"


def measure(case: Measured) -> Iterator[Line]:
    """fsyncs of one step."""
    if shutil.which("strace") is None:
        yield {"peer": "duly", "error": "strace is not installed: it counts the calls"}
        return
    told = case.folder / "strace"
    command = [
        "strace",
        "-f",
        "-y",
        "-e",
        f"trace={CALLS}",
        "-o",
        str(told),
        sys.executable,
        "-m",
        "tests.bench.fsyncs",
    ]
    step = ["--step", case.name, str(case.sizes["due"]), str(case.folder)]
    subprocess.run([*command, *step], cwd=ROOT, check=True, capture_output=True)
    is_mark = [MARK in line for line in told.read_text(encoding="utf-8").splitlines() if "sync" in line]
    assert is_mark.count(True) == STEPS + 1
    counted = is_mark[is_mark.index(True) : len(is_mark) - is_mark[::-1].index(True)]
    yield {"peer": "duly", "value": counted.count(False) / STEPS, "unit": "fsyncs"}


def take_steps(kind: str, due: int, folder: Path) -> None:
    """In the traced process: the steps, with a mark before each and after the last."""
    due *= STEPS if kind.startswith("report") else 1
    scene = Scene(folder, max(due, 10), due, parallel=True)
    step = _step(kind, scene)
    with (folder / MARK).open("wb") as mark:
        os.fsync(mark.fileno())
        for number in range(STEPS):
            step(number)
            os.fsync(mark.fileno())


def _step(kind: str, scene: Scene) -> Callable[[int], object]:
    if kind == "create":
        return lambda number: scene.scheduler.create(f"new-{number}", EVERY_MINUTE, target="work")
    if kind.startswith("report"):
        scene.advance()
        started: list[int] = []
        while len(started) < scene.due:
            started.extend(run.id for run in scene.scheduler.poll(start=True).offered)
        share = scene.due // STEPS
        return lambda number: scene.scheduler.report(
            [Completed(run_id) for run_id in started[share * number : share * (number + 1)]]
        )

    def poll(number: int) -> None:
        scene.advance()
        assert len(scene.poll().decisions) == scene.due

    return poll


if __name__ == "__main__":
    if "--step" in sys.argv:
        take_steps(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    else:
        run_axis("fsyncs", measure, CASES)
