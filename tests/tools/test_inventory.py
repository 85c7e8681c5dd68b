"""schedules, show, runs, and what the log is narrowed to: what there is in a journal in which everything happens."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duly.journal import Journal
from duly.journal.entries import CronRule, Definition, ScheduleCreated, SourceRule
from tests.tools.conftest import Duly
from tests.tools.eventful import hostile_text_is_escaped

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
COMMANDS = {"schedules": ["schedules"], "show": ["show", "nightly"], "runs": ["runs"]}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_document_carries_its_schema(command: str, journal: Path, duly: Duly):
    words = [*COMMANDS[command], "-j", journal]
    assert duly(*words, "--json").document["schema"] == f"duly.{command}/1"
    assert {row["schema"] for row in duly(*words, "--format", "jsonl").rows} == {f"duly.{command}/1"}
    assert (duly(*words).code, duly(*words).err) == (0, "")


def test_the_schedules_are_listed_with_their_state_and_what_is_next(journal: Path, duly: Duly):
    rows = duly("schedules", journal, "--deleted", "--format", "jsonl").rows
    assert {row["id"]: row["next_due"] for row in rows} == {
        "gone": None,
        "hourly": "2026-03-29T04:00:00Z",
        "nightly": "2026-03-30T00:30:00Z",
        "often": "2026-03-29T03:45:00Z",
        "once": None,
    }
    lines = {line.split()[0]: line for line in duly("schedules", journal).out.splitlines()[2:]}
    assert sorted(lines) == ["hourly", "nightly", "often", "once"]
    assert "held" in lines["nightly"]
    assert "exhausted" in lines["once"]


def test_a_schedule_is_shown_with_its_local_time(journal: Path, duly: Duly):
    shown = duly("show", "nightly", "-j", journal).out
    assert "when      30 2 * * * Europe/Berlin\n" in shown
    assert "next      2026-03-30T00:30:00Z, Mon 2026-03-30 02:30 CEST\n" in shown
    assert "held      2026-03-29T01:00:00Z\n" in shown
    assert "state     deleted" in duly("show", "gone", "-j", journal).out


def test_an_unknown_schedule_names_the_closest(journal: Path, duly: Duly):
    answer = duly("show", "nihgtly", "-j", journal)
    assert (answer.code, answer.err) == (2, "duly: there is no schedule 'nihgtly'. The nearest: nightly.\n")
    assert "`duly schedules` lists" in duly("show", "zzz", "-j", journal).err


def test_runs_are_narrowed(journal: Path, duly: Duly):
    def ids(*options: object) -> list[int]:
        return [row["id"] for row in duly("runs", journal, "--format", "jsonl", *options).rows]

    assert ids() == [7, 9, 14, 16, 21, 30, 36, 63]
    assert ids("-s", "nightly") == [14, 30]
    assert ids("--state", "abandoned", "--state", "failed") == [7, 30]
    assert ids("-n", 2) == [36, 63]
    assert ids("--state", "started") == []
    assert duly("runs", journal, "--state", "started").out == "there are no runs\n"


@pytest.mark.parametrize(
    "words",
    [["--until", "2026-03-01T00:00:00Z"], ["--run", "14", "-s", "often"], ["-s", "once", "--kind", "RunFailed"]],
)
def test_a_log_in_which_nothing_fits_says_from_where_to_where_the_record_goes(
    words: list[str], journal: Path, duly: Duly
):
    answer = duly("log", journal, *words)
    assert (answer.code, answer.out) == (
        0,
        "no entry fits. The record goes from entry 1, 2026-03-28T00:00:00Z, to entry 68, 2026-03-29T03:30:00Z\n",
    )
    assert duly("log", journal, *words, "--json").document["entries"] == []


def test_a_kind_that_is_none_names_those_that_are_near(journal: Path, duly: Duly):
    answer = duly("log", journal, "--kind", "Skipped")
    assert answer.code == 2
    assert "'Skipped' is no kind of entry. The nearest: OccurrenceSkipped, IntervalSkipped." in answer.err
    assert "The nearest: RunFailed" in duly("log", journal, "--kind", "RunFialed").err
    assert "There are: ScheduleCreated, " in duly("log", journal, "--kind", "?").err


def test_a_replay_beyond_the_record_says_where_it_ends(journal: Path, duly: Duly):
    assert "the record ends with entry 68\n" in duly("replay", journal, "--until", 99999).out
    before = duly("replay", journal, "--until", "1999-01-01T00:00:00Z").out
    assert re.search(r"^at +-$", before, re.MULTILINE)


def test_the_error_of_a_run_does_not_drive_the_terminal(journal: Path, duly: Duly):
    for form in ("table", "json", "jsonl"):
        assert hostile_text_is_escaped(duly("runs", journal, "--format", form).out)


@pytest.mark.parametrize("rule", [SourceRule("tides"), CronRule("0 * * * *", "Europe/Atlantis")])
def test_a_schedule_that_cannot_be_evaluated_here_is_shown_with_the_reason(
    rule: SourceRule | CronRule, duly: Duly, tmp_path: Path
):
    created = ScheduleCreated(at=AT, schedule_id="job", covers_through=AT, definition=Definition(rule, "work"))
    with Journal.open(tmp_path / "odd", now=AT) as odd:
        odd.append([created], AT)
    for command in (["schedules", tmp_path / "odd"], ["show", "job", "-j", tmp_path / "odd"]):
        answer = duly(*command)
        assert answer.code == 0
        assert "cannot be evaluated" in answer.out
    assert duly("show", "job", "-j", tmp_path / "odd", "--json").document["fault"] != ""
    told = duly("explain", "job", "2026-03-02 10:00", "-j", tmp_path / "odd")
    assert (told.code, "cannot be told" in told.out) == (1, True)


@pytest.mark.parametrize(
    ("options", "sequences"),
    [
        (["--run", "7"], [7, 8, 13]),
        (["--kind", "ScheduleEdited", "--kind", "ScheduleBlocked"], [28, 29]),
        (["--kind", "RunStarted", "-s", "nightly"], [15, 31]),
        (["--run", "30", "--since", "32"], [33]),
        (["--run", "999"], []),
    ],
)
def test_the_log_is_narrowed_to_kinds_and_to_a_run(options: list[str], sequences: list[int], journal: Path, duly: Duly):
    assert [row["sequence"] for row in duly("log", journal, "--format", "jsonl", *options).rows] == sequences


def test_a_kind_that_there_is_not_is_bad_usage(journal: Path, duly: Duly):
    answer = duly("log", journal, "--kind", "Nonsense")
    assert (answer.code, answer.out) == (2, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_damage_is_unreadable(command: str, journal: Path, duly: Duly, tmp_path: Path):
    [segment] = journal.glob("*.jsonl")
    content = segment.read_bytes()
    for place in range(0, len(content), len(content) // 8):
        (tmp_path / "copy").mkdir(exist_ok=True)
        for file in journal.iterdir():
            if file.is_file():
                (tmp_path / "copy" / file.name).write_bytes(file.read_bytes())
        (tmp_path / "copy" / segment.name).write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        answer = duly(*COMMANDS[command], "-j", tmp_path / "copy")
        assert (answer.code, answer.out, len(answer.err.splitlines())) == (3, "", 1)


def test_an_empty_journal_has_nothing_to_list(duly: Duly, tmp_path: Path):
    with Journal.open(tmp_path / "empty", now=AT + timedelta(0)):
        pass
    assert duly("schedules", tmp_path / "empty").out == "there are no schedules\n"
    assert duly("runs", tmp_path / "empty").out == "there are no runs\n"
