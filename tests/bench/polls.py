"""Polls, durable: idle, and with a thousand due, at a thousand and at a million schedules; and how many
function calls a poll takes, which no noise can blur.

`python -m tests.bench.polls`. Beside APScheduler they are measured by the adapter, on the axis P1.
"""

from __future__ import annotations

import cProfile
from collections.abc import Iterator

from tests.bench.measuring import Case, Contender, Line, Measured, alternate, run_axis
from tests.bench.scenes import SCENES, Scene

CASES = [
    *(
        Case(f"{due} due, {size}", {"schedules": schedules, "due": due})
        for size, schedules in (("small", 1_000), ("large", 1_000_000))
        for due in (0, 1000)
    ),
    Case("calls, small", {"schedules": 1_000, "due": 10}),
    Case("calls, large", {"schedules": 100_000, "due": 10}),
]


def measure(case: Measured) -> Iterator[Line]:
    """Seconds of a poll, or its calls."""
    schedules = max(case.sizes["schedules"], case.sizes["due"])
    if case.name.startswith("calls"):
        yield {"peer": "duly", "value": calls(Scene(case.folder, schedules, case.sizes["due"])), "unit": "calls"}
        return
    for peer, scene_of in SCENES.items():
        if not case.sizes["due"] and peer != "duly":
            continue
        folder = case.folder / peer
        folder.mkdir()
        scene = scene_of(folder, schedules, case.sizes["due"])
        scene.rearm()
        decided = len(scene.poll().decisions)
        [line] = alternate([Contender(peer, scene.poll, scene.rearm)], steps=20 if case.sizes["due"] else 100)
        scene.scheduler.close()
        del scene
        yield {**line, "decisions": decided}


def calls(scene: Scene) -> int:
    """How many functions one poll calls, the second of two."""
    scene.rearm()
    scene.poll()
    scene.rearm()
    profile = cProfile.Profile()
    profile.runcall(scene.poll)
    return sum(entry.callcount for entry in profile.getstats())


if __name__ == "__main__":
    run_axis("polls", measure, CASES)
