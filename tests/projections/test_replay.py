"""Replay: a journal folded by whoever may read it, to any point, beside its owner."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from duly.journal import Entry, Journal, Reader, RealDisk, UnconfirmedGone
from duly.journal.reader import Line
from duly.projections import NaiveInstant, State, replay
from tests.projections.samples import DAY, admitted, at, completed, created, folded, opened, regressed, started

RECORD: list[Entry] = [
    opened("09:00"),
    created(when="09:00"),
    admitted("09:15"),
    started(3, at=at("09:16")),
    completed(3, at=at("09:20"), result={"rows": 12}),
    admitted("09:30"),
]


def written(folder: Path, *entries: Entry) -> Path:
    with Journal.open(folder, now=DAY, disk=HeadlessDisk()) as journal:
        for entry in entries:
            journal.append([entry], entry.at)
    return folder


class HeadlessDisk(RealDisk):
    """The real disk without its syncs, which prove nothing here, and with a gate behind each write."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def sync(self, file: int) -> None:
        self.written.set()
        assert self.gate.wait(10)


def test_a_replayed_state_is_the_folded_one(tmp_path: Path):
    journal = written(tmp_path / "j", *RECORD)
    state = replay(journal)
    assert state.sequence == 6
    assert state.digest() == folded(*RECORD).digest()
    assert replay(str(journal)).digest() == state.digest()


@pytest.mark.parametrize("until", range(8))
def test_replay_until_a_sequence_is_the_fold_of_that_many_entries(tmp_path: Path, until: int):
    state = replay(written(tmp_path / "j", *RECORD), until=until)
    assert state.sequence == min(until, 6)
    assert state.digest() == folded(*RECORD[:until]).digest()


@pytest.mark.parametrize(
    ("until", "sequence"),
    [("08:59:59", 0), ("09:00", 2), ("09:15", 3), ("09:15:59", 3), ("09:20", 5), ("23:59", 6)],
)
def test_replay_until_an_instant_is_up_to_the_last_entry_that_is_not_later(tmp_path: Path, until: str, sequence: int):
    assert replay(written(tmp_path / "j", *RECORD), until=at(until)).sequence == sequence


def test_replay_until_an_instant_goes_to_the_last_such_entry_though_the_clock_was_stepped_back(tmp_path: Path):
    stepped: list[Entry] = [*RECORD, regressed("09:01", "09:30"), admitted("09:16", at=at("09:16"))]
    journal = written(tmp_path / "j", *stepped)
    assert replay(journal, until=at("09:10")).sequence == 7
    assert replay(journal, until=at("09:16")).sequence == 8
    assert replay(journal, until=at("09:00")).sequence == 2


def test_an_instant_in_another_zone_is_the_same_instant(tmp_path: Path):
    journal = written(tmp_path / "j", *RECORD)
    east = at("09:15").astimezone(datetime.fromisoformat("2026-03-02T00:00:00+07:00").tzinfo)
    assert replay(journal, until=east).sequence == 3


def test_catching_up_folds_in_what_came_since(tmp_path: Path):
    with Journal.open(tmp_path / "j", now=DAY, disk=HeadlessDisk()) as journal:
        journal.append(RECORD[:3], at("09:15"))
        state = replay(tmp_path / "j")
        assert (state.sequence, state.catch_up()) == (3, 0)
        journal.append(RECORD[3:5], at("09:20"))
        journal.append(RECORD[5:], at("09:30"))
        assert state.catch_up() == 3
        assert state.digest() == folded(*RECORD).digest()
        assert state.catch_up() == 0


def test_catching_up_never_holds_what_could_still_vanish(tmp_path: Path):
    disk = HeadlessDisk()
    with Journal.open(tmp_path / "j", now=DAY, disk=disk) as journal:
        journal.append(RECORD[:3], at("09:15"))
        follower = replay(tmp_path / "j")
        disk.gate.clear()
        disk.written.clear()
        writer = threading.Thread(target=lambda: journal.append(RECORD[3:], at("09:30")))
        writer.start()
        try:
            assert disk.written.wait(10)
            assert follower.catch_up() == 0
            assert follower.digest() == folded(*RECORD[:3]).digest()
            eager = replay(tmp_path / "j")
            careful = replay(tmp_path / "j", confirmed=True)
            assert (eager.sequence, eager.unconfirmed) == (6, 3)
            assert (careful.sequence, careful.unconfirmed) == (3, 0)
            eager.catch_up()
            assert (eager.sequence, eager.unconfirmed) == (3, 0)
            assert eager.digest() == folded(*RECORD[:3]).digest()
        finally:
            disk.gate.set()
            writer.join()
        assert (follower.catch_up(), eager.catch_up(), careful.catch_up()) == (3, 3, 3)
        assert {follower.digest(), eager.digest(), careful.digest()} == {folded(*RECORD).digest()}


def test_a_follower_beside_a_writer_sees_a_prefix_each_time_and_in_the_end_all(tmp_path: Path):
    disk = HeadlessDisk()
    digests = [folded(*RECORD[:n]).digest() for n in range(len(RECORD) + 1)]
    with Journal.open(tmp_path / "j", now=DAY, disk=disk) as journal:
        follower = replay(tmp_path / "j")
        writer = threading.Thread(target=lambda: [journal.append([entry], entry.at) for entry in RECORD])
        writer.start()
        seen = [follower.digest()]
        while follower.sequence < len(RECORD):
            before = follower.sequence
            assert follower.catch_up() == follower.sequence - before
            seen.append(follower.digest())
        writer.join()
    positions = [digests.index(digest) for digest in seen]
    assert positions == sorted(positions)
    assert positions[-1] == len(RECORD)


def test_a_replay_writes_nothing(tmp_path: Path):
    journal = written(tmp_path / "j", *RECORD)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in journal.rglob("*") if path.is_file()}
    replay(journal, until=at("09:10")).catch_up()
    assert {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in journal.rglob("*") if path.is_file()
    } == before


def test_a_point_in_time_without_a_zone_is_refused_with_a_typed_error(tmp_path: Path):
    journal = written(tmp_path / "j", *RECORD)
    with pytest.raises(NaiveInstant, match="names no instant"):
        replay(journal, until=datetime(2026, 3, 2, 9, 15))  # noqa: DTZ001 - that is the point
    assert replay(journal, until=datetime(2026, 3, 2, 9, 15, tzinfo=UTC)).sequence > 0


def test_the_settings_in_force_are_those_of_the_last_owner(tmp_path: Path):
    settings = opened("10:00", task_slots=7, clock_tolerance=timedelta(minutes=1))
    state = replay(written(tmp_path / "j", *RECORD, settings))
    assert state.opened == settings
    assert state.opened_sequence == 7


class BrokenOff(BaseException):
    """An interrupt."""


@pytest.mark.parametrize("done", [False, True], ids=["before the fold", "behind the fold"])
@pytest.mark.parametrize("line", range(len(RECORD)))
def test_a_reading_that_was_interrupted_is_made_good_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: int, done: bool
):
    """Wherever it broke off: what was read may not be folded in, and what was folded in may be half of an entry."""
    module = import_module("duly.projections.replay")
    journal = written(tmp_path / "j", opened("08:00"))
    follower = replay(journal)
    written(journal, *RECORD)
    fold, folds = module.fold_entries, 0

    def interrupted(state: State, first: int, entries: tuple[Entry, ...]) -> None:
        nonlocal folds
        folds += 1
        if folds <= line:
            fold(state, first, entries)
            return
        before = state.sequence
        if done:
            fold(state, first, entries)
            state.sequence = before  # its last store
        raise BrokenOff

    with monkeypatch.context() as broken:
        broken.setattr(module, "fold_entries", interrupted)
        with pytest.raises(BrokenOff):
            follower.catch_up()
    follower.catch_up()
    assert follower.digest() == folded(opened("08:00"), *RECORD).digest()


@pytest.mark.parametrize("until", range(1, len(RECORD) + 1))
def test_a_replay_of_what_is_durable_ends_where_it_is_told_to_also_if_that_becomes_durable_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: int
):
    class ReaderOfALiveJournal(Reader):
        def lines(self, after: int = 0) -> Iterator[Line]:
            for line in super().lines(after):
                yield msgspec.structs.replace(line, confirmed=False)

    path = tmp_path / "j"
    with Journal.open(path, now=DAY, disk=HeadlessDisk()) as journal:
        for some in (RECORD[:3], RECORD[3:]):
            journal.append(some, some[-1].at)
    monkeypatch.setattr(import_module("duly.projections.replay"), "Reader", ReaderOfALiveJournal)
    state = replay(path, until=until, confirmed=True)
    assert (state.sequence, state.digest()) == (until, folded(*RECORD[:until]).digest())
    assert state.catch_up() == len(RECORD) - until
    assert state.digest() == folded(*RECORD).digest()


def test_a_replay_whose_end_a_crash_took_while_it_was_read_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    journal = written(tmp_path / "j", *RECORD)
    looks = 0

    class ReaderBesideACrash(Reader):
        def lines(self, after: int = 0) -> Iterator[Line]:
            nonlocal looks
            looks += 1
            yield from super().lines(after)
            if looks == 1:
                yield Line(7, (RECORD[-1],), confirmed=False, segment="", offset=0)
                raise UnconfirmedGone("it was never acknowledged")

    monkeypatch.setattr(import_module("duly.projections.replay"), "Reader", ReaderBesideACrash)
    state = replay(journal)
    assert (looks, state.digest()) == (2, folded(*RECORD).digest())
