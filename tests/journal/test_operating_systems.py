"""The paths of other operating systems, driven on this one by substitution."""

from __future__ import annotations

import errno
import os
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from duly.journal import Journal, JournalLocked, LockUnsupported, RealDisk, read, verify
from duly.journal.operating_system import F_FULLFSYNC, MacOS, Posix, Windows, file_system_in, this_platform
from duly.journal.ownership import CLAIMS
from tests.journal.samples import NOW, notes, segments


def test_each_system_has_its_platform():
    assert type(this_platform("linux")) is Posix
    assert type(this_platform("freebsd14")) is Posix
    assert type(this_platform("darwin")) is MacOS
    assert type(this_platform("win32")) is Windows


def without_positioned_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The os module as Windows has it, as far as this test can tell."""
    for name in ("pread", "pwrite", "O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "O_NONBLOCK"):
        monkeypatch.delattr(os, name, raising=False)


def test_the_journal_works_without_positioned_calls_and_without_syncing_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    without_positioned_calls(monkeypatch)
    disk = RealDisk(Windows())
    with Journal.open(tmp_path / "journal", now=NOW, disk=disk, segment_bytes=700) as journal:
        for number in range(1, 20):
            journal.append(notes(number), NOW)
        assert [record.entry for record in read(tmp_path / "journal", disk=disk)] == notes(*range(1, 20))
    with Journal.open(tmp_path / "journal", now=NOW, disk=disk) as journal:
        assert len(list(journal.entries())) == 19
    assert len(segments(tmp_path / "journal")) > 3


def test_on_windows_segments_are_not_locked_so_that_readers_may_read_them(tmp_path: Path):
    locked: list[int] = []

    class Watching(RealDisk):
        def lock(self, file: int) -> bool:
            locked.append(file)
            return super().lock(file)

    with Journal.open(tmp_path, now=NOW, disk=Watching(Windows()), segment_bytes=500) as journal:
        for number in range(6):
            journal.append(notes(number), NOW)
    assert len(locked) == 2  # LOCK, and the proof that a second descriptor is refused
    CLAIMS.forget()


def test_windows_opens_in_binary_mode_and_lets_no_program_inherit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "O_BINARY", 0x8000, raising=False)
    monkeypatch.setattr(os, "O_NOINHERIT", 0x80, raising=False)
    assert Windows().flags(write=True) == 0x8080
    assert Windows().flags(write=False) == 0x8080


def test_seeking_readers_and_writers_do_not_disturb_each_other(tmp_path: Path):
    platform = Windows()
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    for number in range(64):
        platform.write(file, number * 64, bytes([number]) * 64)
    wrong: list[int] = []

    def read_all(step: int) -> None:
        for turn in range(500):
            number = turn * step % 64
            if platform.read(file, number * 64, 64) != bytes([number]) * 64:
                wrong.append(number)

    threads = [threading.Thread(target=read_all, args=(step,)) for step in (1, 3, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(file)
    assert wrong == []


def test_a_share_is_a_network_file_system(tmp_path: Path):
    assert Windows().file_system(Path(r"\\server\share\journal")) == "smb3"
    assert Windows().file_system(tmp_path) == ""


class Fcntl(ModuleType):
    """As much of fcntl as a sync on macOS needs."""

    def __init__(self, code: int = 0) -> None:
        super().__init__("fcntl")
        self.calls: list[tuple[int, int]] = []
        self.code = code

    def fcntl(self, file: int, call: int) -> int:
        self.calls.append((file, call))
        if self.code:
            raise OSError(self.code, os.strerror(self.code))
        return 0


def macos(monkeypatch: pytest.MonkeyPatch, code: int = 0) -> tuple[Fcntl, list[int]]:
    module, synced = Fcntl(code), list[int]()
    monkeypatch.setitem(sys.modules, "fcntl", module)
    monkeypatch.setattr(os, "fsync", synced.append)
    return module, synced


def test_macos_makes_the_drive_write_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    module, synced = macos(monkeypatch)
    MacOS().sync(7)
    assert (module.calls, synced) == ([(7, F_FULLFSYNC)], [])
    MacOS().sync_folder(tmp_path)
    assert [call for _, call in module.calls] == [F_FULLFSYNC, F_FULLFSYNC]


def test_macos_falls_back_where_a_file_system_does_not_know_it_and_nowhere_else(monkeypatch: pytest.MonkeyPatch):
    _, synced = macos(monkeypatch, errno.ENOTSUP)
    MacOS().sync(7)
    assert synced == [7]
    _, synced = macos(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        MacOS().sync(7)
    assert synced == []


MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /mnt/nas rw,relatime shared:2 - nfs4 server:/export rw
31 22 0:27 / /mnt/a\040b rw - cifs //server/share rw
32 22 0:31 /sub /srv/pool rw - btrfs /dev/vdb rw
33 22 0:40 / /mnt/remote rw - fuse.sshfs host: rw
a broken line
""".strip()


@pytest.mark.parametrize(
    ("device", "folder", "kind"),
    [
        ("254:0", "/var/lib/duly", "ext4"),
        ("0:26", "/mnt/nas/duly", "nfs4"),
        ("0:27", "/mnt/a b/duly", "cifs"),
        ("0:99", "/mnt/a b/duly", "cifs"),
        ("0:99", "/srv/pool/duly", "btrfs"),
        ("0:99", "/srv/poolside", "ext4"),
        ("0:40", "/mnt/remote", "fuse.sshfs"),
    ],
)
def test_the_file_system_is_found_in_the_table_of_mounts(device: str, folder: str, kind: str):
    assert file_system_in(MOUNTS, device, folder) == kind


def test_this_machine_can_tell_its_own_file_system(tmp_path: Path):
    if sys.platform == "linux":
        assert Posix().file_system(tmp_path)
    assert Posix().file_system(tmp_path / "missing") == ""


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "glusterfs", "lustre"])
def test_every_network_file_system_is_refused(tmp_path: Path, kind: str):
    class Far(Posix):
        def file_system(self, folder: Path) -> str:
            return kind

    with pytest.raises(LockUnsupported, match="network file system"):
        Journal.open(tmp_path / "journal", now=NOW, disk=RealDisk(Far()))
    assert list(tmp_path.iterdir()) == []


def test_a_short_read_is_not_the_end_of_a_file_and_a_short_write_goes_on(tmp_path: Path):
    class Short(Posix):
        def read(self, file: int, offset: int, size: int) -> bytes:
            return super().read(file, offset, min(size, 7))

        def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
            return super().write(file, offset, data[:5])

    with Journal.open(tmp_path, now=NOW, disk=RealDisk(Short()), segment_bytes=700) as journal:
        for number in range(6):
            journal.append(notes(number), NOW)
    assert verify(tmp_path).intact
    assert [record.entry for record in read(tmp_path, disk=RealDisk(Short()))] == notes(*range(6))


def test_both_kinds_of_disk_keep_each_other_out(tmp_path: Path):
    with Journal.open(tmp_path, now=NOW, disk=RealDisk(Windows())):
        CLAIMS.forget()
        with pytest.raises(JournalLocked):
            Journal.open(tmp_path, now=NOW, disk=RealDisk(Posix()))
