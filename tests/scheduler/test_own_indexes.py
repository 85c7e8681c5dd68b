"""The history that an owner keeps from question to question answers as one that is folded from the beginning."""

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import copy
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

from duly.journal.entries import Entry
from duly.projections import BadCursor, Page, Row, State
from duly.projections.history import History
from duly.projections.indexed import IndexedJournal
from duly.projections.parts import Parts
from duly.scheduler import own_indexes
from duly.scheduler.audits import occurrences_of
from duly.scheduler.own_indexes import OwnIndexes
from tests.projections.samples import admitted, created, started
from tests.projections.segmented import PATH, indexed, segmented
from tests.scheduler.memory_disk import MemoryDisk
from tests.scheduler.test_explained_histories import live, record_of

T = TypeVar("T")
Record = list[tuple[int, Entry]]
SHORT: list[Entry] = [
    created(),
    admitted("09:15"),
    started(2),
    admitted("09:30"),
    started(4),
    created("other"),
    admitted("09:45"),
    started(7),
]


class Counted(IndexedJournal):
    """An indexed journal that counts what it is asked."""

    asked = 0

    def ask(self, question: Callable[[Parts], T]) -> T:
        self.asked += 1
        return super().ask(question)


def journal_of(entries: list[Entry], *, with_indexes: bool = True) -> Counted:
    disk = MemoryDisk()
    segmented(entries, disk)
    if with_indexes:
        indexed(disk)
    return Counted(PATH, disk=disk)


def owning(monkeypatch: pytest.MonkeyPatch, journal: IndexedJournal) -> OwnIndexes:
    def the_one(path: Path, *, keep: bool) -> IndexedJournal:
        assert (path, keep) == (PATH, True)
        return journal

    monkeypatch.setattr("duly.projections.indexed.IndexedJournal", the_one)
    return OwnIndexes(PATH)


def page(own: OwnIndexes, schedule_id: str, through: int, after: str | None = None, limit: int = 1_000) -> Page:
    with own.history(schedule_id, through) as history:
        return history.page(after, limit)


def paged(own: OwnIndexes, schedule_id: str, through: int, limit: int) -> list[Row]:
    found = page(own, schedule_id, through, None, limit)
    rows = list(found.items)
    while found.next is not None:
        found = page(own, schedule_id, through, found.next, limit)
        rows += found.items
    return rows


@pytest.mark.parametrize("seed", range(12))
def test_a_kept_history_answers_as_the_whole_record_does(
    seed: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    caplog.set_level(logging.ERROR, logger="duly")
    monkeypatch.setattr(own_indexes, "MOST_KEPT", (20_000, 20_000, 12)[seed % 3])
    choose = Random(seed)  # noqa: S311 - a seed that can be repeated is the point
    generated, calendars = live(seed, length=90)
    record = record_of(generated)
    generated.close()
    journal = journal_of([entry for _, entry in record], with_indexes=seed % 4 != 3)
    own = owning(monkeypatch, journal)
    names = sorted({name for name, _ in calendars})
    born = {name: next(one for one, entry in record if getattr(entry, "schedule_id", None) == name) for name in names}
    handed_out: list[tuple[tuple[Row, ...], tuple[Row, ...]]] = []
    through = 0
    for _ in range(40):
        through = min(len(record), max(1, through + choose.choice((0, 0, 1, 2, 5, 20, -3))))
        name = choose.choice([one for one in names if born[one] <= through] or names[:1])
        if born[name] > through:
            continue
        expected = occurrences_of(record[:through], name)
        found = page(own, name, through)
        assert found == Page(expected, None)
        assert paged(own, name, through, choose.choice((1, 3, 8))) == list(expected)
        handed_out.append((found.items, tuple(map(copy, found.items))))
    assert all(now == then for now, then in handed_out)
    assert len(handed_out) > 30


def test_a_second_page_reads_nothing_and_a_later_one_what_is_new(monkeypatch: pytest.MonkeyPatch):
    journal = journal_of(SHORT)
    own = owning(monkeypatch, journal)
    assert len(paged(own, "report", 5, 1)) == 3
    assert journal.asked == 1
    folded: list[int] = []
    fold = History.apply

    def noted(self: History, sequence: int, entry: Entry) -> bool:
        folded.append(sequence)
        return fold(self, sequence, entry)

    monkeypatch.setattr(History, "apply", noted)
    assert [row.run_state for row in page(own, "report", 8).items] == [None, "started", "started", "started"]
    assert (journal.asked, folded) == (2, [7, 8])
    assert len(page(own, "other", 8).items) == 1
    assert len(page(own, "report", 8).items) == 4
    assert journal.asked == 4


def test_a_history_of_too_many_rows_is_not_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(own_indexes, "MOST_KEPT", 3)
    journal = journal_of(SHORT)
    own = owning(monkeypatch, journal)
    for through, asked in ((4, 1), (4, 1), (8, 2), (8, 3)):
        page(own, "report", through)
        assert journal.asked == asked, through


def test_a_refused_cursor_costs_nothing_that_is_kept(monkeypatch: pytest.MonkeyPatch):
    journal = journal_of(SHORT)
    own = owning(monkeypatch, journal)
    page(own, "report", 8)
    with pytest.raises(BadCursor):
        page(own, "report", 8, "x")
    monkeypatch.setattr("duly.projections.indexed.IndexedJournal", None)  # none is made anew
    page(own, "report", 8)
    assert journal.asked == 1


@pytest.mark.parametrize("broken_at", [1, 2, 4, 7])
def test_a_fold_that_is_interrupted_is_begun_anew(broken_at: int, monkeypatch: pytest.MonkeyPatch):
    own = owning(monkeypatch, journal_of(SHORT))
    if broken_at > 2:
        page(own, "report", 3)
    fold = State.apply

    def interrupted(self: State, sequence: int, entry: Entry) -> None:
        fold(self, sequence, entry)
        if sequence == broken_at:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(State, "apply", interrupted)
        with pytest.raises(KeyboardInterrupt):
            page(own, "report", 8)
    assert page(own, "report", 8).items == occurrences_of(list(enumerate(SHORT, 1)), "report")
