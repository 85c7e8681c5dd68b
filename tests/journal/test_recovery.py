"""Opening after a crash: what is cut, what is kept, what is refused, and what is written again."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from duly.journal import Journal, JournalCorrupt, JournalPoisoned, TornTail, UnreadableJournal, read, verify
from duly.journal.entries import Entry
from duly.journal.format import APPEND_WINDOW, batch_body, seal, seed
from duly.journal.mark import read_mark
from tests.journal.samples import NOW, CountingDisk, fail, fill, note, notes, opened, segments, snapshot

NAME = "00000001-0000000000000001.jsonl"


def lines_of(folder: Path, *, segment: int = 0) -> list[bytes]:
    """The lines of a segment, each with its newline."""
    return segments(folder)[segment].read_bytes().splitlines(keepends=True)


def reopened(folder: Path) -> tuple[list[Entry], Journal]:
    """What the next owner finds, and its journal, closed again."""
    with Journal.open(folder, now=NOW) as journal:
        return [entry for _, entry in journal.entries()], journal


def without_head(folder: Path) -> Path:
    (folder / "HEAD").unlink()
    return segments(folder)[-1]


def refused(folder: Path, reason: str, *, offset: int | None = None, sequence: int | None = None) -> None:
    before = snapshot(folder)
    with pytest.raises(JournalCorrupt, match=reason) as refusal:
        Journal.open(folder, now=NOW)
    error = refusal.value
    assert offset is None or error.offset == offset, error
    assert sequence is None or error.sequence == sequence, error
    assert "salvage" in error.hint
    assert snapshot(folder) == before


def queued_but_unsynced(folder: Path, *numbers: int) -> None:
    """A journal in which these lines were written one by one, and the first was acknowledged, and no other."""
    with Journal.open(folder, now=NOW) as journal:
        journal.append(notes(numbers[0]), NOW)
        head = (folder / "HEAD").read_bytes()
        for number in numbers[1:]:
            journal.enqueue(notes(number), NOW)
    (folder / "HEAD").write_bytes(head)


# Torn tails.


@pytest.mark.parametrize("cut", [1, 50, 86, 150])
def test_a_line_that_was_never_acknowledged_and_is_cut_off_is_a_torn_tail(tmp_path: Path, cut: int):
    queued_but_unsynced(tmp_path, 1, 2)
    header, first, second = lines_of(tmp_path)
    segments(tmp_path)[0].write_bytes(header + first + second[:-cut])
    entries, journal = reopened(tmp_path)
    kept = f"torn/00000001-0000000000000001-{len(header + first)}.bin"
    assert entries == notes(1)
    assert journal.recovery.torn == (TornTail(NAME, len(header + first), len(second) - cut, kept),)
    assert (tmp_path / kept).read_bytes() == second[:-cut]
    assert segments(tmp_path)[0].read_bytes() == header + first


def test_a_torn_tail_is_told_again_until_something_is_appended_after_it(tmp_path: Path):
    queued_but_unsynced(tmp_path, 1, 2)
    path = segments(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-1])
    torn = reopened(tmp_path)[1].recovery.torn
    assert len(torn) == 1
    assert reopened(tmp_path)[1].recovery.torn == torn  # nobody can have recorded it yet
    with Journal.open(tmp_path, now=NOW) as journal:
        journal.append([opened()], NOW)
    assert reopened(tmp_path)[1].recovery.torn == ()


def test_two_torn_tails_at_one_place_are_both_kept(tmp_path: Path):
    queued_but_unsynced(tmp_path, 1, 2)
    path = segments(tmp_path)[0]
    whole = path.read_bytes()
    for tail in (b"first garbage", b"second garbage"):
        path.write_bytes(whole[: -len(lines_of(tmp_path)[-1])] + tail if tail[:1] == b"f" else path.read_bytes() + tail)
        reopened(tmp_path)
    assert [copy.read_bytes() for copy in sorted((tmp_path / "torn").iterdir())] == [
        b"second garbage",
        b"first garbage",
    ]
    assert len(reopened(tmp_path)[1].recovery.torn) == 2


def test_a_torn_line_with_whole_lines_after_it_is_torn_if_none_of_them_proves_it(tmp_path: Path):
    """Unsynced pages reach the disk in any order: 3 and 4 did, 2 did not, and none was acknowledged."""
    queued_but_unsynced(tmp_path, 1, 2, 3, 4)
    header, first, second, third, fourth = lines_of(tmp_path)
    hole = bytes(len(second))
    segments(tmp_path)[0].write_bytes(header + first + hole + third + fourth)
    entries, journal = reopened(tmp_path)
    assert entries == notes(1)
    assert journal.recovery.torn[0].size == len(hole + third + fourth)


def test_the_longest_torn_tail_is_one_append_window(tmp_path: Path):
    fill(tmp_path, 1)
    path = segments(tmp_path)[0]
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(APPEND_WINDOW + 1))
    refused(tmp_path, "more than a torn tail can be", offset=len(whole), sequence=2)
    path.write_bytes(whole + bytes(APPEND_WINDOW))
    assert reopened(tmp_path)[1].recovery.torn[0].size == APPEND_WINDOW


# Corruption.


def test_damage_to_what_head_vouches_for_is_refused(tmp_path: Path):
    fill(tmp_path, 3)
    path = segments(tmp_path)[0]
    header, first, second, third = lines_of(tmp_path)
    path.write_bytes(header + first + second + third[:-1])
    refused(tmp_path, "the line has no end, and entries up to 3 were acknowledged", sequence=3)
    path.write_bytes(header + first + b"x" + second[1:] + third)
    refused(tmp_path, "checksum does not fit", offset=len(header + first), sequence=2)
    path.write_bytes(header + first + second)
    refused(tmp_path, "the journal ends before sequence 3, but entries up to 3 were acknowledged")
    path.write_bytes(header)
    refused(tmp_path, "the journal ends before sequence 1")


def test_damage_to_what_a_later_line_vouches_for_is_refused_without_head(tmp_path: Path):
    fill(tmp_path, 3)
    path = without_head(tmp_path)
    header, first, second, third = lines_of(tmp_path)
    for damaged in (
        header + b"x" + first[1:] + second + third,
        header + first[:-1] + b"x" + second,  # the newline: two lines became one, and the second proves the first
        header + second + third,
        header + first + third,
        header + second + first + third,
        header + first + first + second + third,
    ):
        path.write_bytes(damaged)
        refused(tmp_path, "was acknowledged|were acknowledged")
    path.write_bytes(header + first + second + b"x" + third[1:])
    assert reopened(tmp_path)[0] == notes(1, 2)  # nothing vouches for the last line, but HEAD


def test_damage_in_a_segment_that_is_not_the_last_is_refused(tmp_path: Path):
    fill(tmp_path, 8, segment_bytes=700)
    without_head(tmp_path)
    path = segments(tmp_path)[0]
    header, *rest = lines_of(tmp_path)
    whole = path.read_bytes()
    for damaged, reason in (
        (whole[:-1], "a later segment exists"),
        (whole + b"x", "a later segment exists"),
        (header + b"".join(rest[:-1]), "does not continue the one before"),
        (b"x" + whole[1:], "header is damaged"),
        (b"", "header is damaged"),
    ):
        path.write_bytes(damaged)
        refused(tmp_path, reason)


def test_a_rewritten_history_is_refused_where_head_has_another_hash(tmp_path: Path):
    fill(tmp_path, 2)
    path = segments(tmp_path)[0]
    header, first, second = lines_of(tmp_path)
    journal_id = header[98:130].decode()
    body = second[86:-1].replace(b'"run_id":2', b'"run_id":7')
    forged = seal(bytes.fromhex(first[21:85].decode()), seed(journal_id), body).line + b"\n"
    path.write_bytes(header + first + forged)
    refused(tmp_path, "HEAD has another hash")
    damage = verify(tmp_path).damage
    assert damage is not None
    assert "HEAD has another hash" in damage.reason
    (tmp_path / "HEAD").unlink()
    assert reopened(tmp_path)[0] == notes(1, 7)  # without HEAD or an anchor nobody can tell: the docs say so


def test_lines_whose_numbers_are_wrong_are_bad_although_their_chain_is_right(tmp_path: Path):
    fill(tmp_path, 1)
    path = without_head(tmp_path)
    header, first = lines_of(tmp_path)
    journal_id, h = header[98:130].decode(), bytes.fromhex(first[21:85].decode())
    entry = b'{"kind":"RunNoted","at":"2026-01-01T09:30:00Z","run_id":2}'
    for sequence, durable, entries in ((3, 0, entry), (1, 0, entry), (2, 2, entry), (2, 1, b"")):
        line = seal(h, seed(journal_id), batch_body(sequence, durable, 0, b"[%b]" % entries)).line + b"\n"
        path.write_bytes(header + first + line)
        verification = verify(tmp_path, sleep=lambda seconds: None)
        assert (verification.entries, verification.intact) == (1, False), (sequence, durable)


# The header of the last segment.


@pytest.mark.parametrize("left", [0, 1, 100, 200])
def test_a_segment_that_was_torn_while_it_was_created_is_created_again(tmp_path: Path, left: int):
    disk = CountingDisk()
    journal = Journal.open(tmp_path, now=NOW, disk=disk, segment_bytes=400)
    journal.append(notes(1), NOW)
    disk.before = fail("sync_folder")
    with pytest.raises(JournalPoisoned):
        journal.append(notes(2), NOW)
    journal.close()
    path = segments(tmp_path)[1]
    header = path.read_bytes()
    path.write_bytes(header[:left])
    entries, again = reopened(tmp_path)
    assert entries == notes(1)
    assert path.read_bytes() == header
    assert [torn.size for torn in again.recovery.torn] == ([left] if left else [])
    with Journal.open(tmp_path, now=NOW) as journal:
        assert journal.append(notes(2), NOW) == 2
    assert verify(tmp_path).intact


@pytest.mark.parametrize("number", [1, 2])
def test_an_old_block_of_the_disk_that_looks_like_a_header_is_a_torn_creation_too(tmp_path: Path, number: int):
    fill(tmp_path / "one", 6, segment_bytes=700)
    fill(tmp_path / "other", 6, segment_bytes=700)
    last = without_head(tmp_path / "one")
    stale = lines_of(tmp_path / "other", segment=number)[0] if number == 2 else lines_of(tmp_path / "one")[0]
    last.write_bytes(stale)
    kept = len(list(read(tmp_path / "one")))
    entries, journal = reopened(tmp_path / "one")
    assert entries == notes(*range(1, kept + 1))
    assert journal.recovery.torn[0].size == len(stale)
    assert verify(tmp_path / "one").intact


def test_a_header_that_nothing_proves_is_written_again_after_what_follows_it_was_cut_for_good(tmp_path: Path):
    fill(tmp_path, 6, segment_bytes=700)
    last = without_head(tmp_path)
    header = last.read_bytes().splitlines(keepends=True)[0]
    last.write_bytes(header)
    assert reopened(tmp_path)[1].recovery.rewritten == len(header)
    (tmp_path / "HEAD").unlink()
    last.write_bytes(header + b"torn")
    disk = CountingDisk()
    sizes: list[int] = []
    disk.before = lambda call: sizes.append(last.stat().st_size) if call == "sync" else None
    with Journal.open(tmp_path, now=NOW, disk=disk) as journal:
        assert journal.recovery.rewritten == len(header)
    # The copy of the tail, the side file, the cut, and the header.
    assert sizes == [len(header) + 4, len(header) + 4, len(header), len(header)]


def test_the_name_of_a_torn_segment_still_says_what_was_durable_before_it(tmp_path: Path):
    fill(tmp_path, 6, segment_bytes=700)
    without_head(tmp_path).write_bytes(b"")
    before = segments(tmp_path)[-2]
    before.write_bytes(b"".join(before.read_bytes().splitlines(keepends=True)[:-1]))
    refused(tmp_path, "the journal ends before sequence")


def test_a_creation_that_was_torn_is_begun_again(tmp_path: Path):
    (tmp_path / "LOCK").write_bytes(b"")
    (tmp_path / "HEAD").write_bytes(b"")
    (tmp_path / NAME).write_bytes(b'{"c":"00')
    with Journal.open(tmp_path, now=NOW) as journal:
        assert journal.recovery.created
        journal.append(notes(1), NOW)
    assert verify(tmp_path).intact


def test_a_damaged_header_with_lines_after_it_is_corruption(tmp_path: Path):
    fill(tmp_path, 5)
    path = without_head(tmp_path)
    path.write_bytes(b"x" + path.read_bytes()[1:])
    refused(tmp_path, "header is damaged", offset=0)


def test_a_damaged_header_that_head_vouches_for_is_corruption(tmp_path: Path):
    Journal.open(tmp_path, now=NOW).close()
    path = segments(tmp_path)[0]
    path.write_bytes(b"x" + path.read_bytes()[1:])
    refused(tmp_path, "header is damaged", offset=0)


# HEAD is a lower bound, and nothing more.


@pytest.mark.parametrize("content", [b"", b"garbage", b"\0" * 256])
def test_a_torn_head_is_ignored_and_written_again(tmp_path: Path, content: bytes):
    fill(tmp_path, 3)
    (tmp_path / "HEAD").write_bytes(content)
    entries, journal = reopened(tmp_path)
    assert entries == notes(1, 2, 3)
    assert journal.recovery.warnings
    mark = read_mark(CountingDisk(), tmp_path)
    assert mark is not None
    assert mark.sequence == 3


def test_head_of_another_journal_is_ignored_with_a_warning(tmp_path: Path):
    fill(tmp_path / "one", 2)
    fill(tmp_path / "two", 9)
    (tmp_path / "one" / "HEAD").write_bytes((tmp_path / "two" / "HEAD").read_bytes())
    entries, journal = reopened(tmp_path / "one")
    assert entries == notes(1, 2)
    assert "belongs to another journal" in journal.recovery.warnings[0]


def test_an_older_head_is_fine(tmp_path: Path):
    fill(tmp_path, 1)
    head = (tmp_path / "HEAD").read_bytes()
    with Journal.open(tmp_path, now=NOW, segment_bytes=700) as journal:
        for number in range(2, 10):
            journal.append(notes(number), NOW)
    (tmp_path / "HEAD").write_bytes(head)
    assert reopened(tmp_path)[0] == notes(*range(1, 10))


# An I/O error is never corruption.


def test_an_io_error_while_reading_is_no_damage_and_changes_nothing(tmp_path: Path):
    class Failing(CountingDisk):
        def read(self, file: int, offset: int, size: int) -> bytes:
            if self.size(file) > 600:
                raise OSError(errno.EIO, "Input/output error")
            return super().read(file, offset, size)

    fill(tmp_path, 5)
    before = snapshot(tmp_path)
    with pytest.raises(UnreadableJournal, match="Input/output error"):
        Journal.open(tmp_path, now=NOW, disk=Failing())
    with pytest.raises(UnreadableJournal, match="Input/output error"):
        list(read(tmp_path, disk=Failing()))
    assert snapshot(tmp_path) == before


def test_reopening_without_space_fails_cleanly(tmp_path: Path):
    queued_but_unsynced(tmp_path, 1, 2)
    before = snapshot(tmp_path)
    disk = CountingDisk()
    disk.before = fail("create", errno.ENOSPC)
    with pytest.raises(UnreadableJournal, match="No space left"):
        Journal.open(tmp_path, now=NOW, disk=disk)
    assert snapshot(tmp_path) == before
    assert reopened(tmp_path)[0] == notes(1, 2)


def test_every_prefix_of_an_unacknowledged_tail_recovers(tmp_path: Path):
    queued_but_unsynced(tmp_path, 1, 2, 3)
    path = segments(tmp_path)[0]
    header, first, second, _ = lines_of(tmp_path)
    whole, head = path.read_bytes(), (tmp_path / "HEAD").read_bytes()
    for size in range(len(header + first), len(whole), 5):
        path.write_bytes(whole[:size])
        (tmp_path / "HEAD").write_bytes(head)
        expected = notes(1, 2) if size >= len(header + first + second) else notes(1)
        assert reopened(tmp_path)[0] == expected, size
        assert verify(tmp_path).intact, size
    with Journal.open(tmp_path, now=NOW) as journal:
        journal.append([note(9)], NOW)
    assert verify(tmp_path).intact


def test_an_io_error_of_a_folder_around_the_journal_is_told_and_one_that_is_not_ours_is_borne(tmp_path: Path):
    class Disk(CountingDisk):
        code = errno.EACCES

        def sync_folder(self, folder: Path) -> None:
            if folder in tmp_path.parents:
                raise OSError(self.code, os.strerror(self.code))
            super().sync_folder(folder)

    disk = Disk()
    Journal.open(tmp_path / "one" / "journal", disk=disk).close()
    disk.code = errno.EIO
    with pytest.raises(UnreadableJournal, match="Input/output error"):
        Journal.open(tmp_path / "two" / "journal", disk=disk)
