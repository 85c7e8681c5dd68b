"""What differs between operating systems, and nothing else.

Rules kept here: no other module of the journal asks which system it runs on. Each class is one system's answer; the
calls of `os` are looked up when they are made, so that a test on one system can drive the path of another.

- POSIX: positioned reads and writes, fsync of files and folders, no following of symbolic links, flock.
- macOS: fsync only hands the data to the drive; F_FULLFSYNC makes the drive write it.
- Windows: no positioned reads and writes (seek and read under a lock), binary mode, no fsync of folders, no fork; a
  lock there keeps others from reading, so segments are not locked.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from threading import Lock
from typing import Protocol

F_FULLFSYNC = 51

NETWORK_FILE_SYSTEMS = frozenset(
    """9p acfs afs beegfs ceph cifs coda davfs dlm fuse.beegfs fuse.ceph-fuse fuse.davfs2 fuse.gcsfuse
    fuse.glusterfs fuse.goofys fuse.juicefs fuse.mfs fuse.moosefs fuse.rclone fuse.s3fs fuse.seaweedfs fuse.sshfs gfs
    gfs2 glusterfs gpfs lustre ncpfs nfs nfs3 nfs4 ocfs2 orangefs panfs pvfs2 smb2 smb3 smbfs vboxsf""".split()  # noqa: SIM905  # one word below the other would fill a page
)
"""File systems on which a lock may be local to one machine, or lost when a connection breaks."""


class Platform(Protocol):
    """One operating system, as far as the journal can tell."""

    locks_segments: bool
    """Whether a lock on a segment leaves other readers alone."""

    def flags(self, *, write: bool) -> int:
        """Flags of os.open beside the access mode."""
        ...

    def read(self, file: int, offset: int, size: int) -> bytes:
        """Reads at an offset."""
        ...

    def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
        """Writes at an offset; may be short."""
        ...

    def sync(self, file: int) -> None:
        """Makes a file's contents durable, as far as the drive tells the truth."""
        ...

    def sync_folder(self, folder: Path) -> None:
        """Makes a folder's names durable, where that exists."""
        ...

    def file_system(self, folder: Path) -> str:
        """The kind of file system the folder is on; empty if that cannot be told."""
        ...


class Posix:
    """Linux and the BSDs."""

    locks_segments = True

    def flags(self, *, write: bool) -> int:
        """Never inherited by a program that is started; never through a symbolic link when writing."""
        return os.O_CLOEXEC | os.O_NONBLOCK | (os.O_NOFOLLOW if write else 0)

    def read(self, file: int, offset: int, size: int) -> bytes:
        """pread."""
        return os.pread(file, size, offset)

    def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
        """pwrite."""
        return os.pwrite(file, data, offset)

    def sync(self, file: int) -> None:
        """fsync."""
        os.fsync(file)

    def sync_folder(self, folder: Path) -> None:
        """fsync of the folder itself."""
        file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            self.sync(file)
        finally:
            os.close(file)

    def file_system(self, folder: Path) -> str:
        """Looked up in the kernel's table of mounts, by device."""
        try:
            device = folder.stat().st_dev
            table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return file_system_in(table, f"{os.major(device)}:{os.minor(device)}", str(folder))


class MacOS(Posix):
    """macOS: the drive's own cache has to be flushed too."""

    def sync(self, file: int) -> None:
        """F_FULLFSYNC; where a file system does not know it, fsync."""
        import fcntl  # not on Windows

        try:
            fcntl.fcntl(file, F_FULLFSYNC)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
            os.fsync(file)


class Windows:
    """Windows: the weaker promise that docs/explanation/journal-promises.md states."""

    locks_segments = False

    def __init__(self) -> None:
        self._seeking = Lock()

    def flags(self, *, write: bool) -> int:
        """Binary, and not inherited."""
        del write
        binary: int = getattr(os, "O_BINARY", 0)
        private: int = getattr(os, "O_NOINHERIT", 0)
        return binary | private

    def read(self, file: int, offset: int, size: int) -> bytes:
        """Seek and read, under a lock: the position is shared."""
        with self._seeking:
            os.lseek(file, offset, os.SEEK_SET)
            return os.read(file, size)

    def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
        """Seek and write, under a lock: the position is shared."""
        with self._seeking:
            os.lseek(file, offset, os.SEEK_SET)
            return os.write(file, data)

    def sync(self, file: int) -> None:
        """FlushFileBuffers."""
        os.fsync(file)

    def sync_folder(self, folder: Path) -> None:
        """A folder cannot be synced here."""

    def file_system(self, folder: Path) -> str:
        """A UNC path is a network share; of a drive letter the standard library cannot tell."""
        return "smb3" if str(folder).replace("/", "\\").startswith("\\\\") else ""


def file_system_in(mountinfo: str, device: str, folder: str) -> str:
    """The kind of file system on `device` ("major:minor"), from the text of /proc/self/mountinfo.

    A device that is not in the table (btrfs shows another one to stat) is looked up by the longest mount point.
    """
    best = ("", "")
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 5 or not right:
            continue
        kind = right.split()[0]
        if fields[2] == device:
            return kind
        mount = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        inside = folder == mount or folder.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1]


def this_platform(system: str = sys.platform) -> Platform:
    """The platform of that name, as `sys.platform` spells it."""
    if system == "win32":
        return Windows()
    return MacOS() if system == "darwin" else Posix()
