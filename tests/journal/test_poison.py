"""After a failure nothing is written, repeated or believed: the journal is poisoned, and whoever waits is told."""

# pyright: reportPrivateUsage=false
# (what an interruption leaves behind can only be had from inside)

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from duly.journal import Journal, JournalPoisoned, read
from tests.journal.samples import NOW, CountingDisk, fail, notes


def numbers(path: Path) -> list[int]:
    """The run ids in the journal, in order."""
    return [record.entry.run_id for record in read(path)]  # type: ignore[union-attr]  # they are all notes


@pytest.mark.parametrize("call", ["write", "sync"])
def test_a_failed_write_or_sync_poisons_for_good_and_nothing_is_written_after_it(tmp_path: Path, call: str):
    disk = CountingDisk()
    journal = Journal.open(tmp_path, now=NOW, disk=disk)
    journal.append(notes(1), NOW)
    disk.before = fail(call)
    with pytest.raises(JournalPoisoned, match="indeterminate") as failure:
        journal.append(notes(2), NOW)
    assert isinstance(failure.value.__cause__, OSError)
    assert journal.poisoned
    assert journal.durable_sequence == 1
    disk.before = lambda call: None
    disk.calls.clear()
    for again in (journal.check, journal.sync, lambda: journal.append(notes(3), NOW)):
        with pytest.raises(JournalPoisoned):
            again()
    journal.sync(through=1)
    journal.close()
    assert disk.calls == {}
    with Journal.open(tmp_path, now=NOW) as journal:
        assert [entry for _, entry in journal.entries()] == notes(1) + (notes(2) if call == "sync" else [])


def test_every_waiter_of_a_failed_sync_gets_the_error(tmp_path: Path):
    disk = CountingDisk()
    journal = Journal.open(tmp_path, now=NOW, disk=disk)
    leading, go_on = threading.Event(), threading.Event()

    def fail_when_told(call: str) -> None:
        if call == "sync":
            leading.set()
            assert go_on.wait(10)
            raise OSError(errno.EIO, "Input/output error")

    disk.before = fail_when_told
    failures: list[BaseException] = []

    def append(number: int) -> None:
        try:
            journal.append(notes(number), NOW)
        except JournalPoisoned as error:
            failures.append(error)

    threads = [threading.Thread(target=append, args=(1,))]
    threads[0].start()
    assert leading.wait(10)
    threads += [threading.Thread(target=append, args=(number,)) for number in (2, 3, 4)]
    for thread in threads[1:]:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(failures) == 4
    assert disk.calls["sync"] == 2  # of the creation, and the one that failed
    journal.close()


def test_an_interruption_while_it_is_written_poisons(tmp_path: Path):
    disk = CountingDisk()
    journal = Journal.open(tmp_path, now=NOW, disk=disk)

    def interrupt(call: str) -> None:
        raise KeyboardInterrupt

    disk.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        journal.append(notes(1), NOW)
    disk.before = lambda call: None
    with pytest.raises(JournalPoisoned, match="KeyboardInterrupt"):
        journal.append(notes(2), NOW)
    journal.close()
    assert numbers(tmp_path) == []


def test_an_interruption_of_the_clean_up_itself_still_poisons_whoever_waits_and_whoever_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    disk = CountingDisk()
    journal = Journal.open(tmp_path, now=NOW, disk=disk)
    leading, go_on = threading.Event(), threading.Event()
    failures: list[str] = []
    poison = journal.poison

    def interrupt(*ignored: object) -> None:
        monkeypatch.setattr(journal, "poison", poison)
        raise KeyboardInterrupt

    def wait_and_interrupt(call: str) -> None:
        disk.before = lambda call: None
        leading.set()
        assert go_on.wait(10)
        monkeypatch.setattr(journal, "poison", interrupt)
        raise KeyboardInterrupt

    def append(number: int) -> None:
        try:
            journal.append(notes(number), NOW)
        except (KeyboardInterrupt, JournalPoisoned) as error:
            failures.append(type(error).__name__)

    disk.before = wait_and_interrupt
    leader = threading.Thread(target=append, args=(1,))
    leader.start()
    assert leading.wait(10)
    waiter = threading.Thread(target=append, args=(2,))
    waiter.start()
    while journal.last_sequence < 2:
        pass
    go_on.set()
    leader.join()
    waiter.join()
    append(3)
    journal.close()
    assert failures == ["KeyboardInterrupt", "JournalPoisoned", "JournalPoisoned"]
    assert numbers(tmp_path) == []


def test_a_leader_that_vanished_without_a_trace_poisons_whoever_comes_next(tmp_path: Path):
    journal = Journal.open(tmp_path, now=NOW)
    journal.enqueue(notes(1), NOW)
    journal._committing = True  # as an interruption between two bytecodes of its except clause leaves it
    with pytest.raises(JournalPoisoned, match="interrupted"):
        journal.sync()
    journal.close()
    other = Journal.open(tmp_path, now=NOW)
    other._committing = True
    with pytest.raises(JournalPoisoned, match="interrupted"):
        other.check()
    other.close()
