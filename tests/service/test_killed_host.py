"""A host of commands, killed at random moments: what the commands wrote down is held against the journal.

No command is begun that the journal does not hold as started and noted, none twice for one attempt, none beside another
of its schedule (although what outlives its host goes on), and nothing is lost.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

import pytest

from duly.journal import read, verify
from duly.journal.entries import (
    Entry,
    JournalOpened,
    ResumeMarked,
    RunAbandoned,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunNoted,
    RunStarted,
)
from duly.projections import replay
from duly.scheduler.accounting import account
from duly.scheduler.engine import engine_check
from tests.journal.crash_images import seeded

ROOT = Path(__file__).parent.parent.parent
KILLS = 10
TORTURE_KILLS = 100
LONGEST_LIFE = 0.5

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL is how a process dies without a word")


class Said(NamedTuple):
    """One line that a command wrote."""

    word: str
    run_id: int
    attempt_id: int | None
    schedule_id: str


def lives(folder: Path, kills: int, random: Random) -> None:
    """Starts the host again and again, and kills it; the last one ends in peace."""
    journal, log = folder / "journal", folder / "log"
    for life in range(kills + 1):
        last = life == kills
        command = [sys.executable, "-P", "-m", "tests.service.killed_host", str(journal), str(log)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        with subprocess.Popen([*command, "1" if last else "60"], cwd=ROOT, env=environment) as host:
            if last:
                assert host.wait(60) == 0
                return
            before = begun_in(log)
            deadline = time.monotonic() + 60
            while host.poll() is None and begun_in(log) == before:
                assert time.monotonic() < deadline, "the host does nothing"
                time.sleep(0.005)
            time.sleep(random.random() * LONGEST_LIFE)
            assert host.poll() is None, "the host ended by itself"
            host.kill()


def begun_in(log: Path) -> int:
    return log.read_bytes().count(b"begin") if log.exists() else 0


def said_in(folder: Path) -> list[Said]:
    lines = [line.split(" ") for line in (folder / "log").read_text(encoding="utf-8").splitlines()]
    return [Said(word, int(run), None if attempt == "-" else int(attempt), name) for word, run, attempt, name in lines]


def examine(folder: Path, kills: int) -> None:
    journal = folder / "journal"
    entries = {record.sequence: record.entry for record in read(journal)}
    said = said_in(folder)
    begun = Counter((one.run_id, one.attempt_id) for one in said if one.word == "begin")
    assert set(begun.values()) == {1}, "a command was begun twice for one attempt"
    _examine_starts(entries, said)
    _examine_results(entries, said)
    _examine_overlaps(said)
    lived = sum(isinstance(entry, JournalOpened) for entry in entries.values())
    assert kills / 2 < lived <= kills + 1  # a command that outlived one host may have begun under the eyes of the next
    state = replay(journal)
    assert not state.started, "the last host ended in peace"
    assert verify(journal).intact
    assert engine_check(journal).ok
    assert account(journal).balanced, "an occurrence was lost"


def _examine_starts(entries: dict[int, Entry], said: list[Said]) -> None:
    """Whatever has begun was started, and noted, before."""
    started: set[tuple[int, int | None]]
    started = {(entry.run_id, None) for entry in entries.values() if isinstance(entry, RunStarted)}
    started |= {(entry.run_id, sequence) for sequence, entry in entries.items() if isinstance(entry, ResumeMarked)}
    noted = {
        (entry.run_id, cast("dict[str, Any]", entry.data)["attempt"])
        for entry in entries.values()
        if isinstance(entry, RunNoted)
    }
    begun = {(one.run_id, one.attempt_id) for one in said if one.word == "begin"}
    assert begun - started == set()
    assert begun - noted == set()


def _examine_results(entries: dict[int, Entry], said: list[Said]) -> None:
    """What is complete has ended, what is interrupted has stopped; what is abandoned is never begun again."""
    words = {(one.word, one.run_id, one.attempt_id) for one in said}
    over: set[int] = set()
    for entry in entries.values():
        match entry:
            case RunCompleted():
                assert ("end", entry.run_id, entry.attempt_id) in words, f"run {entry.run_id} is complete and was not"
            case RunInterrupted():
                assert ("stop", entry.run_id, entry.attempt_id) in words
            case RunFailed():
                assert entry.error.type == "OutlivedItsHost", entry.error
            case RunStarted() | ResumeMarked():
                assert entry.run_id not in over, "what has ended is begun again"
            case _:
                pass
        if isinstance(entry, RunCompleted | RunFailed | RunAbandoned):
            over.add(entry.run_id)


def _examine_overlaps(said: list[Said]) -> None:
    """Of each schedule one command at a time: the lines of one are never within those of another."""
    at_work: dict[str, tuple[int, int | None]] = {}
    for one in said:
        mine = (one.run_id, one.attempt_id)
        if one.word == "begin":
            assert one.schedule_id not in at_work, f"{mine} began while {at_work[one.schedule_id]} was at work"
            at_work[one.schedule_id] = mine
        else:
            assert at_work.pop(one.schedule_id) == mine


def test_a_host_of_commands_that_is_killed_begins_nothing_twice_and_loses_nothing(tmp_path: Path):
    lives(tmp_path, KILLS, seeded("ten killed hosts"))
    examine(tmp_path, KILLS)


@pytest.mark.torture
def test_a_host_of_commands_that_is_killed_a_hundred_times_begins_nothing_twice_and_loses_nothing(tmp_path: Path):
    lives(tmp_path, TORTURE_KILLS, seeded("a hundred killed hosts"))
    examine(tmp_path, TORTURE_KILLS)
