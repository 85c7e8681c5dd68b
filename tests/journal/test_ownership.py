"""One owner, whatever happens."""

from __future__ import annotations

import errno
import os
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from duly.journal import (
    ForeignJournal,
    Journal,
    JournalError,
    JournalLocked,
    JournalPoisoned,
    LockUnsupported,
    RealDisk,
    UnreadableJournal,
    read,
    verify,
)
from duly.journal.ownership import CLAIMS
from tests.journal.samples import NOW, CountingDisk, fill, note, notes, opened, segments, snapshot

posix = pytest.mark.skipif(os.name != "posix", reason="flock and fork are POSIX")


def open_it(path: Path, disk: RealDisk | None = None) -> Journal:
    return Journal.open(path, now=NOW, disk=disk)


def test_a_second_handle_in_the_process_is_refused(tmp_path: Path):
    with open_it(tmp_path / "journal"), pytest.raises(JournalLocked, match="this process owns the journal already"):
        open_it(tmp_path / "journal")
    open_it(tmp_path / "journal").close()


def test_a_second_handle_of_another_thread_is_refused(tmp_path: Path):
    refused: list[JournalLocked] = []

    def take() -> None:
        try:
            open_it(tmp_path)
        except JournalLocked as error:
            refused.append(error)

    with open_it(tmp_path):
        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
    assert len(refused) == 1


def test_of_many_threads_that_open_it_at_once_one_becomes_the_owner(tmp_path: Path):
    gate = threading.Barrier(8)
    owners: list[Journal] = []
    refused: list[JournalLocked] = []

    def take() -> None:
        gate.wait()
        try:
            owners.append(open_it(tmp_path / "journal"))
        except JournalLocked as error:
            refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(owners), len(refused)) == (1, 7)
    owners[0].close()


@posix
def test_a_symbolic_link_to_the_folder_is_the_same_journal(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "journal")
    with open_it(tmp_path / "journal"), pytest.raises(JournalLocked):
        open_it(tmp_path / "link")
    with open_it(tmp_path / "link") as journal:
        assert journal.path == tmp_path / "journal"


@posix
def test_a_folder_of_hard_links_is_the_same_journal(tmp_path: Path):
    with open_it(tmp_path / "journal") as journal:
        journal.append(notes(1), NOW)
        (tmp_path / "copy").mkdir()
        for path in (tmp_path / "journal").iterdir():
            os.link(path, tmp_path / "copy" / path.name)
        with pytest.raises(JournalLocked):
            open_it(tmp_path / "copy")
        (tmp_path / "copy" / "LOCK").unlink()
        with pytest.raises(JournalLocked, match="LOCK was deleted"):
            open_it(tmp_path / "copy")


@posix
def test_a_renamed_folder_is_the_same_journal_and_its_owner_writes_no_more(tmp_path: Path):
    journal = open_it(tmp_path / "journal")
    journal.append(notes(1), NOW)
    (tmp_path / "journal").rename(tmp_path / "moved")
    with pytest.raises(JournalLocked):
        open_it(tmp_path / "moved")
    before = snapshot(tmp_path / "moved")
    with pytest.raises(JournalPoisoned, match="moved or deleted"):
        journal.append(notes(2), NOW)
    journal.close()
    assert snapshot(tmp_path / "moved") == before
    with open_it(tmp_path / "moved") as again:
        assert len(list(again.entries())) == 1


@posix
def test_a_new_journal_in_the_old_place_is_another_one(tmp_path: Path):
    old = open_it(tmp_path / "journal")
    (tmp_path / "journal").rename(tmp_path / "moved")
    with open_it(tmp_path / "journal") as new:
        with pytest.raises(JournalPoisoned, match="moved or deleted"):
            old.append(notes(1), NOW)
        new.append(notes(1), NOW)
    old.close()


def test_a_journal_inside_another_or_around_it_is_refused(tmp_path: Path):
    fill(tmp_path / "outer", 1)
    before = snapshot(tmp_path)
    with pytest.raises(ForeignJournal, match="overlaps the journal"):
        open_it(tmp_path / "outer" / "inner")
    with pytest.raises(ForeignJournal, match="overlaps the journal"):
        open_it(tmp_path / "outer" / "deep" / "inner")
    assert snapshot(tmp_path) == before
    assert sorted(path.name for path in (tmp_path / "outer").iterdir()) == sorted(
        ["00000001-0000000000000001.jsonl", "HEAD", "LOCK"]
    )
    (tmp_path / "around").mkdir()
    fill(tmp_path / "around" / "inner.d", 1)
    with pytest.raises(ForeignJournal, match="overlaps the journal"):
        open_it(tmp_path / "around")


@posix
def test_after_lock_was_deleted_there_is_still_no_second_owner_and_the_first_goes_on(tmp_path: Path):
    with open_it(tmp_path) as journal:
        journal.append(notes(1), NOW)
        (tmp_path / "LOCK").unlink()
        CLAIMS.forget()  # as another process, which has a registry of its own
        with pytest.raises(JournalLocked, match="LOCK was deleted"):
            open_it(tmp_path)
        journal.append(notes(2), NOW)
    assert len(list(read(tmp_path))) == 2


@posix
def test_nor_is_there_one_across_a_rotation(tmp_path: Path):
    disk = CountingDisk()
    refused: list[str] = []
    owned: list[Journal] = []

    def take(call: str) -> None:
        disk.before = lambda call: None
        CLAIMS.forget()
        try:
            owned.append(open_it(tmp_path))
        except JournalLocked:
            refused.append(call)
        disk.before = take

    with Journal.open(tmp_path, now=NOW, disk=disk, segment_bytes=500) as journal:
        (tmp_path / "LOCK").unlink()
        disk.before = take
        for number in range(6):
            journal.append(notes(number), NOW)
        disk.before = lambda call: None
    assert len(segments(tmp_path)) > 2
    assert len(refused) > 20
    assert owned == []
    assert [record.entry for record in read(tmp_path)] == notes(*range(6))


@posix
def test_a_segment_that_appears_while_the_last_one_is_locked_has_an_owner(tmp_path: Path):
    fill(tmp_path, 1)
    disk = CountingDisk()
    locks = 0

    def rotate(call: str) -> None:
        nonlocal locks
        locks += call == "lock"
        if locks == 3:  # after LOCK, and the proof that a second descriptor is refused
            (tmp_path / "00000002-0000000000000002.jsonl").touch()

    disk.before = rotate
    with pytest.raises(JournalLocked, match="somebody else is writing the journal"):
        open_it(tmp_path, disk)


@posix
def test_a_lock_that_was_replaced_keeps_nobody_s_promise(tmp_path: Path):
    with open_it(tmp_path) as journal:
        (tmp_path / "LOCK").unlink()
        (tmp_path / "LOCK").write_bytes(b"")
        CLAIMS.forget()
        with pytest.raises(JournalLocked):
            open_it(tmp_path)
        journal.append(notes(1), NOW)


def test_without_segment_locks_a_vanished_lock_ends_the_owner(tmp_path: Path):
    disk = CountingDisk()
    disk.locks_segments = False
    journal = open_it(tmp_path, disk)
    (tmp_path / "LOCK").unlink()
    with pytest.raises(JournalPoisoned, match="LOCK was deleted while the journal was open"):
        journal.append(notes(1), NOW)
    journal.close()


def test_whatever_stands_in_lock_is_of_no_importance(tmp_path: Path):
    fill(tmp_path, 1)
    (tmp_path / "LOCK").write_bytes(b"12345 some.host\xff\n" * 1000)
    with open_it(tmp_path) as journal:
        journal.append(notes(2), NOW)


@posix
@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_a_lock_that_is_no_plain_file_is_refused(tmp_path: Path, kind: str):
    fill(tmp_path / "journal", 1)
    lock = tmp_path / "journal" / "LOCK"
    lock.unlink()
    if kind == "link":
        (tmp_path / "elsewhere").write_bytes(b"")
        lock.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        lock.mkdir()
    else:
        os.mkfifo(lock)
    with pytest.raises(UnreadableJournal, match="lock file cannot be opened"):
        open_it(tmp_path / "journal")


def test_a_lock_that_is_granted_twice_is_no_lock(tmp_path: Path):
    class Generous(RealDisk):
        def lock(self, file: int) -> bool:
            return True

    with pytest.raises(LockUnsupported, match="second lock on the same file was granted too"):
        open_it(tmp_path, Generous())
    open_it(tmp_path).close()


def test_a_file_system_without_locks_is_refused(tmp_path: Path):
    class Lockless(RealDisk):
        def lock(self, file: int) -> bool:
            raise OSError(errno.ENOLCK, "No locks available")

    with pytest.raises(LockUnsupported, match="No locks available"):
        open_it(tmp_path, Lockless())


@posix
def test_portalocker_s_lockf_is_not_used_even_where_it_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import fcntl

    import portalocker.portalocker

    monkeypatch.setattr(portalocker.portalocker, "LOCKER", fcntl.lockf)
    if not hasattr(portalocker.portalocker, "FlockLocker"):  # before 4.0 nothing but the default can be had
        with pytest.raises(LockUnsupported, match="granted too"):
            open_it(tmp_path)
        return
    with open_it(tmp_path):
        CLAIMS.forget()
        with pytest.raises(JournalLocked):
            open_it(tmp_path)


def test_a_network_file_system_is_refused_before_anything_is_made(tmp_path: Path):
    class Far(RealDisk):
        def file_system(self, folder: Path) -> str:
            assert folder == tmp_path
            return "nfs4"

    with pytest.raises(LockUnsupported, match=r"network file system \(nfs4\)"):
        open_it(tmp_path / "deep" / "journal", Far())
    assert list(tmp_path.iterdir()) == []


def test_the_refusal_tells_who_owns_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with Journal.open(tmp_path, now=NOW, segment_bytes=700) as journal:
        journal.append([opened("payroll-1", 4711)], NOW)
        journal.append(notes(1), NOW)
        CLAIMS.forget()
        with pytest.raises(JournalLocked, match=r"host payroll-1, pid 4711, since 2026-01-01T09:30:00\+00:00"):
            open_it(tmp_path)


def test_missing_parents_are_made_too(tmp_path: Path):
    disk = CountingDisk()
    open_it(tmp_path / "a" / "b" / "journal", disk).close()
    assert verify(tmp_path / "a" / "b" / "journal").intact
    assert disk.calls["sync_folder"] >= 4


class ReadCountingDisk(CountingDisk):
    """Counts how many bytes are read."""

    read_bytes = 0

    def read(self, file: int, offset: int, size: int) -> bytes:
        data = super().read(file, offset, size)
        self.read_bytes += len(data)
        return data


@posix
def test_waiting_for_another_owner_reads_the_journal_once_however_often_the_lock_is_tried(tmp_path: Path):
    pauses: list[float] = []
    disk = ReadCountingDisk()
    with open_it(tmp_path) as journal:
        journal.append([opened("payroll-1", 4711)], NOW)
        for number in range(100):
            journal.enqueue(notes(*range(number * 100, number * 100 + 100)), NOW)
        journal.sync()
        CLAIMS.forget()  # as it is in another process
        with pytest.raises(JournalLocked, match=r"another process owns the journal \(host payroll-1, pid 4711"):
            Journal.open(tmp_path, disk=disk, lock_timeout=timedelta(seconds=10), sleep=pauses.append)
    assert len(pauses) == 200
    size = segments(tmp_path)[0].stat().st_size
    assert size > 500_000
    assert disk.read_bytes < 1.5 * size


@posix
def test_the_present_owner_is_told_without_reading_what_came_before_it(tmp_path: Path):
    disk = ReadCountingDisk()
    with open_it(tmp_path) as journal:
        for number in range(400):
            journal.enqueue(notes(*range(number * 100, number * 100 + 100)), NOW)
        journal.append([opened("payroll-1", 4711)], NOW)
        journal.append([note(1, {"kind": "JournalOpened", "host": "nobody"})], NOW)
        CLAIMS.forget()
        with pytest.raises(JournalLocked, match=r"host payroll-1, pid 4711"):
            open_it(tmp_path, disk)
    assert disk.read_bytes < segments(tmp_path)[0].stat().st_size / 2


@posix
@pytest.mark.parametrize("size", [0, 1, 10, 256 * 1024 - 600, 256 * 1024 - 400, 256 * 1024 - 380, 600 * 1024])
def test_the_owner_is_found_wherever_its_entry_stands(size: int, tmp_path: Path):
    with open_it(tmp_path) as journal:
        journal.append([opened("before", 1)], NOW)
        journal.append([opened("payroll-1", 4711)], NOW)
        if size:
            journal.append([note(1, "x" * size)], NOW)
        CLAIMS.forget()
        with pytest.raises(JournalLocked, match=r"host payroll-1, pid 4711"):
            open_it(tmp_path)


def test_every_refusal_of_the_ownership_says_what_to_do(tmp_path: Path):
    with open_it(tmp_path / "one") as journal:
        with segments(tmp_path / "one")[0].open("ab") as stranger:
            stranger.write(b"x")
        with pytest.raises(JournalPoisoned) as changed:
            journal.append(notes(1), NOW)
    with open_it(tmp_path / "two") as journal:
        (tmp_path / "two").rename(tmp_path / "three")
        with pytest.raises(JournalPoisoned) as moved:
            journal.append(notes(1), NOW)
    disk = CountingDisk()
    disk.locks_segments = False
    with open_it(tmp_path / "four", disk) as journal:
        (tmp_path / "four" / "LOCK").unlink()
        with pytest.raises(JournalPoisoned) as deleted:
            journal.append(notes(1), NOW)
    for raised in (changed, moved, deleted):
        cause = raised.value.__cause__
        assert isinstance(cause, JournalError)
        assert "open it" in cause.hint
