"""The demo, end to end: real processes, a real kill, and figures that come from the journal alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duly import Cron
from duly.journal import read, verify
from duly.journal.entries import (
    JournalClosed,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSuperseded,
    RunAbandoned,
    RunStarted,
    ScheduleCreated,
)
from duly.scheduler.accounting import account
from duly.tools.demo import DOWN, END, KILLED_FROM, DemoFailed, play
from duly.tools.demo_moments import Moment, moments
from duly.tools.demo_owner import LONGEST, SHORTEST, simulated_duration
from duly.tools.demo_report import quoted
from tests.tools.conftest import Duly

pytestmark = pytest.mark.xdist_group("demo")  # what is played once is played in one worker

AT = datetime(2026, 3, 24, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What `duly demo` prints, and the folder where it leaves the journal."""
    folder = tmp_path_factory.mktemp("demo") / "kept"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "duly", "demo", "--keep", str(folder)],
        capture_output=True,
        encoding="utf-8",
        # readline, which pytest loads, puts COLUMNS into the environment behind Python's back.
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout, folder / "journal"


def test_the_demo_prints_the_proof(told: tuple[str, Path]):
    text, journal = told
    entries = verify(journal).entries
    assert f"journal verified, {entries:,} entries, chain intact" in text
    assert "decided twice: 0, decided though never due: 0, unaccounted: 0" in text
    assert str(journal) in text
    assert "\x1b" not in text


def test_the_figures_of_the_demo_add_up(told: tuple[str, Path]):
    text, journal = told
    found = re.search(
        r"([\d,]+) occurrences came due = ([\d,]+) admitted \+ ([\d,]+) skipped \+ ([\d,]+) superseded", text
    )
    assert found is not None
    due, *parts = (int(figure.replace(",", "")) for figure in found.groups())
    assert due == sum(parts) > 800
    assert due == sum(one.due for one in account(journal).schedules)


@pytest.mark.parametrize(
    "moment",
    [
        "makes the journal|takes the new journal",
        "back after 3h of downtime",
        r"Europe/Berlin: clocks go forward 02:00 -> 03:00 \(CEST\); the skipped time of nightly-backup \(run \d+\)",
        r"Australia/Sydney: clocks go back 03:00 -> 02:00 \(AEST\); night-audit-sydney runs at both 02:30",
        "kill -9 of process",
        "abandoned, never repeated",
        "started now, once",
        "is still at work",
        "held, ",
        "failed: exit status 1",
    ],
)
def test_the_demo_tells_what_happened(moment: str, told: tuple[str, Path]):
    assert re.search(moment, told[0])


def test_the_commands_that_the_demo_names_work(told: tuple[str, Path], duly: Duly):
    commands = [line.split()[line.split().index("duly") + 1 :] for line in told[0].splitlines()[-4:]]
    assert [command[0] for command in commands] == ["log", "history", "explain", "verify"]
    assert [duly(*command).code for command in commands] == [0, 0, 0, 0]


def test_the_journal_of_the_demo_holds_what_it_tells(told: tuple[str, Path]):
    entries = [record.entry for record in read(told[1])]
    opened = [entry for entry in entries if isinstance(entry, JournalOpened)]
    assert len({entry.pid for entry in opened}) == len(opened) == 3
    assert sum(isinstance(entry, JournalClosed) for entry in entries) == 2
    [abandoned] = [entry for entry in entries if isinstance(entry, RunAbandoned)]
    assert (abandoned.cause, abandoned.schedule_id) == ("crash", "nightly-backup")
    assert [entry.at for entry in opened][1] >= DOWN + timedelta(hours=3)
    assert KILLED_FROM < [entry.at for entry in opened][2] < END
    assert entries[-1].at >= END
    starts = [entry.run_id for entry in entries if isinstance(entry, RunStarted)]
    assert len(starts) == len(set(starts)) == sum(isinstance(entry, OccurrenceAdmitted) for entry in entries)


def test_the_crontab_of_the_user_is_played_with_its_problems_told(duly: Duly, tmp_path: Path):
    crontab = tmp_path / "my crontab"
    crontab.write_text("0 */6 * * * job\n61 * * * * bad\n")
    answer = duly("demo", crontab, "--keep", tmp_path / "kept folder", "--zone", "Asia/Tokyo")
    assert answer.code == 0
    assert "0 */6 * * * Tokyo" in answer.out
    assert "not imported: " in answer.out
    assert "unaccounted: 0" in answer.out
    assert f"verify '{tmp_path / 'kept folder' / 'journal'}'" in answer.out


def test_the_findings_are_a_document_too(duly: Duly, tmp_path: Path):
    crontab = tmp_path / "crontab"
    crontab.write_text("0 */8 * * * job\n61 * * * * bad\n")
    answer = duly("demo", crontab, "--keep", tmp_path / "kept", "--zone", "UTC", "--json")
    document = answer.document
    assert (answer.code, document["schema"], document["right"]) == (0, "duly.demo/1", True)
    assert document["due"] == document["admitted"] + document["skipped"] + document["superseded"] > 30
    assert [document[name] for name in ("unaccounted", "double", "foreign", "waiting")] == [0, 0, 0, 0]
    assert [one["schedule_id"] for one in document["schedules"]] == ["job"]
    assert len(document["problems"]) == 1
    assert "killed" in {moment["kind"] for moment in document["moments"]}


def test_a_crontab_that_fires_rarely_is_played_without_a_kill(duly: Duly, tmp_path: Path):
    crontab = tmp_path / "crontab"
    crontab.write_text("0 0 1 1 * job\n")
    answer = duly("demo", crontab, "--keep", tmp_path / "kept", "--zone", "UTC")
    assert answer.code == 0
    assert "kill" not in answer.out
    assert "0 occurrences came due" in answer.out


def test_a_crontab_without_entries_is_refused(duly: Duly, tmp_path: Path):
    crontab = tmp_path / "crontab"
    crontab.write_text("# nothing\n")
    answer = duly("demo", crontab, "--keep", tmp_path / "kept")
    assert (answer.code, answer.out) == (1, "")
    assert "no entry that could be kept" in answer.err


def test_an_owner_that_fails_is_told_with_its_last_words(tmp_path: Path):
    (tmp_path / "journal").write_text("not a folder")
    with pytest.raises(DemoFailed, match=r"ended too early: .*journal"):
        play("@daily x\n", tmp_path, source="crontab", zone="UTC")


def test_a_record_that_does_not_add_up_fails_the_demo(duly: Duly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def with_a_loss(path: Path) -> list[object]:
        return [record for record in read(path) if not isinstance(record.entry, OccurrenceSuperseded)]

    monkeypatch.setattr("duly.tools.demo_findings.read", with_a_loss)
    crontab = tmp_path / "crontab"
    crontab.write_text("0 7-12 * * * job\n")  # two of them are superseded after the downtime
    answer = duly("demo", crontab, "--keep", tmp_path / "kept", "--zone", "UTC")
    assert answer.code == 1
    assert "unaccounted: 2" in answer.out


def test_simulated_durations_follow_from_the_occurrence_alone():
    source = Cron("0 2 * * *", zone="UTC")
    found = {simulated_duration(source, f"a@{number}", AT) for number in range(200)}
    assert [one for one in found if not SHORTEST <= one <= LONGEST] == []
    assert len(found) > 100
    assert simulated_duration(source, "a@1", AT) == simulated_duration(source, "a@1", AT)


def test_moments_of_an_uneventful_record_are_its_opening_alone():
    opened = JournalOpened(
        at=AT,
        host="h",
        pid=7,
        duly="0",
        croniter="7",
        tzdata="2026",
        python="3",
        task_slots=1,
        batch=1,
        clock_tolerance=timedelta(0),
    )
    assert [(one.kind, one.at) for one in moments([(1, opened)])] == [("opened", AT)]
    assert moments([]) == []
    assert isinstance(moments([(1, opened)])[0], Moment)
    assert ScheduleCreated.__name__ not in str(moments([(1, opened)]))


@pytest.mark.parametrize(("path", "shown"), [("a/b-c.d", "a/b-c.d"), ("a b", "'a b'"), ("it's", "'it'\\''s'")])
def test_a_path_is_quoted_for_the_shell(path: str, shown: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("duly.tools.demo_report.os.name", "posix")
    assert quoted(Path(path)) == shown


def test_an_owner_at_work_ends_when_its_parent_dies(tmp_path: Path):
    (tmp_path / "crontab").write_text("* * * * * job\n")
    owner = subprocess.Popen(
        [
            *(
                sys.executable,
                "-P",
                "-m",
                "duly.tools.demo_owner",
                str(tmp_path / "journal"),
                str(tmp_path / "crontab"),
            ),
            *("--zone", "UTC", "--begin", "2026-03-24T00:00:00Z", "--end", "2026-03-25T00:00:00Z"),
            *("--work-at", "2026-03-24T00:00:00Z"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert owner.stdout is not None
    assert any('"working"' in line for line in owner.stdout)
    owner.communicate(timeout=60)  # closes its standard input, as a dead parent does
    assert owner.returncode == 1
    last = list(read(tmp_path / "journal"))[-1].entry
    assert isinstance(last, RunStarted)


def test_a_demo_that_was_broken_off_can_be_repeated(duly: Duly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(_: str, folder: Path, **__: object) -> None:
        (folder / "crontab").write_text("* * * * * job")
        (folder / "journal").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr("duly.tools.demo_command.play", interrupted)
    for _ in range(2):
        answer = duly("demo", "--keep", tmp_path / "kept", "--zone", "UTC")
        assert (answer.code, answer.out, answer.err.strip()) == (130, "", "")
        assert list((tmp_path / "kept").iterdir()) == []
