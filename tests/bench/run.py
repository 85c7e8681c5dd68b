"""All measurements, and then the table: what `make bench` runs.

`python -m tests.bench.run [--rounds N] [--scale F] [--peers FOLDER] [--only SCRIPT,…] [--note TEXT]
[--save FILE]`. With a folder of
peers, its scripts run too, in its own environment, into which duly must be installed; they measure duly through
tests/bench/adapter.py.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tests.bench.measuring import DATA, ROOT
from tests.bench.table import as_text, read_lines, rows, summary

OWN = (
    "fsyncs",
    "one_decision",
    "batch",
    "threads",
    "polls",
    "replays",
    "cold_start",
    "missed",
    "searches",
    "idle_memory",
    "questions",
    "imports",
)
PEER_SCRIPTS = {
    "p1_poll": "duly,apscheduler-memory,apscheduler-sqlite,floor",
    "p2_durable": "duly,raw-append,sqlite-wal-full,apscheduler-sqlite",
    "p3_recover": "duly,apscheduler-sqlite,floor",
    "p4_catchup": "duly,apscheduler-memory:one,floor-closed-form",
    "p5_memory": "duly,register:,apscheduler-memory,floor",
    "p6_calendar": "duly,croniter-next,apscheduler-next,floor-next",
    "p7_import": "duly,apscheduler",
    "p8_query": "duly,apscheduler,floor",
}
"""Which of the folder's peers run beside duly."""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--peers", type=Path, help="a folder of peer measurements")
    parser.add_argument("--only", default="", help="scripts, with commas between them")
    parser.add_argument("--note", default="", help="what else is to be known, for the page")
    parser.add_argument("--save", type=Path, default=DATA / "results.jsonl")
    given = parser.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    given.save.parent.mkdir(parents=True, exist_ok=True)
    only: set[str] = {name for name in str(given.only).split(",") if name}
    with given.save.open("w", encoding="utf-8") as saved:
        _tell(saved, json.dumps({"axis": "machine", "machine": machine(), "scale": given.scale, "note": given.note}))
        for script in OWN:
            if not only or script in only:
                command = [sys.executable, "-m", f"tests.bench.{script}"]
                command += ["--rounds", str(given.rounds), "--scale", str(given.scale)]
                _run(saved, script, command, ROOT, {})
        for script, command, settings in _peer_commands(given.peers, given.rounds) if given.peers else ():
            if not only or script in only:
                _run(saved, script, command, given.peers, settings)
    table = rows(read_lines(given.save))
    sys.stdout.write(f"{as_text(table)}\n{summary(table)}\n")
    return 0


def _peer_commands(folder: Path, rounds: int) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    python = folder.resolve().parent / "venv" / "bin" / "python"
    known = subprocess.run([str(python), "-P", "-c", "import duly.scheduler"], check=False, capture_output=True)
    if known.returncode:
        raise SystemExit(f"{python} cannot import duly: {python} -m pip install -e {ROOT}")
    settings = {"PEERS_ADAPTER": str(ROOT / "tests" / "bench" / "adapter.py")}
    for script, only in PEER_SCRIPTS.items():
        command = [str(python), f"{script}.py", "--full", "--rounds", str(rounds), "--timeout", "600", "--only", only]
        yield script, command, settings


def _run(saved: IO[str], name: str, command: list[str], folder: Path, settings: dict[str, str]) -> None:
    """One script, whose lines are kept as they come."""
    sys.stderr.write(f"{name} ...\n")
    running = subprocess.Popen(
        command, cwd=folder, env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=None, text=True
    )
    assert running.stdout is not None
    for line in running.stdout:
        if line.startswith("{"):
            _tell(saved, line.rstrip("\n"))
    if running.wait():
        _tell(saved, json.dumps({"axis": name, "error": f"ended with {running.returncode}"}))


def _tell(saved: IO[str], line: str) -> None:
    saved.write(f"{line}\n")
    saved.flush()


def machine() -> str:
    """The machine in words: no name of it, and no path."""
    status = Path("/proc/cpuinfo")
    models = {
        line.partition(":")[2].strip()
        for line in (status.read_text(encoding="utf-8").splitlines() if status.exists() else ())
        if line.startswith("model name")
    }
    model = next(iter(models), platform.machine())
    strace = "" if shutil.which("strace") else ", without strace"
    return (
        f"{os.cpu_count()} cores ({model}), {_disk()}, {platform.system()}, "
        f"{platform.python_implementation()} {platform.python_version()}{strace}"
    )


def _disk() -> str:
    """The kind of file system and of disk that the data is on."""
    from duly.journal import RealDisk

    kind = RealDisk().file_system(DATA) or "an unknown file system"
    device = os.stat(DATA).st_dev  # noqa: PTH116 - the number is all that is asked
    rotates = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/queue/rotational")
    if not rotates.exists():
        return kind
    turning = rotates.read_text(encoding="ascii").strip() == "1"
    return f"{kind} on a {'disk that says it rotates (as a virtual one does)' if turning else 'solid-state disk'}"


if __name__ == "__main__":
    sys.exit(main())
