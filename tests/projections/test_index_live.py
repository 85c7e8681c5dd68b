"""Indexes beside an owner that appends, rotates, closes, fails and dies: what they find is what a reader finds."""

from __future__ import annotations

import logging

import pytest

from duly.journal.entries import Entry, RunNoted, kind_of
from duly.journal.reader import Reader
from duly.projections.indexed import IndexedJournal, NotIndexed, index_journal
from tests.journal.crash_images import seeded
from tests.journal.ledger import JOURNAL
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal.test_readers_live import Writer

NOTED = kind_of(RunNoted)


def by_reading(disk: SimulatedDisk) -> list[tuple[int, Entry]]:
    return [
        (one.sequence, one.entry) for one in Reader(JOURNAL, disk=disk).records() if isinstance(one.entry, RunNoted)
    ]


def by_index(indexes: IndexedJournal) -> list[tuple[int, Entry]]:
    return indexes.ask(lambda parts: [(one.sequence, one.entry) for one in parts.entries("", (NOTED,))])


@pytest.mark.parametrize("seed", range(6))
def test_whatever_an_owner_does_the_indexes_find_what_is_there(seed: int, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.CRITICAL, logger="duly")
    random = seeded(seed)
    writer = Writer(random)
    disk, kept = writer.disk, IndexedJournal(JOURNAL, disk=writer.disk, keep=True)
    fresh, expected = 0, by_reading(disk)
    for _ in range(60):
        writer.step()
        expected = by_reading(disk)
        assert by_index(kept) == expected
        if random.random() < 0.3:
            index_journal(JOURNAL, disk=disk)
        try:
            assert by_index(IndexedJournal(JOURNAL, disk=disk)) == expected
        except NotIndexed:
            continue
        fresh += 1
    assert fresh > 10
    assert len(expected) > 30
