"""Index files: whatever becomes of one, what is found is what the record says; and no index outlives its segment."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings

from duly.journal import Journal, JournalCorrupt, Reader
from duly.journal.entries import ClockRegressed, Entry, EntryLost, OccurrenceAdmitted, RunCompleted, RunStarted
from duly.journal.rewriting import Saved, encode_saved
from duly.journal.segments import REWRITE
from duly.projections.index import Moment
from duly.projections.indexed import IndexedJournal, NotIndexed, index_journal
from duly.projections.slots import OpenRun
from tests.projections.entry_strategies import histories
from tests.projections.samples import DAY, admitted, at, completed, created, opened, regressed, started
from tests.projections.segmented import (
    PATH,
    SMALL,
    CountingDisk,
    index_files,
    indexed,
    overwrite,
    segment_files,
    segmented,
)
from tests.scheduler.memory_disk import MemoryDisk

NAMES = ("report", "other", "third")
MOMENTS = (1, 8, 12, 14, 17, 20, 24)
DAMAGE = [(b'"RunStarted"', b'"runStarted"'), (b'"2026-03-02T09', b'"2026-03-02T08')]
"""An entry that cannot be decoded any more, and one that says something else."""
Told = dict[str, list[tuple[int, Entry]]]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="duly")


def day(number: int) -> Iterator[Entry]:
    """Two schedules and their runs, forty occurrences each."""
    yield opened()
    yield from (created(name) for name in NAMES)
    sequence = 4
    for minute in range(40):
        for name in NAMES[: 2 + number % 2]:
            instant = f"{9 + minute // 60:02}:{minute % 60:02}"
            yield admitted(instant, name)
            yield started(sequence + 1, schedule_id=name, at=at(instant))
            yield completed(sequence + 1, schedule_id=name, at=at(instant))
            sequence += 3
    yield regressed("09:10", "09:39")


def journal(number: int = 0, most: int = 1000) -> MemoryDisk:
    disk = MemoryDisk()
    segmented(list(day(number))[:most], disk)
    indexed(disk)
    return disk


def by_reading(disk: MemoryDisk) -> Told:
    entries = [(one.sequence, one.entry) for one in Reader(PATH, disk=disk).records()]
    return {
        name: [
            (sequence, entry)
            for sequence, entry in entries
            if isinstance(entry, ClockRegressed) or getattr(entry, "schedule_id", None) == name
        ]
        for name in NAMES
    }


def by_index(disk: MemoryDisk) -> Told:
    indexes = IndexedJournal(PATH, disk=disk)
    return {name: concerning(indexes, name) for name in NAMES}


def concerning(indexes: IndexedJournal, name: str) -> list[tuple[int, Entry]]:
    return indexes.ask(lambda parts: parts.concerning(name))


def found(disk: MemoryDisk) -> Told:
    """By the indexes, or by reading where that is better."""
    try:
        return by_index(disk)
    except NotIndexed:
        return by_reading(disk)


def test_what_an_index_finds_is_what_the_record_says():
    disk = journal()
    assert len(segment_files(disk)) > 10
    assert [path.stem for path in index_files(disk)] == [path.stem for path in segment_files(disk)]
    assert by_index(disk) == by_reading(disk)


def test_every_flipped_byte_of_an_index_changes_no_answer():
    disk = journal(most=36)
    expected = by_reading(disk)
    path = index_files(disk)[1]
    good = disk.contents()[path]
    for place in range(len(good)):
        overwrite(disk, path, good[:place] + bytes([good[place] ^ 0x41]) + good[place + 1 :])
        assert by_index(disk) == expected, place
        assert moments(disk) == moments_by_reading(expected), place


def moments(disk: MemoryDisk) -> list[Moment]:
    indexes = IndexedJournal(PATH, disk=disk)
    return indexes.ask(lambda parts: [parts.moment(sequence) for sequence in (*MOMENTS, parts.last)])


def moments_by_reading(told: Told) -> list[Moment]:
    """What the moments of this journal are, reckoned without any index."""
    entries = dict(sorted({sequence: entry for each in told.values() for sequence, entry in each}.items()))
    expected: list[Moment] = []
    for through in (*MOMENTS, max(entries)):
        seen = {sequence: entry for sequence, entry in entries.items() if sequence <= through}
        ran = {entry.run_id: entry for entry in seen.values() if isinstance(entry, RunStarted)}
        ended = {entry.run_id for entry in seen.values() if isinstance(entry, RunCompleted)}
        readings = [at("09:00"), *(entry.at for entry in seen.values())]
        holding = [OpenRun(run, one.schedule_id, "started", one.at) for run, one in ran.items() if run not in ended]
        idle = [
            OpenRun(run, one.schedule_id, "pending", one.at)
            for run, one in seen.items()
            if isinstance(one, OccurrenceAdmitted) and run not in ran
        ]
        expected.append(Moment(through, readings[-1], max(readings), 4, 0, (*holding, *idle)))
    return expected


def test_a_damaged_index_is_written_anew_wherever_the_damage_is():
    disk = MemoryDisk()
    segmented(list(day(0))[:36], disk)
    index_journal(PATH, disk=disk)
    good = {path: disk.contents()[path] for path in index_files(disk)}
    path = index_files(disk)[1]
    for place in [*range(0, 520, 40), *range(520, len(good[path]), 7)]:
        overwrite(disk, path, good[path][:place] + b"\xff" + good[path][place + 1 :])
        index_journal(PATH, disk=disk)
        assert {path: disk.contents()[path] for path in index_files(disk)} == good, place


def test_every_cut_of_an_index_changes_no_answer():
    disk = journal(most=36)
    expected = by_reading(disk)
    path = index_files(disk)[1]
    good = disk.contents()[path]
    for size in range(len(good)):
        overwrite(disk, path, good[:size])
        assert by_index(disk) == expected, size


@pytest.mark.parametrize("gone", [[0], [3], [-1], [2, 3], [0, -1], [0, 1, 2], list(range(12))])
def test_an_index_may_be_deleted_at_any_time(gone: list[int]):
    disk, expected = journal(), by_reading(journal())
    for path in [index_files(disk)[number] for number in gone]:
        disk.remove(path)
    assert found(disk) == expected
    index_journal(PATH, disk=disk)
    assert len(index_files(disk)) == len(segment_files(disk))
    assert by_index(disk) == expected


def test_the_index_of_another_segment_or_journal_is_not_believed(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, logger="duly")
    disk, other, expected = journal(), journal(1), by_reading(journal())
    first, second, third, *_ = index_files(disk)
    overwrite(disk, second, disk.contents()[third])
    overwrite(disk, first, other.contents()[index_files(other)[0]])
    assert by_index(disk) == expected
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records] == [
        "its header is damaged, or another journal's",
        "it is the index of something else",
    ]


def test_an_index_of_a_tail_that_is_gone_is_not_believed():
    disk = MemoryDisk()
    segmented(list(day(0))[:20], disk, segment_bytes=1 << 20)
    indexed(disk)
    [segment] = segment_files(disk)
    lines = disk.contents()[segment].splitlines(keepends=True)
    head = PATH / "HEAD"
    overwrite(disk, segment, b"".join(lines[:-2]))
    overwrite(disk, head, b"")
    segmented([admitted("12:00"), admitted("12:01"), *[admitted("13:00", "other")] * 6], disk, segment_bytes=1 << 20)
    assert by_index(disk) == by_reading(disk)


def test_what_follows_an_index_in_a_growing_segment_is_read():
    disk = MemoryDisk()
    entries = list(day(0))
    segmented(entries[:30], disk, segment_bytes=1 << 20)
    indexed(disk)
    [before] = [disk.contents()[path] for path in index_files(disk)]
    segmented(entries[30:60], disk, segment_bytes=1 << 20)
    assert by_index(disk) == by_reading(disk)
    segmented(entries[60:], disk)
    assert len(segment_files(disk)) > 3
    with pytest.raises(NotIndexed):
        by_index(disk)
    indexed(disk)
    assert disk.contents()[index_files(disk)[0]] != before
    assert by_index(disk) == by_reading(disk)


def test_indexes_that_are_kept_take_in_what_is_appended_and_are_written_when_a_segment_is_complete():
    disk, entries = MemoryDisk(), list(day(0))
    segmented(entries[:10], disk)
    kept = IndexedJournal(PATH, disk=disk, keep=True)
    assert kept.ask(lambda parts: parts.last) == 10
    with Journal.open(PATH, disk=disk, segment_bytes=SMALL) as owner:
        for number, entry in enumerate(entries[10:], 11):
            owner.append([entry], DAY)
            if number % 3 == 0:
                assert kept.ask(lambda parts: parts.last) == number
                told = kept.ask(lambda parts: parts.concerning("report"))
                assert told == by_reading(disk)["report"]
                complete = [path.stem for path in segment_files(disk)][:-1]
                assert [path.stem for path in index_files(disk)] == complete
    assert len(index_files(disk)) > 10


@pytest.mark.parametrize(
    ("was", "became"), [(b'"RunStarted"', b'"runStarted"'), (b'"2026-03-02T09', b'"2026-03-02T08')]
)
def test_damage_is_told_as_ever_where_an_index_leads_to_it(was: bytes, became: bytes):
    disk = journal()
    path = segment_files(disk)[3]
    content = disk.contents()[path]
    overwrite(disk, path, content.replace(was, became, 1))
    with pytest.raises(JournalCorrupt) as by_whole:
        by_reading(disk)
    with pytest.raises(JournalCorrupt) as by_part:
        by_index(disk)
    assert str(by_part.value) == str(by_whole.value)


@pytest.mark.parametrize(
    ("was", "became"), [(b'"RunStarted"', b'"runStarted"'), (b'"2026-03-02T09', b'"2026-03-02T08')]
)
def test_damage_is_told_as_ever_in_the_block_of_a_moment(was: bytes, became: bytes):
    disk = journal()
    path = segment_files(disk)[3]
    content = disk.contents()[path]
    sequence = int(path.stem.partition("-")[2])
    overwrite(disk, path, content.replace(was, became, 1))
    with pytest.raises(JournalCorrupt):
        IndexedJournal(PATH, disk=disk).ask(lambda parts: [parts.moment(sequence + more) for more in range(5)])


def test_a_record_that_is_not_the_acknowledged_one_is_told_although_its_index_fits():
    disk = MemoryDisk()
    segmented(list(day(0))[:20], disk)
    rewritten = disk.crashed()
    segmented([admitted("12:00")], disk)
    segmented([admitted("12:01")], rewritten)
    indexed(rewritten)
    overwrite(rewritten, PATH / "HEAD", disk.contents()[PATH / "HEAD"])
    with pytest.raises(JournalCorrupt, match="not the one that was acknowledged") as by_whole:
        by_reading(rewritten)
    with pytest.raises(JournalCorrupt) as by_part:
        by_index(rewritten)
    assert str(by_part.value) == str(by_whole.value)


def test_what_is_not_known_to_be_durable_is_not_indexed():
    disk = MemoryDisk()
    segmented(list(day(0)), disk)
    overwrite(disk, PATH / "HEAD", b"")
    kept = index_journal(PATH, disk=disk)
    reader = Reader(PATH, disk=disk)
    last = [line.first + len(line.entries) - 1 for line in reader.lines()][-1]
    assert [one.segment for one in kept] == [path.name for path in segment_files(disk)]
    assert kept[-1].through == reader.durable < last
    assert by_index(disk) == by_reading(disk)


def test_beside_a_pending_rewrite_the_whole_is_read():
    disk = journal()
    last = segment_files(disk)[-1]
    content = disk.contents()[last]
    journal_id = Reader(PATH, disk=disk)
    list(journal_id.lines())
    start = content.rindex(b"\n", 0, -1) + 1
    saved = encode_saved(Saved(journal_id.journal_id, len(segment_files(disk)), start, content[start:]))
    disk.close(disk.create(PATH / REWRITE))
    overwrite(disk, PATH / REWRITE, saved)
    overwrite(disk, last, content[:start])
    with pytest.raises(NotIndexed):
        by_index(disk)
    assert by_reading(disk) == by_reading(journal())


def test_a_question_reads_the_segments_that_it_is_about_and_of_these_what_it_needs():
    disk = CountingDisk()
    filler = [admitted("08:00", "other") for _ in range(4_000)]
    entries: list[Entry] = [opened(), created("other"), created("report"), *filler]
    entries[1500:1500] = [admitted("09:15"), started(1501, at=at("09:15")), completed(1501, at=at("09:16"))]
    segmented(entries, disk)
    indexed(disk)
    assert len(segment_files(disk)) > 200
    indexes = IndexedJournal(PATH, disk=disk)
    disk.forget()
    indexes.refresh()
    assert max(disk.reads[path.name] for path in segment_files(disk)) <= 6
    disk.forget()
    assert len(indexes.ask(lambda parts: parts.concerning("report"))) == 4
    read = {name: size for name, size in disk.bytes.items() if name.endswith(".jsonl") and size}
    # The creation, the occurrence, and the last segment, at whose end is looked for more.
    assert len(read) <= 4
    assert sum(read.values()) < 2 * SMALL
    disk.forget()
    assert len(indexes.ask(lambda parts: parts.newest("other", 10))) == 10
    assert len({name for name, size in disk.bytes.items() if size and name.endswith(".jsonl")}) <= 3


class ReadOnlyDisk(MemoryDisk):
    """A disk that takes no file any more once it is full."""

    full = False

    def create(self, path: Path) -> int:
        if self.full:
            raise OSError(30, "Read-only file system")
        return super().create(path)


def test_where_nothing_can_be_written_the_answers_are_the_same(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, logger="duly")
    disk = ReadOnlyDisk()
    segmented(list(day(0)), disk)
    disk.full = True
    kept = IndexedJournal(PATH, disk=disk, keep=True)
    assert {name: concerning(kept, name) for name in NAMES} == by_reading(disk)
    assert index_files(disk) == []
    assert "cannot be written" in caplog.text
    with pytest.raises(OSError, match="Read-only"):
        index_journal(PATH, disk=disk)


@given(entries=histories(60))
@settings(max_examples=150)
def test_any_entries_at_all_are_found_by_their_schedule_and_by_their_moment(entries: list[Entry]):
    disk = MemoryDisk()
    segmented(entries, disk)
    indexed(disk)
    indexes = IndexedJournal(PATH, disk=disk)
    for name in {getattr(entry, "schedule_id", None) or "nobody" for entry in entries}:
        assert sequences_of(indexes, name) == [
            sequence for sequence, entry in enumerate(entries, 1) if getattr(entry, "schedule_id", None) == name
        ]
    lost = sum(isinstance(entry, EntryLost) for entry in entries)
    if entries:
        assert indexes.ask(lambda parts: (parts.last, parts.moment().lost)) == (len(entries), lost)
        middle = entries[len(entries) // 2].at
        readings = [(n, entry.at) for n, entry in enumerate(entries, 1) if not isinstance(entry, EntryLost)]
        since = next((sequence for sequence, reading in readings if reading >= middle), len(entries) + 1)
        until = max((sequence for sequence, reading in readings if reading <= middle), default=0)
        assert indexes.ask(lambda parts: parts.first_since(middle)) == since
        assert indexes.ask(lambda parts: parts.last_until(middle)) == until


def sequences_of(indexes: IndexedJournal, name: str) -> list[int]:
    return indexes.ask(lambda parts: [one.sequence for one in parts.entries(name)])
