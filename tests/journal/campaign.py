"""A campaign: run a workload over a simulated disk, lose the power at every call, and hold what is left to the ledger.

Rules:
- After every call that changes the disk, images are drawn from it: every cut of the pending bytes, pages in any subset,
  filler, names lost, HEAD lost or torn, and the death of the process alone (which loses nothing, and hides that nothing
  was durable).
- Each image is read (no damage may be reported), opened (it may not be refused), compared with the ledger, opened
  again (nothing may change), and appended to; while that happens, images are drawn again, down to `depth`.
- An image that was seen with the same ledger is not examined twice; distinct ones are counted by digest.
- Everything follows from the seed. A failure says how the image came about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from unittest.mock import patch

from duly.journal.errors import ForeignJournal, JournalPoisoned
from duly.journal.ownership import CLAIMS
from duly.journal.reader import read
from duly.journal.writer import Journal
from tests.journal.crash_images import (
    FILLERS,
    Blocks,
    Filling,
    digest,
    every_simple_loss,
    every_subset,
    pieces,
    power_loss,
    seeded,
)
from tests.journal.ledger import JOURNAL, Ledger
from tests.journal.simulated_disk import Fault, SimulatedDisk

StepKind: TypeAlias = Literal["append", "group", "queue", "close", "die", "fail", "evict"]
Step: TypeAlias = tuple[StepKind, tuple[tuple[int, ...], ...]]
"""What the workload does, and the batches (sizes of entries) that it does it with."""

SEGMENT_BYTES = 1500
"""Small, so that a short workload rotates several times."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How many images are drawn after each call of the workload, and of what follows an image."""

    cut_step: int = 11
    random: int = 20
    subsets: bool = True
    nested: tuple[float, ...] = (0.12, 0.08, 0.06)
    """How many are drawn, on average, after each call of what follows a crash, by depth."""
    read_every: int = 3
    twice_every: int = 4
    go_on_every: int = 3


QUICK = Budget(cut_step=67, random=3, subsets=False, nested=(0.04, 0.06, 0.06))


@dataclass
class Tally:
    """What a campaign did."""

    images: set[bytes] = field(default_factory=set[bytes])
    examined: int = 0
    opened: int = 0
    by_depth: dict[int, int] = field(default_factory=dict[int, int])


class Campaign:
    """One seed's campaign."""

    def __init__(self, seed: int, budget: Budget, tally: Tally | None = None) -> None:
        self.seed = seed
        self.budget = budget
        self.tally = Tally() if tally is None else tally
        self.random = seeded(f"campaign {seed}")
        self.foreign = foreign_journal(seed)
        self._seen: set[tuple[bytes, int, int]] = set()

    def run(self, steps: Sequence[Step]) -> None:
        """The whole workload, from nothing to the last close, with a crash after every call."""
        with patch("duly.journal.recovery.new_journal_id", return_value=journal_id(self.seed)):
            self._run(steps)

    def _run(self, steps: Sequence[Step]) -> None:
        disk = SimulatedDisk()
        ledger = Ledger()
        trail = [f"seed {self.seed}", "creation"]

        def crash(watched: SimulatedDisk) -> None:
            self.crash(watched, ledger, 0, trail)

        disk.watch = crash
        journal = self.open(disk, ledger)
        for number, step in enumerate(steps):
            trail[1:] = [f"step {number} {step[0]}"]
            if step[0] in ("append", "group", "queue"):
                self.work(journal, ledger, step)
            else:
                disk = self.interrupt(disk, journal, ledger, step)
                disk.watch = crash
                journal = self.open(disk, ledger)
        trail[1:] = ["last close"]
        journal.close()
        assert disk.open_handles() == [], "a closed journal leaves nothing open"
        disk.watch = None
        self.open(disk, ledger).close()

    def open(self, disk: SimulatedDisk, ledger: Ledger) -> Journal:
        """Opens the journal, holds it to the ledger, and takes what it shows as acknowledged."""
        self.tally.opened += 1
        journal = Journal.open(JOURNAL, now=ledger.now, disk=disk, segment_bytes=SEGMENT_BYTES)
        ledger.recovered(list(journal.entries()))
        ledger.shown = lambda: journal.durable_sequence
        assert journal.last_sequence == journal.durable_sequence == len(ledger.entries)
        return journal

    def close(self, journal: Journal, ledger: Ledger) -> None:
        """Closes the journal, which makes what was queued durable."""
        journal.close()
        assert journal.durable_sequence == len(ledger.entries), "a clean close left something behind"
        ledger.acknowledged(len(ledger.entries))

    def work(self, journal: Journal, ledger: Ledger, step: Step) -> None:
        """Appends, or queues several lines and syncs them together, or only queues."""
        kind, batches = step
        for sizes in batches:
            entries = ledger.fresh(sizes)
            expected = ledger.expect(entries)
            if kind == "append":
                first = journal.append(entries, ledger.now)
                ledger.acknowledged(len(ledger.entries))
            else:
                first = journal.enqueue(entries, ledger.now)
            assert first == expected
            assert journal.durable_sequence >= ledger.floor
        if kind == "group":
            journal.sync()
            ledger.acknowledged(len(ledger.entries))
            assert journal.durable_sequence == ledger.floor

    def interrupt(self, disk: SimulatedDisk, journal: Journal, ledger: Ledger, step: Step) -> SimulatedDisk:
        """Ends this owner: by a close, by the death of the process, or by an fsync that fails."""
        kind, batches = step
        if kind == "close":
            self.close(journal, ledger)
            return disk
        if kind == "die":
            survivor = disk.kill()
            disk.go_down()
            return survivor
        for sizes in batches:
            entries = ledger.fresh(sizes)
            ledger.expect(entries)
            journal.enqueue(entries, ledger.now)
        disk.fault_for = lambda _, call, __: Fault(OSError(5, "EIO")) if call == "sync" else None
        try:
            journal.sync()
        except JournalPoisoned:
            pass
        else:
            raise AssertionError("a failed fsync was not reported")
        assert journal.durable_sequence == ledger.floor, "what an fsync failed on is not durable"
        disk.fault_for = None
        journal.close()
        if kind == "evict":
            disk.evict()
        return disk

    # crashes

    def crash(self, disk: SimulatedDisk, ledger: Ledger, depth: int, trail: Sequence[str]) -> None:
        """Loses the power here, in many ways, and examines each."""
        now = ledger.copy()
        now.acknowledged(ledger.shown())
        for number, image in enumerate(self.images(disk, depth)):
            self.examine(image, now, depth, [*trail, f"call {disk.calls} {disk.last_call}", f"image {number}"])

    def images(self, disk: SimulatedDisk, depth: int) -> Iterator[SimulatedDisk]:
        """What the disk may hold."""
        if depth:
            if self.random.random() < self.budget.nested[depth - 1]:
                yield self.draw(disk)
            return
        yield from every_simple_loss(disk, step=self.budget.cut_step)
        yield disk.kill()
        if self.budget.subsets:
            for path, file in disk.walk():
                if path.endswith(".jsonl") and 1 < len(pieces(file)) <= 5:
                    blocks = Blocks(disk, self.foreign)
                    fills = [
                        Filling(kind, blocks.of(kind, path.rpartition("/")[2], self.random), self.random)
                        for kind in FILLERS
                    ]
                    yield from every_subset(disk, file, fills)
        for _ in range(self.budget.random):
            yield self.draw(disk)

    def draw(self, disk: SimulatedDisk) -> SimulatedDisk:
        """One image by chance; of eight, one is the death of the process."""
        if self.random.random() < 0.125:
            return disk.kill()
        return power_loss(disk, self.random, foreign=self.foreign)

    def examine(self, image: SimulatedDisk, ledger: Ledger, depth: int, trail: Sequence[str]) -> None:
        """Reads, opens, compares, opens again and goes on."""
        fingerprint = digest(image)
        key = (fingerprint, ledger.floor, len(ledger.entries))
        if key in self._seen:
            return
        self._seen.add(key)
        tally = self.tally
        if any(path.endswith(".jsonl") for path, _ in image.walk()):
            tally.images.add(fingerprint)
        tally.examined += 1
        if tally.examined % 32 == 0:
            CLAIMS.forget()  # the owners that crashes left behind; in truth they died with their process
        tally.by_depth[depth] = tally.by_depth.get(depth, 0) + 1
        picture = image.kill()
        here = list(trail)
        try:
            self._examine(image, ledger.copy(), depth, here, self.random.randrange(1 << 16))
        except Exception as error:
            story = f"{' > '.join(here)}: {type(error).__name__}: {error}"
            raise CrashFound(story, picture) from error

    def _examine(self, image: SimulatedDisk, ledger: Ledger, depth: int, trail: list[str], draw: int) -> None:
        budget = self.budget
        trail.append("look")
        if draw % budget.read_every == 0:
            self.look(image, ledger)
        if depth < len(budget.nested):
            image.watch = lambda watched: self.crash(watched, ledger, depth + 1, trail)
        trail[-1] = "open"
        journal = self.open(image, ledger)
        if draw % budget.twice_every == 1:
            trail[-1] = "open again"
            self.close(journal, ledger)
            journal = self.open(image, ledger)
        if draw % budget.go_on_every == 0:
            trail[-1] = "go on"
            self.work(journal, ledger, ("append", ((10,), (60, 5))))
            self.work(journal, ledger, ("group", ((0,), (150,), (3, 3, 3))))
        image.watch = None
        journal.close()

    def look(self, image: SimulatedDisk, ledger: Ledger) -> None:
        """A reader beside the crash: it reports no damage, writes nothing, and what it confirms must survive."""
        before = digest(image)
        try:
            records = list(read(JOURNAL, disk=image))
        except ForeignJournal:
            assert ledger.floor == 0, "a reader finds no journal, although entries were acknowledged"
            records = []
        assert digest(image) == before, "a reader wrote"
        assert image.open_handles() == [], "a reader left a file open"
        if JOURNAL / "REWRITE" in image.files():
            # An interrupted rewrite: what the segment lacks is in the side file, and the next owner puts it back.
            relaxed = ledger.copy()
            relaxed.floor = 0
            relaxed.check([(record.sequence, record.entry) for record in records])
        else:
            ledger.check([(record.sequence, record.entry) for record in records])
        confirmed = [record.confirmed for record in records]
        assert confirmed == sorted(confirmed, reverse=True), "an entry before an unconfirmed one is confirmed"
        ledger.acknowledged(confirmed.count(True))


class CrashFound(BaseException):
    """A crash that broke a promise, and how it came about. (No Exception: the journal would turn it into another.)"""

    def __init__(self, story: str, image: SimulatedDisk) -> None:
        super().__init__(story)
        self.image = image


def journal_id(seed: int) -> str:
    """The id of the journal of this seed: fixed, so that equal images are equal."""
    return hashlib.md5(b"%d" % seed, usedforsecurity=False).hexdigest()


def foreign_journal(seed: int) -> SimulatedDisk:
    """A disk with another journal, much like the one under test; blocks of it turn up where nothing was written."""
    disk = SimulatedDisk()
    ledger = Ledger()
    ledger.number = 5000
    with patch("duly.journal.recovery.new_journal_id", return_value=journal_id(-1 - seed)):
        journal = Journal.open(JOURNAL, now=ledger.now, disk=disk, segment_bytes=SEGMENT_BYTES)
    for size in range(0, 140, 7):
        journal.append(ledger.fresh((size,)), ledger.now)
    journal.close()
    return disk


def workload(seed: int, length: int) -> list[Step]:
    """Steps drawn from the seed: batches of all sorts, rotations, closes, deaths, failing fsyncs."""
    random = seeded(f"workload {seed}")

    def batch() -> tuple[int, ...]:
        return tuple(random.choice((0, 3, 40, 160)) for _ in range(random.choice((1, 1, 2, 4))))

    steps: list[Step] = []
    for _ in range(length):
        kind: StepKind = random.choices(
            ("append", "group", "queue", "close", "die", "fail", "evict"), weights=(6, 5, 1, 2, 2, 1, 1)
        )[0]
        steps.append((kind, tuple(batch() for _ in range(random.choice((1, 1, 2, 3))))))
    return steps
