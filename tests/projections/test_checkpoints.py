"""Checkpoints: what is opened with one is what is opened without, and whatever is wrong with one costs time alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from duly.journal import Journal, JournalCorrupt
from duly.journal.checkpoint import CHECKPOINT, CheckpointDoubted, Position
from duly.journal.checkpointing import write_checkpoint
from duly.journal.entries import Entry
from duly.projections import State
from duly.projections.checkpoints import Abandoned, StateFolding, follow_checkpoint, save_checkpoint
from duly.projections.snapshot import encode_state, load_state
from tests.projections.samples import DAY, admitted, created, opened
from tests.projections.segmented import CountingDisk, overwrite, segmented
from tests.scheduler.cut_journals import replayed
from tests.scheduler.memory_disk import MemoryDisk
from tests.scheduler.test_prefix_totality import history

PATH = Path("/journal")
IGNORED = "the checkpoint is ignored, and all entries are read: "
ENTRIES: list[Entry] = [opened(), created(), created("other"), *[admitted(f"10:{minute:02}") for minute in range(40)]]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="duly")


def opened_state(disk: MemoryDisk) -> tuple[State, int, tuple[str, ...]]:
    """The state that an owner opens with, how much of it came from a checkpoint, and what it was warned of."""
    folding = StateFolding()
    with Journal.open(PATH, disk=disk.crashed(), folding=folding) as journal:
        return folding.whole(PATH), journal.recovery.checkpoint, journal.recovery.warnings


def loaded(lines: Iterator[bytes]) -> State:
    state = State()
    load_state(state, lines)
    return state


@pytest.mark.parametrize("seed", range(12))
def test_a_checkpoint_at_any_cut_and_the_entries_after_it_give_the_state_of_all_entries(seed: int):
    entries = history(seed)
    disk = MemoryDisk()
    positions: list[Position] = []
    with Journal.open(PATH, now=DAY, disk=disk, segment_bytes=4_000) as journal:
        for entry in entries:
            journal.append([entry], entry.at)
            positions.append(journal.position)
        journal_id = journal.journal_id
    whole = replayed(entries).digest()
    state = State()
    for sequence, entry in enumerate(entries, 1):
        state.apply(sequence, entry)
        save_checkpoint(disk, PATH, journal_id, positions[sequence - 1], state)
        found, taken, warnings = opened_state(disk)
        assert (found.digest(), taken, warnings) == (whole, sequence, ())


@pytest.mark.parametrize("seed", range(12, 18))
def test_a_follower_makes_the_checkpoint_that_the_owner_would_make(seed: int):
    entries = history(seed)
    disk = MemoryDisk()
    with Journal.open(PATH, now=DAY, disk=disk, segment_bytes=4_000) as journal:
        for count, entry in enumerate(entries, 1):
            journal.append([entry], entry.at)
            if count % 7 == 0:
                assert follow_checkpoint(disk, PATH) == count
                found, taken, _ = opened_state(disk)
                assert (found.digest(), taken) == (replayed(entries[:count]).digest(), count)


def test_a_state_goes_through_text_unchanged_and_shares_its_definitions_again():
    state = replayed(history(3))
    again = loaded(encode_state(state))
    assert again.digest() == state.digest()
    assert list(again.by_id) == list(state.by_id)
    assert again.opened == state.opened
    many = State()
    for number in range(1_200):
        many.apply(number + 1, created(f"job-{number:04}"))
    lines = list(encode_state(many))
    assert b"".join(lines).count(b'"target"') == 1
    assert len({id(one.definition) for one in loaded(iter(lines)).by_id.values()}) == 1


def test_what_comes_before_the_checkpoint_is_not_read_but_for_the_ends_of_segments():
    disk = CountingDisk()
    segmented(ENTRIES, disk, path=PATH)
    read_all = CountingDisk()
    segmented(ENTRIES, read_all, path=PATH)
    assert follow_checkpoint(disk, PATH) == len(ENTRIES)
    for one in (disk, read_all):
        one.forget()
        with Journal.open(PATH, disk=one, folding=StateFolding()):
            pass
    segments = sorted(name for name in disk.bytes if name.endswith(".jsonl"))
    assert len(segments) > 4
    # A header and a last line of each, however long they are: these here fit into one reading.
    assert all(disk.reads[name] <= 8 for name in segments[:-1])
    assert disk.bytes[CHECKPOINT] > 0


# What is wrong with one


def ready() -> MemoryDisk:
    """A journal of some segments, with a checkpoint in the middle."""
    disk = MemoryDisk()
    segmented(ENTRIES[:20], disk, path=PATH)
    follow_checkpoint(disk, PATH)
    segmented(ENTRIES[20:], disk, path=PATH)
    return disk


WHOLE = replayed(ENTRIES).digest()


def content(disk: MemoryDisk) -> bytes:
    return disk.contents()[PATH / CHECKPOINT]


def places(data: bytes) -> list[int]:
    """Every byte of the header's fields, and many of the rest."""
    return [*range(240), *range(240, len(data), 37), len(data) - 1]


def test_a_checkpoint_with_any_byte_changed_is_ignored_and_said_so():
    disk = ready()
    good = content(disk)
    assert opened_state(disk)[1] == 20
    for place in places(good):
        overwrite(disk, PATH / CHECKPOINT, good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        state, taken, warnings = opened_state(disk)
        assert (state.digest(), taken, len(warnings)) == (WHOLE, 0, 1), place
        assert warnings[0].startswith(IGNORED)


def test_a_checkpoint_that_is_cut_anywhere_is_ignored_and_said_so():
    disk = ready()
    good = content(disk)
    for place in places(good):
        overwrite(disk, PATH / CHECKPOINT, good[:place])
        state, taken, warnings = opened_state(disk)
        assert (state.digest(), taken, [one[: len(IGNORED)] for one in warnings]) == (WHOLE, 0, [IGNORED]), place


def _of_another_journal(disk: MemoryDisk) -> None:
    overwrite(disk, PATH / CHECKPOINT, content(ready()))


def _of_another_line(disk: MemoryDisk) -> None:
    folding = StateFolding()
    with Journal.open(PATH, disk=disk, folding=folding) as journal:
        segment, place = journal.position
        lying = Position(segment, place._replace(h=bytes(32)))
        save_checkpoint(disk, PATH, journal.journal_id, lying, folding.state)


def _of_a_newer_version(disk: MemoryDisk) -> None:
    folding = StateFolding()
    with Journal.open(PATH, disk=disk, folding=folding) as journal:
        first, *lines = encode_state(folding.state)
        newer = [first.replace(b'"schema":1', b'"schema":2'), *lines]
        write_checkpoint(disk, PATH, journal.journal_id, journal.position, newer)


def _of_no_state(disk: MemoryDisk) -> None:
    with Journal.open(PATH, disk=disk) as journal:
        write_checkpoint(disk, PATH, journal.journal_id, journal.position, [b"{}", b"[]"])


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_of_another_journal, "it belongs to another journal"),
        (_of_another_line, "the journal has another line where it was made"),
        (_of_a_newer_version, "a newer version of duly made it (schema 2, and this one reads 1)"),
        (_of_no_state, "the state in it cannot be decoded"),
    ],
)
def test_a_checkpoint_of_something_else_is_ignored_and_said_so(spoil: Callable[[MemoryDisk], None], reason: str):
    disk = ready()
    spoil(disk)
    state, taken, warnings = opened_state(disk)
    assert (state.digest(), taken) == (WHOLE, 0)
    assert warnings[0].startswith(IGNORED + reason)


def test_a_checkpoint_is_no_witness_against_the_journal_where_the_record_was_made_anew():
    # The same journal, and another history from entry 20 on: the checkpoint of the first is of no use.
    disk = MemoryDisk()
    segmented(ENTRIES[:19], disk, path=PATH)
    other = disk.crashed()
    segmented(ENTRIES[19:], disk, path=PATH)
    follow_checkpoint(disk, PATH)
    changed = [created("new"), *ENTRIES[19:]]
    segmented(changed, other, path=PATH)
    file = other.create(PATH / CHECKPOINT)
    other.write(file, 0, content(disk))
    other.close(file)
    state, taken, warnings = opened_state(other)
    assert (state.digest(), taken) == (replayed([*ENTRIES[:19], *changed]).digest(), 0)
    assert warnings == (f"{IGNORED}the journal has another line where it was made",)


def test_a_journal_that_lacks_what_its_checkpoint_was_made_of_is_refused():
    disk = MemoryDisk()
    segmented(ENTRIES[:20], disk, path=PATH, segment_bytes=1 << 20)
    before = disk.contents()
    segmented(ENTRIES[20:], disk, path=PATH, segment_bytes=1 << 20)
    follow_checkpoint(disk, PATH)
    for path, old in before.items():
        overwrite(disk, path, old)
    with pytest.raises(JournalCorrupt, match="ends before sequence 21, but entries up to 43 were acknowledged"):
        opened_state(disk)


def test_damage_before_the_checkpoint_is_for_verify_and_damage_after_it_is_refused():
    disk = ready()
    [first, *_, last] = sorted(path for path in disk.contents() if path.suffix == ".jsonl")
    for path, place in ((first, 700), (last, 600)):
        spoilt = disk.crashed()
        good = spoilt.contents()[path]
        overwrite(spoilt, path, good[:place] + b"#" + good[place + 1 :])
        if path == first:
            assert opened_state(spoilt)[0].digest() == WHOLE
        else:
            with pytest.raises(JournalCorrupt):
                opened_state(spoilt)


def test_a_making_that_is_broken_off_leaves_what_was_there():
    disk = ready()
    before = content(disk)
    for steps in (0, 3, 9):
        left = iter([True] * steps)
        with pytest.raises(Abandoned):
            follow_checkpoint(disk, PATH, go_on=partial(next, left, False))
        assert content(disk) == before
    assert [path.name for path in disk.contents() if path.name.startswith("checkpoint")] == [CHECKPOINT]


def test_a_state_of_another_moment_is_not_saved():
    disk = ready()
    with Journal.open(PATH, disk=disk) as journal, pytest.raises(ValueError, match="that after 0"):
        save_checkpoint(disk, PATH, journal.journal_id, journal.position, State())


def test_a_checkpoint_is_made_of_what_is_durable_alone():
    disk = ready()
    # Without HEAD the last line is proven by nothing, and its own `d` says how far the others are.
    disk.remove(PATH / "HEAD")
    assert follow_checkpoint(disk, PATH) < len(ENTRIES)
    state, taken, _ = opened_state(disk)
    assert (state.digest(), taken < len(ENTRIES)) == (WHOLE, True)


def test_lines_that_end_early_are_no_state():
    lines = list(encode_state(replayed(ENTRIES)))
    for count in range(len(lines)):
        with pytest.raises(CheckpointDoubted):
            loaded(iter(lines[:count]))
