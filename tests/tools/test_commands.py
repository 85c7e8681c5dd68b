"""Every command on an eventful journal: what it prints, in each format, and how it ends."""

from __future__ import annotations

import errno
import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

import duly as package
from duly.journal import Journal
from duly.journal.entries import RunCompleted
from duly.tools import exit_codes
from duly.tools.cli import cli, exit_code_of, message_and_remedy
from tests.tools import golden
from tests.tools.conftest import Duly
from tests.tools.eventful import hostile_text_is_escaped

READING = ["verify", "replay", "dump", "log", "head"]


@pytest.mark.parametrize("name", golden.COMMANDS)
def test_a_command_prints_what_it_printed_when_it_was_found_right(name: str, journal: Path):
    assert golden.printed(name, journal) == (golden.FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_every_golden_file_belongs_to_a_command():
    assert {path.name for path in golden.FOLDER.iterdir()} == {f"{name}.txt" for name in golden.COMMANDS}


@pytest.mark.parametrize("command", READING)
def test_the_journal_is_named_by_argument_option_or_environment(
    command: str, journal: Path, duly: Duly, monkeypatch: pytest.MonkeyPatch
):
    by_argument = duly(command, journal)
    assert by_argument.code == 0
    assert duly(command, "-j", journal) == by_argument
    assert duly(command, "--journal", journal) == by_argument
    monkeypatch.setenv("DULY_JOURNAL", str(journal))
    assert duly(command) == by_argument
    monkeypatch.setenv("DULY_JOURNAL", "elsewhere")
    assert duly(command, journal) == by_argument


@pytest.mark.parametrize("command", READING)
def test_a_document_carries_its_schema_and_short_is_the_same_as_long(command: str, journal: Path, duly: Duly):
    assert duly(command, journal, "--json").document["schema"] == f"duly.{command}/1"
    assert duly(command, journal, "--json") == duly(command, journal, "--format", "json")
    rows = duly(command, journal, "--format", "jsonl").rows
    assert {row["schema"] for row in rows} == {f"duly.{command}/1"}


@pytest.mark.parametrize("command", READING)
def test_reading_changes_nothing(command: str, journal: Path, duly: Duly):
    def content() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in journal.rglob("*") if path.is_file()}

    before = content()
    duly(command, journal)
    assert content() == before


@pytest.mark.parametrize("form", ["table", "json", "jsonl"])
@pytest.mark.parametrize("command", ["log", "dump"])
def test_nothing_in_a_journal_drives_the_terminal(command: str, form: str, journal: Path, duly: Duly):
    answer = duly(command, journal, "--format", form, "--until", 31)
    assert hostile_text_is_escaped(answer.out)


def test_the_lines_of_the_log_and_of_the_journal_are_as_many(journal: Path, duly: Duly):
    entries = duly("verify", journal, "--json").document["entries"]
    assert len(duly("log", journal).out.splitlines()) == entries
    assert len(duly("log", journal, "--format", "jsonl").rows) == entries
    assert len(duly("log", journal, "--json").document["entries"]) == entries


def test_a_log_without_a_hit_is_an_empty_document(journal: Path, duly: Duly):
    words = ["log", journal, "--schedule", "nightly", "--since", 999]
    assert duly(*words).out.startswith("no entry fits. The record goes from entry 1, ")
    assert duly(*words, "--json").document == {"schema": "duly.log/1", "entries": []}


@pytest.mark.parametrize("command", ["log", "runs"])
def test_a_list_of_an_unknown_schedule_is_refused_with_the_nearest(command: str, journal: Path, duly: Duly):
    answer = duly(command, journal, "-s", "nightly", "-s", "nihgtly")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "duly: there is no schedule 'nihgtly'. The nearest: nightly.\n"
    assert duly(command, journal, "-s", "gone").code == 0


def test_the_log_of_an_unknown_run_is_refused_with_the_nearest(journal: Path, duly: Duly):
    runs = [row["id"] for row in duly("runs", journal, "--format", "jsonl").rows]
    answer = duly("log", journal, "--run", 999, "-f")
    assert (answer.code, answer.out) == (2, "")
    nearest = ", ".join(map(str, sorted(runs)[-3:]))
    assert answer.err == f"duly: there is no run 999. The nearest: {nearest}. See duly log --help.\n"


@pytest.mark.parametrize("words", [[], ["ctl"]])
def test_a_command_that_is_not_named_is_answered_with_the_readable_help(words: list[str], duly: Duly):
    answer = duly(*words)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == duly(*words, "--help").out
    assert len(answer.err.splitlines()) > 10


def test_an_unknown_command_is_told_the_nearest_with_one_mark_at_its_end(duly: Duly):
    answer = duly("lgo")
    assert answer.code == 2
    assert "?." not in answer.err


def test_an_unfinished_tail_is_called_so_and_ends_with_1(journal: Path, duly: Duly, tmp_path: Path):
    copy = tmp_path / "copy"
    shutil.copytree(journal, copy)
    [segment] = copy.glob("*.jsonl")
    segment.write_bytes(segment.read_bytes() + b'{"c":"0e75')
    answer = duly("verify", copy)
    assert answer.code == 1
    assert answer.out.startswith("journal unfinished, ")
    assert "then an unfinished tail of 10 bytes, which its next owner cuts off" in answer.out
    document = duly("verify", copy, "--json").document
    assert (document["intact"], document["damage"], document["unfinished"]["size"]) == (False, None, 10)


def test_a_journal_saved_with_other_line_ends_has_no_empty_name(journal: Path, duly: Duly, tmp_path: Path):
    copy = tmp_path / "copy"
    shutil.copytree(journal, copy)
    [segment] = copy.glob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b"\n", b"\r\n"))
    answer = duly("verify", copy)
    assert answer.code == 1
    assert " bytes, journal unknown\n" in answer.out


@pytest.mark.parametrize(
    ("options", "sequences"),
    [
        (["--since", "5", "--until", "7"], [5, 6, 7]),
        (["--since", "2026-03-28T00:20:00Z", "--until", "2026-03-28T00:20:00Z"], [9, 10, 11]),
        (["--until", "3", "-n", "2"], [2, 3]),
        (["-n", "0"], []),
        (["-s", "once", "-s", "gone"], [5, 6, 9, 10, 11, 25]),
        (["--since", "999"], []),
    ],
)
def test_the_log_is_narrowed(options: list[str], sequences: list[int], journal: Path, duly: Duly):
    rows = duly("log", journal, "--format", "jsonl", *options).rows
    assert [row["sequence"] for row in rows] == sequences


def test_an_anchor_that_was_printed_is_expected(journal: Path, duly: Duly):
    anchor = duly("head", journal).out.strip()
    assert duly("verify", journal, "--expect", anchor).code == 0
    assert duly("head", journal, "--json").document["anchor"] == anchor


def test_another_anchor_is_a_bad_answer(journal: Path, duly: Duly):
    answer = duly("verify", journal, "--expect", f"1:{'a' * 64}", "--json")
    assert (answer.code, answer.document["intact"]) == (1, False)
    assert "another record" in answer.document["expected"]


def test_a_damaged_journal_is_a_bad_answer_to_verify_and_unreadable_to_the_others(
    journal: Path, duly: Duly, tmp_path: Path
):
    copy = tmp_path / "copy"
    shutil.copytree(journal, copy)
    [segment] = copy.glob("*.jsonl")
    content = segment.read_bytes()
    place = content.index(b"second line")
    segment.write_bytes(content[:place] + b"S" + content[place + 1 :])
    verified = duly("verify", copy)
    assert verified.code == 1
    assert "journal damaged" in verified.out
    assert duly("verify", copy, "--json").document["damage"]["path"] == str(segment)
    for command in ("replay", "dump", "head"):
        answer = duly(command, copy)
        assert (answer.code, answer.out) == (3, "")
        assert "salvage" in answer.err
    log = duly("log", copy, "--json")
    assert (log.code, log.error["error"]) == (3, "JournalCorrupt")

    saved = duly("salvage", copy, "--to", tmp_path / "saved", "--json")
    assert (saved.code, saved.document["lost"]) == (1, [{"first": 13, "last": 13}])
    after = duly("verify", tmp_path / "saved", "--json").document
    assert (after["damage"], after["lost"], after["sequence"]) == (None, 1, 68)
    assert "LOST" in duly("log", tmp_path / "saved", "--since", 13, "--until", 13).out


def test_no_damage_anywhere_makes_a_command_fail_but_by_its_rules(journal: Path, duly: Duly, tmp_path: Path):
    [segment] = journal.glob("*.jsonl")
    content = segment.read_bytes()
    copy = tmp_path / "copy"
    ends: dict[str, set[int]] = {}
    for number, place in enumerate(range(0, len(content), len(content) // 40)):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(journal, copy)
        damaged = content[:place] if number % 4 == 0 else content[:place] + b"\xff" + content[place + 1 :]
        (copy / segment.name).write_bytes(damaged)
        commands = [[name, copy] for name in READING] + [["salvage", copy, "--to", tmp_path / f"saved-{number}"]]
        for command in commands:
            answer = duly(*command)
            ends.setdefault(str(command[0]), set()).add(answer.code)
            assert "fault of duly" not in answer.err
            assert "Traceback" not in answer.out + answer.err
    assert ends["verify"] == {1}
    assert ends["salvage"] <= {0, 1, 3}
    assert [ends[name] for name in ("replay", "dump", "log", "head")] == [{3}] * 4


def test_a_record_that_contradicts_itself_is_a_bad_answer(duly: Duly, tmp_path: Path):
    at = datetime(2026, 3, 1, tzinfo=UTC)
    with Journal.open(tmp_path / "odd", now=at) as odd:
        odd.append([RunCompleted(at=at, run_id=77)], at)
    answer = duly("verify", tmp_path / "odd")
    assert answer.code == 1
    assert "entry 1 (RunCompleted) contradicts the record" in answer.out
    document = duly("verify", tmp_path / "odd", "--json").document
    assert (document["intact"], document["damage"]) == (False, None)
    assert [(one["sequence"], one["kind"]) for one in document["anomalies"]] == [(1, "RunCompleted")]


def test_an_intact_journal_is_salvaged_whole(journal: Path, duly: Duly, tmp_path: Path):
    answer = duly("salvage", journal, "--to", tmp_path / "saved")
    assert answer.code == 0
    assert answer.out.startswith("68 entries copied")
    assert duly("salvage", journal, "--to", tmp_path / "saved").code == 3


def test_the_digest_is_that_of_the_library(journal: Path, duly: Duly):
    from duly.projections import replay

    assert duly("replay", journal, "--json").document["digest"] == replay(journal).digest()
    assert duly("replay", journal, "--until", 20, "--json").document["digest"] == replay(journal, until=20).digest()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["log"], "No journal is named"),
        (["verify", "a", "-j", "b"], "named twice"),
        (["nosuch"], "No such command"),
        (["log", "J", "--since", "yesterday"], "is not an instant"),
        (["log", "J", "--since", "2026-03-28T00:00:00"], "does not say in which zone"),
        (["log", "J", "--follow", "--json"], "use --format jsonl"),
        (["log", "J", "--follow", "--until", "5"], "does not go with --until"),
        (["log", "J", "--format", "xml"], "'xml' is not one of"),
        (["log", "J", "--json", "--format", "table"], "contradict each other"),
        (["verify", "J", "--expect", "5"], "an anchor is"),
        (["dump", "J", "--projection", "nosuch"], "'nosuch' is not one of"),
        (["next"], "Name either"),
        (["next", "a", "--cron", "* * * * *"], "Name either"),
        (["next", "a"], "looked up in a journal"),
        (["next", "a", "--zone", "UTC", "-j", "J"], "a schedule has its own zone"),
        (["next", "--cron", "* * * * *"], "add --zone"),
        (["next", "--cron", "61 * * * *", "--zone", "UTC"], "minute: '61' is out of range"),
        (["next", "--cron", "* * * * *", "--zone", "Europe/Berln"], "Europe/Berlin"),
        (["next", "--cron", "* * * * *", "--zone", "UTC", "-n", "0"], "0 is not in the range"),
        (["next", "--cron", "* * * * *", "--zone", "UTC", "--after", "1900-01-01T00:00:00Z"], "1972"),
        (["next", "nihgtly", "-j", "J"], "The nearest: nightly"),
        (["salvage", "J"], "Missing option '--to'"),
        (["completion", "tcsh"], "'tcsh' is not one of"),
        (["import", "nosuch"], "No journal is named"),
        (["demo", "--keep", "J"], "not empty"),
    ],
)
def test_bad_usage_ends_with_2_and_says_what_to_do(arguments: list[str], said: str, journal: Path, duly: Duly):
    answer = duly(*(journal if word == "J" else word for word in arguments))
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("{" if "--json" in arguments else "duly: ")
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize("command", READING)
def test_a_bad_path_ends_with_3_and_one_clear_line(command: str, duly: Duly, tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("not a journal")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "photo.jpg").write_bytes(b"")
    for path in (tmp_path / "missing", file, file / "below", foreign):
        answer = duly(command, path)
        assert (answer.code, answer.out) == (3, "")
        assert answer.err.startswith(f"duly: {path}")
        assert len(answer.err.splitlines()) == 1
    assert {path.name for path in tmp_path.rglob("*")} == {"file", "foreign", "photo.jpg"}


def test_an_error_is_a_document_on_standard_error_when_json_is_asked_for(duly: Duly, tmp_path: Path):
    for form in (["--json"], ["--format", "jsonl"], ["--format=json"]):
        error = duly("verify", tmp_path / "missing", *form).error
        assert (error["schema"], error["error"], error["exit_code"]) == ("duly.error/1", "ForeignJournal", 3)
        assert error["path"] == str(tmp_path / "missing")
    usage = duly("log", "--json").error
    assert (usage["error"], usage["exit_code"]) == ("UsageError", 2)


def test_our_own_fault_ends_with_70_and_no_traceback(journal: Path, duly: Duly, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise RuntimeError("the moon is full")

    monkeypatch.setattr("duly.journal.head", fail)
    answer = duly("head", journal)
    assert answer.code == 70
    assert "a fault of duly itself: RuntimeError: the moon is full" in answer.err
    assert "Traceback" not in answer.err
    monkeypatch.setenv("DULY_TRACEBACK", "1")
    assert "Traceback" in duly("head", journal).err


def test_an_interrupt_ends_with_130_and_without_a_word(journal: Path, duly: Duly, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("duly.journal.head", interrupt)
    answer = duly("head", journal)
    assert (answer.code, answer.out, answer.err.strip()) == (130, "", "")


def test_a_file_that_may_not_be_read_is_unreadable():
    assert exit_code_of(PermissionError(13, "Permission denied", "journal/HEAD")) == 3


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "state"), ("state: No space left on device", "Make room")),
        (OSError(errno.EIO, "Input/output error"), ("Input/output error", "Look at the system's log")),
        (PermissionError(errno.EACCES, "Permission denied", "state"), ("state: Permission denied", "Check the path")),
        (OSError("odd"), ("odd", "Check the paths")),
        (OSError(), ("OSError", "Check the paths")),
    ],
)
def test_an_error_of_the_operating_system_comes_with_what_to_do(error: OSError, told: tuple[str, str]):
    message, remedy = message_and_remedy(error)
    assert (message, remedy[: len(told[1])]) == told


def test_an_exit_code_is_named_in_one_place():
    names = [name for name in vars(exit_codes) if name.isupper()]
    for path in Path(exit_codes.__file__).parent.glob("*.py"):
        defined = re.findall(rf"^(?:{'|'.join(names)})\b[^\n=]*=", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert (path.name, bool(defined)) == (path.name, path.name == "exit_codes.py")


def test_every_command_explains_itself_with_an_example(duly: Duly):
    for name in cli.commands:
        answer = duly(name, "--help")
        assert answer.code == 0
        assert f"Example: {'crontab -l | ' if name == 'import' else ''}duly {name}" in answer.out
        assert answer.err == ""


def test_help_lists_every_command(duly: Duly):
    answer = duly("--help")
    assert answer.code == 0
    assert [name for name in cli.commands if f"\n  {name} " not in answer.out] == []


def test_the_version_is_the_package_s(duly: Duly):
    assert duly("--version").out == f"duly {package.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str, duly: Duly, monkeypatch: pytest.MonkeyPatch):
    answer = duly("completion", shell)
    assert answer.code == 0
    assert "_DULY_COMPLETE" in answer.out
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert duly("completion").out == answer.out


def test_commands_read_only_unless_their_help_says_that_they_write():
    writing = {name for name, command in cli.commands.items() if "Writes" in (command.short_help or "")}
    assert writing == {"import", "salvage", "export", "index", "archive", "run", "ctl"}


def test_json_is_plain_ascii(journal: Path, duly: Duly):
    text = duly("log", journal, "--json").out
    assert text.isascii()
    json.loads(text)


def test_click_s_own_errors_have_their_codes():
    assert exit_code_of(click.UsageError("x")) == 2
