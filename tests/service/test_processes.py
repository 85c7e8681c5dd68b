"""A process is known by its id and its start, by whatever this machine has to tell of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from duly.service import processes
from duly.service.processes import Process, is_alive, process_of, signal_group, wait_for_end

pytestmark = pytest.mark.skipif(os.name != "posix", reason="commands need process groups")


@pytest.fixture
def child() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)


def end(child: subprocess.Popen[bytes]) -> None:
    child.communicate(b"\n")


@pytest.mark.parametrize(
    "by_proc",
    [
        pytest.param(True, marks=pytest.mark.skipif(not processes.PROC.is_dir(), reason="this system has no /proc")),
        pytest.param(False, marks=pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps here")),
    ],
)
def test_it_is_alive_until_it_has_ended_also_before_it_is_reaped(
    child: subprocess.Popen[bytes], by_proc: bool, monkeypatch: pytest.MonkeyPatch
):
    if not by_proc:
        monkeypatch.setattr(processes, "PROC", Path("/nowhere"))
    process = process_of(child.pid)
    assert process is not None
    assert is_alive(process)
    assert not is_alive(Process(process.pid, f"{process.started} or another time"))
    assert child.stdin is not None
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_of(child.pid) is None  # a zombie has ended
    child.wait()
    assert process_of(child.pid) is None


def nothing(_pid: int) -> None:
    """What a kernel that knows no such descriptors gives."""


@pytest.mark.parametrize("told", [True, False])
def test_its_end_is_waited_for_with_and_without_the_kernels_help(
    child: subprocess.Popen[bytes], told: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(processes, "LOOK_AGAIN", 0.01)
    if not told:
        monkeypatch.setattr(processes, "_descriptor", nothing)
    process = process_of(child.pid)
    assert process is not None
    waiting = threading.Thread(target=wait_for_end, args=(process,))
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    end(child)
    waiting.join(30)
    assert not waiting.is_alive()
    wait_for_end(process)  # of one that is gone: returns at once


def test_a_signal_to_a_group_that_is_gone_is_none(child: subprocess.Popen[bytes]):
    end(child)
    signal_group(child.pid, signal.SIGTERM)
