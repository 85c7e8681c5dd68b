"""What the fuzzers feed: arbitrary bytes and mutated journals, to every function that reads from a disk.

Only typed errors may come out. This module needs nothing but the journal, so that a coverage-guided fuzzer can run it
as a program: `python fuzz_target.py SECONDS CORPUS`.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from duly.journal.entries import RunNoted
from duly.journal.errors import JournalError, UnencodableEntry
from duly.journal.format import crc_fits, envelopes, header_version, parse_header, seed
from duly.journal.mark import parse_mark
from duly.journal.reader import read
from duly.journal.salvaging import salvage
from duly.journal.scanning import raw_line
from duly.journal.verification import verify
from duly.journal.writer import Journal
from tests.journal.ledger import JOURNAL, START, Ledger
from tests.journal.simulated_disk import Root, SimulatedDisk


def sample() -> SimulatedDisk:
    """A journal of three segments."""
    disk, ledger = SimulatedDisk(), Ledger()
    journal = Journal.open(JOURNAL, now=START, disk=disk, segment_bytes=700)
    for size in (10, 50, 3, 200, 8, 90):
        journal.append(ledger.fresh((size, 1)), ledger.now)
    journal.close()
    return disk


SAMPLE = sample()
NAMES = sorted(str(path.relative_to(JOURNAL)) for path in SAMPLE.files())
LAST = max(name for name in NAMES if name.endswith(".jsonl"))


def put(disk: SimulatedDisk, name: str, content: bytes) -> None:
    """Makes this the file's contents, durably."""
    path = JOURNAL / name
    if path not in disk.files():
        disk.close(disk.create(path))
    file = disk.file(path)
    file.cache[:] = content
    file.durable = content


def examine(disk: SimulatedDisk) -> None:
    """Everything that reads a journal, and an owner that then goes on. Whatever is wrong is a typed error."""

    def attempt(action: Callable[[], object]) -> None:
        found: JournalError | None = None
        try:
            action()
        except JournalError as error:
            found = error
        assert not isinstance(found, UnencodableEntry)
        assert found is None or str(found)

    attempt(lambda: list(read(JOURNAL, disk=disk)))
    attempt(lambda: verify(JOURNAL, disk=disk, sleep=lambda _: None))
    attempt(lambda: save(disk))
    attempt(lambda: own(disk))
    assert disk.open_handles() == [], "something stayed open"


def save(disk: SimulatedDisk) -> None:
    salvage(JOURNAL, Root / "saved", START, disk=disk)
    assert verify(Root / "saved", disk=disk, sleep=lambda _: None).intact


def own(disk: SimulatedDisk) -> None:
    with Journal.open(JOURNAL, now=START, disk=disk, segment_bytes=700) as journal:
        before = list(journal.entries())
        sequence = journal.append([RunNoted(at=START, run_id=1)], START)
        assert sequence == len(before) + 1
    assert verify(JOURNAL, disk=disk, sleep=lambda _: None).intact


def parse(data: bytes) -> None:
    """The functions that parse single pieces: they return None for what they do not know, and raise nothing."""
    parse_header(data)
    header_version(data)
    parse_mark(data)
    raw_line(data)
    crc_fits(data, 0)
    for _, piece in envelopes(data):
        raw_line(piece)


def sealed(entries: bytes) -> bytes:
    """A line with these bytes as its batch, with a right checksum, hash and place behind the sample's end."""
    lines = bytes(SAMPLE.file(JOURNAL / LAST).cache).splitlines()
    journal_id = bytes(SAMPLE.file(JOURNAL / LAST).cache).partition(b'"j":"')[2][:32].decode()
    next_sequence = sum(line.count(b'"kind":') for line in lines) + int(LAST[9:25])
    body = b',"s":%d,"d":%d,"t":1,"e":%b}' % (next_sequence, next_sequence - 1, entries)
    h = sha256(bytes.fromhex(lines[-1][21:85].decode()) + body).hexdigest().encode()
    checked = b'","h":"' + h + b'"' + body
    return b'{"c":"%08x' % zlib.crc32(checked, seed(journal_id)) + checked + b"\n"


def one(data: bytes) -> None:
    """One input: its first byte says what the rest is used for."""
    if not data:
        return
    use, rest = data[0] % 6, data[1:]
    disk = SAMPLE.kill()
    if use == 0:
        parse(rest)
        return
    if use == 1:
        name = NAMES[rest[0] % len(NAMES)] if rest else LAST
        put(disk, name, rest[1:])
    elif use == 2:
        put(disk, LAST, bytes(disk.file(JOURNAL / LAST).cache) + rest)
    elif use == 3:
        put(disk, LAST, bytes(disk.file(JOURNAL / LAST).cache) + sealed(rest.replace(b"\n", b" ")))
    elif use == 4:
        put(disk, "REWRITE", rest)
    else:
        mutate(disk, rest)
    examine(disk)


def mutate(disk: SimulatedDisk, program: bytes) -> None:
    """Takes four bytes at a time as: file, what to do, where, with what."""
    for at in range(0, len(program) - 3, 4):
        name = NAMES[program[at] % len(NAMES)]
        content = bytearray(disk.file(JOURNAL / name).cache)
        if not content:
            continue
        place = (program[at + 2] * 257 + program[at + 3]) % len(content)
        match program[at + 1] % 6:
            case 0:
                content[place] = program[at + 3]
            case 1:
                del content[place:]
            case 2:
                del content[place : place + program[at + 3]]
            case 3:
                content[place:place] = content[: program[at + 3]]
            case 4:
                content[place : place + 64] = bytes(min(64, len(content) - place))
            case _:
                content[place:place] = b"\n"
        put(disk, name, bytes(content))


def main() -> None:
    """Runs under atheris for so many seconds."""
    atheris: Any = import_module("atheris")  # only where the fuzzer is installed
    corpus = Path(sys.argv[2])
    corpus.mkdir(exist_ok=True)
    for use in range(6):
        for number, name in enumerate(NAMES):
            content = bytes(SAMPLE.file(JOURNAL / name).cache)
            (corpus / f"{use}-{number}").write_bytes(bytes([use, number]) + content)
    atheris.instrument_all()
    atheris.Setup([sys.argv[0], f"-max_total_time={sys.argv[1]}", "-max_len=4096", str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
