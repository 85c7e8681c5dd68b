"""explain, account, history and blame about a journal in which everything happens: what they print, how they end."""

from __future__ import annotations

import os
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duly import Cron, ManualClock, Scheduler, UnknownSchedule
from duly.journal import Journal
from duly.journal.entries import (
    CalendarChanged,
    CronRule,
    Definition,
    JournalOpened,
    OccurrenceAdmitted,
    ScheduleCreated,
    SourceRule,
)
from duly.scheduler.explaining import explain
from tests.tools import golden_audit
from tests.tools.conftest import Duly
from tests.tools.eventful import hostile_text_is_escaped
from tests.tools.recorded import END, make_recorded

COMMANDS = {
    "explain": ["explain", "often", "2026-03-28T00:30:00Z", "--now", "2026-03-29T20:00:00Z"],
    "account": ["account"],
    "history": ["history", "often", "--now", "2026-03-29T20:00:00Z"],
    "blame": ["blame", "nightly"],
}
AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal in which everything happens. It is only read."""
    return make_recorded(tmp_path_factory.mktemp("recorded") / "journal")


@pytest.mark.parametrize("name", golden_audit.COMMANDS)
def test_a_command_prints_what_it_printed_when_it_was_found_right(name: str, recorded: Path):
    assert golden_audit.printed(name, recorded) == (golden_audit.FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_every_golden_file_belongs_to_a_command():
    assert {path.name for path in golden_audit.FOLDER.iterdir()} == {f"{name}.txt" for name in golden_audit.COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_document_carries_its_schema_and_reading_changes_nothing(command: str, recorded: Path, duly: Duly):
    before = {path.name: path.read_bytes() for path in recorded.rglob("*") if path.is_file()}
    words = [*COMMANDS[command], "-j", recorded]
    assert duly(*words, "--json").document["schema"] == f"duly.{command}/1"
    assert {row["schema"] for row in duly(*words, "--format", "jsonl").rows} == {f"duly.{command}/1"}
    assert duly(*words).code == 0
    assert {path.name: path.read_bytes() for path in recorded.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("form", ["table", "json", "jsonl"])
@pytest.mark.parametrize("command", ["explain", "history", "blame"])
def test_nothing_in_a_journal_drives_the_terminal(command: str, form: str, recorded: Path, duly: Duly):
    assert hostile_text_is_escaped(duly(*COMMANDS[command], "-j", recorded, "--format", form).out)


def test_no_damage_anywhere_makes_a_command_fail_but_by_its_rules(recorded: Path, duly: Duly, tmp_path: Path):
    [segment] = recorded.glob("*.jsonl")
    content = segment.read_bytes()
    copy = tmp_path / "copy"
    for number, place in enumerate(range(0, len(content), len(content) // 16)):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(recorded, copy)
        damaged = content[:place] if number % 4 == 0 else content[:place] + b"\xff" + content[place + 1 :]
        (copy / segment.name).write_bytes(damaged)
        for command in COMMANDS.values():
            answer = duly(*command, "-j", copy)
            assert (answer.code, answer.out) == (3, "")
            assert len(answer.err.splitlines()) == 1
            assert "fault of duly" not in answer.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_path_without_a_journal_is_unreadable(command: str, duly: Duly, tmp_path: Path):
    answer = duly(*COMMANDS[command], "-j", tmp_path / "missing", "--json")
    assert (answer.code, answer.out, answer.error["error"]) == (3, "", "ForeignJournal")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_salvaged_journal_with_a_hole_is_answered_about(command: str, recorded: Path, duly: Duly, tmp_path: Path):
    copy, saved = tmp_path / "copy", tmp_path / "saved"
    shutil.copytree(recorded, copy)
    [segment] = copy.glob("*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if b"OccurrenceSkipped" in line and b"overlap" in line)
    segment.write_bytes(b"".join([*lines[:place], b"x" * (len(lines[place]) - 1) + b"\n", *lines[place + 1 :]]))
    assert duly("salvage", copy, "--to", saved).code == 1
    answer = duly(*COMMANDS[command], "-j", saved)
    assert answer.code == (1 if command in {"explain", "account"} else 0)
    if command == "explain":
        assert "UNACCOUNTED" in answer.out
        assert "1 entry of the record was lost" in answer.out
    if command == "account":
        assert "often: unaccounted: 2026-03-28T00:30:00Z" in answer.out
        assert "unaccounted: 1, double: 0" in answer.out
        assert "1 entry was lost before" in answer.out


def test_an_account_of_a_record_that_lost_its_schedules_is_not_balanced(recorded: Path, duly: Duly, tmp_path: Path):
    copy, saved = tmp_path / "copy", tmp_path / "saved"
    shutil.copytree(recorded, copy)
    [segment] = copy.glob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b"ScheduleCreated", b"scheduleCreated"))
    assert duly("salvage", copy, "--to", saved).code == 1
    answer = duly("account", saved)
    assert answer.code == 1
    assert "entries were lost before this journal was salvaged, and schedules may be among them" in answer.out
    document = duly("account", saved, "--json").document
    assert (document["balanced"], document["unaccounted"], document["schedules"]) == (False, 0, [])
    assert document["lost"] > 1


def test_how_long_an_abandoned_run_took_is_not_known(recorded: Path, duly: Duly):
    for command in (["history", "nightly"], ["runs", "--state", "abandoned"]):
        [line] = [one for one in duly(*command, "-j", recorded).out.splitlines() if "abandoned" in one]
        assert not re.search(r"\d(?:ms|s|m|h|d)\b", line)


@pytest.mark.parametrize("command", ["explain", "history", "blame"])
def test_an_unknown_schedule_names_the_closest(command: str, recorded: Path, duly: Duly):
    words = ["nihgtly" if word in {"often", "nightly"} else word for word in COMMANDS[command]]
    answer = duly(*words, "-j", recorded)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "duly: there is no schedule 'nihgtly'. The nearest: nightly.\n"
    stranger = ["zzz" if word == "nihgtly" else word for word in words]
    assert "no schedule 'zzz'" in duly(*stranger, "-j", recorded, "--json").error["message"]


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01 00:00", "1900-01-01T00:00:00Z", "1900-01-01 00:00"])
def test_an_instant_that_is_none_is_bad_usage(text: str, recorded: Path, duly: Duly):
    answer = duly("explain", "nightly", text, "-j", recorded)
    assert (answer.code, answer.out, len(answer.err.splitlines())) == (2, "", 1)


def test_an_instant_between_two_seconds_is_no_occurrence(recorded: Path, duly: Duly):
    answer = duly("explain", "often", "2026-03-28T00:30:00.5Z", "-j", recorded)
    assert answer.code == 1
    assert "between two whole seconds" in answer.out
    assert "2026-03-28T00:30:00Z and 2026-03-28T00:45:00Z" in answer.out


def test_the_nearest_occurrences_are_those_of_the_rule_in_force_there(tmp_path: Path):
    clock = ManualClock(AT)
    with Scheduler.open(tmp_path / "journal", clock=clock) as scheduler:
        scheduler.create("job", Cron("0 * * * *", zone="UTC"), target="work")
        clock.advance(timedelta(minutes=90))
        scheduler.edit("job", expected_revision=1, trigger=Cron("20 * * * *", zone="UTC"))
        found = scheduler.explain("job", AT + timedelta(minutes=85))
        assert (found.disposition, found.revision and found.revision.revision) == ("none", 1)
        assert found.nearest == (AT + timedelta(hours=1), AT + timedelta(minutes=140))


def test_a_scheduler_explains_as_a_reader_of_its_journal_does(tmp_path: Path):
    clock = ManualClock(AT)
    with Scheduler.open(tmp_path / "journal", clock=clock) as scheduler:
        scheduler.create("job", Cron("0 * * * *", zone="UTC"), target="work")
        clock.advance(timedelta(minutes=61))
        scheduler.poll(start=True)
        live = scheduler.explain("job", AT + timedelta(hours=1))
        assert live == explain(scheduler.path, "job", AT + timedelta(hours=1))
        assert (live.disposition, live.run and live.run.state) == ("admitted", "started")
        with pytest.raises(UnknownSchedule, match="The nearest: job"):
            scheduler.explain("jbo", AT)


def write(path: Path, rule: CronRule | SourceRule, *entries: OccurrenceAdmitted | CalendarChanged) -> Path:
    """A journal by hand, with one schedule by this rule and these entries about it."""
    opened = JournalOpened(
        at=AT,
        host="h",
        pid=1,
        duly="0",
        croniter="6.0.0",
        tzdata="2020.1",
        python="3",
        task_slots=1,
        batch=1,
        clock_tolerance=timedelta(minutes=5),
    )
    created = ScheduleCreated(at=AT, schedule_id="job", covers_through=AT, definition=Definition(rule, "work"))
    with Journal.open(path, now=AT) as journal:
        journal.append([opened, created, *entries], AT)
    return path


def admitted(instant: datetime) -> OccurrenceAdmitted:
    return OccurrenceAdmitted(at=instant, schedule_id="job", scheduled_at=instant, target="work")


def test_a_decision_that_is_no_occurrence_is_foreign_and_a_changed_calendar_is_named(duly: Duly, tmp_path: Path):
    at = AT + timedelta(minutes=7)
    changed = CalendarChanged(at=at, schedule_id="job", was=at, croniter="6.9.9", tzdata="2020.2")
    path = write(tmp_path / "odd", CronRule("0 * * * *", "UTC"), admitted(at), changed)
    answer = duly("account", path)
    assert answer.code == 1
    assert "job: decided, though it is no occurrence: 2026-03-02T09:07:00Z" in answer.out
    assert "job: calendar changed at 2026-03-02T09:07:00Z, with croniter 6.9.9, tzdata 2020.2" in answer.out
    assert "the record was made with croniter 6.0.0, tzdata 2020.1; this machine counts with croniter " in answer.out
    told = duly("explain", "job", "2026-03-02T09:07:00Z", "-j", path)
    assert told.code == 0
    assert "the calendar changed" in told.out
    assert duly("account", path, "--since", "2026-03-02T09:08:00Z").code == 0


def test_an_occurrence_that_was_decided_twice_is_double(duly: Duly, tmp_path: Path):
    at = AT + timedelta(hours=1)
    answer = duly("account", write(tmp_path / "odd", CronRule("0 * * * *", "UTC"), admitted(at), admitted(at)))
    assert answer.code == 1
    assert "job: decided twice: 2026-03-02T10:00:00Z" in answer.out


def test_a_trigger_of_the_host_that_is_not_here_cannot_be_told_but_what_was_decided_can(duly: Duly, tmp_path: Path):
    at = AT + timedelta(hours=1)
    path = write(tmp_path / "odd", SourceRule("tides"), admitted(at))
    assert "job@2026-03-02T10:00:00Z admitted" in duly("explain", "job", "2026-03-02 10:00", "-j", path).out
    unknown = duly("explain", "job", "2026-03-02 11:00", "-j", path)
    assert unknown.code == 1
    assert "cannot be told" in unknown.out
    assert "tides" in unknown.out
    assert "job: cannot be counted" in duly("account", path).out
    assert duly("history", "job", "-j", path).code == 0


def test_the_journal_is_read_beside_its_owner_and_where_nothing_can_be_written(duly: Duly, tmp_path: Path):
    path = make_recorded(tmp_path / "journal")
    with Scheduler.open(path, clock=ManualClock(END)):
        for command in COMMANDS.values():
            assert duly(*command, "-j", path).code == 0
    for file in [*path.rglob("*"), path]:
        file.chmod(file.stat().st_mode & ~0o222)
    try:
        for command in COMMANDS.values():
            assert duly(*command, "-j", path).code == 0
    finally:
        os.chmod(path, 0o700)  # noqa: PTH101 - so that it can be removed


def test_a_backlog_too_long_to_be_told_one_by_one_is_told_as_a_whole(duly: Duly, tmp_path: Path):
    with Scheduler.open(tmp_path / "j", clock=ManualClock(AT)) as scheduler:
        scheduler.create("job", Cron("0 * * * *", zone="UTC"), target="work")
    told = duly("history", "job", "-j", tmp_path / "j", "--now", "2026-03-12T09:30:00Z").out.splitlines()
    assert [" ".join(line.split()) for line in told[2:]] == [
        "... 2026-03-02T09:00:00Z not run before the schedule began 2",
        "2026-03-02T09:00:00Z ... 2026-03-12T08:59:59Z waiting at least 100 of them",
        "2026-03-12T09:00:00Z waiting",
    ]
    document = duly("history", "job", "-j", tmp_path / "j", "--now", "2026-03-12T09:30:00Z", "--json").document
    span = document["occurrences"][1]
    assert (span["disposition"], span["detail"], span["after"]) == ("interval", "waiting", "2026-03-02T09:00:00Z")


def test_a_history_says_why_a_run_was_abandoned(recorded: Path, duly: Duly):
    line = next(line for line in duly("history", "nightly", "-j", recorded).out.splitlines() if " abandoned " in line)
    assert "its owner ended while it was under way" in line


def test_a_history_is_narrowed(recorded: Path, duly: Duly):
    def rows(*options: str) -> list[str]:
        answer = duly("history", "often", "-j", recorded, "--format", "jsonl", "--now", END.isoformat(), *options)
        return [row["scheduled_at"] for row in answer.rows]

    day = ("--since", "2026-03-28T00:30:00Z", "--until", "2026-03-28T00:45:00Z")
    assert rows(*day) == ["2026-03-28T00:30:00Z", "2026-03-28T00:45:00Z"]
    assert rows(*day, "-n", "1") == ["2026-03-28T00:45:00Z"]
    assert rows("-n", "0") == []
    assert duly("history", "often", "-j", recorded, "-n", "0").out == "there are no occurrences\n"
