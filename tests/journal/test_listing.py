"""A listing of a folder is no snapshot; but what it says twice, or lacks twice, is damage and not of the moment."""

from __future__ import annotations

import shutil
from pathlib import Path

from duly.journal import Journal, verify
from duly.journal.entries import RunNoted
from tests.journal.samples import NOW


def journal_of_two_segments(folder: Path) -> list[Path]:
    with Journal.open(folder, now=NOW, segment_bytes=1500) as journal:
        for number in range(1, 6):
            journal.append([RunNoted(at=NOW, run_id=number, data="x" * 200)], NOW)
    segments = sorted(folder.glob("*.jsonl"))
    assert len(segments) == 2
    return segments


def test_a_last_segment_that_stands_twice_is_damage_at_once(tmp_path: Path) -> None:
    segments = journal_of_two_segments(tmp_path / "journal")
    shutil.copy(segments[-1], segments[-1].with_name("00000002-0000000000000099.jsonl"))
    damage = verify(tmp_path / "journal", sleep=lambda _: None).damage
    assert damage is not None
    assert damage.reason == "segment 2 is there twice"


def test_a_first_segment_that_is_missing_is_damage_at_once(tmp_path: Path) -> None:
    journal_of_two_segments(tmp_path / "journal")[0].unlink()
    damage = verify(tmp_path / "journal", sleep=lambda _: None).damage
    assert damage is not None
    assert damage.reason.startswith("segment 1 is missing")
