"""`duly export` as it is typed: what it says, how it ends, and what stands in the copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from duly.journal import verify
from duly.scheduler import exporting
from duly.tools.export_command import parse_slice
from tests.tools.conftest import Duly


def test_a_redacted_slice_says_what_is_in_it_and_gives_the_key(journal: Path, duly: Duly, tmp_path: Path):
    answer = duly("export", journal, "--to", tmp_path / "bug", "--slice", "30:40", "--redact")
    assert (answer.code, answer.err) == (0, "")
    first, second, third, *table = answer.out.splitlines()
    assert first == f"{verify(tmp_path / 'bug').entries} entries written to {tmp_path / 'bug'}"
    assert second.startswith("the slice is entries 30 to ")
    assert third.startswith("decided anew: ")
    assert [line.split() for line in table[2:7]] == [
        ["gone", "schedule-1"],
        ["hourly", "schedule-2"],
        ["nightly", "schedule-3"],
        ["often", "schedule-4"],
        ["once", "schedule-5"],
    ]
    raw = b"".join(path.read_bytes() for path in (tmp_path / "bug").iterdir())
    assert [word for word in (b"nightly", b"backup", b"ann", b"no disk", b"bob") if word in raw] == []
    assert b"Europe/Berlin" in raw
    shown = duly("explain", "schedule-3", "2026-03-28 02:30", "-j", tmp_path / "bug")
    assert (shown.code, "admitted" in shown.out) == (0, True)


def test_the_document_has_every_field(journal: Path, duly: Duly, tmp_path: Path):
    document = duly("export", journal, "--to", tmp_path / "bug", "--json").document
    assert set(document) == {"schema", *exporting.Export.__struct_fields__}
    assert (document["schema"], document["faithful"], document["redacted"]) == ("duly.export/1", True, False)
    assert document["path"] == str(tmp_path / "bug")


def test_where_more_is_copied_than_was_asked_for_that_is_said(journal: Path, duly: Duly, tmp_path: Path):
    answer = duly("export", journal, "--to", tmp_path / "bug", "-s", "nightly")
    assert answer.code == 0
    assert "all schedules are in it" in answer.out


def test_a_copy_that_is_decided_otherwise_ends_with_1(
    journal: Path, duly: Duly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    real = exporting.export

    def doubted(*arguments: Any, **options: Any) -> exporting.Export:
        return msgspec.structs.replace(real(*arguments, **options), faithful=False)

    monkeypatch.setattr("duly.tools.export_command.exported", doubted)
    answer = duly("export", journal, "--to", tmp_path / "bug")
    assert (answer.code, "it differs from the original" in answer.out) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--slice", "30"], "write FIRST:LAST"),
        (["--slice", "9:3"], "holds no entry"),
        (["--slice", "0:3"], "the first sequence of a journal is 1"),
        (["--slice", "1:3", "--since", "2"], "--slice does not go with --since"),
        (["--slice", "900:999"], "holds no entry"),
        (["-s", "nihgtly"], "nightly"),
        (["--since", "yesterday"], "is not an instant"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_made(
    words: list[str], said: str, journal: Path, duly: Duly, tmp_path: Path
):
    answer = duly("export", journal, "--to", tmp_path / "bug", *words)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert not (tmp_path / "bug").exists()


def test_a_slice_is_two_sequences():
    assert parse_slice("1200:1300") == (1200, 1300)


def test_a_damaged_journal_is_not_exported(journal: Path, duly: Duly, tmp_path: Path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in journal.iterdir():
        (copy / path.name).write_bytes(path.read_bytes().replace(b"second line", b"Second line"))
    answer = duly("export", copy, "--to", tmp_path / "bug")
    assert (answer.code, "salvage" in answer.err) == (3, True)
    assert not (tmp_path / "bug").exists()
