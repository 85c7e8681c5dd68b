"""Crashes and failures while an index is written: no journal notices, and no answer changes."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pytest

from duly.journal import Journal, Reader
from duly.journal.entries import Entry
from duly.projections.indexed import IndexedJournal, NotIndexed, index_journal
from tests.journal.crash_images import power_loss, seeded
from tests.journal.simulated_disk import Call, Fault, Root, SimulatedDisk
from tests.projections.samples import admitted, created, opened
from tests.projections.segmented import segmented

PATH = Root / "journal"
ENTRIES: list[Entry] = [opened(), created(), created("other"), *[admitted(f"10:{minute:02}") for minute in range(40)]]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="duly")


def found(disk: SimulatedDisk) -> list[tuple[int, Entry]]:
    """The entries of the schedule, by the indexes if they are of use."""
    try:
        return IndexedJournal(PATH, disk=disk).ask(lambda parts: parts.concerning("report"))
    except NotIndexed:
        records = Reader(PATH, disk=disk).records()
        return [(one.sequence, one.entry) for one in records if getattr(one.entry, "schedule_id", "") == "report"]


EXPECTED = [(number, entry) for number, entry in enumerate(ENTRIES, 1) if getattr(entry, "schedule_id", "") == "report"]


def half_indexed() -> SimulatedDisk:
    """A journal of which a part is indexed, and its last segment up to its middle."""
    disk = SimulatedDisk()
    segmented(ENTRIES[:25], disk, path=PATH)
    index_journal(PATH, disk=disk)
    segmented(ENTRIES[25:], disk, path=PATH)
    return disk


def indexes(disk: SimulatedDisk) -> dict[Path, bytes]:
    return {path: bytes(file.cache) for path, file in disk.files().items() if path.suffix == ".index"}


def check_usable(image: SimulatedDisk) -> None:
    """The image opens, holds every entry, and is indexed as if nothing had happened."""
    assert found(image) == EXPECTED
    with Journal.open(PATH, disk=image) as journal:
        assert [entry for _, entry in journal.entries()] == ENTRIES
        assert journal.recovery.warnings in {(), ("HEAD is missing or torn: a cut tail could not be noticed by it",)}
    index_journal(PATH, disk=image)
    names = image.names(PATH)
    assert sorted(name[:-6] for name in names if name.endswith(".index")) == sorted(
        name[:-6] for name in names if name.endswith(".jsonl")
    )
    assert not [name for name in names if name.endswith(".new")]
    assert IndexedJournal(PATH, disk=image).ask(lambda parts: parts.concerning("report")) == EXPECTED


def test_a_power_cut_at_any_moment_leaves_a_journal_that_opens_and_answers():
    disk = half_indexed()
    images: list[SimulatedDisk] = []

    def watch(watched: SimulatedDisk) -> None:
        images.append(watched.kill())
        images.extend(power_loss(watched, seeded(f"{len(images)} {seed}")) for seed in range(8))

    disk.watch = watch
    index_journal(PATH, disk=disk)
    disk.watch = None
    assert len(images) > 150
    for image in images:
        check_usable(image)
    assert found(disk) == EXPECTED
    for seed in range(8):
        assert indexes(power_loss(disk, seeded(seed))) == indexes(disk)


def test_a_failure_at_any_call_is_a_failure_of_the_index_alone():
    counted = half_indexed().kill()
    index_journal(PATH, disk=counted)
    assert counted.calls > 100
    for number in range(1, counted.calls + 1):
        failing = half_indexed().kill()

        def fail(call_number: int, call: Call, path: Path, number: int = number) -> Fault | None:
            is_index = ".index" in path.name
            return Fault(error=OSError(errno.ENOSPC, "no space")) if call_number == number and is_index else None

        failing.fault_for = fail
        kept = IndexedJournal(PATH, disk=failing, keep=True)
        assert kept.ask(lambda parts: parts.concerning("report")) == EXPECTED, number
        failing.fault_for = None
        assert found(failing) == EXPECTED, number
