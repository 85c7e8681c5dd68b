"""Reading, verifying and anchoring: also beside a writer, and on what is damaged."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from duly.journal import (
    ForeignJournal,
    Head,
    Journal,
    JournalCorrupt,
    Reader,
    RealDisk,
    UnconfirmedGone,
    head,
    read,
    verify,
)
from duly.journal.rewriting import Saved, encode_saved
from tests.journal.samples import NOW, fill, note, notes, segments, snapshot


def hurry(seconds: float) -> None:
    """A sleep that takes no time."""
    assert seconds == 1.0


def test_records_say_where_they_stand(tmp_path: Path):
    with Journal.open(tmp_path, now=NOW) as journal:
        journal.append(notes(1, 2), NOW)
        journal.append(notes(3), NOW)
    header, first, *_ = segments(tmp_path)[0].read_bytes().splitlines(keepends=True)
    found = [(r.sequence, r.entry, r.confirmed, r.segment, r.offset) for r in read(tmp_path)]
    name = "00000001-0000000000000001.jsonl"
    assert found == [
        (1, note(1), True, name, len(header)),
        (2, note(2), True, name, len(header)),
        (3, note(3), True, name, len(header + first)),
    ]
    assert [record.sequence for record in read(tmp_path, after=1)] == [2, 3]
    assert list(read(tmp_path, after=3)) == []


def test_reading_changes_nothing_and_needs_no_permission_to_write(tmp_path: Path):
    fill(tmp_path, 10, segment_bytes=700)
    before = snapshot(tmp_path)
    list(read(tmp_path))
    assert verify(tmp_path).intact
    head(tmp_path)
    assert snapshot(tmp_path) == before


def test_a_reader_goes_on_where_it_stopped(tmp_path: Path):
    reader = Reader(tmp_path)
    with Journal.open(tmp_path, now=NOW, segment_bytes=700) as journal:
        found: list[int] = []
        for number in range(1, 31):
            journal.append(notes(number), NOW)
            if number % 4 == 0:
                found += [record.sequence for record in reader.records()]
                assert found == list(range(1, number + 1))
        assert [record.sequence for record in reader.records()] == [29, 30]
        assert list(reader.records()) == []
    assert reader.segments == len(segments(tmp_path))
    assert reader.bytes == sum(path.stat().st_size for path in segments(tmp_path))


def test_a_reader_that_was_left_in_the_middle_goes_on_after_the_line_it_gave(tmp_path: Path):
    fill(tmp_path, 10, segment_bytes=700)
    reader = Reader(tmp_path)
    found: list[int] = []
    while True:
        line = next(reader.lines(), None)
        if line is None:
            break
        found.append(line.first)
    assert found == list(range(1, 11))


def test_a_reader_beside_a_rotating_writer_sees_every_entry_once_and_no_damage(tmp_path: Path):
    journal = Journal.open(tmp_path, now=NOW, segment_bytes=3000)
    done = threading.Event()

    def write() -> None:
        for number in range(1, 601):
            journal.enqueue([note(number, "x" * (number % 300))], NOW)
            if number % 3 == 0:
                journal.sync()
        journal.sync()
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    follower = Reader(tmp_path)
    followed: list[int] = []
    while not done.is_set():
        followed += [record.sequence for record in follower.records()]
        assert followed == list(range(1, len(followed) + 1))
        verification = verify(tmp_path, sleep=lambda seconds: None)
        assert verification.damage is None
    writer.join()
    followed += [record.sequence for record in follower.records()]
    journal.close()
    assert followed == list(range(1, 601))
    assert len(segments(tmp_path)) > 20


def test_lines_beyond_what_is_known_to_be_durable_are_unconfirmed(tmp_path: Path):
    with Journal.open(tmp_path, now=NOW) as journal:
        journal.append(notes(1), NOW)
        kept = (tmp_path / "HEAD").read_bytes()
        journal.append(notes(2, 3), NOW)
    (tmp_path / "HEAD").write_bytes(kept)
    assert [(record.sequence, record.confirmed) for record in read(tmp_path)] == [(1, True), (2, False), (3, False)]
    verification = verify(tmp_path)
    assert (verification.intact, verification.unconfirmed) == (True, 2)
    assert str(verification) == "journal verified, 3 entries, chain intact, the last 2 unconfirmed"
    assert head(tmp_path).sequence == 1


def test_a_tail_that_stays_unfinished_is_told_and_one_that_grows_is_not(tmp_path: Path):
    with Journal.open(tmp_path, now=NOW) as journal:
        journal.append(notes(1), NOW)
        kept = (tmp_path / "HEAD").read_bytes()
        journal.append(notes(2), NOW)
    (tmp_path / "HEAD").write_bytes(kept)
    path = segments(tmp_path)[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    assert [record.sequence for record in read(tmp_path)] == [1]
    verification = verify(tmp_path, sleep=hurry)
    assert verification.unfinished is not None
    assert (verification.intact, verification.damage) == (False, None)
    assert verification.unfinished.offset == whole.rindex(b'{"c"')
    tail = len(whole) - 10 - whole.rindex(b'{"c"')
    verdict = f"journal unfinished, 1 entry, chain intact, then an unfinished tail of {tail} bytes"
    assert str(verification) == f"{verdict}, which its next owner cuts off"

    def finish(seconds: float) -> None:
        path.write_bytes(whole)

    path.write_bytes(whole[:-10])
    verification = verify(tmp_path, sleep=finish)
    assert (verification.intact, verification.entries) == (True, 2)


def test_verify_names_everything_it_found(tmp_path: Path):
    fill(tmp_path, 12, segment_bytes=2000, each=3)
    found = verify(tmp_path)
    with Journal.open(tmp_path, now=NOW) as journal:
        assert found.journal_id == journal.journal_id
    assert (found.segments, found.lines, found.entries, found.sequence) == (len(segments(tmp_path)), 12, 36, 36)
    assert found.bytes == sum(path.stat().st_size for path in segments(tmp_path))
    assert str(found) == "journal verified, 36 entries, chain intact"
    assert (found.damage, found.unfinished, found.unconfirmed, found.expected) == (None, None, 0, "")


def test_an_empty_journal_is_intact(tmp_path: Path):
    Journal.open(tmp_path, now=NOW).close()
    assert str(verify(tmp_path)) == "journal verified, 0 entries, chain intact"
    assert head(tmp_path) == Head(verify(tmp_path).journal_id, 0, "0" * 64)
    assert verify(tmp_path, expect=head(tmp_path)).intact


def test_verify_names_file_offset_sequence_and_remedy_of_damage(tmp_path: Path):
    fill(tmp_path, 12, segment_bytes=700)
    path = segments(tmp_path)[2]
    data = path.read_bytes()
    place = data.index(b'"run_id"')
    path.write_bytes(data[:place] + b"x" + data[place + 1 :])
    damage = verify(tmp_path).damage
    assert damage is not None
    assert damage.sequence is not None
    assert (damage.path, damage.sequence) == (path, int(path.stem[9:]))
    assert damage.offset == data.index(b"\n") + 1
    assert "checksum does not fit" in damage.reason
    assert "salvage" in damage.remedy
    assert str(verify(tmp_path)).startswith(f"journal damaged after {damage.sequence - 1} entries: the line's checksum")
    with pytest.raises(JournalCorrupt, match="checksum does not fit") as error:
        list(read(tmp_path))
    assert (error.value.path, error.value.offset, error.value.sequence) == damage[:3]


def test_what_was_read_badly_once_and_well_the_next_time_is_no_damage(tmp_path: Path):
    class Flickering(RealDisk):
        bad = 2

        def read(self, file: int, offset: int, size: int) -> bytes:
            data = super().read(file, offset, size)
            if self.bad and b"run_id" in data:
                self.bad -= 1
                return data.replace(b"run_id", b"ruN_id")
            return data

    fill(tmp_path, 3)
    assert len(list(read(tmp_path, disk=Flickering()))) == 3
    Flickering.bad = 99
    with pytest.raises(JournalCorrupt):
        list(read(tmp_path, disk=Flickering()))


def test_an_anchor_proves_that_the_record_is_still_the_same(tmp_path: Path):
    fill(tmp_path / "one", 5)
    anchor = head(tmp_path / "one")
    assert str(anchor) == f"5:{anchor.h}"
    for form in (anchor, str(anchor), (5, anchor.h)):
        assert verify(tmp_path / "one", expect=form).intact
    with Journal.open(tmp_path / "one", now=NOW, segment_bytes=700) as journal:
        for number in range(6, 20):
            journal.append(notes(number), NOW)
    assert verify(tmp_path / "one", expect=anchor).intact
    fill(tmp_path / "two", 5)
    assert "another record" in verify(tmp_path / "two", expect=anchor).expected
    fill(tmp_path / "three", 3, each=2)
    assert "no line ends at sequence 5" in verify(tmp_path / "three", expect=anchor).expected
    fill(tmp_path / "four", 3)
    cut = verify(tmp_path / "four", expect=anchor)
    assert not cut.intact
    assert str(cut) == "journal read, 3 entries, but it ends at sequence 3, before the anchor at 5: its tail was cut"


@pytest.mark.parametrize("anchor", ["", "5", "5:abc", f"x:{'0' * 64}", f"5:{'0' * 63}G", f"-5:{'0' * 64}"])
def test_what_is_no_anchor_is_refused(tmp_path: Path, anchor: str):
    fill(tmp_path, 1)
    with pytest.raises(ValueError, match="an anchor is"):
        verify(tmp_path, expect=anchor)


def test_a_clean_cut_at_a_line_is_visible_through_head_and_through_an_anchor_alone(tmp_path: Path):
    fill(tmp_path, 3)
    anchor = head(tmp_path)
    path = segments(tmp_path)[0]
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    damage = verify(tmp_path).damage
    assert damage is not None
    assert "ends before sequence 3" in damage.reason
    (tmp_path / "HEAD").unlink()
    assert verify(tmp_path).intact
    assert not verify(tmp_path, expect=anchor).intact


def test_where_there_is_no_journal_that_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "missing", tmp_path / "file", tmp_path):
        with pytest.raises(ForeignJournal):
            list(read(path))
        with pytest.raises(ForeignJournal):
            verify(path)


def test_a_journal_that_is_just_being_created_is_empty_and_unfinished(tmp_path: Path):
    (tmp_path / "LOCK").write_bytes(b"")
    assert list(read(tmp_path)) == []
    (tmp_path / "00000001-0000000000000001.jsonl").write_bytes(b'{"c":')
    assert list(read(tmp_path)) == []
    assert verify(tmp_path, sleep=hurry).unfinished is not None


def test_a_long_journal_is_read_in_bounded_memory(tmp_path: Path):
    largest = 0

    class Measuring(RealDisk):
        def read(self, file: int, offset: int, size: int) -> bytes:
            nonlocal largest
            largest = max(largest, size)
            return super().read(file, offset, size)

    with Journal.open(tmp_path, now=NOW) as journal:
        for number in range(50):
            journal.enqueue([note(number, "x" * 100_000)], NOW)
    assert len(list(read(tmp_path, disk=Measuring()))) == 50
    assert largest <= 512 * 1024


def test_a_line_of_four_mebibytes_is_read(tmp_path: Path):
    with Journal.open(tmp_path, now=NOW) as journal:
        journal.append([note(1, "x" * (4 * 1024 * 1024 - 400))], NOW)
        journal.append([note(2)], NOW)
    assert [record.sequence for record in read(tmp_path)] == [1, 2]
    with Journal.open(tmp_path, now=NOW) as journal:
        assert len(list(journal.entries())) == 2


def test_an_anchor_is_never_taken_of_what_is_not_known_to_be_durable(tmp_path: Path):
    fill(tmp_path, 3)
    (tmp_path / "HEAD").unlink()
    assert head(tmp_path).sequence == 2  # the third line says that the second was durable, and nothing says so of it
    path = segments(tmp_path)[0]
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    assert head(tmp_path).sequence == 0


def test_head_that_was_torn_at_the_first_look_never_vouches_for_a_segment_that_was_not_listed(tmp_path: Path):
    journal = Journal.open(tmp_path, now=NOW, segment_bytes=700)
    journal.append(notes(1), NOW)

    class RotatingMeanwhile(RealDisk):
        torn = True

        def read(self, file: int, offset: int, size: int) -> bytes:
            data = super().read(file, offset, size)
            if self.torn and data.endswith(b" \n"):
                self.torn = False
                return data[:100]
            return data

        def names(self, folder: Path) -> list[str]:
            found = super().names(folder)
            if journal.last_sequence == 1:
                for number in range(2, 9):
                    journal.append(notes(number), NOW)
            return found

    assert [record.sequence for record in read(tmp_path, disk=RotatingMeanwhile())] == list(range(1, 9))
    journal.close()


def test_a_segment_that_is_rotated_away_at_its_end_is_read_on_and_the_next_one_too(tmp_path: Path):
    journal = Journal.open(tmp_path, now=NOW, segment_bytes=900)
    journal.append(notes(1), NOW)

    class RotatingAtTheEnd(RealDisk):
        def read(self, file: int, offset: int, size: int) -> bytes:
            data = super().read(file, offset, size)
            if not data and journal.last_sequence == 1:
                for number in range(2, 9):
                    journal.append(notes(number), NOW)
            return data

    assert [record.sequence for record in read(tmp_path, disk=RotatingAtTheEnd())] == list(range(1, 9))
    assert len(segments(tmp_path)) > 2
    journal.close()


def test_a_last_segment_that_is_missing_is_damage(tmp_path: Path):
    fill(tmp_path, 8, segment_bytes=700)
    last = segments(tmp_path)[-1]
    last.unlink()
    damage = verify(tmp_path).damage
    assert damage is not None
    assert damage.reason == f"segment {int(last.stem[:8])} is missing: HEAD says that the journal goes on in it"


def read_before_it_was_durable(tmp_path: Path) -> tuple[Reader, Path, bytes]:
    """A reader that has read entries 1 to 4, of which 3 and 4 are unconfirmed; the segment, and what is durable of
    it."""
    with Journal.open(tmp_path) as journal:
        journal.append(notes(1), NOW)
        journal.append(notes(2), NOW)
        mark = (tmp_path / "HEAD").read_bytes()
        path = segments(tmp_path)[0]
        durable = path.read_bytes()
        journal.enqueue(notes(3), NOW)
        journal.enqueue(notes(4), NOW)
    (tmp_path / "HEAD").write_bytes(mark)
    reader = Reader(tmp_path)
    assert [record.confirmed for record in reader.records()] == [True, True, False, False]
    return reader, path, durable


def test_a_reader_that_read_what_went_away_is_told_even_if_nothing_came_in_its_place(tmp_path: Path):
    reader, path, durable = read_before_it_was_durable(tmp_path)
    assert list(reader.records()) == []
    path.write_bytes(durable)
    for _ in range(2):
        with pytest.raises(UnconfirmedGone, match="read as unconfirmed, up to sequence 4, is gone"):
            list(reader.records())
    assert [record.sequence for record in read(tmp_path)] == [1, 2]


def test_a_reader_is_told_that_lines_of_the_same_size_stand_where_it_read_others(tmp_path: Path):
    reader, path, durable = read_before_it_was_durable(tmp_path)
    path.write_bytes(durable)
    with Journal.open(tmp_path) as journal:
        journal.enqueue(notes(7), NOW)
        journal.enqueue(notes(8), NOW)
    with pytest.raises(UnconfirmedGone):
        list(reader.records())
    assert [record.entry for record in read(tmp_path)] == notes(1, 2, 7, 8)


def test_a_reader_goes_on_behind_what_it_read_as_unconfirmed_once_it_is_durable(tmp_path: Path):
    reader, _, _ = read_before_it_was_durable(tmp_path)
    with Journal.open(tmp_path) as journal:
        journal.append(notes(5), NOW)
    assert [(record.sequence, record.confirmed) for record in reader.records()] == [(5, True)]
    assert reader.durable == 5


def test_damage_to_what_is_durable_stays_damage_for_a_reader_of_unconfirmed_lines(tmp_path: Path):
    reader, path, durable = read_before_it_was_durable(tmp_path)
    path.write_bytes(durable[:-9])
    with pytest.raises(JournalCorrupt, match="up to 2 were acknowledged"):
        list(reader.records())


def test_the_head_of_another_journal_is_no_damage_and_confirms_nothing(tmp_path: Path):
    fill(tmp_path / "other", 40, segment_bytes=700)
    fill(tmp_path / "own", 4)
    (tmp_path / "own" / "HEAD").write_bytes((tmp_path / "other" / "HEAD").read_bytes())
    assert [record.confirmed for record in read(tmp_path / "own")] == [False] * 4
    assert verify(tmp_path / "own").intact
    with Journal.open(tmp_path / "own") as journal:
        assert journal.last_sequence == 4


def test_a_reader_beside_a_broken_rewrite_sees_what_the_next_owner_will_restore(tmp_path: Path):
    fill(tmp_path, 5)
    (tmp_path / "HEAD").unlink()
    path = segments(tmp_path)[0]
    whole = path.read_bytes()
    tail = b"".join(whole.splitlines(keepends=True)[-2:])
    offset = len(whole) - len(tail)
    (tmp_path / "REWRITE").write_bytes(encode_saved(Saved(verify(tmp_path).journal_id, 1, offset, tail)))
    for torn in (whole[:offset], whole[: offset + 100], whole[:offset] + bytes(len(tail))):
        path.write_bytes(torn)
        reader = Reader(tmp_path)
        assert [record.entry for record in reader.records()] == notes(1, 2, 3, 4, 5)
        assert reader.unfinished is None
