"""Two processes that write the same index: one of them does, and nobody ever finds half of it."""

from __future__ import annotations

import logging

import pytest

from duly.projections.indexed import IndexedJournal
from tests.projections.segmented import PATH, segmented
from tests.projections.test_index_files import by_index, by_reading, day
from tests.scheduler.memory_disk import MemoryDisk


class TwoWriters(MemoryDisk):
    """While the first one writes an index, or between its opening and its locking, a second one does the same."""

    at = ""
    second: IndexedJournal | None = None

    def sync(self, file: int) -> None:
        self._meanwhile("sync")
        super().sync(file)

    def lock(self, file: int) -> bool:
        self._meanwhile("lock")
        return super().lock(file)

    def _meanwhile(self, call: str) -> None:
        if self.at == call and self.second is not None:
            second, self.second = self.second, None
            second.write()


@pytest.mark.parametrize("call", ["sync", "lock"])
def test_two_writers_of_an_index_leave_a_whole_one_and_no_word(call: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, logger="duly")
    disk = TwoWriters()
    segmented(list(day(0)), disk)
    first, second = (IndexedJournal(PATH, disk=disk, keep=True) for _ in range(2))
    for one in (first, second):
        one.refresh()
    disk.at, disk.second = call, second
    first.write()
    assert disk.second is None
    assert not [path for path in disk.contents() if path.suffix == ".new"]
    assert by_index(disk) == by_reading(disk)
    assert caplog.text == ""
