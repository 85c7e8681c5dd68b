"""Appending: what is durable when, group commit, rotation."""

from __future__ import annotations

import errno
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from duly.journal import Journal, JournalError, JournalPoisoned, UnencodableEntry, read, verify
from duly.journal.format import APPEND_WINDOW
from duly.journal.mark import read_mark
from tests.journal.samples import NOW, CountingDisk, fail, fill, note, notes, segments, snapshot


def numbers(path: Path) -> list[int]:
    """The run ids in the journal, in order."""
    return [record.entry.run_id for record in read(path)]  # type: ignore[union-attr]  # they are all notes


def test_what_is_appended_is_durable_and_read_back_in_order(tmp_path: Path):
    with Journal.open(tmp_path, now=NOW) as journal:
        assert journal.recovery.created
        assert journal.append(notes(1, 2), NOW) == 1
        assert journal.append(notes(3), NOW) == 3
        assert (journal.last_sequence, journal.durable_sequence) == (3, 3)
    assert numbers(tmp_path) == [1, 2, 3]
    with Journal.open(tmp_path, now=NOW) as journal:
        assert not journal.recovery.created
        assert list(journal.entries()) == [(1, note(1)), (2, note(2)), (3, note(3))]
        assert list(journal.entries(after=2)) == [(3, note(3))]
        assert journal.append(notes(4), NOW) == 4
        assert [sequence for sequence, _ in journal.entries()] == [1, 2, 3]


def test_one_append_is_one_write_and_one_sync_however_many_entries(tmp_path: Path):
    disk = CountingDisk()
    with Journal.open(tmp_path, now=NOW, disk=disk) as journal:
        disk.calls.clear()
        journal.append(notes(*range(1000)), NOW)
        assert disk.calls == {"write": 2, "sync": 1}  # the line, and HEAD, which is not synced


def test_what_is_queued_is_not_durable_until_it_is_synced(tmp_path: Path):
    with Journal.open(tmp_path, now=NOW) as journal:
        before = segments(tmp_path)[0].read_bytes()
        assert [journal.enqueue(notes(number), NOW) for number in (1, 2, 3)] == [1, 2, 3]
        assert (journal.last_sequence, journal.durable_sequence) == (3, 0)
        assert segments(tmp_path)[0].read_bytes() == before
        journal.sync(through=1)
        assert journal.durable_sequence == 3
        journal.sync()
        with pytest.raises(ValueError, match="never queued"):
            journal.sync(through=4)


def test_a_line_says_what_was_durable_when_it_was_built(tmp_path: Path):
    with Journal.open(tmp_path, now=NOW) as journal:
        journal.append(notes(1), NOW)
        journal.enqueue(notes(2), NOW)
        journal.enqueue(notes(3), NOW)
        journal.sync()
        journal.append(notes(4), NOW)
    lines = segments(tmp_path)[0].read_bytes().split(b"\n")[1:-1]
    assert [line.split(b",")[3] for line in lines] == [b'"d":0', b'"d":1', b'"d":1', b'"d":3']


def test_sixteen_threads_share_their_syncs(tmp_path: Path):
    disk = CountingDisk()
    with Journal.open(tmp_path, now=NOW, disk=disk) as journal:
        disk.calls.clear()
        gate = threading.Barrier(16)
        seen: list[int] = []

        def report(thread: int) -> None:
            gate.wait()
            for turn in range(20):
                first = journal.append(notes(thread * 100 + turn), NOW)
                assert journal.durable_sequence >= first
                seen.append(first)

        threads = [threading.Thread(target=report, args=(thread,)) for thread in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == list(range(1, 321))
        assert disk.calls["sync"] < 320
    assert sorted(numbers(tmp_path)) == sorted(thread * 100 + turn for thread in range(16) for turn in range(20))
    assert verify(tmp_path).intact


def test_who_waits_while_one_leads_is_written_by_the_next_leader_in_one_sync(tmp_path: Path):
    disk = CountingDisk()
    leading, follow = threading.Event(), threading.Event()

    def hold(call: str) -> None:
        if call == "sync" and not leading.is_set():
            leading.set()
            assert follow.wait(10)

    with Journal.open(tmp_path, now=NOW, disk=disk) as journal:
        disk.calls.clear()
        disk.before = hold
        leader = threading.Thread(target=journal.append, args=(notes(1), NOW))
        leader.start()
        assert leading.wait(10)
        firsts = [journal.enqueue(notes(number), NOW) for number in range(2, 12)]
        followers = [threading.Thread(target=journal.sync, args=(first,)) for first in firsts]
        for thread in followers:
            thread.start()
        assert journal.durable_sequence == 0
        follow.set()
        for thread in [leader, *followers]:
            thread.join()
        assert disk.calls["sync"] == 2
        assert journal.durable_sequence == 11


def test_segments_rotate_and_each_header_seals_the_one_before(tmp_path: Path):
    fill(tmp_path, 30, segment_bytes=1500)
    found = segments(tmp_path)
    assert len(found) > 3
    assert all(path.stat().st_size <= 1500 for path in found)
    assert numbers(tmp_path) == list(range(1, 31))
    assert verify(tmp_path).segments == len(found)


def test_a_batch_larger_than_a_segment_gets_one_of_its_own(tmp_path: Path):
    with Journal.open(tmp_path, now=NOW, segment_bytes=1000) as journal:
        journal.append([note(1, "x" * 5000)], NOW)
        journal.append([note(2)], NOW)
        journal.append([note(3, "x" * 5000)], NOW)
    assert [path.name for path in segments(tmp_path)] == [
        "00000001-0000000000000001.jsonl",
        "00000002-0000000000000002.jsonl",
        "00000003-0000000000000003.jsonl",
    ]
    assert verify(tmp_path).intact


def test_several_rotations_within_one_commit_are_each_synced_before_the_next(tmp_path: Path):
    disk = CountingDisk()
    with Journal.open(tmp_path, now=NOW, segment_bytes=700, disk=disk) as journal:
        for number in range(1, 10):
            journal.enqueue([note(number, "x" * 100)], NOW)
        disk.calls.clear()
        journal.sync()
        created = disk.calls["create"]
        assert created > 2
        # Each new segment: its header, and what was written before it. And the last lines.
        assert disk.calls["sync"] == 2 * created + 1
        assert disk.calls["sync_folder"] == created
    assert numbers(tmp_path) == list(range(1, 10))


def test_rotation_goes_on_where_the_last_owner_stopped(tmp_path: Path):
    for begin in range(0, 30, 3):
        with Journal.open(tmp_path, now=NOW, segment_bytes=1000) as journal:
            for number in range(begin, begin + 3):
                journal.append(notes(number), NOW)
    assert numbers(tmp_path) == list(range(30))
    assert verify(tmp_path).intact


def test_the_window_bounds_what_is_queued_without_a_sync(tmp_path: Path):
    disk = CountingDisk()
    with Journal.open(tmp_path, now=NOW, disk=disk) as journal:
        disk.calls.clear()
        for number in range(6):
            journal.enqueue([note(number, "x" * 3_900_000)], NOW)
            assert 3_900_000 * (journal.last_sequence - journal.durable_sequence) < APPEND_WINDOW
        assert disk.calls["sync"] == 1
    assert numbers(tmp_path) == list(range(6))


def test_head_says_how_far_the_journal_is_durable(tmp_path: Path):
    disk = CountingDisk()
    with Journal.open(tmp_path, now=NOW, disk=disk) as journal:
        journal.append(notes(1, 2), NOW)
        mark = read_mark(disk, tmp_path)
        assert mark is not None
        assert (mark.journal_id, mark.sequence, mark.segment) == (journal.journal_id, 2, 1)
        assert mark.offset == segments(tmp_path)[0].stat().st_size


def test_a_head_that_cannot_be_written_warns_once_and_never_poisons(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    disk = CountingDisk()
    with Journal.open(tmp_path, now=NOW, disk=disk) as journal:
        writes = 0

        def fail_each_second(call: str) -> None:
            nonlocal writes
            writes += call == "write"
            if call == "write" and writes % 2 == 0:
                raise OSError(errno.ENOSPC, "No space left on device")

        disk.before = fail_each_second
        journal.append(notes(1), NOW)
        journal.append(notes(2), NOW)
        disk.before = lambda call: None
        journal.append(notes(3), NOW)
        assert not journal.poisoned
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'HEAD'} cannot be written ([Errno 28] No space left on device); the journal itself is fine"
    ]
    assert numbers(tmp_path) == [1, 2, 3]


def test_a_refused_entry_leaves_the_journal_as_it_was(tmp_path: Path):
    with Journal.open(tmp_path, now=NOW) as journal:
        with pytest.raises(UnencodableEntry):
            journal.append([note(1), note(2, float("nan"))], NOW)
        with pytest.raises(ValueError, match="naive"):
            journal.append(notes(1), NOW.replace(tzinfo=None))
        assert journal.last_sequence == 0
        journal.append(notes(1), NOW)
    assert numbers(tmp_path) == [1]


def test_a_foreign_writer_is_noticed_before_anything_is_written(tmp_path: Path):
    journal = Journal.open(tmp_path, now=NOW)
    journal.append(notes(1), NOW)
    with segments(tmp_path)[0].open("ab") as file:
        file.write(b"x")
    before = snapshot(tmp_path)
    with pytest.raises(JournalPoisoned, match="somebody else changed the segment"):
        journal.append(notes(2), NOW)
    journal.close()
    assert snapshot(tmp_path) == before


def test_the_owner_may_poison_it(tmp_path: Path):
    journal = Journal.open(tmp_path, now=NOW)
    journal.enqueue(notes(1), NOW)
    journal.poison("the fold raised")
    journal.poison("something later")
    with pytest.raises(JournalPoisoned, match="the fold raised"):
        journal.sync()
    journal.close()
    assert numbers(tmp_path) == []


def test_close_makes_durable_what_is_queued_and_may_be_repeated(tmp_path: Path):
    journal = Journal.open(tmp_path, now=NOW)
    journal.enqueue(notes(1), NOW)
    journal.close()
    journal.close()
    assert numbers(tmp_path) == [1]
    with pytest.raises(JournalError, match="closed"):
        journal.append(notes(2), NOW)


def test_close_raises_nothing_when_the_last_sync_fails(tmp_path: Path):
    disk = CountingDisk()
    journal = Journal.open(tmp_path, now=NOW, disk=disk)
    journal.enqueue(notes(1), NOW)
    disk.before = fail("sync")
    journal.close()
    assert journal.poisoned
    Journal.open(tmp_path, now=NOW).close()


def test_a_full_disk_poisons_and_the_journal_opens_again_once_there_is_space(tmp_path: Path):
    disk = CountingDisk()
    journal = Journal.open(tmp_path, now=NOW, disk=disk, segment_bytes=400)
    journal.append(notes(1), NOW)
    disk.before = fail("create", errno.ENOSPC)
    with pytest.raises(JournalPoisoned, match="No space left"):
        journal.append(notes(2), NOW)
    journal.close()
    disk.before = lambda call: None
    with Journal.open(tmp_path, now=NOW, disk=disk) as journal:
        assert journal.append(notes(2), NOW) == 2
    assert numbers(tmp_path) == [1, 2]


def test_the_rotation_is_poisoned_by_a_segment_that_somebody_else_made(tmp_path: Path):
    journal = Journal.open(tmp_path, now=NOW, segment_bytes=400)
    journal.append(notes(1), NOW)
    (tmp_path / "00000002-0000000000000002.jsonl").write_bytes(b"")
    with pytest.raises(JournalPoisoned, match="File exists"):
        journal.append(notes(2), NOW)
    journal.close()


def test_the_rotation_is_poisoned_by_a_segment_that_appeared_meanwhile(tmp_path: Path):
    disk = CountingDisk()
    journal = Journal.open(tmp_path, now=NOW, segment_bytes=400, disk=disk)
    journal.append(notes(1), NOW)

    def make_another(call: str) -> None:
        if call == "sync_folder":
            (tmp_path / "00000003-0000000000000003.jsonl").write_bytes(b"")

    disk.before = make_another
    with pytest.raises(JournalPoisoned, match="somebody else made a segment"):
        journal.append(notes(2), NOW)
    journal.close()


def test_a_naive_now_is_refused_before_anything_is_made(tmp_path: Path):
    with pytest.raises(ValueError, match="naive"):
        Journal.open(tmp_path / "journal", now=NOW.replace(tzinfo=None))
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_waited_for_in_counted_pauses(tmp_path: Path):
    journal = Journal.open(tmp_path, now=NOW)
    pauses: list[float] = []

    def leave_at_the_third(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            journal.close()

    Journal.open(tmp_path, now=NOW, lock_timeout=timedelta(seconds=1), sleep=leave_at_the_third).close()
    assert pauses == [0.05, 0.05, 0.05]
