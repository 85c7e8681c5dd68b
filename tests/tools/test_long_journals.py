"""A million entries: what reads a record once holds no more of it than of a short one.

Measured is the most memory that a process of its own held at once. verify, replay and log hold one line at a time;
explain holds a row of half a KiB for each occurrence of the one schedule that it is asked about.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.tools.long_journal import Taken, make_long, minute_of, taken_by

MOST_GROWTH = 1.3
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")


def measured(path: Path, entries: int) -> dict[str, Taken]:
    """What each command took about a journal of so many entries, and that it was right."""
    make_long(path, entries)
    instant = minute_of(entries).isoformat()
    taken = {
        "verify": taken_by("verify", path),
        "replay": taken_by("replay", path),
        "log": taken_by("log", path),
        "log of one": taken_by("log", path, "--schedule", "job-3"),
        "explain": taken_by("explain", "job-3", instant, "-j", path),
    }
    assert {name: (one.code, one.err) for name, one in taken.items()} == dict.fromkeys(taken, (0, ""))
    assert 0.9 * entries < taken["log"].lines <= entries
    assert 0 < taken["log of one"].lines < entries / 50
    return taken


def hold_bounded(short: dict[str, Taken], long: dict[str, Taken]) -> None:
    grown = {name: round(long[name].peak / one.peak, 2) for name, one in short.items()}
    assert {name: times for name, times in grown.items() if times > MOST_GROWTH} == {}, grown


@on_linux
def test_twenty_thousand_entries_take_no_more_memory_than_five(tmp_path: Path):
    hold_bounded(measured(tmp_path / "short", 5_000), measured(tmp_path / "long", 20_000))


@on_linux
@pytest.mark.torture
def test_a_million_entries_take_no_more_memory_than_a_hundred_thousand(tmp_path: Path):
    hold_bounded(measured(tmp_path / "short", 100_000), measured(tmp_path / "long", 1_000_000))
