"""Runs histories by their seeds: `python -m tests.simulation.campaign SEED [COUNT]`.

Rules: a history that breaks a promise raises `Broken`, whose text is its timeline, the promise, and how to repeat it.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Iterable

from tests.simulation.ending import conclude
from tests.simulation.machine import one_machine
from tests.simulation.world import World


class Broken(Exception):
    """A seed under which a promise does not hold."""


def run(seed: int, *, calm: bool = False) -> World:
    """One history, from nothing to its last check."""
    world: World | None = None
    with one_machine(seed):
        try:
            world = World(seed, calm=calm)
            for _ in range(world.random.randrange(30, 80)):
                world.step()
            conclude(world)
        except Exception as error:
            told = "" if world is None else str(world.story)
            place = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})"
            raise Broken(f"{told}\n# seed {seed}: {reason}") from error
    return world


def run_all(seeds: Iterable[int]) -> None:
    """All of these, one after the other; raises at the first that fails."""
    for seed in seeds:
        run(seed)


def main(first: int, count: int = 1) -> int:
    """Runs `count` seeds from `first` on, says how fast, and prints what failed."""
    began = time.process_time()
    failed: list[int] = []
    for seed in range(first, first + count):
        try:
            run(seed)
        except Broken as broken:
            failed.append(seed)
            sys.stdout.write(f"{broken}\n" if len(failed) <= 3 or count == 1 else f"{str(broken).splitlines()[-1]}\n")
            if count == 1:
                traceback.print_exc()
    seconds = time.process_time() - began
    speed = f"{count / seconds:.1f} seeds per second of one core"
    sys.stdout.write(f"{count} seeds, {len(failed)} failed {failed[:50]}, {speed}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
