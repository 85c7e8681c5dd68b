"""A copy that fails leaves nothing behind, wherever the disk gives up, and takes nothing of anybody else's."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duly.journal import (
    ForeignJournal,
    Journal,
    JournalError,
    JournalLocked,
    RealDisk,
    UnreadableJournal,
    salvage,
    verify,
)
from duly.journal.making import new_journal, nothing_left
from tests.journal.samples import NOW, fill, note

WRITING = ("make_folder", "create", "write", "sync", "sync_folder")


class Failing(RealDisk):
    """Fails at one of the calls that need room, and from then on at every other one, as a full disk does."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at
        for name in WRITING:
            setattr(self, name, self._counted(getattr(self, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return call(*arguments, **options)

        return counted


def test_a_salvage_that_finds_no_room_leaves_nothing_and_can_be_repeated(tmp_path: Path):
    fill(tmp_path / "old", 20, each=2)
    failed = 0
    told: set[tuple[str, str]] = set()
    for at in range(100):
        try:
            salvage(tmp_path / "old", tmp_path / "new", NOW, target=Failing(at))
        except JournalError as error:
            failed += 1
            assert not (tmp_path / "new").exists(), f"after a failure at call {at}"
            told.add((error.message, error.hint.partition(": ")[2]))
        else:
            break
    assert failed > 8
    assert told == {("the copy cannot be written: [Errno 28] No space left on device", "nothing was left there")}
    assert verify(tmp_path / "new").entries == 40


def test_a_failure_to_read_the_original_is_told_of_the_original(tmp_path: Path):
    fill(tmp_path / "old", 2)
    with pytest.raises(UnreadableJournal, match="old"), new_journal(RealDisk(), tmp_path / "new", NOW):
        raise UnreadableJournal("it cannot be read", path=tmp_path / "old", hint="") from OSError(errno.EIO, "bad")
    assert not (tmp_path / "new").exists()


def test_an_empty_folder_that_was_there_stays(tmp_path: Path):
    fill(tmp_path / "old", 2)
    (tmp_path / "new").mkdir()
    for at in (2, 4, 8):
        with pytest.raises(JournalError):
            salvage(tmp_path / "old", tmp_path / "new", NOW, target=Failing(at))
        assert list((tmp_path / "new").iterdir()) == []


def test_an_interrupt_in_the_middle_leaves_nothing(tmp_path: Path):
    def copy_and_be_interrupted() -> None:
        with new_journal(RealDisk(), tmp_path / "new", NOW) as journal:
            journal.append([note(1)], NOW)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_and_be_interrupted()
    assert not (tmp_path / "new").exists()


def test_what_is_there_is_refused_and_stays(tmp_path: Path):
    fill(tmp_path / "new", 2)
    before = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    with pytest.raises(ForeignJournal, match="not empty"), new_journal(RealDisk(), tmp_path / "new", NOW):
        raise AssertionError
    assert {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()} == before


def test_a_journal_that_somebody_else_begins_meanwhile_is_not_removed(tmp_path: Path):
    folder = tmp_path / "new"
    other: list[Journal] = []

    def come_too_late() -> None:
        with nothing_left(RealDisk(), folder):
            other.append(Journal.open(folder, now=NOW))
            Journal.open(folder, now=NOW)

    def fail_beside_entries() -> None:
        with nothing_left(RealDisk(), tmp_path / "another"):
            with Journal.open(tmp_path / "another", now=NOW) as journal:
                journal.append([note(1)], NOW)
            raise OSError(errno.ENOSPC, "full")

    with pytest.raises(JournalLocked):
        come_too_late()
    other[0].append([note(1)], NOW)
    with pytest.raises(OSError, match="full"):
        fail_beside_entries()
    other[0].close()
    assert verify(folder).entries == 1
    assert (tmp_path / "another" / "HEAD").exists()


def test_a_journal_that_cannot_be_begun_leaves_no_empty_files(tmp_path: Path):
    folder = tmp_path / "new"
    for at in range(100):
        try:
            with nothing_left(RealDisk(), folder):
                Journal.open(folder, now=NOW, disk=Failing(at)).close()
        except JournalError:
            assert not folder.exists(), f"after a failure at call {at}"
        else:
            break
    assert folder.exists()
