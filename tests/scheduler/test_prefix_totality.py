"""Recovery is total over every prefix: long random histories, cut after every entry, opened twice and polled on.

The histories come from the simulation, crashes, faults, threads and wrong clocks included. `make torture` takes a
thousand of them.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from duly import Completed, ManualClock, StillRunning
from duly.journal.entries import Entry, JournalClosed, JournalOpened
from tests.journal.crash_images import seeded
from tests.scheduler.cut_journals import entries_of, opened, prefixes, replayed
from tests.scheduler.memory_disk import MemoryDisk
from tests.simulation.chronicle import Chronicle
from tests.simulation.evidence import Answer, Memory, expected_verdicts, verdict_of
from tests.simulation.machine import one_machine
from tests.simulation.world import World

SUITE = 48
SUITE_SHARDS = 4
TORTURE = 1000
TORTURE_SHARDS = 40
POLLS = 60


def history(seed: int) -> list[Entry]:
    """What a simulated journal holds in the end."""
    with one_machine(seed):
        world = World(seed)
        for _ in range(world.random.randrange(8, 24)):
            world.step()
        world.scheduler.close()
        return world.record


def known(random: Random) -> Memory:
    """Evidence of any kind, the same for the same run."""
    answers: dict[int, Answer] = {}

    def answer(run_id: int, attempt_id: int | None) -> Answer:
        choices = (None, StillRunning(run_id), Completed(run_id, attempt_id), Completed(run_id, run_id))
        return answers.setdefault(run_id, random.choice(choices))

    return Memory(answer)


def examine(seed: int) -> int:
    """Cuts one history everywhere; returns in how many places."""
    entries = history(seed)
    random = seeded(f"prefixes {seed}")
    highest = max(entry.at for entry in entries if entry.at.year <= 2100)
    for count, disk in prefixes(entries):
        clock = ManualClock(highest + random.choice((timedelta(), timedelta(seconds=61), timedelta(hours=5))))
        try:
            _open_twice_and_poll_on(entries[:count], disk, clock, random)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, cut after entry {count}: {error}") from error
    return len(entries)


def _open_twice_and_poll_on(prefix: list[Entry], disk: MemoryDisk, clock: ManualClock, random: Random) -> None:
    count = len(prefix)
    memory = known(random)
    first = opened(disk, clock, memory)
    appended = entries_of(disk, count)
    verdicts = [verdict_of(entry) for entry in appended[1:]]
    assert isinstance(appended[0], JournalOpened)
    assert verdicts == expected_verdicts(Chronicle(enumerate(prefix, 1)), memory)
    assert first.digest() == replayed([*prefix, *appended]).digest()
    again = disk.crashed()
    first.close()
    still = Memory(lambda run_id, _: StillRunning(run_id))
    second = opened(again, clock, still)
    assert [type(entry) for entry in entries_of(again, count + len(appended))] == [JournalOpened]
    for _ in range(POLLS):
        poll = second.poll(start=random.random() < 0.3)
        if not poll.more:
            break
    else:
        raise AssertionError("there is always more")
    whole = entries_of(again)
    Chronicle(enumerate(whole, 1))
    state = replayed(whole)
    assert second.digest() == state.digest()
    assert state.anomalies == []
    second.close()
    assert isinstance(entries_of(again)[-1], JournalClosed)


@pytest.mark.parametrize("shard", range(SUITE_SHARDS))
def test_every_prefix_of_a_history_opens_and_goes_on(shard: int) -> None:
    assert sum(examine(seed) for seed in range(shard, SUITE, SUITE_SHARDS)) > 100


@pytest.mark.torture
@pytest.mark.parametrize("shard", range(TORTURE_SHARDS))
def test_every_prefix_of_a_thousand_histories_opens_and_goes_on(shard: int) -> None:
    assert sum(examine(10_000 + seed) for seed in range(shard, TORTURE, TORTURE_SHARDS)) > 100
