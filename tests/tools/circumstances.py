"""What can be wrong with a journal: each makes it wrong in a copy, and returns the path to be named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from duly.journal import Journal, Reader
from duly.journal.entries import JournalClosed
from duly.journal.mark import read_mark
from duly.journal.real_disk import RealDisk


def _copied(journal: Path, to: Path) -> Path:
    shutil.copytree(journal, to)
    return to


def sound(journal: Path, to: Path) -> Path:
    """As it is."""
    return _copied(journal, to)


def flipped(journal: Path, to: Path) -> Path:
    """A byte in the middle of an acknowledged line is another."""
    [segment] = _copied(journal, to).glob("*.jsonl")
    content = segment.read_bytes()
    place = content.index(b"second line")
    segment.write_bytes(content[:place] + b"S" + content[place + 1 :])
    return to


def torn(journal: Path, to: Path) -> Path:
    """The last line was not written to its end."""
    [segment] = _copied(journal, to).glob("*.jsonl")
    with segment.open("ab") as file:
        file.write(b'{"c":"0e75')
    return to


def without_a_segment(journal: Path, to: Path) -> Path:
    """One of several segments is gone, in the middle."""
    [first, *_] = Reader(journal).records()
    with Journal.open(to, now=first.entry.at, segment_bytes=4_000) as copy:
        for line in Reader(journal).lines():
            copy.append(line.entries, line.entries[0].at)
    segments = sorted(to.glob("*.jsonl"))
    assert len(segments) > 3
    segments[1].unlink()
    return to


def of_a_later_version(journal: Path, to: Path) -> Path:
    """It ends with a kind of entry that this version does not know."""
    _copied(journal, to)
    at = [record.entry.at for record in Reader(to).records()][-1]
    with Journal.open(to, now=at) as copy:
        copy.enqueue_encoded(b'[{"kind":"TeaServed","at":"2026-03-30T00:00:00Z"}]', 1, at)
        copy.append([JournalClosed(at=at)], at)
    return to


def without_head(journal: Path, to: Path) -> Path:
    """HEAD is gone."""
    (_copied(journal, to) / "HEAD").unlink()
    return to


def behind_head(journal: Path, to: Path) -> Path:
    """HEAD tells of an earlier end."""
    _copied(journal, to)
    before = (to / "HEAD").read_bytes()
    at = [record.entry.at for record in Reader(to).records()][-1]
    with Journal.open(to, now=at) as copy:
        copy.append([JournalClosed(at=at)], at)
    (to / "HEAD").write_bytes(before)
    mark = read_mark(RealDisk(), to)
    assert mark is not None
    return to


def beyond_head(journal: Path, to: Path) -> Path:
    """What HEAD vouches for is cut off."""
    [segment] = _copied(journal, to).glob("*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(lines[:-3]))
    return to


def a_file(journal: Path, to: Path) -> Path:
    """It is no folder."""
    to.write_bytes(journal.name.encode())
    return to


def a_strangers_folder(journal: Path, to: Path) -> Path:
    """The folder holds something else."""
    to.mkdir()
    (to / f"{journal.name}.jpg").write_bytes(b"\xff\xd8")
    return to


def an_empty_folder(journal: Path, to: Path) -> Path:
    """Nothing is in the folder."""
    assert journal.exists()
    to.mkdir()
    return to


def no_folder(journal: Path, to: Path) -> Path:
    """There is no such folder."""
    assert journal.exists()
    return to


MENDABLE: Final = {"torn": torn, "without HEAD": without_head, "behind HEAD": behind_head}
"""What its next owner mends by itself."""
DAMAGED: Final = {
    "flipped": flipped,
    "without a segment": without_a_segment,
    "of a later version": of_a_later_version,
    "beyond HEAD": beyond_head,
}
NO_JOURNAL: Final = {
    "a file": a_file,
    "a stranger's folder": a_strangers_folder,
    "an empty folder": an_empty_folder,
    "no folder": no_folder,
}
CIRCUMSTANCES: Final[dict[str, Callable[[Path, Path], Path]]] = {"sound": sound, **MENDABLE, **DAMAGED, **NO_JOURNAL}
