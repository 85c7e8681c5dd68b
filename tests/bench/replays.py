"""Replay: the chain verified and the state rebuilt, beside a bare msgspec decode loop over the same file; and how much
memory it takes for a short and for a long journal of the same schedules.

`python -m tests.bench.replays`. `decode` decodes each line into the classes of the entries, `decode-json` into lists
and dicts; neither checks anything nor keeps anything.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from duly.journal import Journal, read
from duly.journal.codec import decode_line
from duly.projections import replay
from tests.bench.measuring import Case, Contender, Line, Measured, alternate, forget_peak, resident, run_axis
from tests.bench.scenes import START, UnsyncedDisk, record_history

A_LINE = {"1 a line": 1, "4 a line": 4, "1000 a line": 1000}
CASES = [
    *(Case(name, {"entries": 200_000, "schedules": 1_000}) for name in A_LINE),
    Case("memory, short", {"entries": 100_000, "schedules": 1_000}),
    Case("memory, long", {"entries": 1_000_000, "schedules": 1_000}),
]


def measure(case: Measured) -> Iterator[Line]:
    """Seconds of one entry, or bytes."""
    entries, schedules = case.sizes["entries"], case.sizes["schedules"]
    a_line = A_LINE.get(case.name, 1000)
    path = case.seeded(f"history-{entries}-{a_line}", lambda folder: rewrite(folder, schedules, entries, a_line))
    if case.name.startswith("memory"):
        yield {"peer": "duly", "value": peak(path), "unit": "bytes"}
        return
    whole = replay(path)
    yield from alternate(
        [
            Contender("duly", lambda: replay(path), per=whole.sequence),
            Contender("decode", lambda: decoded(path, decode_line), per=whole.sequence),
            Contender("decode-json", lambda: decoded(path, msgspec.json.decode), per=whole.sequence),
            Contender("read", lambda: sum(1 for _ in read(path)), per=whole.sequence),
        ],
        steps=3,
    )


def rewrite(folder: Path, schedules: int, entries: int, a_line: int) -> None:
    """A history, with so many entries a line."""
    source = folder.with_name(f"{folder.name}-source")
    record_history(source, schedules, entries)
    records = (record.entry for record in read(source))
    with Journal.open(folder, disk=UnsyncedDisk()) as journal:
        while some := tuple(islice(records, a_line)):
            journal.append(some, START)


def decoded(path: Path, decode: Callable[[bytes], object]) -> None:
    """The loop: lines in, objects out. The first line of a segment is its header."""
    for segment in sorted(path.glob("*.jsonl")):
        with segment.open("rb") as lines:
            for line in islice(lines, 1, None):
                decode(line)


def peak(path: Path) -> int:
    """The most bytes that a replay needed beyond what there was before."""
    gc.collect()
    forget_peak()
    before = resident()
    kept = replay(path)
    assert kept.sequence
    return resident("VmHWM") - before


if __name__ == "__main__":
    run_axis("replay", measure, CASES)
