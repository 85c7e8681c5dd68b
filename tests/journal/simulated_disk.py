"""A disk in memory that can lose its power, run full, fail and be shared by several processes.

Rules:
- What a program reads is the *cache*. What survives is the *durable* part, and of what is *pending* whatever
  `crash_images` decides. Contents become durable by `sync`, names by `sync_folder`, and by nothing else.
- A crash damages pending bytes only: a byte that was durable and was not written since keeps its value.
- After a failed `sync` the kernel believes that the pages are clean (EIO-and-clean): a later `sync` does not write
  them again, and the disk may hold the old page or the new one. They are *limbo* until they are written again.
- Nothing here is random: the same calls give the same disk.
"""

from __future__ import annotations

import errno
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from duly.journal.disk import Identity

PAGE = 64
"""The size of a page. Small, so that one line of a journal spans several."""

Call: TypeAlias = Literal[
    "names",
    "make_folder",
    "create",
    "open",
    "read",
    "write",
    "sync",
    "sync_folder",
    "truncate",
    "size",
    "identity",
    "lock",
    "replace",
    "link",
    "remove",
    "close",
]

CHANGES: frozenset[Call] = frozenset(
    {"make_folder", "create", "write", "sync", "sync_folder", "truncate", "replace", "link", "remove"}
)
"""The calls between which a crash can tell a difference."""

_devices = itertools.count(1_000_000)


class PowerLost(BaseException):
    """The power went away; no call to this disk returns any more."""


class Write(NamedTuple):
    """Bytes on their way to the disk."""

    offset: int
    data: bytes


def in_pages(change: Write) -> list[Write]:
    """The write, split at page boundaries."""
    offset, data = change
    found: list[Write] = []
    start = 0
    while start < len(data):
        step = min(PAGE - (offset + start) % PAGE, len(data) - start)
        found.append(Write(offset + start, data[start : start + step]))
        start += step
    return found


class Cut(NamedTuple):
    """A change of the size on its way to the disk."""

    size: int


class Link(NamedTuple):
    """A name on its way to the disk."""

    name: str
    node: File | Folder


class Unlink(NamedTuple):
    """The end of a name on its way to the disk."""

    name: str


class Rename(NamedTuple):
    """One name becoming another, atomically, on its way to the disk."""

    source: str
    target: str
    node: File | Folder


@dataclass(slots=True, eq=False)
class File:
    """A file: `cache` is what is read, `durable` what survives, `pending` what happened since the last sync."""

    inode: int
    cache: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    pending: list[Write | Cut] = field(default_factory=list[Write | Cut])
    limbo: list[Write] = field(default_factory=list[Write])
    limbo_size: int | None = None
    holder: int | None = None
    unreadable: bool = False

    def dirty_pages(self) -> set[int]:
        """The pages that a sync would write."""
        dirty: set[int] = set()
        for change in self.pending:
            match change:
                case Write(offset, data):
                    dirty.update(range(offset // PAGE, (offset + max(len(data), 1) - 1) // PAGE + 1))
                case Cut(size):
                    if size % PAGE:
                        dirty.add(size // PAGE)
        return dirty

    def settle(self) -> None:
        """What a successful sync does: dirty pages and the size become durable, limbo pages stay what they are."""
        size = len(self.cache)
        if not self.limbo and self.limbo_size is None:
            if self.pending:
                self.durable = bytes(self.cache)
                self.pending.clear()
            return
        content = bytearray(self.durable[:size])
        content.extend(bytes(size - len(content)))
        dirty = self.dirty_pages()
        for page in dirty:
            start = page * PAGE
            content[start : start + PAGE] = self.cache[start : start + PAGE]
        self.limbo = [each for each in self.limbo if each.offset // PAGE not in dirty and each.offset < size]
        self.durable = bytes(content[:size])
        self.limbo_size = None
        self.pending.clear()

    def fail_to_settle(self) -> None:
        """What a failed sync does: the pages count as clean, and the disk may or may not have them."""
        for change in self.pending:
            if isinstance(change, Write):
                self.limbo.extend(in_pages(change))
        if self.pending:
            self.limbo_size = len(self.cache)
        self.pending.clear()

    def evict(self) -> None:
        """Drops clean pages from the cache, so that the next read shows what the disk really holds: for limbo
        pages the old contents, zeros beyond the durable size."""
        dirty = self.dirty_pages()
        for page in {each.offset // PAGE for each in self.limbo} - dirty:
            start = page * PAGE
            end = min(start + PAGE, len(self.cache))
            if start < end:
                old = self.durable[start:end]
                self.cache[start:end] = old + bytes(end - start - len(old))

    def copied(self) -> File:
        """The same file for another disk, unlocked."""
        return File(
            inode=self.inode,
            cache=bytearray(self.cache),
            durable=self.durable,
            pending=list(self.pending),
            limbo=list(self.limbo),
            limbo_size=self.limbo_size,
            unreadable=self.unreadable,
        )


@dataclass(slots=True, eq=False)
class Folder:
    """A folder: `cache` are the names that are seen, `durable` those that survive."""

    inode: int
    cache: dict[str, File | Folder] = field(default_factory=dict[str, "File | Folder"])
    durable: dict[str, File | Folder] = field(default_factory=dict[str, "File | Folder"])
    pending: list[Link | Unlink | Rename] = field(default_factory=list[Link | Unlink | Rename])

    def settle(self) -> None:
        """What a successful sync_folder does."""
        self.durable = dict(self.cache)
        self.pending.clear()


def applied(names: dict[str, File | Folder], change: Link | Unlink | Rename) -> None:
    """Carries one change of names out."""
    match change:
        case Link(name, node):
            names[name] = node
        case Unlink(name):
            names.pop(name, None)
        case Rename(source, target, node):
            names.pop(source, None)
            names[target] = node


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong at one call: `kept` bytes of a write still happen, then `error` is raised.

    Without an error a write is short and returns `kept`. A sync that fails leaves its pages in limbo. `after` raises
    only once the call has had its whole effect.
    """

    error: OSError | KeyboardInterrupt | None = None
    kept: int = 0
    after: bool = False


@dataclass(slots=True)
class _Opened:
    file: File
    path: Path
    write: bool


Root = Path(os.path.realpath("/disk"))
"""The folder that every simulated disk begins with. It is durable. (On Windows it gets a drive.)"""


class SimulatedDisk:
    """A `duly.journal.disk.Disk` in memory.

    `watch` is called after each call that changes something (a crash is possible there), `faults` maps the number of
    a call (from 1, every call counts) to what goes wrong at it, `capacity` bounds the bytes of all files.
    """

    def __init__(self) -> None:
        self.device = next(_devices)
        self.root = Folder(inode=1)
        self.calls = 0
        self.last_call: tuple[Call | None, str] = (None, "")
        self.locks_segments = True
        self.log: list[tuple[Call, str]] | None = None
        self.watch: Callable[[SimulatedDisk], None] | None = None
        self.faults: dict[int, Fault] = {}
        self.fault_for: Callable[[int, Call, Path], Fault | None] | None = None
        self.capacity: int | None = None
        self.dead = False
        self.buried: list[bytes] = []
        self.inodes = 2
        self._handles: dict[int, _Opened] = {}
        self._next_handle = 1000
        self._mutex = threading.RLock()

    # the protocol

    def names(self, folder: Path) -> list[str]:
        with self._mutex:
            self._begin("names", folder)
            return list(self._folder(folder).cache)

    def make_folder(self, folder: Path) -> None:
        with self._mutex:
            fault = self._begin("make_folder", folder)
            parent = self._folder(folder.parent)
            if folder.name in parent.cache:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))
            self._link(parent, folder.name, Folder(self._inode()))
            self._end("make_folder", fault)

    def create(self, path: Path) -> int:
        with self._mutex:
            fault = self._begin("create", path)
            parent = self._folder(path.parent)
            if path.name in parent.cache:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
            file = File(self._inode())
            self._link(parent, path.name, file)
            opened = self._opened(file, path, write=True)
            self._end("create", fault)
            return opened

    def open(self, path: Path, *, write: bool = False) -> int:
        with self._mutex:
            fault = self._begin("open", path)
            node = self._node(path)
            if isinstance(node, Folder):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            opened = self._opened(node, path, write=write)
            self._end("open", fault)
            return opened

    def read(self, file: int, offset: int, size: int) -> bytes:
        with self._mutex:
            opened = self._handle(file)
            self._begin("read", opened.path)
            if opened.file.unreadable:
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(opened.path))
            return bytes(opened.file.cache[offset : offset + size])

    def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
        with self._mutex:
            opened = self._handle(file)
            assert opened.write, f"{opened.path} was opened for reading"
            payload = bytes(data)
            fault = self._begin(
                "write", opened.path, lambda fault: self._put(opened.file, offset, payload[: fault.kept])
            )
            if fault is not None and not fault.after:
                payload = payload[: fault.kept]
            elif self.capacity is not None:
                growth = max(0, offset + len(payload) - len(opened.file.cache))
                free = self.capacity - self.used()
                if growth > free:
                    payload = payload[: max(0, len(payload) - (growth - max(free, 0)))]
                    if not payload:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(opened.path))
            self._put(opened.file, offset, payload)
            self._end("write", fault)
            return len(payload)

    def sync(self, file: int) -> None:
        with self._mutex:
            opened = self._handle(file)
            fault = self._begin("sync", opened.path, lambda _: opened.file.fail_to_settle())
            opened.file.settle()
            self._end("sync", fault)

    def sync_folder(self, folder: Path) -> None:
        with self._mutex:
            fault = self._begin("sync_folder", folder)
            self._folder(folder).settle()
            self._end("sync_folder", fault)

    def truncate(self, file: int, size: int) -> None:
        with self._mutex:
            opened = self._handle(file)
            assert opened.write, f"{opened.path} was opened for reading"
            fault = self._begin("truncate", opened.path)
            content = opened.file.cache
            if size < len(content):
                self.buried.append(bytes(content[size:]))
                del content[size:]
            else:
                content.extend(bytes(size - len(content)))
            opened.file.pending.append(Cut(size))
            self._end("truncate", fault)

    def size(self, file: int) -> int:
        with self._mutex:
            opened = self._handle(file)
            self._begin("size", opened.path)
            return len(opened.file.cache)

    def identity(self, file: int | Path) -> Identity:
        with self._mutex:
            if self.dead and not isinstance(file, Path):
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            path = file if isinstance(file, Path) else self._handle(file).path
            self._begin("identity", path)
            node = self._node(file) if isinstance(file, Path) else self._handle(file).file
            return Identity(self.device, node.inode)

    def lock(self, file: int) -> bool:
        with self._mutex:
            opened = self._handle(file)
            self._begin("lock", opened.path)
            if opened.file.holder is None:
                opened.file.holder = file
            return opened.file.holder == file

    def replace(self, source: Path, target: Path) -> None:
        with self._mutex:
            fault = self._begin("replace", target)
            old, new = self._folder(source.parent), self._folder(target.parent)
            node = self._node(source)
            replaced = new.cache.get(target.name)
            if isinstance(replaced, File):
                self.buried.append(bytes(replaced.cache))
            if old is new:
                change = Rename(source.name, target.name, node)
                applied(old.cache, change)
                old.pending.append(change)
            else:
                self._link(new, target.name, node)
                old.cache.pop(source.name)
                old.pending.append(Unlink(source.name))
            self._end("replace", fault)

    def link(self, source: Path, target: Path) -> None:
        with self._mutex:
            fault = self._begin("link", target)
            if target.name in self._folder(target.parent).cache:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
            self._link(self._folder(target.parent), target.name, self._node(source))
            self._end("link", fault)

    def remove(self, path: Path) -> None:
        with self._mutex:
            fault = self._begin("remove", path)
            node = self._node(path)
            if isinstance(node, File):
                self.buried.append(bytes(node.cache))
            parent = self._folder(path.parent)
            del parent.cache[path.name]
            parent.pending.append(Unlink(path.name))
            self._end("remove", fault)

    def close(self, file: int) -> None:
        with self._mutex:
            if self.dead:
                return  # nothing is left to close, and what told of the power that went must not be hidden by it
            opened = self._handle(file)
            self._begin("close", opened.path)
            if opened.file.holder == file:
                opened.file.holder = None
            del self._handles[file]

    def file_system(self, folder: Path) -> str:
        del folder
        return "simulated"

    # what a test does to it

    def kill(self) -> SimulatedDisk:
        """The disk as the next process finds it after this process has died: cache and pending as they are, handles
        closed, locks free. This disk is not changed. (It is another device, since a test's processes are one.)"""
        with self._mutex:
            survivor = SimulatedDisk()
            survivor.inodes = self.inodes
            survivor.capacity = self.capacity
            survivor.buried = list(self.buried)
            survivor.root = _copied(self.root, {})
            return survivor

    def go_down(self) -> None:
        """From here on every call raises PowerLost; there are no handles any more that could be closed."""
        self.dead = True

    def evict(self) -> None:
        """Memory pressure: clean pages leave the cache."""
        for file in self.files().values():
            file.evict()

    def used(self) -> int:
        """The bytes of all files."""
        return sum(len(file.cache) for _, file in self.walk())

    def files(self) -> dict[Path, File]:
        """Every file by its path, as it is seen."""
        return {Root / name: file for name, file in self.walk()}

    def walk(self) -> Iterator[tuple[str, File]]:
        """Every file with its path below the root, as it is seen."""
        return _walk("", self.root)

    def file(self, path: Path) -> File:
        """The file at the path."""
        node = self._node(path)
        assert isinstance(node, File), path
        return node

    def open_handles(self) -> list[Path]:
        """What is open, for tests that nothing leaks."""
        return [opened.path for opened in self._handles.values()]

    def locked(self) -> list[Path]:
        """The files whose lock somebody holds."""
        return [path for path, file in self.files().items() if file.holder is not None]

    # inside

    def _begin(self, call: Call, path: Path, half: Callable[[Fault], None] | None = None) -> Fault | None:
        """Counts the call and raises what is planned for it; `half` is what a failing call still does."""
        if self.dead:
            raise PowerLost
        self.calls += 1
        self.last_call = (call, path.name)
        if self.log is not None:
            self.log.append((call, path.name))
        fault = self.faults.get(self.calls)
        if fault is None and self.fault_for is not None:
            fault = self.fault_for(self.calls, call, path)
        if fault is None:
            return None
        if fault.error is not None and not fault.after:
            if half is not None:
                half(fault)
            self._changed(call)
            raise fault.error
        return fault

    def _end(self, call: Call, fault: Fault | None) -> None:
        self._changed(call)
        if fault is not None and fault.error is not None:
            raise fault.error

    def _changed(self, call: Call) -> None:
        if self.watch is not None and call in CHANGES:
            self.watch(self)

    def _put(self, file: File, offset: int, data: bytes) -> None:
        content = file.cache
        if len(content) < offset:
            content.extend(bytes(offset - len(content)))
        content[offset : offset + len(data)] = data
        if data:
            file.pending.append(Write(offset, data))
            _forget_middle(file.pending)

    def _link(self, parent: Folder, name: str, node: File | Folder) -> None:
        parent.cache[name] = node
        parent.pending.append(Link(name, node))

    def _node(self, path: Path) -> File | Folder:
        node: File | Folder = self.root
        parts = path.parts
        if parts[: len(Root.parts)] != Root.parts:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        for part in parts[len(Root.parts) :]:
            if not isinstance(node, Folder):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
            found = node.cache.get(part)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            node = found
        return node

    def _folder(self, path: Path) -> Folder:
        node = self._node(path)
        if not isinstance(node, Folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        return node

    def _opened(self, file: File, path: Path, *, write: bool) -> int:
        number = self._next_handle
        self._next_handle += 1
        self._handles[number] = _Opened(file, path, write)
        return number

    def _handle(self, number: int) -> _Opened:
        if self.dead:
            raise PowerLost
        opened = self._handles.get(number)
        if opened is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return opened

    def _inode(self) -> int:
        self.inodes += 1
        return self.inodes


def _forget_middle(pending: list[Write | Cut]) -> None:
    """Of a place that is overwritten again and again without a sync, the first and the last few versions are enough."""
    if len(pending) <= 8:
        return
    last = pending[-1]
    assert isinstance(last, Write)
    place = (last.offset, len(last.data))
    if all(isinstance(each, Write) and (each.offset, len(each.data)) == place for each in pending[-9:]):
        del pending[-6]


def _walk(path: str, folder: Folder) -> Iterator[tuple[str, File]]:
    for name, node in folder.cache.items():
        if isinstance(node, Folder):
            yield from _walk(f"{path}{name}/", node)
        else:
            yield path + name, node


def _copied(folder: Folder, known: dict[int, File | Folder]) -> Folder:
    """The folder and all below it for another disk; `known` maps the inodes that were already copied."""

    def copy(node: File | Folder) -> File | Folder:
        found = known.get(node.inode)
        if found is None:
            found = node.copied() if isinstance(node, File) else _copied(node, known)
            known[node.inode] = found
        return found

    def change(each: Link | Unlink | Rename) -> Link | Unlink | Rename:
        match each:
            case Link(name, node):
                return Link(name, copy(node))
            case Unlink():
                return each
            case Rename(source, target, node):
                return Rename(source, target, copy(node))

    return Folder(
        inode=folder.inode,
        cache={name: copy(node) for name, node in folder.cache.items()},
        durable={name: copy(node) for name, node in folder.durable.items()},
        pending=[change(each) for each in folder.pending],
    )
