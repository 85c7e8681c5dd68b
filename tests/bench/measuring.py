"""How a measurement is taken: each case in a process of its own, rounds as the outer loop, one JSON line per figure.

Rules kept here:
- A line has `axis`, `case`, `peer`, `round`, and a figure: `seconds`, or `value` with its `unit`. A case that fails or
  takes too long is a line too, with `error`: nothing is dropped silently.
- What is compared is measured in the same round, and where that is possible alternately in the same process: the disk
  and the other tenants of a machine change from second to second, so only ratios mean something.
- The garbage collector stays on, after one full collection, as it does in production.
- Data is written below build/bench/, on the disk that holds the checkout, never in memory: an fsync has to be one.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "build" / "bench"
TIMEOUT = 900.0
"""Seconds for one case."""

Line = dict[str, Any]


class Case(NamedTuple):
    """One case of an axis: its name, and the sizes that `--scale` makes smaller; never below 5."""

    name: str
    sizes: Mapping[str, int]


class Measured(NamedTuple):
    """What a case may use: its scaled sizes, an empty folder, and a folder that all rounds of the axis share."""

    name: str
    sizes: Mapping[str, int]
    folder: Path
    shared: Path

    def seeded(self, name: str, seed: Callable[[Path], object]) -> Path:
        """A copy of what `seed` wrote into a folder; it writes once for all rounds."""
        kept = self.shared / name
        if not kept.exists():
            made = self.shared / f"{name}.making"
            shutil.rmtree(made, ignore_errors=True)
            # In a process of its own: the memory that it needed, and gave back, would be used again unseen.
            child = multiprocessing.get_context("fork").Process(target=seed, args=(made,))
            child.start()
            child.join()
            if child.exitcode:
                raise RuntimeError(f"seeding {name} ended with {child.exitcode}")
            made.rename(kept)
        copy = self.folder / name
        shutil.copytree(kept, copy)
        os.sync()
        return copy


Measure = Callable[[Measured], Iterable[Line]]


def run_axis(axis: str, measure: Measure, cases: Sequence[Case]) -> None:
    """The main function of an axis's script."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="all sizes times this: 0.01 for a try")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--profile", action="store_true", help="cProfile of each case, on standard error")
    parser.add_argument("--here", action="store_true", help="all in this process: quick, and memory says nothing")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        for line in _measure_here(measure, json.loads(given.child)):
            print(json.dumps(line), flush=True)  # noqa: T201 - lines are its output
        return
    DATA.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{axis.replace(' ', '-')}-", dir=DATA) as shared:
        for number in range(given.rounds):
            for case in cases:
                if given.only in case.name:
                    for line in _measure_case(measure, case, given, Path(shared)):
                        told = {"axis": axis, "case": case.name, "round": number, **line}
                        print(json.dumps(told, separators=(",", ":")), flush=True)  # noqa: T201 - lines are its output


def _measure_case(measure: Measure, case: Case, given: argparse.Namespace, shared: Path) -> list[Line]:
    sizes = {name: max(round(size * given.scale), min(size, 5)) for name, size in case.sizes.items()}
    told = {"name": case.name, "sizes": sizes, "shared": str(shared), "profile": given.profile}
    if given.here:
        return list(_measure_here(measure, {**told, "folder": tempfile.mkdtemp(dir=shared)}))
    spec = sys.modules["__main__"].__spec__
    assert spec is not None, "run it as python -m tests.bench.…"
    with tempfile.TemporaryDirectory(prefix="case-", dir=shared) as folder:
        command = [sys.executable, "-m", spec.name, "--child", json.dumps({**told, "folder": folder})]
        try:
            done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return [{"peer": "duly", **sizes, "error": f"took longer than {TIMEOUT:.0f} s"}]
    if given.profile:
        sys.stderr.write(done.stderr)
    if done.returncode:
        return [{"peer": "duly", **sizes, "error": (done.stderr.strip().splitlines() or ["no output"])[-1][:300]}]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def _measure_here(measure: Measure, told: dict[str, Any]) -> Iterator[Line]:
    case = Measured(told["name"], told["sizes"], Path(told["folder"]), Path(told["shared"]))
    try:
        for line in _profiled(measure(case)) if told["profile"] else measure(case):
            yield {**case.sizes, **line}
    except ModuleNotFoundError as error:
        yield {"peer": "duly", **case.sizes, "error": f"{error}: install the extra bench"}


def _profiled(lines: Iterable[Line]) -> Iterator[Line]:
    import cProfile
    import pstats

    profile = cProfile.Profile()
    found = profile.runcall(list, lines)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(40)
    yield from found


# What a case measures with.


class Contender(NamedTuple):
    """One of those that are measured alternately: what is timed, and what goes before it untimed."""

    peer: str
    step: Callable[[], object]
    rearm: Callable[[], object] | None = None
    per: int = 1
    """How many decisions one step makes: its figure is divided by this."""


def alternate(contenders: Sequence[Contender], *, steps: int, warm: int = 1) -> list[Line]:
    """Each contender's step in turn, `steps` times: its median wall and CPU seconds."""
    walls: dict[str, list[float]] = {one.peer: [] for one in contenders}
    used: dict[str, list[float]] = {one.peer: [] for one in contenders}
    gc.collect()
    for number in range(warm + steps):
        for one in contenders:
            if one.rearm is not None:
                one.rearm()
            busy, begun = time.process_time(), time.perf_counter()
            one.step()
            wall, cpu = time.perf_counter() - begun, time.process_time() - busy
            if number >= warm:
                walls[one.peer].append(wall / one.per)
                used[one.peer].append(cpu / one.per)
    return [
        {
            "peer": one.peer,
            "seconds": median(walls[one.peer]),
            "cpu_seconds": median(used[one.peer]),
            "least": min(walls[one.peer]),
            "steps": steps,
        }
        for one in contenders
    ]


def timed(step: Callable[[], object]) -> Line:
    """Wall and CPU seconds of one call."""
    gc.collect()
    busy, begun = time.process_time(), time.perf_counter()
    step()
    return {"seconds": time.perf_counter() - begun, "cpu_seconds": time.process_time() - busy}


def resident(what: str = "VmRSS") -> int:
    """Bytes of memory of this process: now (`VmRSS`), or at most so far (`VmHWM`, which `forget_peak` resets)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"/proc/self/status has no {what}")


def forget_peak() -> None:
    """Lets `VmHWM` begin anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
