"""Salvage: what is valid goes into a new journal, what is lost leaves a mark, and no sequence moves."""

from __future__ import annotations

import zlib
from pathlib import Path

import msgspec
import pytest

from duly.journal import Entry, ForeignJournal, Journal, JournalCorrupt, UnreadableJournal, read, salvage, verify
from duly.journal.entries import EntryLost
from duly.journal.salvaging import Lost
from tests.journal.samples import NOW, fill, note, notes, segments, snapshot


def test_a_whole_journal_is_copied_entry_by_entry_under_a_new_id(tmp_path: Path):
    fill(tmp_path / "old", 20, segment_bytes=1000, each=2)
    result = salvage(tmp_path / "old", tmp_path / "new", NOW)
    assert (result.copied, result.lost) == (40, ())
    assert result.journal_id != verify(tmp_path / "old").journal_id
    assert [r.entry for r in read(tmp_path / "new")] == [r.entry for r in read(tmp_path / "old")]
    assert verify(tmp_path / "new").intact


def test_what_is_lost_is_marked_so_that_no_sequence_moves(tmp_path: Path):
    fill(tmp_path / "old", 20, segment_bytes=1000, each=2)
    path = segments(tmp_path / "old")[1]
    header, first, second, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + first[:100] + b"x" + first[101:] + second + b"".join(rest))
    lost = int(path.stem[9:])
    before = snapshot(tmp_path / "old")
    result = salvage(tmp_path / "old", tmp_path / "new", NOW)
    assert snapshot(tmp_path / "old") == before
    assert result.lost == (Lost(lost, lost + 1),)
    assert str(result) == f"38 entries copied to {tmp_path / 'new'}, 2 lost"
    entries = {record.sequence: record.entry for record in read(tmp_path / "new")}
    assert entries == {n: EntryLost(at=NOW) if n in (lost, lost + 1) else note(n) for n in range(1, 41)}
    assert verify(tmp_path / "new").intact


def test_a_lost_segment_and_a_lost_header_are_survived(tmp_path: Path):
    fill(tmp_path / "old", 30, segment_bytes=1000)
    first, second, third, *_ = segments(tmp_path / "old")
    first.write_bytes(b"x" + first.read_bytes()[1:])
    second.unlink()
    result = salvage(tmp_path / "old", tmp_path / "new", NOW)
    lost = range(int(second.stem[9:]), int(third.stem[9:]))
    assert result.lost == (Lost(lost[0], lost[-1]),)
    found = [r.entry for r in read(tmp_path / "new")]
    assert found == [EntryLost(at=NOW) if number in lost else note(number) for number in range(1, 31)]


def test_a_good_line_behind_one_whose_end_is_lost_is_found(tmp_path: Path):
    fill(tmp_path / "old", 3)
    path = segments(tmp_path / "old")[0]
    header, first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + first[:-2] + b"x" + second + third)
    assert salvage(tmp_path / "old", tmp_path / "new", NOW).lost == (Lost(1, 1),)
    assert [r.entry for r in read(tmp_path / "new")] == [EntryLost(at=NOW), *notes(2, 3)]


def test_copies_of_lines_and_lines_of_other_journals_are_left_out(tmp_path: Path):
    fill(tmp_path / "old", 3)
    fill(tmp_path / "other", 9)
    path = segments(tmp_path / "old")[0]
    _, first, *_ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(path.read_bytes() + first + segments(tmp_path / "other")[0].read_bytes())
    assert salvage(tmp_path / "old", tmp_path / "new", NOW).copied == 3
    assert [r.entry for r in read(tmp_path / "new")] == notes(1, 2, 3)


def test_kinds_that_this_version_does_not_know_are_copied_as_they_stand(tmp_path: Path):
    unknown = b'{"kind":"MoonPhaseChanged","at":"2026-01-01T09:30:00Z","phase":0.5}'
    with Journal.open(tmp_path / "old", now=NOW) as journal:
        journal.enqueue_encoded(b"[" + unknown + b"]", 1, NOW)
    salvage(tmp_path / "old", tmp_path / "new", NOW)
    assert unknown in segments(tmp_path / "new")[0].read_bytes()


def test_the_id_comes_from_head_when_every_header_is_lost(tmp_path: Path):
    fill(tmp_path / "old", 3)
    path = segments(tmp_path / "old")[0]
    path.write_bytes(b"x" + path.read_bytes()[1:])
    assert salvage(tmp_path / "old", tmp_path / "new", NOW).copied == 3
    (tmp_path / "old" / "HEAD").unlink()
    with pytest.raises(UnreadableJournal, match="without which no line can be checked"):
        salvage(tmp_path / "old", tmp_path / "newer", NOW)
    assert not (tmp_path / "newer").exists()


def test_a_target_that_is_not_empty_is_refused(tmp_path: Path):
    fill(tmp_path / "old", 1)
    fill(tmp_path / "taken", 1)
    before = snapshot(tmp_path)
    for target in ("taken", "old"):
        with pytest.raises(ForeignJournal, match="not empty"):
            salvage(tmp_path / "old", tmp_path / target, NOW)
    with pytest.raises(ForeignJournal, match="there is no journal here"):
        salvage(tmp_path / "missing", tmp_path / "new", NOW)
    assert snapshot(tmp_path) == before


def test_lines_in_the_wrong_order_are_put_right(tmp_path: Path):
    fill(tmp_path / "old", 4)
    path = segments(tmp_path / "old")[0]
    header, first, second, third, fourth = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + third + first + fourth + second)
    assert salvage(tmp_path / "old", tmp_path / "new", NOW).lost == ()
    assert [r.entry for r in read(tmp_path / "new")] == notes(1, 2, 3, 4)


def test_a_line_that_was_edited_and_got_a_new_checksum_is_lost_and_not_believed(tmp_path: Path):
    fill(tmp_path / "old", 3)
    path = segments(tmp_path / "old")[0]
    header, first, second, third = path.read_bytes().splitlines(keepends=True)
    edited = second[14:-1].replace(b'"run_id":2', b'"run_id":7')
    crc = zlib.crc32(edited, zlib.crc32(bytes.fromhex(header[98:130].decode())))
    path.write_bytes(header + first + b'{"c":"%08x%b\n' % (crc, edited) + third)
    assert salvage(tmp_path / "old", tmp_path / "new", NOW).lost == (Lost(2, 2),)
    assert [r.entry for r in read(tmp_path / "new")] == [note(1), EntryLost(at=NOW), note(3)]


def test_a_stranger_s_header_does_not_decide_whose_journal_it_is(tmp_path: Path):
    fill(tmp_path / "old", 8, segment_bytes=700)
    fill(tmp_path / "other", 1)
    path = segments(tmp_path / "old")[0]
    lines = path.read_bytes().splitlines(keepends=True)
    stranger = segments(tmp_path / "other")[0].read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(stranger + b"".join(lines[1:]))
    assert salvage(tmp_path / "old", tmp_path / "new", NOW).lost == ()
    assert [r.entry for r in read(tmp_path / "new")] == notes(*range(1, 9))


def entries_of(folder: Path) -> list[Entry]:
    """What a journal holds."""
    return [record.entry for record in read(folder)]


def test_an_acknowledged_tail_that_was_cut_is_lost_and_its_sequences_are_not_given_out_again(tmp_path: Path):
    fill(tmp_path / "old", 9, each=2)
    path = segments(tmp_path / "old")[0]
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    with pytest.raises(JournalCorrupt, match="up to 18 were acknowledged"):
        Journal.open(tmp_path / "old")
    result = salvage(tmp_path / "old", tmp_path / "new", NOW)
    assert str(result) == f"6 entries copied to {tmp_path / 'new'}, 12 lost"
    assert result.lost == (Lost(7, 18),)
    assert entries_of(tmp_path / "new") == [*notes(*range(1, 7)), *[EntryLost(at=NOW)] * 12]
    with Journal.open(tmp_path / "new") as journal:
        assert journal.append(notes(19), NOW) == 19
    assert verify(tmp_path / "new").intact


@pytest.mark.parametrize("header", [True, False], ids=["whole header", "lost header"])
def test_a_segment_without_a_single_valid_line_tells_what_came_before_it(header: bool, tmp_path: Path):
    fill(tmp_path / "old", 8, segment_bytes=700)
    (tmp_path / "old" / "HEAD").unlink()
    *_, before, last = segments(tmp_path / "old")
    before.unlink()
    last.write_bytes(last.read_bytes().splitlines(keepends=True)[0] if header else b"x" * 500)
    lost = Lost(int(before.stem[9:]), int(last.stem[9:]) - 1)
    assert salvage(tmp_path / "old", tmp_path / "new", NOW).lost == (lost,)
    assert len(entries_of(tmp_path / "new")) == lost.last


def test_a_last_line_that_is_not_believed_has_still_used_its_sequences(tmp_path: Path):
    fill(tmp_path / "old", 3)
    (tmp_path / "old" / "HEAD").unlink()
    path = segments(tmp_path / "old")[0]
    header, first, second, third = path.read_bytes().splitlines(keepends=True)
    edited = third[14:-1].replace(b'"run_id":3', b'"run_id":7')
    crc = zlib.crc32(edited, zlib.crc32(bytes.fromhex(header[98:130].decode())))
    path.write_bytes(header + first + second + b'{"c":"%08x%b\n' % (crc, edited))
    assert salvage(tmp_path / "old", tmp_path / "new", NOW).lost == (Lost(3, 3),)


def test_the_head_of_another_journal_makes_nothing_lost(tmp_path: Path):
    fill(tmp_path / "old", 3)
    fill(tmp_path / "other", 9)
    (tmp_path / "old" / "HEAD").write_bytes((tmp_path / "other" / "HEAD").read_bytes())
    assert salvage(tmp_path / "old", tmp_path / "new", NOW).lost == ()
    assert entries_of(tmp_path / "new") == notes(1, 2, 3)


@pytest.mark.parametrize("glue", [b"", b"x"], ids=["newline gone", "newline overwritten"])
def test_both_lines_around_a_lost_newline_are_found(glue: bytes, tmp_path: Path):
    fill(tmp_path / "old", 4)
    path = segments(tmp_path / "old")[0]
    header, first, second, third, fourth = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + first + second[:-1] + glue + third[:-1] + glue + fourth)
    assert salvage(tmp_path / "old", tmp_path / "new", NOW).lost == ()
    assert entries_of(tmp_path / "new") == notes(1, 2, 3, 4)


def test_a_line_whose_data_looks_like_lines_is_a_line(tmp_path: Path):
    fill(tmp_path / "other", 1)
    line = msgspec.json.decode(segments(tmp_path / "other")[0].read_bytes().splitlines()[1])
    with Journal.open(tmp_path / "old") as journal:
        journal.append([note(1, [line, line])], NOW)
        journal.append([note(2, line)], NOW)
    whole = entries_of(tmp_path / "old")
    assert salvage(tmp_path / "old", tmp_path / "new", NOW).lost == ()
    assert entries_of(tmp_path / "new") == whole
