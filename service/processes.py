"""Processes, as the machine knows them: which one is alive, and when it started.

Rules: an id alone proves nothing, because ids are used again; a process is known by its id and its start, in words that
no other process of this machine, or of this boot, can have; that is asked right before each signal. Where it cannot be
told, nothing is claimed to be alive.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from datetime import UTC, datetime
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


def age_of(process: Process) -> float:
    """Seconds since it began, by the machine's own record and not by a clock that is set; 0 if there is no telling."""
    try:
        if PROC.joinpath("self", "stat").exists():
            ticks = int(process.started.rpartition(" ")[2])
            return max(time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"), 0.0)
        began = datetime.strptime(process.started, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError:
        return 0.0
    return max((datetime.now(UTC) - began).total_seconds(), 0.0)


def wait_for_end(process: Process, left: int | None = None) -> bool:
    """Waits until the process, which may be of any parent, has ended, or `left`, a descriptor, can be read; whether it
    has ended."""
    descriptor = _descriptor(process.pid)
    waiting = select.poll()
    for one in (descriptor, left):
        if one is not None:
            waiting.register(one, select.POLLIN)
    try:
        while _seems_alive(process):  # asked now: the descriptor may be of a process that got the id since
            told = [one for one, _ in waiting.poll(LOOK_AGAIN * 1000 if descriptor is None else None)]
            if left in told:
                return False
            if descriptor in told:
                break
        return True
    finally:
        if descriptor is not None:
            os.close(descriptor)


def signal_group(group: int, number: signal.Signals) -> None:
    """Sends a signal to every process of the group; nothing if there is none."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def is_group_alive(group: int) -> bool:
    """Whether there is a process in the group."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # there is one, and it is another user's
        pass
    return True


def signal_group_of(process: Process, number: signal.Signals) -> None:
    """The same to its group, if it is alive."""
    if is_alive(process):
        signal_group(process.pid, number)


def end_group_after(process: Process) -> None:
    """SIGKILL to what a process that has ended left in its group: no other gets the id while one of them lives."""
    if process_of(process.pid) is None:
        signal_group(process.pid, signal.SIGKILL)


def _seems_alive(process: Process) -> bool:
    try:
        return is_alive(process)
    except OSError:  # the machine is short of something, and has not said no
        return True


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
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name of the program is in parentheses, and may hold anything: what follows begins after the last one.
    state, *fields = stat.rpartition(")")[2].split()
    # A process whose first thread has ended looks like one that has ended, but for the number of its threads.
    ended = state == "X" or (state == "Z" and int(fields[16]) <= 1)
    return None if ended else f"{boot} {fields[18]}"


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
