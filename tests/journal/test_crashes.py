"""Crashes: after every call to the disk, in every way, also inside recovery, three deep.

0 acknowledged entries lost, 0 false refusals, 0 entries that were never appended. The long form is `make torture`: it
examines at least 250,000 distinct images.
"""

from __future__ import annotations

import threading
from unittest.mock import patch

import pytest

from duly.journal.errors import JournalPoisoned
from duly.journal.reader import read
from duly.journal.rewriting import Saved, encode_saved
from duly.journal.writer import Journal
from tests.journal.campaign import (
    QUICK,
    SEGMENT_BYTES,
    Budget,
    Campaign,
    Step,
    Tally,
    foreign_journal,
    journal_id,
    workload,
)
from tests.journal.crash_images import every_simple_loss, power_loss, seeded
from tests.journal.ledger import JOURNAL, Ledger
from tests.journal.simulated_disk import Fault, SimulatedDisk

SHARDS = 25
WANTED = 250_000

SCRIPTS: dict[str, list[Step]] = {
    "batches and a rotation": [
        ("append", ((20,), (3, 3, 3))),
        ("group", ((0,), (160,), (40, 40))),
        ("append", ((300,), (300,), (300,))),
        ("group", ((300,), (300, 300), (5,))),
    ],
    "a clean close between two owners": [("append", ((20,),)), ("queue", ((5,),)), ("close", ()), ("append", ((7,),))],
    "the death of the process with a line in the cache": [
        ("append", ((20,),)),
        ("queue", ((5,), (6,))),
        ("die", ()),
        ("append", ((7,),)),
        ("die", ()),
        ("append", ((700,), (700,))),
    ],
    "a failed fsync, and memory pressure after it": [
        ("append", ((20,),)),
        ("fail", ((30,), (90,))),
        ("append", ((7,),)),
        ("evict", ((40,), (5, 5))),
        ("append", ((8,),)),
    ],
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=list(SCRIPTS))
def test_no_crash_loses_or_invents_an_entry(script: list[Step]) -> None:
    campaign = Campaign(len(script), QUICK)
    campaign.run(script)
    assert len(campaign.tally.images) > 150
    assert set(campaign.tally.by_depth) == {0, 1, 2, 3}


@pytest.mark.parametrize("seed", range(2))
def test_no_crash_in_a_drawn_workload_loses_or_invents_an_entry(seed: int) -> None:
    campaign = Campaign(seed, QUICK)
    campaign.run(workload(seed, 4))
    assert len(campaign.tally.images) > 150


@pytest.mark.torture
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_crash_of_a_quarter_of_a_million_loses_or_invents_an_entry(shard: int) -> None:
    tally = Tally()
    seed = shard
    while len(tally.images) < WANTED // SHARDS:
        seed += SHARDS
        Campaign(seed, Budget(), tally).run(workload(seed, 2 + seed % 5))
    assert sum(tally.by_depth.values()) == tally.examined >= len(tally.images) >= WANTED // SHARDS
    assert min(tally.by_depth[depth] for depth in range(4)) > 500
    # Shown by pytest's -rP.
    print(f"shard {shard}: {len(tally.images)} images, {tally.opened} openings, {tally.by_depth}")  # noqa: T201


@pytest.mark.parametrize("seed", range(4))
def test_crashes_beside_threads_that_share_their_fsyncs_lose_and_invent_nothing(seed: int) -> None:
    crash_beside_threads(seed, threads=4, each=5, chance=0.25)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_crashes_beside_threads_lose_and_invent_nothing(seed: int) -> None:
    assert crash_beside_threads(seed, threads=8, each=12, chance=1.0) > 100


def crash_beside_threads(seed: int, *, threads: int, each: int, chance: float) -> int:
    """Threads append; at every call the power may go. The order among threads is the machine's; it is recorded.

    Returns how many images were examined.
    """
    disk = SimulatedDisk()
    random = seeded(f"threads {seed}")
    sequences: dict[int, int] = {}
    taken: dict[int, int] = {}
    acknowledged: set[int] = set()
    examined = 0

    def crash(watched: SimulatedDisk) -> None:
        nonlocal examined
        if random.random() > chance:
            return
        floor = set(acknowledged)
        image = power_loss(watched, random)
        reopened = Journal.open(JOURNAL, now=Ledger().now, disk=image, segment_bytes=SEGMENT_BYTES)
        found = dict(reopened.entries())
        reopened.close()
        examined += 1
        assert list(found) == list(range(1, len(found) + 1))
        numbers = [getattr(entry, "run_id") for entry in found.values()]  # noqa: B009 - every entry here has one
        assert len(set(numbers)) == len(numbers)
        assert set(numbers) <= set(range(threads * each))
        for number in floor:
            assert numbers[taken[number] - 1] == number, f"acknowledged entry {number} is lost or elsewhere"
        for thread in range(threads):
            own = [number for number in numbers if number // each == thread]
            assert own == sorted(own), "the entries of one thread stand in another order"

    with patch("duly.journal.recovery.new_journal_id", return_value=journal_id(seed)):
        journal = Journal.open(JOURNAL, now=Ledger().now, disk=disk, segment_bytes=SEGMENT_BYTES)
    failures: list[BaseException] = []

    def append(thread: int) -> None:
        ledger = Ledger()
        try:
            for number in range(thread * each, thread * each + each):
                ledger.number = number - 1
                taken[number] = journal.append(ledger.fresh((number % 7 * 20,)), ledger.now)
                acknowledged.add(number)
                sequences[taken[number]] = number
        except BaseException as error:
            failures.append(error)

    disk.watch = crash
    started = [threading.Thread(target=append, args=(thread,)) for thread in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(120)
    assert failures == []
    assert sorted(sequences) == list(range(1, threads * each + 1))
    disk.watch = None
    journal.close()
    return examined


def test_the_name_of_a_folder_that_a_dead_process_made_is_synced_before_anything_is_acknowledged() -> None:
    disk = SimulatedDisk()
    disk.make_folder(JOURNAL)
    survivor, ledger = disk.kill(), Ledger()
    journal = Journal.open(JOURNAL, now=ledger.now, disk=survivor)
    entries = ledger.fresh((1,))
    ledger.expect(entries)
    journal.append(entries, ledger.now)
    ledger.acknowledged(1)
    for seed in range(40):
        image = power_loss(survivor, seeded(seed))
        ledger.copy().recovered(list(Journal.open(JOURNAL, now=ledger.now, disk=image).entries()))


def test_the_name_of_a_segment_that_a_dead_process_made_is_synced_before_anything_is_acknowledged() -> None:
    disk, ledger = SimulatedDisk(), Ledger()
    journal = Journal.open(JOURNAL, now=ledger.now, disk=disk, segment_bytes=800)
    for _ in range(2):
        entries = ledger.fresh((200,))
        ledger.expect(entries)
        journal.append(entries, ledger.now)
    survivors: list[SimulatedDisk] = []
    disk.watch = lambda watched: survivors.append(watched.kill())
    disk.log = []
    entries = ledger.fresh((400,))
    ledger.expect(entries)
    journal.append(entries, ledger.now)
    assert [call for call, _ in disk.log].count("create") == 1
    for number, survivor in enumerate(survivors):
        future = ledger.copy()
        reopened = Journal.open(JOURNAL, now=ledger.now, disk=survivor, segment_bytes=800)
        future.recovered(list(reopened.entries()))
        entries = future.fresh((3,))
        future.expect(entries)
        reopened.append(entries, future.now)
        future.acknowledged(len(future.entries))
        for seed in range(20):
            image = power_loss(survivor, seeded(f"{number} {seed}"))
            future.copy().recovered(list(Journal.open(JOURNAL, now=future.now, disk=image).entries()))


@pytest.mark.parametrize("head", ["there", "gone"])
def test_what_a_dead_opening_left_unsynced_is_synced_before_the_journal_goes_on_in_another_segment(head: str) -> None:
    """The process dies at any call of an opening that cuts a torn tail, and the machine lives on. The next owner finds
    nothing to mend, and its first line goes into a new segment: the cut must be durable before that."""
    disk, ledger = SimulatedDisk(), Ledger()
    journal = Journal.open(JOURNAL, now=ledger.now, disk=disk, segment_bytes=1000)
    entries = ledger.fresh((200,))
    ledger.expect(entries)
    journal.append(entries, ledger.now)
    ledger.acknowledged(1)
    entries = ledger.fresh((20,))
    disk.fault_for = lambda _, call, path: (
        Fault(OSError(28, "full"), kept=90) if call == "write" and path.suffix == ".jsonl" else None
    )
    with pytest.raises(JournalPoisoned):
        journal.append(entries, ledger.now)
    torn = disk.kill()
    for file in torn.files().values():
        file.settle()
    if head == "gone":
        _forget_head(torn)
    survivors: list[SimulatedDisk] = []
    torn.watch = lambda watched: survivors.append(watched.kill())
    torn.log = []
    Journal.open(JOURNAL, now=ledger.now, disk=torn, segment_bytes=1000).close()
    assert "truncate" in [call for call, _ in torn.log]
    for survivor in survivors:
        future = ledger.copy()
        reopened = Journal.open(JOURNAL, now=ledger.now, disk=survivor, segment_bytes=1000)
        future.recovered(list(reopened.entries()))
        entries = future.fresh((400,))
        future.expect(entries)
        survivor.log = []
        reopened.append(entries, future.now)
        future.acknowledged(len(future.entries))
        assert "create" in [call for call, _ in survivor.log]
        for image in every_simple_loss(survivor, step=7):
            future.copy().recovered(list(Journal.open(JOURNAL, now=future.now, disk=image).entries()))


def test_a_rewrite_that_was_torn_again_and_again_loses_nothing() -> None:
    disk, ledger = SimulatedDisk(), Ledger()
    journal = Journal.open(JOURNAL, now=ledger.now, disk=disk)
    for size in (40, 90, 10):
        entries = ledger.fresh((size,))
        ledger.expect(entries)
        journal.append(entries, ledger.now)
        ledger.acknowledged(len(ledger.entries))
    journal.close()
    for seed in range(40):
        image = power_loss(disk, seeded(seed))
        _forget_head(image)
        for again in range(4):
            moments: list[SimulatedDisk] = []
            image.watch = lambda watched, into=moments, key=(seed, again): into.append(
                power_loss(watched, seeded(str((key, len(into)))))
            )
            reopened = Journal.open(JOURNAL, now=ledger.now, disk=image)
            ledger.copy().recovered(list(reopened.entries()))
            image = seeded(f"{seed} {again}").choice(moments)
            _forget_head(image)


def test_a_header_that_is_only_in_the_side_file_still_tells_whose_head_it_is() -> None:
    disk, foreign = SimulatedDisk(), foreign_journal(3)
    Journal.open(JOURNAL, now=Ledger().now, disk=disk).close()
    segment = disk.file(JOURNAL / "00000001-0000000000000001.jsonl")
    header = bytes(segment.cache)
    side = disk.create(JOURNAL / "REWRITE")
    disk.write(side, 0, encode_saved(Saved(str(header.partition(b'"j":"')[2][:32], "ascii"), 1, 0, header)))
    disk.close(side)
    segment.cache[:100] = bytes(100)
    disk.file(JOURNAL / "HEAD").cache[:] = foreign.file(JOURNAL / "HEAD").cache
    assert list(read(JOURNAL, disk=disk)) == []
    with Journal.open(JOURNAL, now=Ledger().now, disk=disk) as journal:
        assert journal.recovery.restored == len(header)
    assert bytes(segment.cache) == header


def _forget_head(disk: SimulatedDisk) -> None:
    if JOURNAL / "HEAD" in disk.files():
        disk.remove(JOURNAL / "HEAD")
        disk.sync_folder(JOURNAL)


def test_a_power_cut_in_the_middle_of_a_fault_is_survived_too() -> None:
    for seed in range(30):
        random = seeded(f"fault and cut {seed}")
        disk, ledger = SimulatedDisk(), Ledger()
        journal = Journal.open(JOURNAL, now=ledger.now, disk=disk, segment_bytes=SEGMENT_BYTES)
        for _ in range(3):
            entries = ledger.fresh((random.randrange(200),))
            ledger.expect(entries)
            journal.append(entries, ledger.now)
            ledger.acknowledged(len(ledger.entries))
        entries = ledger.fresh((150,))
        ledger.expect(entries)
        kept = random.randrange(200)
        disk.fault_for = lambda _, call, path, kept=kept: (
            Fault(OSError(28, "full"), kept=kept) if call == "write" and path.suffix == ".jsonl" else None
        )
        with pytest.raises(JournalPoisoned):
            journal.append(entries, ledger.now)
        image = power_loss(disk, random)
        reopened = Journal.open(JOURNAL, now=ledger.now, disk=image, segment_bytes=SEGMENT_BYTES)
        ledger.recovered(list(reopened.entries()))
        assert ledger.floor == 3 or (ledger.floor == 4 and kept >= 150)
        reopened.close()


def test_a_campaign_repeats_itself_from_its_seed() -> None:
    tallies = [Tally(), Tally()]
    for tally in tallies:
        Campaign(7, QUICK, tally).run([("append", ((5,),)), ("die", ())])
    assert tallies[0] == tallies[1]
