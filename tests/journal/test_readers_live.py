"""Readers beside a writer that appends, rotates, crashes and reopens: they never report damage, and an entry that they
call confirmed never goes away."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import cast

import pytest

from duly.journal.disk import Disk
from duly.journal.entries import Entry, RunNoted
from duly.journal.errors import ForeignJournal, JournalCorrupt, JournalPoisoned, UnconfirmedGone
from duly.journal.reader import Reader, read
from duly.journal.verification import verify
from duly.journal.writer import Journal
from tests.journal.crash_images import power_loss, seeded
from tests.journal.ledger import JOURNAL, Ledger
from tests.journal.simulated_disk import Fault, SimulatedDisk

SEGMENT_BYTES = 1000


class Writer:
    """An owner on a simulated disk that takes one step at a time: append, group, rotate, close, die, fail."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.disk = SimulatedDisk()
        self.ledger = Ledger()
        self.journal = self.open()

    def open(self) -> Journal:
        journal = Journal.open(JOURNAL, now=self.ledger.now, disk=self.disk, segment_bytes=SEGMENT_BYTES)
        self.ledger.recovered(list(journal.entries()))
        return journal

    def step(self) -> None:
        draw = self.random.random()
        if draw < 0.8:
            for _ in range(self.random.choice((1, 1, 3))):
                entries = self.ledger.fresh(
                    [self.random.choice((0, 40, 200)) for _ in range(self.random.choice((1, 2)))]
                )
                self.ledger.expect(entries)
                self.journal.enqueue(entries, self.ledger.now)
            self.journal.sync()
            self.ledger.acknowledged(len(self.ledger.entries))
        elif draw < 0.9:
            self.journal.close()
            self.journal = self.open()
        else:
            self.fail()

    def fail(self) -> None:
        entries = self.ledger.fresh((50,))
        self.ledger.expect(entries)
        failing = Fault(OSError(5, "EIO"))
        self.disk.fault_for = lambda _, call, path: failing if (call, path.suffix) == ("sync", ".jsonl") else None
        with pytest.raises(JournalPoisoned):
            self.journal.append(entries, self.ledger.now)
        self.disk.fault_for = None
        self.journal.close()
        self.journal = self.open()

    def lose_power(self) -> None:
        """Everything that was not durable is in doubt; the writer is gone."""
        watch = self.disk.watch
        self.disk = power_loss(self.disk, self.random)
        self.journal = self.open()
        self.disk.watch = watch


class Interleaved:
    """A disk for a reader: between two of its calls, something else may happen."""

    def __init__(self, disk: SimulatedDisk, between: Callable[[], None]) -> None:
        self._disk = disk
        self._between = between

    def __getattr__(self, name: str) -> object:
        found: object = getattr(self._disk, name)
        if name in ("names", "open", "read", "size"):
            self._between()
        return found


class Sighted:
    """What readers have seen: an entry that was confirmed once must be the same whenever it is looked for again."""

    def __init__(self) -> None:
        self.confirmed: list[Entry] = []
        self.looks = 0

    def look(self, disk: Disk) -> int:
        """Reads everything; returns how much of it is unconfirmed."""
        records = list(read(JOURNAL, disk=disk))
        self.looks += 1
        entries = [record.entry for record in records]
        assert [record.sequence for record in records] == list(range(1, len(records) + 1))
        count = sum(record.confirmed for record in records)
        assert all(record.confirmed for record in records[:count])
        known = self.confirmed[: len(entries)]
        assert entries[: len(known)] == known, "a confirmed entry changed"
        assert len(entries) >= len(self.confirmed), "a confirmed entry went away"
        if count > len(self.confirmed):
            self.confirmed = entries[:count]
        return len(records) - count


@pytest.mark.parametrize("seed", range(6))
def test_a_reader_at_every_call_of_the_writer_sees_no_damage(seed: int) -> None:
    random = seeded(f"readers {seed}")
    writer, sighted = Writer(random), Sighted()
    unconfirmed = 0

    def look(disk: SimulatedDisk) -> None:
        nonlocal unconfirmed
        watch, disk.watch = disk.watch, None
        faults, disk.fault_for = disk.fault_for, None
        unconfirmed += sighted.look(disk) > 0
        disk.watch, disk.fault_for = watch, faults

    writer.disk.watch = look
    for _ in range(25):
        writer.step()
    assert sighted.looks > 100
    assert unconfirmed > 10, "what is not yet synced is called unconfirmed"
    assert len(sighted.confirmed) == writer.ledger.floor


@pytest.mark.parametrize("seed", range(6))
def test_a_writer_between_the_calls_of_a_reader_shows_it_no_damage(seed: int) -> None:
    random = seeded(f"interleaved {seed}")
    writer, sighted = Writer(random), Sighted()
    steps = 0

    def between() -> None:
        nonlocal steps
        if steps > 0 and random.random() < 0.3:
            steps -= 1
            writer.step()

    disk = cast("Disk", Interleaved(writer.disk, between))
    for _ in range(30):
        steps = 4
        sighted.look(disk)
        steps = 2
        assert verify(JOURNAL, disk=disk, sleep=lambda _: writer.step()).damage is None
    assert len(sighted.confirmed) > 20


class Unsettled(SimulatedDisk):
    """A disk whose listings are no snapshots: the next ones lack some names that are there."""

    def __init__(self) -> None:
        super().__init__()
        self.lacking: list[set[str]] = []

    def names(self, folder: Path) -> list[str]:
        lacking = self.lacking.pop(0) if self.lacking and folder == JOURNAL else set[str]()
        return [name for name in super().names(folder) if name not in lacking]


def test_a_listing_that_shows_a_new_segment_and_lacks_an_older_one_is_no_damage() -> None:
    disk, ledger = Unsettled(), Ledger()
    journal = Journal.open(JOURNAL, now=ledger.now, disk=disk, segment_bytes=500)
    for _ in range(6):
        journal.append(ledger.fresh((50,)), ledger.now)
    journal.close()
    segments = sorted(path.name for path in disk.files() if path.suffix == ".jsonl")
    assert len(segments) == 6
    disk.remove(JOURNAL / "HEAD")
    disk.lacking = [{segments[1], segments[4], segments[5]}, {segments[4]}]
    assert len(list(read(JOURNAL, disk=disk))) == 6
    assert disk.lacking == []
    disk.remove(JOURNAL / segments[3])
    with pytest.raises(JournalCorrupt, match="segment 4 is missing"):
        list(read(JOURNAL, disk=disk))


@pytest.mark.parametrize("seed", range(8))
def test_what_was_confirmed_survives_every_power_cut(seed: int) -> None:
    random = seeded(f"cuts {seed}")
    writer, sighted = Writer(random), Sighted()
    for _ in range(30):
        for _ in range(random.randrange(4)):
            writer.step()
            sighted.look(writer.disk)
        moments: list[SimulatedDisk] = []
        writer.disk.watch = lambda watched, into=moments: into.append(watched.kill())
        writer.step()
        writer.disk.watch = None
        moment = random.choice(moments)
        sighted.look(moment)
        image = power_loss(moment, random)
        sighted.look(image)
        ledger = writer.ledger.copy()
        ledger.floor = len(sighted.confirmed)
        Journal.open(JOURNAL, now=ledger.now, disk=image, segment_bytes=SEGMENT_BYTES).close()
        sighted.look(image)
        future = Writer.__new__(Writer)
        future.random, future.disk, future.ledger = random, image, ledger
        future.journal = future.open()
        writer = future
    assert sighted.looks > 60


@pytest.mark.parametrize("seed", range(6))
def test_a_reader_that_follows_gets_every_entry_once(seed: int) -> None:
    random = seeded(f"follow {seed}")
    writer = Writer(random)
    reader = Reader(JOURNAL, disk=writer.disk)
    got: list[Entry] = []

    def follow(disk: SimulatedDisk) -> None:
        watch, disk.watch = disk.watch, None
        faults, disk.fault_for = disk.fault_for, None
        for record in reader.records():
            assert record.sequence == len(got) + 1
            got.append(record.entry)
        disk.watch, disk.fault_for = watch, faults

    writer.disk.watch = follow
    for _ in range(40):
        writer.step()
    follow(writer.disk)
    assert got == writer.ledger.entries


def test_a_follower_learns_that_something_unconfirmed_went_away() -> None:
    """A failed fsync, and memory pressure: what the follower read as unconfirmed is not there any more, and another
    line stands in its place. That is no damage."""
    writer = Writer(seeded("gone"))
    for size in (30, 30):
        entries = writer.ledger.fresh((size,))
        writer.ledger.expect(entries)
        writer.journal.append(entries, writer.ledger.now)
        writer.ledger.acknowledged(len(writer.ledger.entries))
    reader = Reader(JOURNAL, disk=writer.disk)
    list(reader.records())
    entries = writer.ledger.fresh((100,))
    writer.ledger.expect(entries)
    failing = Fault(OSError(5, "EIO"))
    writer.disk.fault_for = lambda _, call, path: failing if (call, path.suffix) == ("sync", ".jsonl") else None
    with pytest.raises(JournalPoisoned):
        writer.journal.append(entries, writer.ledger.now)
    writer.disk.fault_for = None
    (seen,) = reader.records()
    assert not seen.confirmed
    writer.journal.close()
    writer.disk.evict()
    writer.journal = writer.open()
    assert writer.journal.last_sequence == 2
    for _ in range(3):
        entries = writer.ledger.fresh((10,))
        writer.ledger.expect(entries)
        writer.journal.append(entries, writer.ledger.now)
    with pytest.raises(UnconfirmedGone):
        list(reader.records())
    again = list(Reader(JOURNAL, disk=writer.disk).records())
    assert [record.entry for record in again] == writer.ledger.entries


OWNER = """
    import os, sys
    from datetime import UTC, datetime
    from random import Random
    from duly.journal.entries import RunNoted
    from duly.journal.writer import Journal

    folder, seed = sys.argv[1], int(sys.argv[2])
    random = Random(seed)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    while True:
        with Journal.open(folder, now=now, segment_bytes=4000) as journal:
            print(journal.durable_sequence, flush=True)
            for _ in range(random.randrange(1, 80)):
                first = journal.last_sequence + 1
                count = random.choice((1, 1, 5))
                data = "x" * random.randrange(300)
                journal.append([RunNoted(at=now, run_id=first + n, data=data) for n in range(count)], now)
"""


class Loops:
    """Two readers of a real folder: one reads everything again and again, one follows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stop = threading.Event()
        self.faults: list[BaseException] = []
        self.looks = {"again": 0, "follow": 0}
        self._highest = 0
        self._expected = 1
        self._reader = Reader(folder)
        self._threads = [threading.Thread(target=self._loop, args=(name,)) for name in self.looks]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(60)

    def _loop(self, name: str) -> None:
        try:
            while not self.stop.is_set():
                (self._again if name == "again" else self._follow)()
                self.looks[name] += 1
        except BaseException as error:
            self.faults.append(error)

    def _again(self) -> None:
        last = confirmed = 0
        try:
            for record in read(self.folder):
                last = record.sequence
                assert isinstance(record.entry, RunNoted)
                assert record.entry.run_id == last
                confirmed = last if record.confirmed else confirmed
        except ForeignJournal:
            assert self._highest == 0, "a reader lost the journal"
        assert last >= self._highest, f"{self._highest} was confirmed, and now {last} is the last"
        self._highest = max(self._highest, confirmed)

    def _follow(self) -> None:
        try:
            for record in self._reader.records():
                assert record.sequence == self._expected
                self._expected += 1
        except ForeignJournal:
            assert self._expected == 1, "a follower lost the journal"


def live(folder: Path, seconds: float, seed: int) -> tuple[int, int]:
    """Readers loop beside an owner that is killed again and again. Returns (looks, rounds of the owner)."""
    random = seeded(seed)
    loops = Loops(folder)
    rounds = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end and not loops.faults:
        command = [sys.executable, "-P", "-c", textwrap.dedent(OWNER), str(folder), str(seed + rounds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as owner:
            assert owner.stdout is not None
            owner.stdout.readline()
            time.sleep(random.random() * 0.5)
            owner.kill()
        rounds += 1
    loops.join()
    assert loops.faults == []
    final = verify(folder)
    assert final.damage is None
    assert final.segments > 2
    return min(loops.looks.values()), rounds


def test_readers_beside_an_owner_that_is_killed_and_reopens_see_no_damage(tmp_path: Path) -> None:
    looks, rounds = live(tmp_path / "journal", 2.5, seed=1)
    assert looks > 5
    assert rounds >= 2


@pytest.mark.torture
def test_for_a_minute_readers_beside_an_owner_that_is_killed_and_reopens_see_no_damage(tmp_path: Path) -> None:
    looks, rounds = live(tmp_path / "journal", 60, seed=2)
    assert looks > 100
    assert rounds > 30
