"""`duly archive`, and what every other command says with the archive at hand, elsewhere, and not at hand."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from duly.journal import Journal, read
from tests.tools.conftest import Duly


@pytest.fixture
def moved(journal: Path, duly: Duly, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the eventful journal and its archive."""
    copy, old = tmp_path / "journal", tmp_path / "old"
    shutil.copytree(journal, copy)
    answer = duly("archive", copy, "--to", old)
    assert answer.code == 0
    assert answer.out.startswith("1 segment moved to ")
    return copy, old


def test_it_says_what_it_moved(journal: Path, duly: Duly, tmp_path: Path):
    copy, old = tmp_path / "journal", tmp_path / "old"
    shutil.copytree(journal, copy)
    document = duly("archive", copy, "--to", old, "--json").document
    assert document == {
        "schema": "duly.archive/1",
        "path": str(copy),
        "archive": str(old),
        "moved": ["00000001-0000000000000001.jsonl"],
        "first": document["first"],
    }
    assert duly("archive", copy, "--to", old).out == f"nothing to archive: {copy} begins at entry {document['first']}\n"


def test_the_owner_has_to_be_stopped(journal: Path, duly: Duly, tmp_path: Path):
    copy = tmp_path / "journal"
    shutil.copytree(journal, copy)
    with Journal.open(copy):
        answer = duly("archive", copy, "--to", tmp_path / "old")
    assert (answer.code, "owns the journal" in answer.err) == (3, True)
    assert not (tmp_path / "old").exists()


QUESTIONS = (
    ("history", "nightly", "-j"),
    ("blame", "nightly", "-j"),
    ("explain", "nightly", "2026-03-28T01:30:00Z", "-j"),
    ("account",),
    ("log", "-s", "nightly"),
    ("show", "nightly", "-j"),
    ("replay", "--engine-check"),
)


def schedule_of(journal: Path, duly: Duly) -> str:
    return str(duly("schedules", journal, "--json").document["schedules"][0]["id"])


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one[0])
def test_across_archive_and_journal_the_answer_is_the_same(
    question: tuple[str, ...], journal: Path, moved: tuple[Path, Path], duly: Duly, tmp_path: Path
):
    copy, old = moved
    name = schedule_of(journal, duly)
    words = [name if word == "nightly" else word for word in question]
    now = ["--now", "2026-12-01T00:00:00Z"] if words[0] in {"history", "explain"} else []
    whole = duly(*words, journal, *now)
    assert whole.code in {0, 1}
    told = duly(*words, copy, *now).out
    # An account goes as far as the last clock reading, and archiving records one.
    if words[0] != "account":
        assert told == whole.out.replace(str(journal), str(copy))
    assert told.count("unaccounted: 0") == whole.out.count("unaccounted: 0")
    elsewhere = tmp_path / "elsewhere"
    old.rename(elsewhere)
    assert duly(*words, copy, *now, "--archive", elsewhere).out == told
    alone = duly(*words, copy, *now)
    if words[0] != "show":
        assert (alone.code, alone.out) == (3, "")
        assert "are archived" in alone.err
        assert "--archive FOLDER" in alone.err
    else:
        assert alone.out == told


def test_what_rests_on_the_state_needs_no_archive(moved: tuple[Path, Path], duly: Duly):
    copy, old = moved
    asked = ("schedules", "runs", "dump", "doctor")
    before = {command: duly(command, copy, *_now(command)).out for command in asked}
    digest = duly("replay", copy, "--json").document["digest"]
    shutil.rmtree(old)
    assert {command: duly(command, copy, *_now(command)).out for command in asked} == before
    assert duly("replay", copy, "--json").document["digest"] == digest
    verified = duly("verify", copy)
    assert (verified.code, "(those before are archived)" in verified.out) == (0, True)


def test_a_slice_holds_no_state_of_other_schedules(moved: tuple[Path, Path], duly: Duly, tmp_path: Path):
    copy, _ = moved
    name = schedule_of(copy, duly)
    assert duly("export", copy, "--to", tmp_path / "slice", "-s", name).code == 0
    kinds = {record.entry.__struct_config__.tag for record in read(copy)}
    assert "Checkpoint" in kinds
    assert kinds - {record.entry.__struct_config__.tag for record in read(tmp_path / "slice")} >= {"Checkpoint"}


def _now(command: str) -> tuple[str, ...]:
    return ("--now", "2026-12-01T00:00:00Z") if command == "doctor" else ()


def test_a_folder_that_is_no_archive_is_refused(moved: tuple[Path, Path], duly: Duly, tmp_path: Path):
    answer = duly("verify", moved[0], "--archive", tmp_path)
    assert (answer.code, "no archive" in answer.err) == (3, True)
