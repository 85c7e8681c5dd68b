"""Explanations, histories and changes of generated histories are the same with indexes and without."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from duly.projections.indexed import IndexedJournal, entries_of_run
from duly.projections.runs import recorded_run
from duly.scheduler.audits import changes_of, occurrences_of
from duly.scheduler.errors import UnknownSchedule
from duly.scheduler.explaining import explain_all
from duly.scheduler.lookups import Record
from tests.projections.samples import at, created
from tests.projections.segmented import FIRST, PATH, index_files, indexed, segment_files, segmented
from tests.scheduler.memory_disk import MemoryDisk
from tests.scheduler.test_explained_histories import DAY, asked_about, live, record_of

KEPT_FILES = (1.0, 1.0, 0.9)
"""How many of the index files are left, by chance."""


@pytest.mark.parametrize("seed", range(18))
def test_a_generated_history_is_told_the_same_with_indexes_and_without(seed: int, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.ERROR, logger="duly")
    choose = Random(seed)  # noqa: S311 - a seed that can be repeated is the point
    history, calendars = live(seed, length=90)
    record = record_of(history)
    history.close()
    disk = MemoryDisk()
    segmented([entry for _, entry in record], disk)
    indexed(disk)
    assert len(segment_files(disk)) > 5
    for path in index_files(disk):
        if choose.random() > KEPT_FILES[seed % 3]:
            disk.remove(path)
    begin, end = min(entry.at for _, entry in record) - DAY, max(entry.at for _, entry in record) + DAY
    for schedule_id in sorted({name for name, _ in calendars}):
        mine = [found for (name, _), found in calendars.items() if name == schedule_id]
        asked = sorted({one for found in mine for one in asked_about(found, begin, end)})
        indexes = IndexedJournal(PATH, disk=disk)
        for through in (None, len(record), 2 * len(record) // 3):
            whole = [one for one in record if through is None or one[0] <= through]
            if not any(getattr(entry, "schedule_id", None) == schedule_id for _, entry in whole):
                continue
            for now in (None, history.now):
                expected = explain_all(whole, schedule_id, asked, now=now)
                assert explain_all(indexes, schedule_id, asked, now=now, through=through) == expected
        assert occurrences_of(indexes, schedule_id, now=history.now) == occurrences_of(
            record, schedule_id, now=history.now
        )
        assert changes_of(indexes, schedule_id) == changes_of(record, schedule_id)
    indexes = IndexedJournal(PATH, disk=disk)
    for sequence in range(len(record) + 2):
        assert recorded_run(entries_of_run(indexes, sequence), sequence) == recorded_run(record, sequence)


def test_an_unknown_schedule_is_refused_in_the_same_words():
    history, _ = live(1)
    record = record_of(history)
    history.close()
    disk = MemoryDisk()
    segmented([entry for _, entry in record], disk)
    indexed(disk)
    said: list[str] = []
    journals: tuple[Record, ...] = (record, IndexedJournal(PATH, disk=disk))
    for journal in journals:
        questions: tuple[Callable[[], object], ...] = (
            partial(changes_of, journal, "A"),
            partial(occurrences_of, journal, "A"),
            partial(explain_all, journal, "A", [FIRST]),
        )
        for ask in questions:
            with pytest.raises(UnknownSchedule) as refused:
                ask()
            said.append(str(refused.value))
    assert len(said) == 6
    assert len(set(said)) == 1


def test_an_id_that_was_not_there_yet_is_not_proposed():
    disk = MemoryDisk()
    segmented([created("report-2"), created("report-1")], disk)
    indexed(disk)
    told = "there is no schedule 'report-1'. The nearest: report-2."
    for journal in (IndexedJournal(PATH, disk=disk), [(1, created("report-2"))]):
        with pytest.raises(UnknownSchedule) as caught:
            explain_all(journal, "report-1", [at("09:15")], now=None, through=1)
        assert str(caught.value) == told
