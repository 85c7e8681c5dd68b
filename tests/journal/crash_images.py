"""What a disk may hold after the power went away: images of a `SimulatedDisk`, drawn from a seed.

Rules:
- Durable bytes and durable names stay. Every pending change is, on its own, kept, dropped, cut at any byte, or
  replaced by what a disk may hold in its place: zeros, noise, old blocks of this journal, blocks of another one.
- A write is split at page boundaries, and its pages reach the disk in any subset.
- The size of a file is any that it had since its last sync; a hole reads as zeros or as filler.
- HEAD, which is never synced, is also deleted, zeroed and torn.
- The same disk and the same seed give the same image.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from typing import Literal, NamedTuple, TypeAlias

from tests.journal.simulated_disk import Cut, File, Folder, SimulatedDisk, Write, applied, in_pages

Filler: TypeAlias = Literal["before", "zeros", "noise", "old", "foreign"]
FILLERS: tuple[Filler, ...] = ("before", "zeros", "noise", "old", "foreign")
"""What stands where a pending write did not arrive: what was there before, or what a disk may show instead."""


class Blocks:
    """Where old and foreign blocks come from: what this disk held before, and another journal on another disk."""

    def __init__(self, disk: SimulatedDisk, foreign: SimulatedDisk | None = None) -> None:
        self._buried = b"".join(disk.buried[-8:])
        self._ours = disk
        self._foreign = foreign

    def of(self, kind: Filler, name: str, random: Random) -> bytes:
        """Blocks of that kind that a file of this name may get: of the file's own kind, or any."""
        if kind == "foreign":
            return b"" if self._foreign is None else self._choose(self._foreign, name, random)
        if kind == "old":
            return self._buried if random.random() < 0.5 else self._choose(self._ours, name, random)
        return b""

    def _choose(self, disk: SimulatedDisk, name: str, random: Random) -> bytes:
        alike = [bytes(file.cache) for path, file in disk.walk() if path.rpartition("/")[2][8:9] == name[8:9]]
        return random.choice(alike) if alike else b""


class Filling(NamedTuple):
    """What to fill holes with: the kind, and the bytes that `old` and `foreign` blocks are taken from."""

    kind: Filler
    source: bytes
    random: Random


def seeded(seed: int | str) -> Random:
    """A source of choices that can be repeated."""
    return Random(seed)  # noqa: S311 - repeatable, not secret


_noise = seeded(20_260_101).randbytes(1 << 16)


def pieces(file: File) -> list[Write | Cut]:
    """The pending changes of a file, in order, split at page boundaries; limbo pages come first."""
    found: list[Write | Cut] = list(file.limbo)
    for change in file.pending:
        if isinstance(change, Cut):
            found.append(change)
        else:
            found.extend(in_pages(change))
    return found


def pending_bytes(file: File) -> int:
    """How many bytes of the file are on their way."""
    return sum(len(each.data) for each in pieces(file) if isinstance(each, Write))


def cut_after(file: File, count: int) -> bytes:
    """The file if its pending changes reached the disk in order and stopped after `count` bytes."""
    content = bytearray(file.durable)
    for each in pieces(file):
        if isinstance(each, Cut):
            _resize(content, each.size)
            continue
        data = each.data[:count]
        if not data:
            break
        _put(content, each.offset, data)
        count -= len(data)
    return bytes(content)


def scattered(file: File, kept: Sequence[bool], fill: Filling, *, full: bool) -> bytes:
    """The file if just the `kept` pieces reached the disk. What is missing holds `fill`, if the size covers it."""
    content = bytearray(file.durable)
    parts = pieces(file)
    holes: list[Write] = []
    written: list[Write] = []
    for keep, each in zip(kept, parts, strict=True):
        if isinstance(each, Cut):
            if keep:
                _resize(content, each.size)
        elif keep:
            _put(content, each.offset, each.data)
            written.append(each)
        else:
            holes.append(each)
    _resize(content, len(file.cache) if full else len(content))
    if fill.kind == "before":
        return bytes(content)
    for hole in holes:
        start, end = hole.offset, min(hole.offset + len(hole.data), len(content))
        if start < end and not any(each.offset < end and start < each.offset + len(each.data) for each in written):
            content[start:end] = _filling(fill, start, end)
    return bytes(content)


def power_loss(disk: SimulatedDisk, random: Random, *, foreign: SimulatedDisk | None = None) -> SimulatedDisk:
    """One image, drawn from `random`."""
    style = random.random()
    blocks = Blocks(disk, foreign)
    seen: dict[int, File | Folder] = {}

    def file_image(name: str, file: File) -> bytes:
        if not file.pending and not file.limbo and file.limbo_size is None:
            return file.durable
        draw = style if random.random() < 0.7 else random.random()
        if draw < 0.04:
            return file.durable
        if draw < 0.10:
            return bytes(file.cache)
        if draw < 0.40:
            return cut_after(file, random.randrange(pending_bytes(file) + 1))
        odds = random.choice((0.0, 0.2, 0.5, 0.8))
        kept = [random.random() < odds for _ in pieces(file)]
        kind = random.choice(FILLERS)
        fill = Filling(kind, blocks.of(kind, name, random), random)
        return scattered(file, kept, fill, full=random.random() < 0.75)

    def folder_image(folder: Folder) -> Folder:
        image = Folder(inode=folder.inode)
        names = dict(folder.durable)
        for change in folder.pending:
            if random.random() < 0.6:
                applied(names, change)
        for name, node in names.items():
            found = seen.get(node.inode)
            if found is None:
                found = folder_image(node) if isinstance(node, Folder) else _settled(node.inode, file_image(name, node))
                seen[node.inode] = found
            image.cache[name] = found
        image.durable = dict(image.cache)
        return image

    image = _disk_like(disk, folder_image(disk.root))
    _hurt_head(image, random)
    return image


def every_simple_loss(disk: SimulatedDisk, *, step: int = 1) -> Iterator[SimulatedDisk]:
    """The images that need no chance: nothing pending survived, all of it did, and for each file with pending bytes
    a cut at every `step`-th byte (all other files complete, or as they were)."""
    for others in (False, True):
        for names in (False, True):
            yield _rebuilt(disk, {}, default=others, names=names)
    for file in {id(each): each for each in _all_files(disk.root)}.values():
        total = pending_bytes(file)
        for count in range(max(0, total - _last_version(file)), total + 1, step):
            content = cut_after(file, count)
            for others in (False, True):
                yield _rebuilt(disk, {file.inode: content}, default=others, names=True)


def _last_version(file: File) -> int:
    """The pending bytes that are worth cutting: all, unless one place was only written over and over."""
    places = {(each.offset, len(each.data)) if isinstance(each, Write) else None for each in file.pending}
    place = places.pop() if len(places) == 1 else None
    return pending_bytes(file) if place is None else place[1]


def every_subset(disk: SimulatedDisk, file: File, fills: Sequence[Filling]) -> Iterator[SimulatedDisk]:
    """Every subset of the file's pending pieces, each with every filling, at full size. Only for few pieces."""
    parts = pieces(file)
    assert len(parts) <= 8, "2 to the power of that many images"
    for kept in product((False, True), repeat=len(parts)):
        for fill in fills:
            content = scattered(file, kept, fill, full=True)
            yield _rebuilt(disk, {file.inode: content}, default=True, names=True)


def digest(disk: SimulatedDisk) -> bytes:
    """What tells two images apart: every name with the contents that are seen and those that are durable."""
    summary = hashlib.blake2b(digest_size=16)
    for path, file in sorted(disk.walk(), key=lambda each: each[0]):
        content = bytes(file.cache)
        summary.update(b"%s\0%d\0" % (path.encode(), len(content)))
        summary.update(content)
        if file.durable != content:
            summary.update(b"\1%d\0" % len(file.durable))
            summary.update(file.durable)
    return summary.digest()


def _filling(fill: Filling, start: int, end: int) -> bytes:
    size = end - start
    kind, source, random = fill
    if kind == "noise":
        at = random.randrange(len(_noise) - size)
        return _noise[at : at + size]
    if kind == "zeros" or not source:
        return bytes(size)
    if end <= len(source) and random.random() < 0.6:
        return source[start:end]
    at = random.randrange(max(1, len(source) - size + 1))
    block = source[at : at + size]
    return block + bytes(size - len(block))


def _hurt_head(image: SimulatedDisk, random: Random) -> None:
    """HEAD was never synced: in one image of eight it is gone, empty, zeros or noise."""
    draw = random.random()
    if draw >= 0.125:
        return
    for folder in _folders(image.root):
        head = folder.cache.get("HEAD")
        if not isinstance(head, File):
            continue
        if draw < 0.03:
            del folder.cache["HEAD"]
            folder.durable = dict(folder.cache)
            continue
        size = len(head.cache)
        content = b"" if draw < 0.05 else bytes(size) if draw < 0.08 else _noise[:size]
        head.cache[:] = content
        head.durable = content


def _rebuilt(disk: SimulatedDisk, contents: dict[int, bytes], *, default: bool, names: bool) -> SimulatedDisk:
    """The disk with these contents by inode; other files with all that is pending (`default`) or with nothing."""
    seen: dict[int, File | Folder] = {}

    def copy(node: File | Folder) -> File | Folder:
        found = seen.get(node.inode)
        if found is None:
            if isinstance(node, Folder):
                found = rebuilt(node)
            else:
                content = contents.get(node.inode)
                if content is None:
                    content = bytes(node.cache) if default else node.durable
                found = _settled(node.inode, content)
            seen[node.inode] = found
        return found

    def rebuilt(folder: Folder) -> Folder:
        image = Folder(inode=folder.inode)
        for name, node in (folder.cache if names else folder.durable).items():
            image.cache[name] = copy(node)
        image.durable = dict(image.cache)
        return image

    return _disk_like(disk, rebuilt(disk.root))


def _disk_like(disk: SimulatedDisk, root: Folder) -> SimulatedDisk:
    image = SimulatedDisk()
    image.root = root
    image.buried = list(disk.buried[-8:])
    image.inodes = disk.inodes
    return image


def _settled(inode: int, content: bytes) -> File:
    return File(inode=inode, cache=bytearray(content), durable=content)


def _all_files(folder: Folder) -> Iterator[File]:
    for node in [*folder.cache.values(), *folder.durable.values()]:
        if isinstance(node, Folder):
            yield from _all_files(node)
        else:
            yield node


def _folders(folder: Folder) -> Iterator[Folder]:
    yield folder
    for node in folder.cache.values():
        if isinstance(node, Folder):
            yield from _folders(node)


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _resize(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))
