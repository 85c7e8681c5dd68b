"""Following a journal: everything once, nothing before it is durable, and nothing read twice."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duly import Cron, ManualClock, Scheduler
from duly.journal import Entry, Journal, JournalCorrupt, RealDisk
from duly.journal.entries import RunNoted
from duly.journal.following import Following
from duly.projections import replay
from tests.tools.conftest import Duly

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class WatchedDisk(RealDisk):
    """The real disk, with a gate before each sync of contents, and a count of what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.calls = 0
        self.bytes = 0

    def read(self, file: int, offset: int, size: int) -> bytes:
        data = super().read(file, offset, size)
        self.calls += 1
        self.bytes += len(data)
        return data

    def sync(self, file: int) -> None:
        self.written.set()
        assert self.gate.wait(10)


def notes(*texts: str) -> Sequence[Entry]:
    return [RunNoted(at=NOW, run_id=1, data=text) for text in texts]


def told(following: Following) -> list[object]:
    records = list(following.records())
    assert all(record.confirmed for record in records)
    return [getattr(record.entry, "data", None) for record in records]


def test_each_entry_is_told_once_when_it_is_durable(tmp_path: Path):
    disk = WatchedDisk()
    with Journal.open(tmp_path / "j", now=NOW, disk=disk, segment_bytes=700) as journal:
        journal.append(notes("a", "b"), NOW)
        following = Following(tmp_path / "j")
        assert (told(following), told(following)) == (["a", "b"], [])
        disk.gate.clear()
        disk.written.clear()
        writer = threading.Thread(target=lambda: journal.append(notes("c", "d"), NOW))
        writer.start()
        try:
            assert disk.written.wait(10)
            assert (told(following), told(following)) == ([], [])
        finally:
            disk.gate.set()
            writer.join()
        assert (told(following), told(following)) == (["c", "d"], [])
        for number in range(40):
            journal.append(notes(str(number)), NOW)
            assert told(following) == [str(number)]


def test_what_is_not_wanted_is_left_out(tmp_path: Path):
    with Journal.open(tmp_path / "j", now=NOW, disk=WatchedDisk()) as journal:
        journal.append(notes("a", "b", "c"), NOW)
        following = Following(tmp_path / "j", after=2)
        journal.append(notes("d"), NOW)
        assert told(following) == ["c", "d"]


def test_a_look_at_a_journal_in_which_nothing_happened_costs_next_to_nothing(tmp_path: Path):
    disk = WatchedDisk()
    with Journal.open(tmp_path / "j", now=NOW, disk=WatchedDisk()) as journal:
        for _ in range(50):
            journal.append(notes(*["x" * 1000] * 20), NOW)
        following = Following(tmp_path / "j", disk=disk)
        assert len(told(following)) == 1000
        assert disk.bytes > 1_000_000
        disk.calls = disk.bytes = 0
        assert told(following) == []
        assert (disk.bytes < 1000, disk.calls < 5) == (True, True)
        journal.append(notes("new"), NOW)
        disk.bytes = 0
        assert told(following) == ["new"]
        assert disk.bytes < 2000


@pytest.mark.parametrize(
    "instead",
    [
        [["B"]],
        [["longer than the one that is lost"]],
        [["lost 1"]],
        [["B", "C"]],
        [["B"], ["C"], ["D"], ["E"]],
        [["lost 1"], ["lost 2 "]],
        [["lost 1"], ["lost 3"]],
    ],
)
def test_what_a_power_cut_took_was_never_told_and_what_replaced_it_is(instead: list[list[str]], tmp_path: Path):
    path, kept = tmp_path / "j", tmp_path / "kept"
    with Journal.open(path, now=NOW, disk=WatchedDisk()) as journal:
        journal.append(notes("a"), NOW)
    shutil.copytree(path, kept)
    following = Following(path)
    assert told(following) == ["a"]
    disk = WatchedDisk()
    with Journal.open(path, now=NOW, disk=disk) as journal:
        disk.gate.clear()
        disk.written.clear()
        journal.enqueue(notes("lost 1"), NOW)
        journal.enqueue(notes("lost 2"), NOW)
        writer = threading.Thread(target=journal.sync)
        writer.start()
        try:
            assert disk.written.wait(10)
            assert told(following) == []
            lost = path.rename(tmp_path / "lost")
            shutil.copytree(kept, path)  # the machine comes back without what was never synced
        finally:
            disk.gate.set()
            writer.join()
    assert lost.exists()
    seen: list[object] = []
    with Journal.open(path, now=NOW, disk=WatchedDisk()) as journal:
        for line in instead:
            journal.append(notes(*line), NOW)
            seen += told(following)
    assert seen == [text for line in instead for text in line]


def test_damage_to_what_was_read_on_is_told(tmp_path: Path):
    with Journal.open(tmp_path / "j", now=NOW, disk=WatchedDisk()) as journal:
        journal.append(notes("a"), NOW)
        following = Following(tmp_path / "j")
        assert told(following) == ["a"]
        journal.append(notes("b"), NOW)
    [segment] = (tmp_path / "j").glob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b'"b"', b'"c"'))
    with pytest.raises(JournalCorrupt):
        told(following)


@pytest.fixture
def regressed(tmp_path: Path) -> Path:
    """A journal whose clock went back in the middle."""
    clock = ManualClock(NOW + timedelta(hours=12))
    with Scheduler.open(tmp_path / "state", clock=clock) as scheduler:
        scheduler.create("a", Cron("0 0 1 1 *", zone="UTC"), target="t")
        clock.advance(timedelta(hours=1))
        scheduler.pause("a")
        clock.step(timedelta(hours=-2))
        scheduler.unpause("a")
    return tmp_path / "state"


def test_the_log_ends_where_a_replay_ends_also_when_the_clock_went_back(regressed: Path, duly: Duly):
    entries = [row["entry"] for row in duly("log", regressed, "--format", "jsonl").rows]
    instants = sorted({entry["at"] for entry in entries})
    assert len(instants) == 3
    assert [entry["at"] for entry in entries] != sorted(entry["at"] for entry in entries)
    for instant in [*instants, "2026-03-01T00:00:00Z", "2027-01-01T00:00:00Z"]:
        rows = duly("log", regressed, "--format", "jsonl", "--until", instant).rows
        through = replay(regressed, until=datetime.fromisoformat(instant)).sequence
        assert [row["sequence"] for row in rows] == list(range(1, through + 1))


def test_the_log_since_an_instant_goes_on_when_the_clock_goes_back(regressed: Path, duly: Duly):
    entries = [row["entry"] for row in duly("log", regressed, "--format", "jsonl").rows]
    latest = max(entry["at"] for entry in entries)
    rows = duly("log", regressed, "--format", "jsonl", "--since", latest).rows
    first = next(number for number, entry in enumerate(entries) if entry["at"] == latest)
    assert [row["entry"] for row in rows] == entries[first:]
    assert rows[-1]["entry"]["at"] < latest
