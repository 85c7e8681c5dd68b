"""whatif, the engine check, diff and simulate: what they print, how they end, and what they make of damage."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from duly.journal import Journal, Reader, read
from duly.journal.entries import Entry, ErrorInfo, OccurrenceAdmitted, RunFailed
from duly.scheduler.changes import FIELDS, SETTINGS
from duly.tools.supposing import parse_supposition
from tests.tools import golden_whatif
from tests.tools.conftest import Duly
from tests.tools.eventful import BEGIN, HOSTILE, hostile_text_is_escaped

COMMANDS: dict[str, list[str]] = {
    "whatif": ["whatif", "JOURNAL", "--set", "often.misfire=latest"],
    "replay": ["replay", "JOURNAL", "--engine-check"],
    "diff": ["diff", "JOURNAL", "JOURNAL"],
}
"""Those that read a journal."""
SCHEMAS = {"whatif": "duly.whatif/1", "replay": "duly.engine_check/1", "diff": "duly.diff/1"}
SPAN = ["--from", "2026-03-28T00:00:00Z", "--to", "2026-03-29T00:00:00Z", "--zone", "UTC"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The journals and the crontab of the golden outputs. They are only read."""
    return golden_whatif.make_all(tmp_path_factory.mktemp("made"))


def about(command: str, journal: object) -> list[object]:
    return [journal if word == "JOURNAL" else word for word in COMMANDS[command]]


@pytest.mark.parametrize("name", golden_whatif.COMMANDS)
def test_a_command_prints_what_it_printed_when_it_was_found_right(name: str, made: Mapping[str, Path]):
    wanted = (golden_whatif.FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert golden_whatif.printed(name, made) == wanted


def test_every_golden_file_belongs_to_a_command():
    assert {path.name for path in golden_whatif.FOLDER.iterdir()} == {f"{name}.txt" for name in golden_whatif.COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_document_carries_its_schema_and_reading_changes_nothing(command: str, made: Mapping[str, Path], duly: Duly):
    journal = made["JOURNAL"]
    before = {path.name: path.read_bytes() for path in journal.rglob("*") if path.is_file()}
    assert duly(*about(command, journal), "--json").document["schema"] == SCHEMAS[command]
    rows = duly(*about(command, journal), "--format", "jsonl").rows
    assert {row["schema"] for row in rows} <= {SCHEMAS[command]}
    assert duly(*about(command, journal)).code == 0
    assert {path.name: path.read_bytes() for path in journal.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("command", COMMANDS)
def test_no_damage_anywhere_makes_a_command_fail_but_by_its_rules(
    command: str, made: Mapping[str, Path], duly: Duly, tmp_path: Path
):
    [segment] = made["JOURNAL"].glob("*.jsonl")
    content = segment.read_bytes()
    copy = tmp_path / "copy"
    for number, place in enumerate(range(0, len(content), len(content) // 16)):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(made["JOURNAL"], copy)
        damaged = content[:place] if number % 4 == 0 else content[:place] + b"\xff" + content[place + 1 :]
        (copy / segment.name).write_bytes(damaged)
        answer = duly(*about(command, copy))
        assert (answer.code, answer.out) == (3, "")
        assert len(answer.err.splitlines()) == 1
        assert "fault of duly" not in answer.err


def test_a_diff_says_which_of_both_is_damaged(made: Mapping[str, Path], duly: Duly, tmp_path: Path):
    copy = tmp_path / "copy"
    shutil.copytree(made["JOURNAL"], copy)
    [segment] = copy.glob("*.jsonl")
    segment.write_bytes(segment.read_bytes()[:-500] + b"x" * 500)
    for pair in ((copy, made["JOURNAL"]), (made["JOURNAL"], copy)):
        answer = duly("diff", *pair, "--json")
        assert (answer.code, answer.out) == (3, "")
        assert answer.error["path"] == str(copy / segment.name)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_path_without_a_journal_is_unreadable(command: str, duly: Duly, tmp_path: Path):
    answer = duly(*about(command, tmp_path / "missing"), "--json")
    assert (answer.code, answer.out, answer.error["error"]) == (3, "", "ForeignJournal")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_journal_in_which_nothing_happened_is_answered_about(command: str, duly: Duly, tmp_path: Path):
    with Journal.open(tmp_path / "new", now=BEGIN):
        pass
    words = [word for word in about(command, tmp_path / "new") if word not in {"--set", "often.misfire=latest"}]
    assert duly(*words).code == 0
    assert duly(*words, "--json").code == 0


def test_entries_before_any_opening_are_no_fault_of_duly(made: Mapping[str, Path], duly: Duly, tmp_path: Path):
    """A record that begins with something else than its opening was made by nobody; it is still an answer."""
    entries = [one.entry for one in read(made["EVENTFUL"])]
    with Journal.open(tmp_path / "odd", now=BEGIN) as journal:
        for entry in entries[1:]:
            journal.append([entry], BEGIN)
    for command in COMMANDS:
        for words in (about(command, tmp_path / "odd"), [*about(command, tmp_path / "odd"), "--json"]):
            answer = duly(*words)
            assert answer.code in {0, 1}
            assert "fault of duly" not in answer.err


def spoilt(journal: Path, to: Path, kind: type[Entry], **fields: object) -> Path:
    """A journal with the first entry of a kind changed, and everything else as it is."""
    changed = False
    with Journal.open(to, now=BEGIN) as made:
        for line in Reader(journal).lines():
            entries = list(line.entries)
            for n, entry in enumerate(entries):
                if isinstance(entry, kind) and not changed:
                    changed = True
                    anything: Any = entry
                    entries[n] = msgspec.structs.replace(anything, **fields)
            made.append(entries, entries[0].at)
    return to


def test_a_poll_that_comes_out_otherwise_is_shown_and_ends_with_one(
    made: Mapping[str, Path], duly: Duly, tmp_path: Path
):
    journal = spoilt(made["EVENTFUL"], tmp_path / "spoilt", OccurrenceAdmitted, target="other")
    answer = duly("replay", journal, "--engine-check")
    assert answer.code == 1
    assert "comes out otherwise:\n  recorded" in answer.out
    assert "decided otherwise" in answer.out.splitlines()[-1]
    document = duly("replay", journal, "--engine-check", "--json").document
    first = document["divergences"][0]
    assert (document["ok"], first["recorded"][0]["target"], first["decided"][0]["target"]) == (False, "other", "check")
    rows = duly("replay", journal, "--engine-check", "--format", "jsonl").rows
    assert rows[0]["sequence"] == first["sequence"]
    supposed = duly("whatif", journal)
    assert supposed.code == 1
    assert "recorded polls come out otherwise" in supposed.out
    assert supposed.out.endswith("the record comes out otherwise\n")


@pytest.mark.parametrize("form", ["table", "json", "jsonl"])
def test_nothing_in_a_journal_drives_the_terminal(form: str, made: Mapping[str, Path], duly: Duly, tmp_path: Path):
    other = spoilt(made["EVENTFUL"], tmp_path / "other", RunFailed, error=ErrorInfo("Worse", HOSTILE))
    answer = duly("diff", made["EVENTFUL"], other, "--format", form)
    assert answer.code == 1
    if form == "jsonl":  # it has a row for each occurrence, and none was decided differently
        assert answer.out == ""
    else:
        assert hostile_text_is_escaped(answer.out)
    named = spoilt(made["EVENTFUL"], tmp_path / "named", OccurrenceAdmitted, target=HOSTILE)
    checked = duly("replay", named, "--engine-check", "--format", form)
    assert checked.code == 1
    assert "\x1b" not in checked.out
    assert form == "table" or hostile_text_is_escaped(checked.out)


# What is refused


REFUSED: dict[str, tuple[list[str], str]] = {
    "an unknown schedule": (["--set", "nihgtly.misfire=skip"], "there is no schedule 'nihgtly'. The nearest: nightly."),
    "an unknown field": (["--set", "often.misfrie=skip"], "The nearest: misfire; fields of a schedule are misfire"),
    "an unknown setting": (["--set", "slots=2"], "The nearest: task_slots"),
    "no value": (["--set", "often.misfire"], "sets nothing: write it as"),
    "a value that is none": (["--set", "often.misfire=later"], "is no misfire policy"),
    "a bad duration": (["--set", "often.lateness=soon"], "'soon' is not a duration"),
    "a bad number": (["--set", "task_slots=two"], "task_slots: 'two' is not a whole number"),
    "a name set twice": (["--set", "often.misfire=skip", "--set", "often.misfire=latest"], "is set twice"),
    "a bad duration of a run": (["--duration", "often=soon"], "often: 'soon' is not a duration"),
    "no duration of a run": (["--duration", "often"], "is no duration of a schedule"),
    "two durations": (["--duration", "often=1m,often=2m"], "often has two durations"),
    "two durations apart": (["--duration", "often=1m", "--duration", "often=2m"], "often has two durations"),
    "a duration of an unknown schedule": (["--duration", "oftne=1m"], "The nearest: often"),
    "a negative duration": (["--duration", "often=-1m"], "'-1m' is not a duration"),
    "a duration that nothing tells": (["--set", "task_slots=4"], "--duration tally=10m"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_bad_usage_with_a_remedy(case: str, made: Mapping[str, Path], duly: Duly):
    given, words = REFUSED[case]
    answer = duly("whatif", made["JOURNAL"], *given)
    assert (answer.code, answer.out, len(answer.err.splitlines())) == (2, "", 1)
    assert words in answer.err
    assert duly("whatif", made["JOURNAL"], *given, "--json").error["exit_code"] == 2


def test_the_engine_check_is_about_the_whole_record(made: Mapping[str, Path], duly: Duly):
    answer = duly("replay", made["JOURNAL"], "--engine-check", "--until", "5")
    assert (answer.code, answer.out) == (2, "")
    assert "does not go with --until" in answer.err


SIMULATIONS_REFUSED: dict[str, tuple[list[str], str]] = {
    "an end before the start": (["--from", "2026-03-28T00:00:00Z", "--to", "2026-03-27T00:00:00Z"], "is not later"),
    "a naive start": (["--from", "2026-03-28T00:00:00", "--to", "2026-03-29T00:00:00Z"], "in which zone"),
    "no end": (["--from", "2026-03-28T00:00:00Z"], "--to"),
    "too many decisions": ([*SPAN, "--limit", "5"], "limit: 5 decisions are made by"),
    "no slots": ([*SPAN, "--slots", "0"], "--slots"),
    "a duration of an unknown schedule": ([*SPAN, "--duration", "bakup=1m"], "The nearest: backup"),
    "a zone that is none": ([*SPAN, "--zone", "Europe/Berln"], "Europe/Berln"),
}


@pytest.mark.parametrize("case", SIMULATIONS_REFUSED)
def test_what_cannot_be_simulated_is_bad_usage(case: str, made: Mapping[str, Path], duly: Duly):
    given, words = SIMULATIONS_REFUSED[case]
    answer = duly("simulate", made["CRONTAB"], *given)
    assert (answer.code, answer.out, len(answer.err.splitlines())) == (2, "", 1)
    assert words in answer.err


def test_a_file_that_is_not_there_is_unreadable(duly: Duly, tmp_path: Path):
    answer = duly("simulate", tmp_path / "missing", *SPAN)
    assert (answer.code, answer.out, len(answer.err.splitlines())) == (3, "", 1)


def test_every_field_and_setting_that_can_be_supposed_is_read_as_what_it_is():
    texts = {"misfire": "skip", "overlap": "parallel", "cron": "0 3 * * *", "zone": "UTC", "fold": "second"}
    durations = {name: timedelta(minutes=7) for name in ("lateness", "clock_tolerance")}
    counts = dict.fromkeys(("max_active_runs", "task_slots", "batch"), 7)
    read = {}
    for name, value in {**texts, **durations, **counts}.items():
        text = "7m" if isinstance(value, timedelta) else str(value)
        read[name] = parse_supposition(f"a.{name}={text}" if name in FIELDS else f"{name}={text}")[1]
    assert read == {**texts, **durations, **counts}
    assert read.keys() == {*FIELDS, *SETTINGS}


def test_a_toml_file_is_simulated_like_the_crontab_that_says_the_same(duly: Duly, tmp_path: Path):
    crontab, toml = tmp_path / "crontab", tmp_path / "schedules.toml"
    crontab.write_text("# duly: id=backup\n30 2 * * * backup\n", encoding="utf-8")
    toml.write_text('[schedules.backup]\ncron = "30 2 * * *"\ncommand = "backup"\n', encoding="utf-8")
    documents = [duly("simulate", path, *SPAN, "--json").document for path in (crontab, toml)]
    assert documents[0] == documents[1]
    assert [one["entry"]["scheduled_at"] for one in documents[1]["decisions"]] == ["2026-03-28T02:30:00Z"]
    toml.write_text("[schedules.backup]\n", encoding="utf-8")
    assert duly("simulate", toml, *SPAN).code == 1


def test_a_line_that_is_not_understood_is_reported_and_the_others_are_simulated(made: Mapping[str, Path], duly: Duly):
    answer = duly("simulate", made["CRONTAB"], *SPAN)
    assert answer.code == 1
    assert "crontab:5:1: minute: '61' is out of range" in answer.err
    document = duly("simulate", made["CRONTAB"], *SPAN, "--json").document
    assert [one["line"] for one in document["problems"]] == [5]
    assert [one["schedule_id"] for one in document["schedules"]] == ["backup", "check", "roll"]
    rows = duly("simulate", made["CRONTAB"], *SPAN, "--format", "jsonl").rows
    assert len(rows) == len(document["decisions"]) == 1 + 96 + 24


def test_a_sound_crontab_ends_with_zero_and_may_be_empty(duly: Duly, tmp_path: Path):
    crontab = tmp_path / "crontab"
    crontab.write_text("@daily tidy\n", encoding="utf-8")
    assert duly("simulate", crontab, *SPAN).code == 0
    crontab.write_text("# nothing\n", encoding="utf-8")
    answer = duly("simulate", crontab, *SPAN)
    assert answer.code == 0
    assert answer.out.splitlines()[-1].startswith("0 decisions from 2026-03-28T00:00:00Z")


def test_as_many_rows_are_shown_as_are_asked_for(made: Mapping[str, Path], duly: Duly):
    few = duly("whatif", made["JOURNAL"], "--set", "often.misfire=latest", "-n", "2").out
    assert "and 102 more: see --count, or --json" in few
    none = duly("whatif", made["JOURNAL"], "--set", "often.misfire=latest", "-n", "0").out
    assert "backlog)" not in none
    assert "often.misfire=latest: 104 occurrences decided otherwise" in none
