"""Every command in every circumstance: a clear answer or a clear error, the right exit code, never a traceback.

The commands are read off the command line itself (`every_command`), so that one that is added is tested too.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import click
import pytest

from duly import ManualClock, Scheduler
from duly.journal import RealDisk
from duly.tools.cli import main
from duly.tools.printable import printable
from tests.tools.circumstances import CIRCUMSTANCES, DAMAGED, MENDABLE, NO_JOURNAL, sound
from tests.tools.conftest import Answer, Duly
from tests.tools.eventful import BEGIN
from tests.tools.every_command import ARGUMENTS, CONNECTED, ENDLESS, MAKING, NEW, OPTIONS, READING, VERBS, Verb

FORMS = ("table", "json", "jsonl")
_AUDITED = {"verify": 1, "doctor": 1, "salvage": 1}
OWN_WORD: dict[str, dict[str, int]] = {
    "torn": {"verify": 1},
    "flipped": _AUDITED,
    "without a segment": _AUDITED,
    "beyond HEAD": _AUDITED,
    "of a later version": {"salvage": 0},
    "an empty folder": {"import": 0},
    "no folder": {"import": 0},
}
"""What a command ends with that has its own word on a circumstance."""
STREAMING = frozenset({"log"})
"""Commands that show what is sound before they meet what is not."""
REFUSED = frozenset({"ctl abandon"})
"""The run that is to be abandoned has ended."""
on_posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")


@dataclass(frozen=True)
class Bench:
    """An eventful journal, and commands about copies of it."""

    journal: Path
    folder: Path
    duly: Duly

    def words(self, verb: Verb, path: Path, form: str) -> list[str]:
        words = verb.words(path, self.made, self.folder / "crontab")
        return [*words, "--format", form] if verb.answers_in_json else words

    def answer(self, verb: Verb, path: Path, form: str = "table") -> Answer:
        return self.duly(*self.words(verb, path, form))

    @property
    def made(self) -> Path:
        return self.folder / "made"

    def copy(self, verb: Verb, circumstance: str = "sound") -> Path:
        return CIRCUMSTANCES[circumstance](self.journal, self.folder / verb.name.replace(" ", "-"))


@pytest.fixture
def bench(journal: Path, tmp_path: Path, duly: Duly) -> Bench:
    (tmp_path / "made").mkdir()
    (tmp_path / "crontab").write_text("0 3 * * * backup\n")
    return Bench(journal, tmp_path, duly)


def hold_well_formed(verb: Verb, form: str, answer: Answer) -> None:
    """Whatever the command says, it says in the form that was asked for, and safe for a terminal."""
    said = f"duly {verb.name} --format {form}\n{answer}"
    assert "Traceback" not in answer.out + answer.err, said
    assert "fault of duly" not in answer.err, said
    assert answer.code in {0, 1, 3, 4}, said
    for line in (answer.out + answer.err).split("\n"):
        assert printable(line) == line, said
    if answer.code == 3:
        assert answer.out == "" or verb.name in STREAMING, said
        assert len(answer.err.splitlines()) == 1, said
        if form == "table" or not verb.answers_in_json:
            assert answer.err.startswith("duly: "), said
        else:
            error = answer.error
            assert (error["schema"], error["exit_code"]) == ("duly.error/1", 3), said
            assert error["message"], said
            assert error["hint"], said
    elif verb.answers_in_json and form == "json" and answer.out:
        assert answer.document["schema"].startswith("duly."), said
    elif verb.answers_in_json and form == "jsonl":
        assert all(row["schema"].startswith("duly.") for row in answer.rows), said


def test_every_name_that_is_given_something_is_one_of_a_command():
    parameters = [one for verb in VERBS.values() for one in verb.command.params]
    arguments = {one.name for one in parameters if isinstance(one, click.Argument)}
    options = {one.name for one in parameters if one.required and not isinstance(one, click.Argument)}
    assert (ARGUMENTS.keys() - arguments, {*NEW, *OPTIONS} - options) == (set(), set())


@pytest.mark.parametrize("circumstance", CIRCUMSTANCES)
def test_a_command_answers_or_refuses_clearly(circumstance: str, bench: Bench):
    usable = circumstance == "sound" or circumstance in MENDABLE
    turn = list(CIRCUMSTANCES).index(circumstance)
    for number, verb in enumerate(READING.values()):
        makes_one = verb.name in MAKING and circumstance in {"an empty folder", "no folder"}
        if verb.name in ENDLESS and (usable or makes_one):
            continue
        form = FORMS[(number + turn) % 3]
        answer = bench.answer(verb, bench.copy(verb, circumstance), form)
        hold_well_formed(verb, form, answer)
        expected = {0, 1, 4} if usable else {3}
        if verb.name in OWN_WORD.get(circumstance, {}):
            expected = {OWN_WORD[circumstance][verb.name]}
        assert answer.code in expected, (verb.name, answer)
        if circumstance in NO_JOURNAL and answer.code:
            assert answer.out == "", (verb.name, answer)


def content(path: Path) -> dict[str, bytes]:
    found = [path, *path.rglob("*")] if path.exists() else []
    return {str(one): one.read_bytes() if one.is_file() else b"" for one in found}


@pytest.mark.parametrize("circumstance", [*DAMAGED, *NO_JOURNAL])
def test_what_cannot_be_used_is_left_as_it_is(circumstance: str, bench: Bench):
    path = CIRCUMSTANCES[circumstance](bench.journal, bench.folder / "subject")
    before = content(path)
    for verb in READING.values():
        if verb.name not in MAKING:
            bench.answer(verb, path)
            assert content(path) == before, verb.name


@pytest.mark.parametrize("form", FORMS)
def test_nothing_that_is_typed_or_recorded_drives_a_terminal(form: str, bench: Bench):
    for verb in READING.values():
        named = bench.folder / f"\x1b[2J\u202e{verb.name.replace(' ', '-')}"
        if verb.name not in MAKING:
            hold_well_formed(verb, form, bench.answer(verb, named, form))
        if verb.name not in ENDLESS:
            hold_well_formed(verb, form, bench.answer(verb, sound(bench.journal, named), form))


def test_no_permission_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    def refuse(_: RealDisk, path: Path, **__: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(RealDisk, "open", refuse)
    for verb in READING.values():
        answer = bench.answer(verb, bench.journal)
        hold_well_formed(verb, "table", answer)
        assert (answer.code, "Permission denied" in answer.err) == (3, True), (verb.name, answer)


def test_reading_works_on_media_that_cannot_be_written(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    opened = RealDisk.open

    def read_only(disk: RealDisk, path: Path, *, write: bool = False) -> int:
        if write and path.is_relative_to(bench.journal):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return opened(disk, path, write=write)

    monkeypatch.setattr(RealDisk, "open", read_only)
    for verb in READING.values():
        answer = bench.answer(verb, bench.journal)
        hold_well_formed(verb, "table", answer)
        if verb.writes:
            assert (answer.code, "Read-only file system" in answer.err) == (3, True), (verb.name, answer)
        else:
            assert answer.code in {0, 4}, (verb.name, answer)


def test_every_command_works_beside_an_owner_that_writes(bench: Bench):
    path = sound(bench.journal, bench.folder / "live")
    clock = ManualClock(BEGIN + timedelta(days=2))
    stop = threading.Event()
    with Scheduler.open(path, clock=clock) as scheduler:

        def write() -> None:
            while not stop.is_set():
                clock.advance(timedelta(minutes=1))
                for run in scheduler.poll(start=True).offered:
                    scheduler.complete(run.id)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for verb in READING.values():
                answer = bench.answer(verb, path)
                hold_well_formed(verb, "table", answer)
                expected = {(3, True)} if verb.writes else {(0, False), (4, False)}
                if "A ends before entry" in answer.out:  # diff reads the journal twice, and it grows in between
                    expected = {(1, False)}
                assert (answer.code, " owns " in answer.err) in expected, (verb.name, answer)
        finally:
            stop.set()
            writer.join()


@on_posix
@pytest.mark.parametrize("form", FORMS)
def test_a_reader_that_has_left_is_met_without_a_word(form: str, bench: Bench, monkeypatch: pytest.MonkeyPatch):
    for verb in VERBS.values():
        if verb.name in ENDLESS | CONNECTED | REFUSED | {"demo"}:
            continue
        path = bench.copy(verb)
        read, write = os.pipe()
        os.close(read)
        complaints = io.StringIO()
        with monkeypatch.context() as patched, os.fdopen(write, "w") as nobody:
            patched.setattr(sys, "stdout", nobody)
            patched.setattr(sys, "stderr", complaints)
            code = main(bench.words(verb, path, form))
        quiet = form == "jsonl" and code == 0  # a list without rows
        assert (code == 141 or quiet, complaints.getvalue()) == (True, ""), verb.name


def test_ctrl_c_ends_every_command_with_130_and_leaves_nothing_half_made(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(RealDisk, "read", interrupt)
    for verb in READING.values():
        answer = bench.answer(verb, bench.journal)
        assert (answer.code, answer.out, answer.err.strip()) == (130, "", ""), (verb.name, answer)
    assert list(bench.made.iterdir()) == []


def letters(text: str) -> Counter[str]:
    """What is said under the headings, however it is folded."""
    lines = text.splitlines()
    following = [*lines[1:], ""]
    said = [line for line, after in zip(lines, following, strict=True) if not after.startswith("──")]
    return Counter(one for line in said for one in line if not one.isspace() and one not in "─━")


def test_forty_columns_lose_nothing_and_crush_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    bench.duly("index", str(bench.journal))  # Only the first time says that it wrote something.
    for verb in READING.values():
        if verb.name in ENDLESS or verb.writes:
            continue
        told: list[str] = []
        for columns in ("1000", "40"):
            monkeypatch.setenv("COLUMNS", columns)
            # The same length of all names that are said.
            said = bench.duly(*verb.words(bench.journal, bench.folder / f"made{columns:0>4}", Path("crontab"))).out
            told.append(said.replace(f"made{columns:0>4}", "made"))
        wide, narrow = told
        # A column that holds nothing but zeros may be left out.
        assert (letters(wide) - letters(narrow)).keys() <= {"0"}, verb.name
        crushed = [line for line in narrow.splitlines() if 0 < len(line.strip()) < 3]
        assert len(crushed) <= len(narrow.splitlines()) / 4, (verb.name, narrow)


def test_every_command_explains_itself_with_an_example_of_itself(duly: Duly):
    for name, verb in VERBS.items():
        answer = duly(*name.split(), "--help")
        assert (answer.code, answer.err) == (0, "")
        shown = [line for line in answer.out.splitlines() if "Example: " in line]
        assert any(f"duly {name}" in line for line in shown), (name, answer.out)
        options = [one for one in verb.command.params if isinstance(one, click.Option)]
        assert [one.name for one in options if not one.help] == [], name


def test_a_document_is_named_after_its_command(bench: Bench):
    for verb in READING.values():
        if verb.answers_in_json and verb.name not in ENDLESS | REFUSED:
            document = bench.answer(verb, bench.copy(verb), "json").document
            assert document["schema"] == f"duly.{verb.name.split()[0]}/1"


def test_jsonl_is_one_document_a_line(bench: Bench):
    for verb in READING.values():
        if verb.answers_in_json and verb.name not in ENDLESS | REFUSED:
            rows = bench.answer(verb, bench.copy(verb), "jsonl").rows
            assert {row["schema"] for row in rows} <= {f"duly.{verb.name.split()[0]}/1"}
