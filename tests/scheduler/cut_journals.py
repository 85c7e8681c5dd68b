"""Journals made of given entries, one line for each, to be cut wherever one likes and opened.

Rules: a journal is cut between any two entries, also inside what was one batch. Each opening works on a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from duly import ManualClock, Scheduler
from duly.journal import Journal, Reader
from duly.journal.entries import Entry
from duly.projections import State
from tests.scheduler.memory_disk import MemoryDisk
from tests.simulation.evidence import Memory
from tests.simulation.machine import Calendar

PATH = Path("/journal")
SOURCES = {"own": Calendar().source}


def prefixes(entries: Sequence[Entry]) -> Iterator[tuple[int, MemoryDisk]]:
    """For each number of entries, from the first on, a disk whose journal holds just so many."""
    disk = MemoryDisk()
    journal = Journal.open(PATH, now=entries[0].at, disk=disk)
    try:
        for count, entry in enumerate(entries, 1):
            journal.append([entry], entry.at)
            yield count, disk.crashed()
    finally:
        journal.close()


def journal_of(entries: Sequence[Entry]) -> MemoryDisk:
    """A disk whose journal holds these entries."""
    (*_, (_, disk)) = prefixes(entries)
    return disk


def opened(disk: MemoryDisk, clock: ManualClock, memory: Memory | None = None) -> Scheduler:
    """A Scheduler on the journal."""
    return Scheduler.open(PATH, clock=clock, disk=disk, evidence=memory, task_slots=3, sources=SOURCES)


def entries_of(disk: MemoryDisk, after: int = 0) -> list[Entry]:
    """What the journal holds beyond `after`."""
    return [record.entry for record in Reader(PATH, disk=disk).records(after)]


def replayed(entries: Iterable[Entry]) -> State:
    """The state that these entries give."""
    state = State()
    for sequence, entry in enumerate(entries, 1):
        state.apply(sequence, entry)
    return state
