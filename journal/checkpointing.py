"""Writing a checkpoint: under another name, synced, renamed, and the folder is synced. See `checkpoint`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from duly.journal.checkpoint import CHECKPOINT, CHECKPOINT_NEW, HASHED, HEADER, VERSION, Position
from duly.journal.disk import Disk
from duly.journal.recovery import write_all
from duly.journal.scanning import BLOCK


def write_checkpoint(disk: Disk, folder: Path, journal_id: str, position: Position, lines: Iterable[bytes]) -> None:
    """Writes the state at this position, durably; everything up to there must be durable. An OSError leaves what was
    there, and so does whatever else ends `lines` early."""
    fresh = folder / CHECKPOINT_NEW
    try:
        file = disk.create(fresh)
    except FileExistsError:
        file = disk.open(fresh, write=True)
    try:
        disk.truncate(file, 0)
        _write(disk, file, journal_id, position, lines)
        disk.sync(file)
    except BaseException:
        with suppress(OSError):
            disk.remove(fresh)
        raise
    finally:
        disk.close(file)
    disk.replace(fresh, folder / CHECKPOINT)
    disk.sync_folder(folder)


def _write(disk: Disk, file: int, journal_id: str, position: Position, lines: Iterable[bytes]) -> None:
    digest = sha256()
    offset = HEADER
    for data in _blocks(lines):
        digest.update(data)
        write_all(disk, file, offset, data)
        offset += len(data)
    place = position.place
    hashed = b'","v":%d,"j":"%b","g":%d,"o":%d,"s":%d,"h":"%b"}' % (
        VERSION,
        journal_id.encode(),
        position.segment,
        place.offset,
        place.next - 1,
        place.h.hex().encode(),
    )
    hashed = hashed.ljust(HEADER - HASHED - 1) + b"\n"
    digest.update(hashed)
    write_all(disk, file, 0, b'{"x":"%b%b' % (digest.hexdigest().encode(), hashed))


def _blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        waiting += (line, b"\n")
        size += len(line) + 1
        if size >= BLOCK:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)
