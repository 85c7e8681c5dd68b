"""Archiving: what is read across archive and journal is what would be read had nothing been moved."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

import pytest

from duly.journal import ForeignJournal, Journal, JournalArchived, JournalCorrupt, Reader, head, read, salvage, verify
from duly.journal.archived import JoinedDisk, archive_at
from duly.journal.entries import Checkpoint, Entry
from duly.projections import State, replay
from duly.projections.archiving import archive
from duly.projections.checkpoints import StateFolding
from duly.projections.indexed import IndexedJournal
from tests.projections.samples import DAY, admitted, created, opened
from tests.projections.segmented import segmented
from tests.scheduler.cut_journals import replayed
from tests.scheduler.memory_disk import MemoryDisk
from tests.scheduler.test_prefix_totality import history

PATH = Path("/journal")
ARCHIVE = Path("/archive")
ENTRIES: list[Entry] = [opened(), created(request="once"), *[admitted(f"10:{minute:02}") for minute in range(24)]]
LATER: list[Entry] = [admitted(f"11:{minute:02}") for minute in range(10)]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="duly")


def opened_state(disk: MemoryDisk) -> State:
    folding = StateFolding()
    with Journal.open(PATH, disk=disk.crashed(), folding=folding):
        return folding.whole(PATH)


@pytest.mark.parametrize("seed", range(20, 26))
def test_a_history_that_is_archived_at_any_moment_gives_the_same_state_with_and_without_its_archive(seed: int):
    entries = history(seed)
    for cut in range(1, len(entries), max(1, len(entries) // 12)):
        disk = MemoryDisk()
        with Journal.open(PATH, now=DAY, disk=disk, segment_bytes=3_000) as journal:
            for entry in entries[:cut]:
                journal.append([entry], entry.at)
        archive(PATH, ARCHIVE, now=entries[cut - 1].at, disk=disk)
        disk.remove(PATH / "checkpoint")
        with Journal.open(PATH, now=DAY, disk=disk) as journal:
            journal.append([opened()], DAY)
        joined = JoinedDisk(disk, PATH, ARCHIVE)
        whole = [record.entry for record in Reader(PATH, disk=joined).records()]
        assert [one for one in whole if not isinstance(one, Checkpoint)] == [*entries[:cut], opened()]
        assert opened_state(disk).digest() == replayed(whole).digest()


def archived_twice() -> MemoryDisk:
    disk = MemoryDisk()
    segmented(ENTRIES, disk, path=PATH)
    archive(PATH, ARCHIVE, now=DAY + timedelta(days=1), disk=disk)
    segmented(LATER, disk, path=PATH)
    archive(PATH, ARCHIVE, now=DAY + timedelta(days=2), disk=disk)
    return disk


def test_the_chain_goes_across_and_an_anchor_from_before_still_holds():
    disk = MemoryDisk()
    segmented(ENTRIES, disk, path=PATH)
    anchor = head(PATH, disk=disk)
    archive(PATH, ARCHIVE, now=DAY, disk=disk)
    joined = JoinedDisk(disk, PATH, ARCHIVE)
    found = verify(PATH, anchor, disk=joined)
    assert (found.intact, found.entries, found.first) == (True, len(ENTRIES) + 1, 1)
    alone = verify(PATH, anchor, disk=disk)
    assert alone.expected == "the anchor at sequence 26 is archived: name the archive to check it"
    assert str(alone).startswith("journal read, 1 entry, but the anchor at sequence 26 is archived")
    assert verify(PATH, disk=disk).intact
    assert verify(ARCHIVE, disk=disk).sequence == len(ENTRIES)


def test_without_the_archive_what_was_archived_is_said_to_be_and_the_rest_is_read():
    disk = archived_twice()
    first = verify(PATH, disk=disk).first
    with pytest.raises(JournalArchived, match=f"entries 1 to {first - 1} are archived"):
        list(read(PATH, disk=disk))
    with pytest.raises(JournalArchived):
        IndexedJournal(PATH, disk=disk, keep=True).ask(lambda parts: parts.concerning("report"))
    assert [record.sequence for record in read(PATH, first - 1, disk=disk)] == [first]
    joined = JoinedDisk(disk, PATH, ARCHIVE)
    found = IndexedJournal(PATH, disk=joined, keep=True).ask(lambda parts: parts.concerning("report"))
    assert len(found) == len(ENTRIES) + len(LATER) - 1
    assert any(path.parent == ARCHIVE and path.suffix == ".index" for path in disk.contents())


def test_a_reader_whose_segments_are_moved_away_meanwhile_says_so_and_a_follower_begins_with_the_state(tmp_path: Path):
    disk = MemoryDisk()
    segmented(ENTRIES, disk, path=PATH)
    reading = Reader(PATH, disk=disk).records()
    assert next(reading).sequence == 1
    journal = tmp_path / "journal"
    with Journal.open(journal, now=DAY, segment_bytes=2_000) as owner:
        for entry in ENTRIES:
            owner.append([entry], DAY)
    follower = replay(journal)
    archive(PATH, ARCHIVE, now=DAY, disk=disk)
    with pytest.raises(JournalArchived, match="are archived"):
        list(reading)
    archive(journal, tmp_path / "old", now=DAY)
    (tmp_path / "old").rename(tmp_path / "elsewhere")
    assert follower.catch_up() == 1
    assert follower.digest() == replay(journal).digest()


def test_requests_runs_and_watermarks_go_on_from_the_state():
    disk = archived_twice()
    state = opened_state(disk)
    assert state.requests["once"].sequence == 2
    assert len(state.runs_open) == len(ENTRIES) + len(LATER) - 2
    assert min(state.runs_open) == 3
    assert state.by_id["report"].consumed_through == LATER[-1].at


def test_archiving_again_with_nothing_new_does_nothing():
    disk = archived_twice()
    before = disk.contents()
    again = archive(PATH, ARCHIVE, now=DAY + timedelta(days=3), disk=disk)
    assert again.moved == ()
    assert str(again).startswith("nothing to archive")
    after = disk.contents()
    assert {path: after[path] for path in after if path.suffix == ".jsonl"} == {
        path: before[path] for path in before if path.suffix == ".jsonl"
    }


def test_what_is_newer_than_before_stays():
    disk = MemoryDisk()
    segmented(ENTRIES, disk, path=PATH)
    assert archive(PATH, ARCHIVE, now=DAY + timedelta(days=1), before=DAY, disk=disk).moved == ()
    segmented(LATER, disk, path=PATH)
    found = archive(PATH, ARCHIVE, now=DAY + timedelta(days=9), before=DAY + timedelta(days=1), disk=disk)
    assert found.first == len(ENTRIES) + 1
    assert opened_state(disk).by_id["report"].consumed_through == LATER[-1].at
    assert archive(PATH, ARCHIVE, now=DAY + timedelta(days=9), before=len(ENTRIES), disk=disk).moved == ()


def test_a_segment_that_is_missing_is_not_taken_for_an_archived_one():
    disk = MemoryDisk()
    segmented(ENTRIES, disk, path=PATH)
    disk.remove(min(path for path in disk.contents() if path.suffix == ".jsonl"))
    damage = verify(PATH, disk=disk).damage
    assert damage is not None
    assert damage.reason.startswith("segment 1 is missing: the next one is 00000002-")
    with pytest.raises(JournalCorrupt, match="segment 1 is missing"):
        Journal.open(PATH, disk=disk)


def test_a_state_of_which_a_part_is_missing_is_not_used():
    whole = archived_twice()
    [segment] = [path for path in whole.contents() if path.parent == PATH and path.suffix == ".jsonl"]
    with Journal.open(PATH, disk=whole) as journal:
        [(sequence, entry)] = list(journal.entries())
    assert isinstance(entry, Checkpoint)
    state = State()
    half = len(entry.state) // 2
    first = Checkpoint(at=DAY, part=1, parts=2, through=sequence - 1, state=entry.state[:half])
    state.apply(sequence, first)
    assert (state.by_id, len(state.founding)) == ({}, 1)
    wrong = Checkpoint(at=DAY, part=3, parts=3, through=sequence - 1, state=entry.state[half:])
    state.apply(sequence + 1, wrong)
    assert (state.by_id, len(state.founding)) == ({}, 1)
    state.apply(sequence + 2, Checkpoint(at=DAY, part=2, parts=2, through=sequence - 1, state=entry.state[half:]))
    assert list(state.by_id) == ["report"]
    assert state.founding == []
    assert segment.name.startswith("0000000")


def test_a_state_that_cannot_be_decoded_is_an_anomaly_and_no_error():
    state = State()
    state.apply(9, Checkpoint(at=DAY, part=1, parts=1, through=8, state='{"schema":1,"sequence":8}\n{"schedules":[7]}'))
    assert (state.by_id, state.anomaly_count) == ({}, 1)


def test_where_everything_is_known_a_written_state_changes_nothing():
    state = replayed(ENTRIES)
    before = len(state.by_id)
    state.apply(27, Checkpoint(at=DAY, part=1, parts=1, through=26, state='{"schema":1,"sequence":26}\n{"end":true}'))
    assert (len(state.by_id), state.anomaly_count, state.sequence) == (before, 0, 27)


def test_a_salvaged_copy_of_the_rest_keeps_the_state():
    disk = archived_twice()
    copy = Path("/copy")
    salvage(PATH, copy, DAY, disk=disk)
    state = State()
    for record in Reader(copy, disk=disk).records():
        state.apply(record.sequence, record.entry)
    assert state.by_id["report"].consumed_through == LATER[-1].at
    assert state.lost == verify(PATH, disk=disk).first - 1


def test_another_folder_is_refused_as_an_archive_before_anything_is_changed():
    disk = archived_twice()
    other = Path("/other")
    segmented(ENTRIES, disk, path=other)
    foreign = Path("/foreign")
    archive(other, foreign, now=DAY, disk=disk)
    before = disk.contents()
    for folder, why in ((PATH, "own folder"), (other, "is a journal"), (foreign, "of another journal")):
        with pytest.raises(ForeignJournal, match=why):
            archive(PATH, folder, now=DAY, disk=disk)
    assert {path: data for path, data in disk.contents().items() if path.name != "HEAD"} == {
        path: data for path, data in before.items() if path.name != "HEAD"
    }


def test_on_a_real_disk_the_journal_knows_its_archive_until_that_is_moved(tmp_path: Path):
    journal, old, elsewhere = tmp_path / "journal", tmp_path / "old", tmp_path / "elsewhere"
    with Journal.open(journal, now=DAY, segment_bytes=2_000) as owner:
        for entry in ENTRIES:
            owner.append([entry], DAY)
    digest = replay(journal).digest()
    archive(journal, old, now=DAY)
    assert [record.entry for record in read(journal)][: len(ENTRIES)] == ENTRIES
    assert replay(journal, until=len(ENTRIES)).digest() == digest
    old.rename(elsewhere)
    with pytest.raises(JournalArchived, match="which is not there now"):
        list(read(journal))
    with archive_at(elsewhere):
        assert [record.entry for record in read(journal)][: len(ENTRIES)] == ENTRIES
    with pytest.raises(ForeignJournal, match="holds no segments"), archive_at(tmp_path / "nothing"):
        pass
    follower = replay(journal)
    with Journal.open(journal, now=DAY) as owner:
        owner.append(LATER, DAY)
    assert follower.catch_up() == len(LATER)
