"""Results that are reported by one thread, and by sixteen at once, which share fsyncs.

`python -m tests.bench.threads`. Both report one result a call, alternately, from the same scheduler.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from statistics import median

from duly import Scheduler
from tests.bench.measuring import Case, Line, Measured, run_axis
from tests.bench.scenes import Scene

CASES = [Case("reports", {"each": 50, "turns": 10})]
THREADS = 16


def measure(case: Measured) -> Iterator[Line]:
    """Seconds of one result."""
    each = case.sizes["each"]
    scene = Scene(case.folder, each * THREADS, each * THREADS)
    found: dict[int, list[float]] = {1: [], THREADS: []}
    for _ in range(case.sizes["turns"]):
        for threads, figures in found.items():
            scene.advance()
            runs = [run.id for run in scene.scheduler.poll(start=True).offered]
            count = each * threads
            figures.append(reported(scene.scheduler, runs[:count], threads) / count)
            reported(scene.scheduler, runs[count:], 1)
    for threads, figures in found.items():
        yield {"peer": f"duly-{threads}", "seconds": median(figures)}


def reported(scheduler: Scheduler, runs: Sequence[int], threads: int) -> float:
    """Seconds from the first report to the last."""
    shares = [runs[number::threads] for number in range(threads)]
    gate = threading.Barrier(threads + 1)

    def report(share: Sequence[int]) -> None:
        gate.wait()
        for run_id in share:
            scheduler.complete(run_id)

    working = [threading.Thread(target=report, args=(share,)) for share in shares]
    for thread in working:
        thread.start()
    gate.wait()
    begun = time.perf_counter()
    for thread in working:
        thread.join()
    return time.perf_counter() - begun


if __name__ == "__main__":
    run_axis("threads", measure, CASES)
