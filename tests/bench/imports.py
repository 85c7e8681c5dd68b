"""What importing costs, as the difference to a bare interpreter that starts right before.

`python -m tests.bench.imports`. `duly` is the Scheduler and its cron trigger; `apscheduler` the same of APScheduler.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from statistics import median

from tests.bench.measuring import Case, Line, Measured, run_axis

CASES = [Case("import", {"times": 15})]
IMPORTS = {
    "duly": "import duly.scheduler; from duly import Scheduler, Cron",
    "duly-journal": "from duly.journal import read",
    "apscheduler": "from apscheduler.schedulers.background import BackgroundScheduler; "
    "from apscheduler.triggers.cron import CronTrigger",
}


def measure(case: Measured) -> Iterator[Line]:
    """Seconds that an import adds."""
    if find_spec("apscheduler") is None:
        raise ModuleNotFoundError("No module named 'apscheduler'")
    added: dict[str, list[float]] = {peer: [] for peer in IMPORTS}
    for number in range(case.sizes["times"] + 1):
        for peer, code in IMPORTS.items():
            bare = started("pass")
            difference = started(code) - bare
            if number:
                added[peer].append(difference)
    for peer, figures in added.items():
        yield {"peer": peer, "seconds": median(figures)}


def started(code: str) -> float:
    """Seconds from start to end of an interpreter, which finds the bytecode that an earlier one wrote."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-P", "-c", code], check=True, env=environment)
    return time.perf_counter() - begun


if __name__ == "__main__":
    run_axis("import", measure, CASES)
