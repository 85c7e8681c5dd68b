"""Checkpoints and archiving on a disk that loses its power and fails: no entry is lost, and no opening is refused."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from duly.journal import Journal, JournalError
from duly.journal.archived import JoinedDisk
from duly.journal.entries import Checkpoint, Entry
from duly.journal.reader import Reader
from duly.journal.segments import parse_segment
from duly.projections import State
from duly.projections.archiving import Archived, archive
from duly.projections.checkpoints import StateFolding, follow_checkpoint
from duly.projections.indexed import index_journal
from tests.journal.crash_images import power_loss, seeded
from tests.journal.simulated_disk import Call, Fault, Root, SimulatedDisk
from tests.projections.samples import DAY, admitted, created, opened
from tests.projections.segmented import segmented
from tests.scheduler.cut_journals import replayed

PATH = Root / "journal"
ARCHIVE = Root / "archive"
ENTRIES: list[Entry] = [opened(), created(request="once"), *[admitted(f"10:{minute:02}") for minute in range(24)]]
PASSED_BY = "the checkpoint is ignored, and all entries are read: the segment that it was made after is archived"
HEAD_LOST = "HEAD is missing or torn: a cut tail could not be noticed by it"


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="duly")


def ready() -> SimulatedDisk:
    """A journal of some segments with their indexes, and a checkpoint in its middle."""
    disk = SimulatedDisk()
    segmented(ENTRIES[:15], disk, path=PATH)
    follow_checkpoint(disk, PATH)
    segmented(ENTRIES[15:], disk, path=PATH)
    index_journal(PATH, disk=disk)
    return disk


def archived(disk: SimulatedDisk) -> Archived:
    return archive(PATH, ARCHIVE, now=DAY, disk=disk)


def told(state: State) -> str:
    """The state's digest without the moment that it was written into a segment."""
    state.sequence, state.opened_sequence, state.last_at, state.highest_at = 0, 0, None, None
    return state.digest()


WHOLE = told(replayed(ENTRIES))


def check_opens(image: SimulatedDisk, bearable: frozenset[str] | set[str] = frozenset()) -> None:
    """The journal opens, without any complaint but about HEAD, with the whole state."""
    folding = StateFolding()
    with Journal.open(PATH, disk=image, folding=folding) as journal:
        assert set(journal.recovery.warnings) <= {HEAD_LOST} | bearable
        assert told(folding.whole(PATH)) == WHOLE


def check_record(image: SimulatedDisk) -> None:
    """The journal and its archive hold every entry, and the chain goes across."""
    there = "archive" in image.names(Root)
    disk = JoinedDisk(image, PATH, ARCHIVE) if there else image
    entries = [record.entry for record in Reader(PATH, disk=disk).records()]
    assert [entry for entry in entries if not isinstance(entry, Checkpoint) and entry.at != DAY] == ENTRIES


def check_archived(image: SimulatedDisk, bearable: frozenset[str] | set[str] = frozenset()) -> None:
    """What was broken off is done by doing it again."""
    first = archived(image).first
    assert first > len(ENTRIES)
    left = [segment for segment in map(parse_segment, image.names(PATH)) if segment is not None]
    moved = sorted(segment for segment in map(parse_segment, image.names(ARCHIVE)) if segment is not None)
    assert [segment.first for segment in left] == [first]
    assert [segment.number for segment in moved] == list(range(1, left[0].number))
    check_record(image)
    check_opens(image, bearable)


def across(call_number: int, call: Call, path: Path) -> Fault | None:
    """Two file systems: no file has a name in both."""
    return Fault(error=OSError(errno.EXDEV, "another device")) if call == "link" else None


def images_of(disk: SimulatedDisk, work: Callable[[SimulatedDisk], object], *, draws: int) -> list[SimulatedDisk]:
    """What is left if the power goes, or the process dies, after each call that changes something."""
    images: list[SimulatedDisk] = []

    def watch(watched: SimulatedDisk) -> None:
        images.append(watched.kill())
        images.extend(power_loss(watched, seeded(f"{len(images)} {draw}")) for draw in range(draws))

    disk.watch = watch
    work(disk)
    disk.watch = None
    return images


@pytest.mark.parametrize("fault", [None, across], ids=["within a file system", "across two"])
def test_a_crash_at_any_moment_of_archiving_leaves_a_journal_that_opens_and_can_be_archived(
    fault: Callable[[int, Call, Path], Fault | None] | None,
):
    disk = ready()
    disk.fault_for = fault
    images = images_of(disk, archived, draws=3)
    assert len(images) > 150
    for image in images:
        check_record(image.kill())
        check_opens(image.kill())
        image.fault_for = fault
        check_archived(image)


def test_a_crash_at_any_moment_leaves_a_journal_in_which_the_state_is_written_again_after_more_was_decided():
    disk = ready()
    archived(disk)
    segmented([admitted("11:00")], disk, path=PATH)
    folding = StateFolding()
    with Journal.open(PATH, disk=disk, folding=folding):
        more = told(folding.whole(PATH))
    images = images_of(disk, archived, draws=3)
    assert len(images) > 60
    for image in images:
        folding = StateFolding()
        with Journal.open(PATH, disk=image, folding=folding):
            assert told(folding.whole(PATH)) == more


def test_a_failure_at_any_call_breaks_archiving_off_and_loses_nothing():
    counted = ready().kill()
    archived(counted)
    assert counted.calls > 150
    for number in range(1, counted.calls + 1, 2):
        disk = ready().kill()
        disk.faults = {number: Fault(error=OSError(errno.ENOSPC, "no space"))}
        with suppress(JournalError, OSError):
            archived(disk)
        after = disk.kill()
        check_record(after.kill())
        # A checkpoint that could not be written is missed at the next opening, and said so.
        check_archived(after, {PASSED_BY})


def test_a_crash_at_any_moment_of_a_checkpoint_leaves_the_old_one_or_the_new_one():
    disk = ready()

    def follow(watched: SimulatedDisk) -> None:
        assert follow_checkpoint(watched, PATH) == len(ENTRIES)

    images = images_of(disk, follow, draws=12)
    assert len(images) > 60
    taken: set[int] = set()
    for image in images:
        folding = StateFolding()
        with Journal.open(PATH, disk=image, folding=folding) as journal:
            assert journal.recovery.warnings in {(), (HEAD_LOST,)}
            assert told(folding.state) == WHOLE
            taken.add(journal.recovery.checkpoint)
    assert taken == {15, len(ENTRIES)}


def test_a_failure_at_any_call_of_a_checkpoint_leaves_the_old_one():
    counted = ready().kill()
    follow_checkpoint(counted, PATH)
    for number in range(1, counted.calls + 1):
        disk = ready().kill()
        disk.faults = {number: Fault(error=OSError(errno.ENOSPC, "no space"))}
        with suppress(JournalError, OSError):
            follow_checkpoint(disk, PATH)
        check_opens(disk.kill())
