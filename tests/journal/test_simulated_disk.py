"""The simulated disk is worth as much as its own proofs: it loses what was not synced, and nothing else."""

from __future__ import annotations

import errno

import pytest

from tests.journal.crash_images import (
    Filling,
    cut_after,
    digest,
    every_simple_loss,
    every_subset,
    pending_bytes,
    pieces,
    power_loss,
    seeded,
)
from tests.journal.simulated_disk import PAGE, Fault, Folder, PowerLost, Root, SimulatedDisk

FILE = Root / "journal" / "file"


def a_disk(durable: bytes = b"", pending: bytes = b"") -> tuple[SimulatedDisk, int]:
    """A disk with one file, its name durable."""
    disk = SimulatedDisk()
    disk.make_folder(FILE.parent)
    disk.sync_folder(Root)
    handle = disk.create(FILE)
    disk.write(handle, 0, durable)
    disk.sync(handle)
    disk.sync_folder(FILE.parent)
    if pending:
        disk.write(handle, len(durable), pending)
    return disk, handle


def images(disk: SimulatedDisk, count: int = 400) -> list[SimulatedDisk]:
    return [power_loss(disk, seeded(seed)) for seed in range(count)]


def test_synced_contents_survive_every_crash() -> None:
    disk, _ = a_disk(b"durable" * 40, b"pending" * 40)
    for image in images(disk):
        assert bytes(image.file(FILE).cache).startswith(b"durable" * 40)


def test_unsynced_contents_are_lost_in_some_crashes_and_kept_in_others() -> None:
    disk, _ = a_disk(b"durable", b"pending" * 40)
    contents = {bytes(image.file(FILE).cache) for image in images(disk)}
    assert b"durable" in contents
    assert b"durable" + b"pending" * 40 in contents
    assert len(contents) > 150


def test_a_later_page_may_survive_without_an_earlier_one() -> None:
    disk, _ = a_disk(b"", b"a" * PAGE + b"b" * PAGE)
    assert bytes(PAGE) + b"b" * PAGE in {bytes(image.file(FILE).cache) for image in images(disk)}


def test_a_missing_page_may_hold_an_old_block_of_the_same_disk() -> None:
    disk, handle = a_disk(b"", b"")
    disk.write(handle, 0, b"old" * 60)
    disk.truncate(handle, 0)
    disk.sync(handle)
    disk.write(handle, 0, b"N" * 180)
    assert any(b"oldold" in bytes(image.file(FILE).cache) for image in images(disk))


def test_a_missing_page_may_hold_a_block_of_another_journal() -> None:
    disk, _ = a_disk(b"", b"N" * 200)
    foreign, _ = a_disk(b"foreign" * 40)
    contents = [bytes(power_loss(disk, seeded(seed), foreign=foreign).file(FILE).cache) for seed in range(200)]
    assert any(b"foreign" in content for content in contents)


def test_a_name_survives_only_by_the_sync_of_its_folder() -> None:
    disk, handle = a_disk()
    other = FILE.with_name("other")
    disk.sync(disk.create(other))
    seen = {other in image.files() for image in images(disk, 50)}
    assert seen == {True, False}
    disk.sync_folder(FILE.parent)
    assert all(other in image.files() for image in images(disk, 50))
    disk.close(handle)


def test_an_unsynced_removal_or_rename_may_come_undone() -> None:
    disk, _ = a_disk(b"kept")
    disk.replace(FILE, FILE.with_name("renamed"))
    names = {tuple(sorted(path.name for path in image.files())) for image in images(disk, 60)}
    assert names == {("file",), ("renamed",)}
    disk.remove(FILE.with_name("renamed"))
    names = {tuple(sorted(path.name for path in image.files())) for image in images(disk, 60)}
    assert names == {("file",), ("renamed",), ()}


def test_an_unsynced_cut_may_come_undone() -> None:
    disk, handle = a_disk(b"0123456789")
    disk.truncate(handle, 4)
    assert disk.read(handle, 0, 99) == b"0123"
    assert {b"0123", b"0123456789"} <= {bytes(image.file(FILE).cache) for image in images(disk, 60)}


def test_a_failed_sync_leaves_pages_that_no_later_sync_writes() -> None:
    disk, handle = a_disk(b"durable.")
    disk.write(handle, 8, b"lost")
    disk.faults[disk.calls + 1] = Fault(OSError(errno.EIO, "EIO"))
    with pytest.raises(OSError, match="EIO"):
        disk.sync(handle)
    disk.sync(handle)
    assert disk.read(handle, 0, 99) == b"durable.lost"
    contents = {bytes(image.file(FILE).cache) for image in images(disk, 100)}
    assert b"durable.\0\0\0\0" in contents
    assert b"durable.lost" in contents
    disk.write(handle, 8, b"lost")
    disk.sync(handle)
    assert {bytes(image.file(FILE).cache) for image in images(disk, 100)} == {b"durable.lost"}


def test_memory_pressure_after_a_failed_sync_shows_the_old_contents() -> None:
    disk, handle = a_disk(b"durable.")
    disk.write(handle, 8, b"lost")
    disk.faults[disk.calls + 1] = Fault(OSError(errno.EIO, "EIO"))
    with pytest.raises(OSError, match="EIO"):
        disk.sync(handle)
    disk.evict()
    assert disk.read(handle, 0, 99) == b"durable.\0\0\0\0"


def test_the_death_of_the_process_loses_nothing_and_frees_every_lock() -> None:
    disk, handle = a_disk(b"durable", b"pending")
    second = disk.open(FILE, write=True)
    assert disk.lock(handle)
    assert not disk.lock(second)
    after = disk.kill()
    reopened = after.open(FILE, write=True)
    assert after.lock(reopened)
    assert after.read(reopened, 0, 99) == b"durablepending"
    assert b"durable" in {bytes(image.file(FILE).cache) for image in images(after, 100)}


def test_closing_the_handle_drops_its_lock() -> None:
    disk, handle = a_disk()
    second = disk.open(FILE, write=True)
    assert disk.lock(handle)
    disk.close(handle)
    assert disk.lock(second)


def test_a_short_write_says_how_much_it_wrote() -> None:
    disk, handle = a_disk()
    disk.faults[disk.calls + 1] = Fault(kept=3)
    assert disk.write(handle, 0, b"abcdef") == 3
    assert disk.read(handle, 0, 99) == b"abc"


def test_a_full_disk_takes_what_fits_and_then_refuses() -> None:
    disk, handle = a_disk(b"1234")
    disk.capacity = 6
    assert disk.write(handle, 4, b"5678") == 2
    with pytest.raises(OSError, match="No space left") as caught:
        disk.write(handle, 6, b"78")
    assert caught.value.errno == errno.ENOSPC
    assert disk.write(handle, 0, b"over") == 4


def test_nothing_works_after_the_power_went() -> None:
    disk, handle = a_disk()
    disk.go_down()
    with pytest.raises(PowerLost):
        disk.read(handle, 0, 1)
    with pytest.raises(PowerLost):
        disk.names(Root)


def test_every_call_that_changes_something_is_watched() -> None:
    disk, handle = a_disk()
    seen: list[str] = []
    disk.log = []
    disk.watch = lambda watched: seen.append(watched.log[-1][0] if watched.log else "")
    disk.write(handle, 0, b"x")
    disk.read(handle, 0, 1)
    disk.sync(handle)
    disk.truncate(handle, 0)
    disk.replace(FILE, FILE.with_name("next"))
    disk.remove(FILE.with_name("next"))
    disk.sync_folder(FILE.parent)
    assert seen == ["write", "sync", "truncate", "replace", "remove", "sync_folder"]


def test_the_same_seed_gives_the_same_images() -> None:
    first, _ = a_disk(b"durable", b"pending" * 30)
    second, _ = a_disk(b"durable", b"pending" * 30)
    assert [digest(image) for image in images(first)] == [digest(image) for image in images(second)]


def test_every_cut_of_the_pending_bytes_is_enumerated() -> None:
    disk, _ = a_disk(b"durable", b"pending")
    file = disk.file(FILE)
    assert pending_bytes(file) == 7
    assert {cut_after(file, count) for count in range(8)} == {b"durable" + b"pending"[:count] for count in range(8)}
    contents = {bytes(image.file(FILE).cache) for image in every_simple_loss(disk)}
    assert contents == {b"durable" + b"pending"[:count] for count in range(8)}


def test_every_subset_of_few_pages_is_enumerated() -> None:
    disk, _ = a_disk(b"", b"a" * PAGE + b"b" * PAGE + b"c" * 3)
    file = disk.file(FILE)
    assert len(pieces(file)) == 3
    contents = {bytes(image.file(FILE).cache) for image in every_subset(disk, file, [Filling("zeros", b"", seeded(0))])}
    assert len(contents) == 8
    assert bytes(PAGE) + b"b" * PAGE + bytes(3) in contents


def test_a_place_overwritten_without_a_sync_keeps_a_bounded_past() -> None:
    disk, handle = a_disk(b"----")
    for number in range(100):
        disk.write(handle, 0, b"%04d" % number)
    assert len(disk.file(FILE).pending) <= 9
    contents = {bytes(image.file(FILE).cache) for image in images(disk)}
    assert {b"----", b"0000", b"0099"} <= contents


def test_a_hard_link_is_one_file_in_every_image() -> None:
    disk, handle = a_disk(b"one")
    folder = disk.root.cache["journal"]
    other = FILE.with_name("other")
    assert isinstance(folder, Folder)
    folder.cache["other"] = folder.durable["other"] = disk.file(FILE)
    disk.write(handle, 3, b"two")
    for image in images(disk, 50):
        assert image.file(FILE) is image.file(other)
    assert disk.identity(FILE) == disk.identity(other)


def test_missing_files_and_taken_names_raise_what_the_system_raises() -> None:
    disk, _ = a_disk()
    with pytest.raises(FileNotFoundError):
        disk.open(FILE.with_name("none"))
    with pytest.raises(FileExistsError):
        disk.create(FILE)
    with pytest.raises(FileExistsError):
        disk.make_folder(FILE.parent)
    with pytest.raises(NotADirectoryError):
        disk.names(FILE)
