"""Histories by the hundred: what must hold whatever happens, holds.

The normal suite runs the same seeds each time; `make torture SEEDS=20000` runs as many as it says, from a seed on that
`FIRST` may name, in shards that several processes share.
"""

from __future__ import annotations

import os

import pytest

from tests.scheduler.timeline import described, transcripts
from tests.scheduler.timeline_text import parse_timeline
from tests.simulation.campaign import run, run_all

SUITE = 400
SUITE_SHARDS = 8
TORTURE_SHARDS = 64
REGRESSIONS = (26, 36, 499, 572)
"""Seeds that found something once. (They may not find it again, since the workload has changed meanwhile.)"""


@pytest.mark.parametrize("shard", range(SUITE_SHARDS))
def test_no_promise_is_broken(shard: int) -> None:
    run_all(range(shard, SUITE, SUITE_SHARDS))


@pytest.mark.torture
@pytest.mark.parametrize("shard", range(TORTURE_SHARDS))
def test_no_promise_is_broken_in_many_histories(shard: int) -> None:
    first = int(os.environ.get("FIRST", str(SUITE)))
    run_all(range(first + shard, first + int(os.environ.get("SEEDS", "20000")), TORTURE_SHARDS))


def test_a_seed_repeats_its_history_exactly() -> None:
    assert str(run(17).story) == str(run(17).story)


def test_every_history_can_be_read_as_a_timeline() -> None:
    for seed in range(40):
        assert parse_timeline(str(run(seed).story))


@pytest.mark.parametrize("seed", range(12))
def test_a_calm_history_is_told_as_a_timeline_that_passes(seed: int) -> None:
    """What is printed for a failing seed can be pasted into `check`: all happens there as it did here."""
    lines = parse_timeline(str(run(seed, calm=True).story))
    expected, actual = transcripts(lines, crashing=False)
    assert actual == expected, described(lines, expected, actual, crashing=False)


def test_the_histories_see_what_they_are_for() -> None:
    """Crashes, recoveries of every kind, threads, faults and clocks that step back all occur in a few dozen seeds."""
    told = [str(run(seed).story) for seed in range(60)]
    for wanted in ("# at once", "# the power is lost", "# the disk fails", "abandon", "regress", "jump", "resume"):
        assert sum(wanted in one for one in told) >= 3, wanted
