"""Owners in processes of their own: who holds the lock, who gets it, and when it comes free. For every platform."""

# pyright: reportPrivateUsage=false
# (a thread that is in the middle of a commit can only be had from inside)

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from duly.journal import Journal, JournalLocked, JournalPoisoned, read
from tests.journal.samples import NOW, fill, notes, opened

posix = pytest.mark.skipif(os.name != "posix", reason="fork is POSIX")

OWNER = """
import sys
from duly.journal import Journal, JournalLocked
from tests.journal.samples import NOW, notes, opened
try:
    journal = Journal.open(sys.argv[1], now=NOW)
except JournalLocked as error:
    print("locked", error, flush=True)
    sys.exit(3)
journal.append([opened("owner", 1)], NOW)
print("owned", flush=True)
for command in sys.stdin:
    if command == "append\\n":
        print(journal.append(notes(1), NOW), flush=True)
    elif command == "close\\n":
        journal.close()
        print("closed", flush=True)
    elif command == "crash\\n":
        import os
        os._exit(9)
"""


def environment(root: Path) -> dict[str, str]:
    """Ours, in which the tests can be imported too."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep),
    }


class Owner:
    """Another process that tries to own the journal."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said = self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def does(self, command: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.line()


@contextmanager
def owner(folder: Path) -> Generator[Owner]:
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env=environment(root),
    )
    try:
        yield Owner(process)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def test_a_second_process_is_refused_while_the_first_holds_it_and_told_who_that_is(tmp_path: Path):
    with owner(tmp_path) as first, owner(tmp_path) as second:
        assert first.said == "owned"
        assert second.said.startswith("locked")
        assert "host owner, pid 1" in second.said
        assert second.process.wait(20) == 3
        with pytest.raises(JournalLocked):
            Journal.open(tmp_path, now=NOW)
        assert first.does("append") == "2"


def test_the_lock_is_free_as_soon_as_the_owner_closes(tmp_path: Path):
    with owner(tmp_path) as first:
        assert first.does("close") == "closed"
        Journal.open(tmp_path, now=NOW).close()


@pytest.mark.parametrize("way", ["crash", "kill"])
def test_the_lock_is_free_at_once_when_the_owner_dies_and_nothing_acknowledged_is_lost(tmp_path: Path, way: str):
    with owner(tmp_path) as first:
        assert [first.does("append") for _ in range(3)] == ["2", "3", "4"]
        if way == "crash":
            assert first.does("crash") == ""
        else:
            first.process.kill()
        first.process.wait(20)
        with Journal.open(tmp_path, now=NOW) as journal:
            assert [entry for _, entry in journal.entries()] == [opened("owner", 1), *notes(1, 1, 1)]


def test_a_reader_needs_no_lock(tmp_path: Path):
    with owner(tmp_path) as first:
        first.does("append")
        assert [record.entry for record in read(tmp_path)] == [opened("owner", 1), *notes(1)]


@posix
def test_the_lock_is_held_by_an_owner_that_stands_still(tmp_path: Path):
    with owner(tmp_path) as first:
        first.process.send_signal(signal.SIGSTOP)
        with pytest.raises(JournalLocked):
            Journal.open(tmp_path, now=NOW)
        first.process.send_signal(signal.SIGCONT)
        assert first.does("append") == "2"


@posix
def test_a_program_that_the_owner_started_inherits_nothing_that_holds_the_lock(tmp_path: Path):
    journal = Journal.open(tmp_path, now=NOW)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False) as child:
        journal.close()
        Journal.open(tmp_path, now=NOW).close()
        assert child.poll() is None
        child.communicate(b"\n")


# After a fork. Each child ends by os._exit with what it found.


def in_child(act: Callable[[], bool]) -> int:
    """Forks; the child's exit code is 0 if `act` returned True."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if act() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@posix
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_neither_append_nor_release_the_parent_s_lock(tmp_path: Path):
    journal = Journal.open(tmp_path, now=NOW)
    journal.append(notes(1), NOW)

    def child() -> bool:
        with pytest.raises(JournalPoisoned, match="fork"):
            journal.append(notes(2), NOW)
        journal.close()
        with pytest.raises(JournalLocked, match="another process owns the journal"):
            Journal.open(tmp_path, now=NOW)
        return True

    assert in_child(child) == 0
    with owner(tmp_path) as other:
        assert other.said.startswith("locked")
    assert journal.append(notes(2), NOW) == 2
    journal.close()


@posix
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_was_forked_while_another_thread_committed_is_not_stuck(tmp_path: Path):
    journal = Journal.open(tmp_path, now=NOW)

    def child() -> bool:
        signal.alarm(20)
        with pytest.raises(JournalPoisoned):
            journal.append(notes(2), NOW)
        journal.close()
        return True

    with journal._commit_lock, journal._queue_lock:
        assert in_child(child) == 0
    journal.append(notes(1), NOW)
    journal.close()


def test_a_fork_that_went_past_python_is_noticed_by_the_process_id(tmp_path: Path):
    journal = Journal.open(tmp_path, now=NOW)
    journal._pid = -1
    with pytest.raises(JournalPoisoned, match="fork"):
        journal.append(notes(1), NOW)
    journal.close()
    assert list(read(tmp_path)) == []


@posix
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_outlives_its_parent_does_not_keep_the_lock(tmp_path: Path):
    code = """
import os, sys, time
from duly.journal import Journal
from tests.journal.samples import NOW
journal = Journal.open(sys.argv[1], now=NOW)
ready, told = os.pipe()
if os.fork() == 0:
    os.write(told, b"x")
    os.close(1)
    sys.stdin.read()
    os._exit(0)
os.read(ready, 1)
os._exit(0)
"""
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=root,
        env=environment(root),
    ) as parent:
        assert parent.wait(20) == 0
        # The child waits at its standard input until this block ends.
        Journal.open(tmp_path, now=NOW).close()


def test_a_journal_that_nobody_can_reach_any_more_is_given_up(tmp_path: Path):
    """As after an opening that was interrupted just before its caller had a name for the journal."""
    fill(tmp_path, 1)
    journal: Journal | None = Journal.open(tmp_path, now=NOW)
    gc.collect()
    with pytest.raises(JournalLocked):
        Journal.open(tmp_path, now=NOW)
    assert journal is not None
    journal = None
    gc.collect()
    Journal.open(tmp_path, now=NOW).close()
