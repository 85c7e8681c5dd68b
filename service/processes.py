"""Processes, as the machine knows them: which one is alive, and when it started.

Rules: an id alone proves nothing, because ids are used again; a process is known by its id and its start, in words that
no other process of this machine, or of this boot, can have. Where that cannot be told, nothing is claimed to be alive.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

PROC: Final = Path("/proc")
LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at a foreign process, where the machine cannot tell its end by itself."""


class Process(msgspec.Struct, frozen=True):
    """One process: its id, which is its group's as well, and when it started, in the machine's own words."""

    pid: int
    started: str


def process_of(pid: int) -> Process | None:
    """The process that has this id now; None if there is none, if it has ended, or if the machine does not say."""
    started = _started(pid)
    return None if started is None else Process(pid, started)


def is_alive(process: Process) -> bool:
    """Whether this very process runs."""
    return process_of(process.pid) == process


def wait_for_end(process: Process) -> None:
    """Returns when the process, which may be of any parent, has ended."""
    descriptor = _descriptor(process.pid)
    if descriptor is None:
        while is_alive(process):
            time.sleep(LOOK_AGAIN)
        return
    try:
        if is_alive(process):  # asked again: the descriptor may be of a process that got the id since
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll()
    finally:
        os.close(descriptor)


def signal_group(group: int, number: signal.Signals) -> None:
    """Sends a signal to every process of the group; nothing if there is none."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _descriptor(pid: int) -> int | None:
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # it has ended, or the kernel is older than the interpreter
        return None


def _started(pid: int) -> str | None:
    return _started_by_proc(pid) if PROC.joinpath("self", "stat").exists() else _started_by_ps(pid)


def _started_by_proc(pid: int) -> str | None:
    try:
        stat = PROC.joinpath(str(pid), "stat").read_text(encoding="utf-8", errors="replace")
        boot = PROC.joinpath("sys", "kernel", "random", "boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    # The name of the program is in parentheses, and may hold anything: what follows begins after the last one.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in ("Z", "X") else f"{boot} {fields[18]}"


def _started_by_ps(pid: int) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - the only variable is a number
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)],  # noqa: S607 - ps is found on PATH
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"LC_ALL": "C", "TZ": "UTC"},
        )
    except OSError:
        return None
    state, _, started = done.stdout.strip().partition(" ")
    return started.strip() if started and not state.startswith("Z") else None
