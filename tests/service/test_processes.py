"""A process is known by its id and its start, by whatever this machine has to tell of it."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from duly.service import processes
from duly.service.processes import Process, age_of, is_alive, process_of, signal_group, wait_for_end

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


def test_the_end_of_another_process_with_its_id_is_not_waited_for(child: subprocess.Popen[bytes]):
    """Its id was used again before there was a descriptor, which is of the wrong one."""
    ended: list[bool] = []
    gone = Process(child.pid, "what was here before 1")
    waiting = threading.Thread(target=lambda: ended.append(wait_for_end(gone)), daemon=True)
    waiting.start()
    waiting.join(10)
    seen = list(ended)
    end(child)
    assert seen == [True]


@pytest.mark.parametrize("told", [True, False])
def test_the_waiting_can_be_ended(child: subprocess.Popen[bytes], told: bool, monkeypatch: pytest.MonkeyPatch):
    if not told:
        monkeypatch.setattr(processes, "_descriptor", nothing)
    process = process_of(child.pid)
    assert process is not None
    leaving, left = socket.socketpair()
    with left:
        leaving.close()
        assert not wait_for_end(process, left.fileno())
    end(child)


def refuse(_pid: int) -> str:
    """What a machine that is short of files says."""
    raise OSError(errno.EMFILE, "Too many open files")


def test_a_machine_that_is_short_of_files_claims_no_end(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
):
    process = process_of(child.pid)
    assert process is not None
    with monkeypatch.context() as short:
        short.setattr(processes, "_started", refuse)
        short.setattr(processes, "_descriptor", nothing)
        short.setattr(processes, "LOOK_AGAIN", 0.01)
        waiting = threading.Thread(target=wait_for_end, args=(process,))
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
    end(child)
    waiting.join(30)
    assert not waiting.is_alive()


FIRST_THREAD_ENDS = """
    import ctypes, sys, threading
    threading.Thread(target=sys.stdin.read).start()
    ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.skipif(not processes.PROC.is_dir(), reason="this system has no /proc")
def test_a_process_lives_as_long_as_any_of_its_threads():
    program = [sys.executable, "-c", textwrap.dedent(FIRST_THREAD_ENDS)]
    with subprocess.Popen(program, stdin=subprocess.PIPE) as child:
        stat = processes.PROC / str(child.pid) / "stat"
        deadline = time.monotonic() + 30
        while ") Z " not in stat.read_text(encoding="utf-8"):
            assert time.monotonic() < deadline, "its first thread does not end"
            time.sleep(0.01)
        assert process_of(child.pid) is not None
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process_of(child.pid) is None


@pytest.mark.parametrize(
    "by_proc",
    [
        pytest.param(True, marks=pytest.mark.skipif(not processes.PROC.is_dir(), reason="this system has no /proc")),
        pytest.param(False, marks=pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps here")),
    ],
)
def test_its_age_is_known(child: subprocess.Popen[bytes], by_proc: bool, monkeypatch: pytest.MonkeyPatch):
    if not by_proc:
        monkeypatch.setattr(processes, "PROC", Path("/nowhere"))
    began = time.monotonic()
    process = process_of(child.pid)
    assert process is not None
    time.sleep(1.2)
    slack = 2  # of what is told in whole seconds
    assert 0.2 < age_of(process) < time.monotonic() - began + slack
    assert age_of(Process(child.pid, "in words that nobody knows")) == 0
    end(child)
