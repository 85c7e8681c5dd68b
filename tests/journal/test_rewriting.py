"""What is readable and nothing proves durable is written again and synced, and a broken rewrite loses nothing."""

from __future__ import annotations

import errno
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from duly.journal import Journal, UnreadableJournal
from tests.journal.samples import NOW, CountingDisk, fill, notes, segments
from tests.journal.test_recovery import lines_of, queued_but_unsynced, refused, reopened, without_head


def test_a_readable_tail_that_nothing_proves_is_written_again_and_synced(tmp_path: Path):
    queued_but_unsynced(tmp_path, 1, 2, 3)
    _, _, second, third = lines_of(tmp_path)
    disk = CountingDisk()
    with Journal.open(tmp_path, now=NOW, disk=disk) as journal:
        assert [entry for _, entry in journal.entries()] == notes(1, 2, 3)
        assert journal.recovery.rewritten == len(second + third)
        assert journal.durable_sequence == 3
        assert disk.calls["sync"] == 2  # the side file, and the segment
    assert not (tmp_path / "REWRITE").exists()
    assert reopened(tmp_path)[1].recovery.rewritten == 0


def test_a_proven_tail_is_left_alone(tmp_path: Path):
    fill(tmp_path, 3)
    disk = CountingDisk()
    with Journal.open(tmp_path, now=NOW, disk=disk) as journal:
        assert journal.recovery.rewritten == 0
        assert disk.calls["sync"] == 1, "the segment, in case an opening before this one was broken off behind a cut"


def test_without_head_only_what_no_line_proves_is_written_again(tmp_path: Path):
    fill(tmp_path, 3)
    without_head(tmp_path)
    journal = reopened(tmp_path)[1]
    assert journal.recovery.rewritten == len(lines_of(tmp_path)[-1])
    assert journal.recovery.warnings == ("HEAD is missing or torn: a cut tail could not be noticed by it",)


@pytest.mark.parametrize("stage", range(1, 8))
def test_a_rewrite_that_is_broken_off_anywhere_loses_nothing(tmp_path: Path, stage: int):
    queued_but_unsynced(tmp_path, 1, 2, 3)
    disk = CountingDisk()
    steps = 0

    def stop(call: str) -> None:
        nonlocal steps
        steps += call != "lock"
        if steps == stage:
            raise OSError(errno.EIO, "Input/output error")

    disk.before = stop
    with suppress(UnreadableJournal):
        Journal.open(tmp_path, now=NOW, disk=disk).close()
    assert reopened(tmp_path)[0] == notes(1, 2, 3)


def test_a_torn_rewrite_is_restored_from_the_side_file(tmp_path: Path):
    queued_but_unsynced(tmp_path, 1, 2, 3)
    header, first, second, third = lines_of(tmp_path)
    tail, offset = second + third, len(header + first)
    checked = b'","j":"%b","g":1,"o":%d,"n":%d}\n%b' % (header[98:130], offset, len(tail), tail)
    crc = zlib.crc32(checked, zlib.crc32(bytes.fromhex(header[98:130].decode())))
    (tmp_path / "REWRITE").write_bytes(b'{"c":"%08x%b' % (crc, checked))
    for damaged in (header + first, header + first + b"\0" * 50, header + first + bytes(len(tail)) + b"garbage"):
        side = (tmp_path / "REWRITE").read_bytes()
        segments(tmp_path)[0].write_bytes(damaged)
        entries, journal = reopened(tmp_path)
        assert entries == notes(1, 2, 3)
        assert journal.recovery.restored == len(tail)
        (tmp_path / "REWRITE").write_bytes(side)
    segments(tmp_path)[0].write_bytes(header)
    refused(tmp_path, "ends before offset")


def test_a_side_file_that_is_torn_itself_protects_nothing_and_is_removed(tmp_path: Path):
    fill(tmp_path, 2)
    (tmp_path / "REWRITE").write_bytes(b'{"c":"00000000","j":"')
    assert reopened(tmp_path)[0] == notes(1, 2)
    assert not (tmp_path / "REWRITE").exists()
