"""A host in a process of its own, killed at random moments while real work runs.

What the work wrote into its own log is held against the journal: nothing was executed that the journal does not hold
as started, nothing was executed twice for one attempt, and recovery's verdicts are right.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from duly.journal import read, verify
from duly.journal.entries import (
    Entry,
    JournalOpened,
    OccurrenceAdmitted,
    ResumeMarked,
    RunAbandoned,
    RunCompleted,
    RunInterrupted,
    RunStarted,
)
from duly.scheduler.accounting import account
from duly.scheduler.engine import engine_check
from tests.journal.crash_images import seeded
from tests.simulation.chronicle import Chronicle

ROOT = Path(__file__).parent.parent.parent
KILLS = 12
TORTURE_KILLS = 200
LONGEST_LIFE = 0.5

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL is how a process dies without a word")


class Done(NamedTuple):
    """One line of the log that the work wrote."""

    word: str
    run_id: int
    attempt_id: int | None
    occurrence_id: str


def lives(folder: Path, kills: int, random: Random) -> None:
    """Starts the host again and again, and kills it; the last one may end by itself."""
    journal, log = folder / "journal", folder / "log"
    for life in range(kills + 1):
        last = life == kills
        command = [sys.executable, "-P", "-m", "tests.scheduler.killed_host", str(journal), str(log)]
        with subprocess.Popen(
            [*command, "0.3" if last else "60", "log" if life % 2 else "none"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        ) as host:
            if last:
                assert host.wait(60) == 0
                return
            before = log.stat().st_size if log.exists() else 0
            deadline = time.monotonic() + 60
            while host.poll() is None and (not log.exists() or log.stat().st_size == before):
                assert time.monotonic() < deadline, "the host does nothing"
                time.sleep(0.005)
            time.sleep(random.random() * LONGEST_LIFE)
            assert host.poll() is None, "the host ended by itself"
            host.kill()


def done_by(folder: Path) -> list[Done]:
    found: list[Done] = []
    for line in (folder / "log").read_text(encoding="utf-8").splitlines():
        word, run_id, attempt_id, occurrence_id = line.split(" ")
        found.append(Done(word, int(run_id), int(attempt_id) or None, occurrence_id))
    return found


def examine(folder: Path, kills: int) -> None:
    """Holds the log against the journal."""
    journal = folder / "journal"
    entries = {record.sequence: record.entry for record in read(journal)}
    chronicle = Chronicle(entries.items())
    done = done_by(folder)
    begun = Counter((one.run_id, one.attempt_id) for one in done if one.word == "begin")
    occurrences = Counter(one.occurrence_id for one in done if one.word == "begin" and one.attempt_id is None)
    assert set(begun.values()) == {1}, "something was executed twice for one attempt"
    assert set(occurrences.values()) == {1}, "an occurrence was executed twice"
    for one in done:
        admitted = entries[one.run_id]
        assert isinstance(admitted, OccurrenceAdmitted)
        assert one.occurrence_id.startswith(f"{admitted.schedule_id}@{admitted.scheduled_at:%Y-%m-%dT%H:%M:%S}")
        assert ("started", one.attempt_id) in chronicle.runs[one.run_id].history, "executed and not recorded as started"
    _examine_results(list(entries.values()), done)
    assert sum(isinstance(entry, JournalOpened) for entry in entries.values()) == kills + 1
    assert not chronicle.started, "the last host ended in peace"
    found = verify(journal)
    assert found.intact
    assert engine_check(journal).ok
    assert account(journal).balanced, "an occurrence was lost"


def _examine_results(entries: list[Entry], done: list[Done]) -> None:
    """What is complete has ended, what is interrupted has stopped, and what has neither is abandoned, never retried."""
    words = {(one.word, one.run_id, one.attempt_id) for one in done}
    abandoned: set[int] = set()
    knows = False
    for entry in entries:
        match entry:
            case JournalOpened():
                knows = entry.actor == "log"
            case RunCompleted():
                assert ("end", entry.run_id, entry.attempt_id) in words, f"run {entry.run_id} is complete and was not"
            case RunInterrupted():
                assert ("stop", entry.run_id, entry.attempt_id) in words
            case RunAbandoned():
                assert entry.cause == ("crash" if entry.attempt_id is None else "ambiguous")
                finished = any((word, entry.run_id, entry.attempt_id) in words for word in ("end", "stop"))
                assert not (knows and finished), "abandoned, against the evidence"
                abandoned.add(entry.run_id)
            case RunStarted() | ResumeMarked():
                assert entry.run_id not in abandoned, "what was abandoned is begun again"
            case _:
                pass


def test_a_host_that_is_killed_again_and_again_does_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    lives(tmp_path, KILLS, seeded("kills"))
    examine(tmp_path, KILLS)


@pytest.mark.torture
def test_a_host_that_is_killed_two_hundred_times_does_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    lives(tmp_path, TORTURE_KILLS, seeded("two hundred kills"))
    examine(tmp_path, TORTURE_KILLS)
