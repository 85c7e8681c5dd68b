"""Refusals: what may not be opened or created is left exactly as it was, and the error says what to do."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from duly.journal import (
    ForeignJournal,
    Journal,
    JournalCorrupt,
    JournalError,
    LockUnsupported,
    RealDisk,
    UnreadableJournal,
    read,
    verify,
)
from duly.journal.format import header_line, seal, seed
from duly.journal.ownership import CLAIMS
from tests.journal.samples import NOW, CountingDisk, fail, fill, note, segments, snapshot


def open_it(path: Path, disk: RealDisk | None = None) -> Journal:
    return Journal.open(path, now=NOW, disk=disk)


def refused(path: Path, kind: type[JournalError], reason: str, *, create: bool = True) -> None:
    base = path if path.is_dir() else path.parent
    before = snapshot(base), sorted(base.rglob("*"))
    with pytest.raises(kind, match=reason) as refusal:
        Journal.open(path, now=NOW, create=create)
    assert refusal.value.hint
    assert (snapshot(base), sorted(base.rglob("*"))) == before
    # The lock is free again: whatever was wrong can be mended and tried again.
    assert not any(held.is_relative_to(base.resolve()) for held in CLAIMS.held())


def test_a_file_is_no_journal(tmp_path: Path):
    (tmp_path / "journal").write_text("text")
    refused(tmp_path / "journal", ForeignJournal, "it is a file")


def test_a_folder_of_something_else_is_no_journal(tmp_path: Path):
    (tmp_path / "setup.cfg").write_text("text")
    refused(tmp_path, ForeignJournal, r"holds other files \(setup.cfg\)")


def test_a_missing_or_empty_folder_is_no_journal_unless_it_may_be_made(tmp_path: Path):
    refused(tmp_path / "journal", ForeignJournal, "there is no journal here", create=False)
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", ForeignJournal, "the folder is empty", create=False)


def test_a_file_that_looks_like_a_segment_and_is_none_is_refused(tmp_path: Path):
    fill(tmp_path, 1)
    (tmp_path / "00000002-0000000000000002.jsonl.bak").write_bytes(b"")
    refused(tmp_path, ForeignJournal, "looks like a segment")


def test_what_a_file_manager_leaves_is_only_warned_of(tmp_path: Path):
    fill(tmp_path, 1)
    (tmp_path / ".DS_Store").write_bytes(b"")
    with open_it(tmp_path) as journal:
        assert journal.recovery.warnings == ("the journal's folder holds a file that is not the journal's: .DS_Store",)


def test_a_newer_format_is_refused(tmp_path: Path):
    fill(tmp_path, 1)
    path = segments(tmp_path)[0]
    header, rest = path.read_bytes().split(b"\n", 1)
    journal_id = header[98:130].decode()
    newer = seal(bytes(32), seed(journal_id), header[86:].replace(b'"v":1', b'"v":2')).line
    path.write_bytes(newer + b"\n" + rest)
    refused(tmp_path, UnreadableJournal, "format version is 2")


def test_a_kind_of_entry_that_this_version_does_not_know_is_refused_and_not_called_damage(tmp_path: Path):
    with open_it(tmp_path) as journal:
        journal.enqueue_encoded(b'[{"kind":"MoonPhaseChanged","at":"2026-01-01T09:30:00Z"}]', 1, NOW)
    refused(tmp_path, UnreadableJournal, "this version cannot read it")
    with pytest.raises(UnreadableJournal):
        list(read(tmp_path))


def test_a_segment_of_another_journal_is_refused(tmp_path: Path):
    fill(tmp_path / "one", 8, segment_bytes=700)
    fill(tmp_path / "two", 8, segment_bytes=700)
    name = segments(tmp_path / "one")[1].name
    (tmp_path / "one" / name).write_bytes((tmp_path / "two" / name).read_bytes())
    refused(tmp_path / "one", ForeignJournal, "belongs to journal")


def test_two_names_of_one_segment_are_refused(tmp_path: Path):
    fill(tmp_path, 8, segment_bytes=700)
    last = segments(tmp_path)[-1]
    last.unlink()
    last.hardlink_to(segments(tmp_path)[-1])
    refused(tmp_path, ForeignJournal, "are the same file")


def test_a_missing_segment_is_refused(tmp_path: Path):
    fill(tmp_path, 12, segment_bytes=700)
    found = segments(tmp_path)
    for path in found:
        data = path.read_bytes()
        path.unlink()
        refused(tmp_path, JournalCorrupt, "segment [0-9]+ is missing")
        path.write_bytes(data)
    (tmp_path / "HEAD").unlink()
    for path in found[:-1]:
        data = path.read_bytes()
        path.unlink()
        refused(tmp_path, JournalCorrupt, "segment [0-9]+ is missing")
        path.write_bytes(data)


def test_a_journal_of_which_only_head_is_left_is_not_made_anew(tmp_path: Path):
    fill(tmp_path, 1)
    segments(tmp_path)[0].unlink()
    refused(tmp_path, JournalCorrupt, "every segment is missing")


def test_a_segment_with_another_header_is_refused(tmp_path: Path):
    fill(tmp_path, 8, segment_bytes=700)
    path = segments(tmp_path)[1]
    header, rest = path.read_bytes().split(b"\n", 1)
    forged = header_line(header[98:130].decode(), 2, int(path.stem[9:]), bytes(32), 12).line
    path.write_bytes(forged + b"\n" + rest)
    refused(tmp_path, JournalCorrupt, "does not continue the one before")


def test_a_folder_that_may_not_be_made_or_written_is_refused(tmp_path: Path):
    class Shut(RealDisk):
        def make_folder(self, folder: Path) -> None:
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))

        def open(self, path: Path, *, write: bool = False) -> int:
            if write:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return super().open(path)

    with pytest.raises(UnreadableJournal, match=r"folder cannot be made: .*Permission denied"):
        open_it(tmp_path / "journal", Shut())
    assert list(tmp_path.iterdir()) == []
    fill(tmp_path / "journal", 1)
    before = snapshot(tmp_path)
    with pytest.raises(UnreadableJournal, match=r"lock file cannot be opened for writing: .*Permission denied"):
        open_it(tmp_path / "journal", Shut())
    assert snapshot(tmp_path) == before


def test_a_creation_that_fails_half_way_is_carried_on_by_the_next(tmp_path: Path):
    for call in ("create", "write", "sync", "sync_folder"):
        disk = CountingDisk()
        disk.before = fail(call, errno.ENOSPC)
        with pytest.raises((UnreadableJournal, LockUnsupported, OSError)):
            open_it(tmp_path / call, disk)
        with open_it(tmp_path / call) as journal:
            assert journal.append([note(1)], NOW) == 1
        assert verify(tmp_path / call).intact
