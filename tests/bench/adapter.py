"""How duly joins a folder of peer measurements: `PEERS_ADAPTER=tests/bench/adapter.py`.

That folder drives other schedulers and the least that is possible ("floors") through its axes P1 to P8. Each of its
scripts loads this file and calls `register`; what is registered is a function of a case that builds its state untimed
and times one operation with the folder's own harness.

Rules kept here:
- Only duly's public API, durable as by default: an fsync for each poll and command.
- The clock is a ManualClock; rearming advances it and reports the runs, untimed.
- Admissions alone (`duly`) are measured beside what decides skips and supersessions, too (`duly-mixed`), and beside a
  turn of the whole loop, with the results reported and the runs started in the timed part (`duly-reports`).
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from duly import Cron, ManualClock, Scheduler  # noqa: E402 - `tests` is found by the line above
from duly.scheduler import cron  # noqa: E402 - the line above finds it
from tests.bench.scenes import EVERY_MINUTE, SCENES, START, Scene, idle, name_of, record_history  # noqa: E402 - the line above finds it

Params = dict[str, Any]
Peer = Callable[[Params], dict[str, Any]]

IMPORTS = {"duly": ("import duly.scheduler; from duly import Scheduler, Cron", "duly")}
"""P7: what is imported, and the distribution."""
if Path(sys.argv[0]).name == "p7_import.py":
    # An environment of its own, as the others have: some packages import more where more is installed.
    import_module("__main__").PIN["duly"] = [str(ROOT)]


def harness() -> Any:
    """The folder's own harness, which is on its scripts' path."""
    return import_module("common")


def scratch() -> Path:
    return Path(harness().scratch("duly"))


def poll_of(peer: str) -> Peer:
    """P1: one poll."""

    def measured(p: Params) -> dict[str, Any]:
        scene = SCENES[peer](scratch(), p["n"], p["d"])
        scene.rearm()
        decisions = len(scene.poll().decisions)
        assert decisions >= p["d"], (decisions, p)
        return {**harness().sample(scene.poll, scene.rearm), "decisions": decisions}

    measured.wants = lambda case: peer == "duly" or bool(case["d"])  # type: ignore[attr-defined]  # the folder asks it
    return measured


def batch_of(peer: str, batch: int) -> Peer:
    """P2: one poll of `batch` due schedules, one fsync; beside a raw append and fsync."""

    def measured(p: Params) -> dict[str, Any]:
        is_counted = p.get("count") is not None  # then rearming must not sync
        schedules = max(batch, 100)
        scene = (
            Scene(scratch(), schedules, batch, parallel=True)
            if is_counted
            else SCENES[peer](scratch(), schedules, batch)
        )
        rearm = scene.advance if is_counted else scene.rearm
        result: dict[str, Any] = harness().paired(p, lambda: len(scene.poll().decisions), batch, rearm=rearm)
        return result

    return measured


def recovered(p: Params) -> dict[str, Any]:
    """P3: from the constructor to the end of the first poll, with nothing due. Another process wrote the journal, and
    closed it."""
    folder = scratch()
    command = [sys.executable, __file__, json.dumps({**p, "folder": str(folder)})]
    subprocess.run(command, check=True)

    def opened() -> tuple[Any, ...]:
        clock = ManualClock(START + timedelta(seconds=1))
        scheduler = Scheduler.open(folder / "journal", clock=clock, clock_tolerance=timedelta(days=300))
        scheduler.poll()
        return scheduler.schedules() if p.get("all") else (scheduler,)

    measured: dict[str, Any] = import_module("__main__").timed(opened)
    if p.get("n"):
        measured["file_mb"] = round(sum(path.stat().st_size for path in (folder / "journal").iterdir()) / 2**20, 1)
    return measured


def recorded(p: Params) -> None:
    """P3, in the other process."""
    journal = Path(p["folder"]) / "journal"
    if p["kind"] == "log":
        record_history(journal, p["m"], p["n"])
        return
    with Scheduler.open(journal, clock=ManualClock(START)) as scheduler:
        scheduler.create_many(list(idle(0, p["m"])))


def caught_up(*, first_only: bool) -> Peer:
    """P4: the first poll after the gap, or all polls until there is nothing more."""

    def measured(p: Params) -> dict[str, Any]:
        clock = ManualClock(START)
        scheduler = Scheduler.open(scratch() / "journal", clock=clock, task_slots=p["n"])
        scheduler.create_many(
            [{"schedule_id": name_of(number), "trigger": EVERY_MINUTE, "target": "work"} for number in range(p["n"])]
        )
        clock.advance(timedelta(minutes=p["m"]))
        decisions = 0

        def go() -> None:
            nonlocal decisions
            while True:
                poll = scheduler.poll()
                decisions += len(poll.decisions)
                if first_only or not poll.more:
                    return

        busy, begun = time.process_time(), time.perf_counter()
        go()
        wall, cpu = time.perf_counter() - begun, time.process_time() - busy
        return {"seconds": wall, "cpu_seconds": cpu, "occ": p["n"] * p["m"], "decided": decisions}

    return measured


def many(count: int) -> Scheduler:
    """P5: as many schedules, registered in bulk."""
    scheduler = Scheduler.open(scratch() / "journal", clock=ManualClock(START))
    scheduler.create_many(list(idle(0, count)))
    return scheduler


def registered(*, bulk: bool) -> Peer:
    """P5: registering through the public call, one at a time or all at once; durable either way."""

    def measured(p: Params) -> dict[str, Any]:
        scheduler = many(1440)
        wanted = list(idle(1440, p["n"]))
        begun = time.perf_counter()
        if bulk:
            scheduler.create_many(wanted)
        else:
            for one in wanted:
                scheduler.create(**one)
        wall = time.perf_counter() - begun
        return {"seconds": wall, "register_us": wall / p["n"] * 1e6}

    measured.wants = lambda case: case["n"] == 100  # type: ignore[attr-defined]  # the folder asks it
    return measured


def searched(*, remembered: bool) -> Peer:
    """P6: one calendar step; what was found before is forgotten untimed, or remembered."""

    def measured(p: Params) -> dict[str, Any]:
        trigger = Cron(p["expr"], zone=p["tz"])
        steps = 5 if p["expr"] == "0 0 29 2 *" else 200
        begin = datetime.fromtimestamp(29_800_000 * 60, UTC)

        def walk() -> None:
            instant: datetime | None = begin
            for _ in range(steps):
                assert instant is not None
                instant = trigger.next_after(instant)

        forget = None if remembered else cron.next_after.cache_clear
        found = harness().sample(walk, forget, budget=0.35, most=40)
        return {"samples": [one / steps for one in found["samples"]]}

    return measured


def asked(p: Params) -> dict[str, Any]:
    """P8: a question to a running scheduler."""
    clock = ManualClock(START)
    path = scratch() / "journal"
    if p["q"] == "last100":
        # The folder's own log has ten records for each of n schedules' names, a twentieth of them in use.
        record_history(path, p["n"] // 20, p["n"] * 10)
    scheduler = Scheduler.open(path, clock=clock, clock_tolerance=timedelta(days=300))
    if p["q"] != "last100":
        scheduler.create_many(list(idle(0, p["n"])))
    one = name_of(77)
    questions: dict[str, Callable[[], object]] = {
        "next1": lambda: scheduler.next_due(one),
        "next100": scheduler.upcoming,
        "last100": lambda: scheduler.occurrences(one),
    }
    gc.collect()
    return {**harness().sample(questions[p["q"]], budget=0.8, most=200), "via": "public"}


def register(axis: str, peers: dict[str, Peer]) -> None:
    """Called by each script of the folder, with the name of its axis."""
    if axis == "P1":
        peers.update({peer: poll_of(peer) for peer in SCENES})
    elif axis == "P2":
        peers["duly-1"] = batch_of("duly", 1)
        peers.update({f"{peer}-1000": batch_of(peer, 1000) for peer in SCENES})
    elif axis == "P3":
        peers["duly"] = recovered
        every: Peer = lambda p: recovered({**p, "all": True})  # noqa: E731 - it gets a name by being registered
        every.wants = lambda case: case["kind"] == "cold"  # type: ignore[attr-defined]  # the folder asks it
        peers["duly-all"] = every
    elif axis == "P4":
        peers["duly:one"] = caught_up(first_only=False)
        peers["duly-first-poll:one"] = caught_up(first_only=True)
    elif axis == "P5":
        peers["register:duly"], peers["register:duly-bulk"] = registered(bulk=False), registered(bulk=True)
        import_module("__main__").peer("duly")(many)
        peers["duly"].wants = lambda case: case["n"] > 100  # type: ignore[attr-defined]  # the folder asks it
    elif axis == "P6":
        peers["duly-next"], peers["duly-remembered"] = searched(remembered=False), searched(remembered=True)
    elif axis == "P8":
        peers["duly"] = asked


if __name__ == "__main__":
    recorded(json.loads(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)
