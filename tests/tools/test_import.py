"""`duly import`: what becomes of a crontab's entries, what is refused, and what never changes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from duly import Cron, Scheduler
from duly.journal import read
from duly.journal.entries import CronRule, JournalClosed, JournalOpened, Literally, ScheduleCreated, SourceRule
from duly.projections import Run, replay
from duly.scheduler.decisions.runs import StillRunning
from duly.scheduler.sources import SourceFactory
from tests.tools.conftest import Duly

GOOD = """\
SHELL=/bin/sh
CRON_TZ=Europe/Berlin
# duly: id=nightly misfire=skip lateness=30m overlap=parallel max=3 fold=first timeout=2h
30 2 * * * backup --full%first line%second
"""
NAMES = ("zero", "one", "two", "three")
HALF_BAD = "61 * * * * one\n0 1 * * * two\n@reboot three\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "crontab.txt"
    path.write_text(text, encoding="utf-8")
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_entry_becomes_a_schedule_with_all_that_it_says(duly: Duly, tmp_path: Path):
    answer = duly("import", write(tmp_path, GOOD), "-j", tmp_path / "state", "--actor", "ann", "--zone", "UTC")
    assert (answer.code, answer.err) == (0, "")
    assert "1 imported, 0 refused" in answer.out
    schedule = replay(tmp_path / "state").find("nightly")
    assert schedule is not None
    assert schedule.trigger == CronRule("30 2 * * *", "Europe/Berlin", "first")
    assert (schedule.target, schedule.misfire, schedule.overlap, schedule.max_active_runs) == (
        "command",
        "skip",
        "parallel",
        3,
    )
    assert (schedule.lateness.total_seconds(), schedule.limits) == (1800, {"timeout": 7200.0})
    given = {name: one.value for name, one in schedule.input.items() if isinstance(one, Literally)}
    assert given["command"] == "backup --full"
    assert given["stdin"] == "first line\nsecond\n"


def test_importing_again_changes_nothing_and_an_edit_is_an_edit(duly: Duly, tmp_path: Path):
    path, state = write(tmp_path, GOOD), tmp_path / "state"
    outcomes: list[str] = []
    for text in (GOOD, GOOD, GOOD.replace("30 2", "45 2")):
        path.write_text(text)
        document = duly("import", path, "-j", state, "--zone", "UTC", "--json").document
        outcomes += [entry["outcome"] for entry in document["entries"]]
    assert outcomes == ["created", "unchanged", "edited"]


def test_blame_names_who_imported_and_what_of_the_command_changed(
    duly: Duly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LOGNAME", "ann")
    monkeypatch.setenv("COLUMNS", "200")
    state, flags = tmp_path / "state", "--exclude-caches --one-file-system --verbose " * 3
    for text, options in (("--full", []), ("--incremental", []), ("--none", ["--actor", "bob"])):
        crontab = write(tmp_path, f"# duly: id=backup\n30 2 * * * /usr/bin/backup {flags}{text}\n")
        assert duly("import", crontab, "-j", state, "--zone", "UTC", *options).code == 0
    rows = duly("blame", "backup", "-j", state, "--format", "jsonl").rows
    assert [row["actor"] for row in rows] == ["ann", "ann", "bob"]
    shown = duly("blame", "backup", "-j", state).out
    assert 'edited: input.command …--verbose --full" -> …--verbose --incremental"' in shown
    assert 'edited: input.command …--verbose --incremental" -> …--verbose --none"' in shown


def test_an_imported_schedule_is_shown_with_what_it_runs(duly: Duly, tmp_path: Path):
    duly("import", write(tmp_path, GOOD), "-j", tmp_path / "state", "--zone", "UTC")
    shown = duly("show", "nightly", "-j", tmp_path / "state").out
    assert "target    command\ncommand   backup --full\n" in shown
    assert 'input     stdin="first line\\nsecond\\n", environment={"SHELL": "/bin/sh"}\n' in shown
    assert "limits    timeout=2h\n" in shown
    assert "  backup --full  " in duly("schedules", tmp_path / "state").out
    assert (
        'created: 30 2 * * * Europe/Berlin fold=first -> command "backup --full" '
        in duly("log", tmp_path / "state").out
    )


def test_a_malformed_line_is_reported_while_the_good_ones_are_imported(duly: Duly, tmp_path: Path):
    path = write(tmp_path, HALF_BAD)
    answer = duly("import", path, "-j", tmp_path / "state", "--zone", "UTC")
    assert answer.code == 1
    assert answer.err.splitlines() == [
        f"{path}:1:1: minute: '61' is out of range. Write 0 … 59.",
        f"{path}:3:1: @reboot is not a time. Let the service manager start it with the machine, or write a time",
    ]
    assert [one.id for one in replay(tmp_path / "state").schedules()] == ["two"]


def test_problems_are_in_the_document_too(duly: Duly, tmp_path: Path):
    answer = duly("import", write(tmp_path, HALF_BAD), "-j", tmp_path / "state", "--zone", "UTC", "--json")
    assert (answer.code, answer.document["schema"]) == (1, "duly.import/1")
    assert [(one["line"], one["column"]) for one in answer.document["problems"]] == [(1, 1), (3, 1)]
    assert all(one["remedy"] for one in answer.document["problems"])


def test_a_dry_run_tells_and_writes_nothing(duly: Duly, tmp_path: Path):
    path, state = write(tmp_path, GOOD), tmp_path / "state"
    answer = duly("import", path, "-j", state, "--dry-run", "--zone", "UTC")
    assert answer.code == 0
    assert answer.out.startswith("dry run: nothing is written")
    assert not state.exists()
    duly("import", path, "-j", state, "--zone", "UTC")
    before = content(state)
    path.write_text(GOOD.replace("30 2", "45 2") + "0 0 * * * more\n")
    document = duly("import", path, "-j", state, "--dry-run", "--zone", "UTC", "--json").document
    assert [(one["schedule_id"], one["outcome"]) for one in document["entries"]] == [
        ("nightly", "edited"),
        ("more", "created"),
    ]
    assert content(state) == before


def test_a_dry_run_without_changes_says_so(duly: Duly, tmp_path: Path):
    path, state = write(tmp_path, GOOD), tmp_path / "state"
    duly("import", path, "-j", state, "--zone", "UTC")
    document = duly("import", path, "-j", state, "--dry-run", "--zone", "UTC", "--json").document
    assert [one["outcome"] for one in document["entries"]] == ["unchanged"]


def test_standard_input_is_read(duly: Duly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"@daily tidy\n61 * * * * x\n")))
    answer = duly("import", "-", "-j", tmp_path / "state", "--zone", "UTC")
    assert answer.code == 1
    assert answer.err.startswith("<stdin>:2:1: ")


def test_the_zone_of_the_machine_is_used_and_said(duly: Duly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    answer = duly("import", write(tmp_path, "0 0 * * * x\n"), "-j", tmp_path / "state")
    assert "are meant in Asia/Tokyo" in answer.out
    assert duly("next", "x", "-j", tmp_path / "state", "--json").document["zone"] == "Asia/Tokyo"


def test_the_system_form_is_read_where_it_is_asked_for_or_known(duly: Duly, tmp_path: Path):
    folder = tmp_path / "cron.d"
    folder.mkdir()
    path = write(folder, "0 0 * * * root backup\n")
    document = duly("import", path, "-j", tmp_path / "a", "--json").document
    assert [one["command"] for one in document["entries"]] == ["backup"]
    document = duly("import", path, "-j", tmp_path / "b", "--user-form", "--json").document
    assert [one["command"] for one in document["entries"]] == ["root backup"]
    other = write(tmp_path, "0 0 * * * root backup\n")
    assert "--system" in duly("import", other, "-j", tmp_path / "c").err
    assert duly("import", other, "-j", tmp_path / "d", "--system", "--json").document["notices"] == []


def test_bytes_that_are_no_text_are_a_problem_of_their_line(duly: Duly, tmp_path: Path):
    path = tmp_path / "crontab"
    path.write_bytes(b"0 0 * * * caf\xe9\n0 0 * * * good\n")
    answer = duly("import", path, "-j", tmp_path / "state")
    assert answer.code == 1
    assert answer.err == f"{path}:1:14: this is not UTF-8 text. Save the file as UTF-8\n"


def test_what_the_scheduler_refuses_is_a_problem_of_its_line(duly: Duly, tmp_path: Path):
    path = write(tmp_path, f"0 0 * * * {'x' * 300_000}\n0 0 * * * good\n")
    answer = duly("import", path, "-j", tmp_path / "state")
    assert answer.code == 1
    assert f"{path}:1:1: " in answer.err
    assert [one.id for one in replay(tmp_path / "state").schedules()] == ["good"]


def test_a_deleted_schedule_is_a_problem_of_its_line_and_what_follows_is_imported(duly: Duly, tmp_path: Path):
    path, state = write(tmp_path, "".join(f"0 {n} * * * {name}\n" for n, name in enumerate(NAMES))), tmp_path / "state"
    with Scheduler.open(state) as scheduler:
        scheduler.create("two", Cron("@daily", zone="UTC"), target="command")
        scheduler.delete("two")
    refusal = (
        f"{path}:3:1: schedule 'two' was deleted, and an id is never used again. "
        "Give the entry another id (in a crontab: # duly: id=… above it), or take it out\n"
    )
    for options in (["--dry-run"], []):
        answer = duly("import", path, "-j", state, "--zone", "UTC", *options)
        assert (answer.code, answer.err) == (1, refusal)
        assert "3 imported, 1 refused" in answer.out
    assert [one.id for one in replay(state).schedules()] == ["one", "three", "zero"]


class Tides:
    """A source that only the host has."""

    rule = SourceRule("tides")

    def next_after(self, instant: datetime, /) -> datetime:
        return instant + timedelta(hours=12)

    def prev_before(self, instant: datetime, /) -> datetime:
        return instant - timedelta(hours=12)


class AtWork:
    """The host's evidence: its workers outlived it."""

    def of(self, run: Run, /) -> StillRunning:
        return StillRunning(run.id)

    def runs(self) -> list[tuple[int, str]]:
        return []


def test_an_import_decides_nothing_that_is_for_the_stopped_host_to_decide(duly: Duly, tmp_path: Path):
    state = tmp_path / "state"
    sources: dict[str, SourceFactory] = {"tides": lambda _: Tides()}
    scheduler = Scheduler.open(state, sources=sources)
    scheduler.create("ebb", Tides(), target="sail")
    work = scheduler.run_now("ebb")
    waiting = scheduler.run_now("ebb")
    resumed = scheduler.run_now("ebb")
    scheduler.start(work.id, resumed.id)
    scheduler.interrupt(resumed.id)
    attempt = scheduler.resume(resumed.id).attempt_id
    scheduler._journal.close()  # pyright: ignore[reportPrivateUsage] - the host dies
    before = replay(state).sequence
    assert duly("import", write(tmp_path, "0 0 * * * tidy\n"), "-j", state, "--zone", "UTC").code == 0
    decided = [type(record.entry) for record in read(state, after=before)]
    assert decided == [JournalOpened, ScheduleCreated, JournalClosed]
    with Scheduler.open(state, sources=sources, evidence=AtWork()) as scheduler:
        assert scheduler.schedule("ebb").blocked is None
        assert [(run.id, run.attempt_id) for run in scheduler.runs(state="started")] == [
            (work.id, None),
            (resumed.id, attempt),
        ]
        assert [run.id for run in scheduler.recovery.pending] == [waiting.id]
        assert scheduler.recovery.decisions == ()


def test_a_crontab_with_nothing_to_keep_makes_no_journal(duly: Duly, tmp_path: Path):
    answer = duly("import", write(tmp_path, "# nothing\n"), "-j", tmp_path / "state")
    assert answer.code == 0
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(("name", "code"), [("missing", 3), (".", 2)])
def test_a_bad_crontab_path_is_one_clear_line(name: str, code: int, duly: Duly, tmp_path: Path):
    answer = duly("import", tmp_path / name, "-j", tmp_path / "state")
    assert (answer.code, len(answer.err.splitlines())) == (code, 1)
    assert not (tmp_path / "state").exists()


def test_a_bad_journal_path_is_one_clear_line_and_nothing_is_changed(duly: Duly, tmp_path: Path):
    crontab = write(tmp_path, GOOD)
    file = tmp_path / "file"
    file.write_text("precious")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "photo.jpg").write_bytes(b"precious")
    before = content(tmp_path)
    for path in (file, foreign):
        answer = duly("import", crontab, "-j", path)
        assert (answer.code, answer.out, len(answer.err.splitlines())) == (3, "", 1)
        assert str(path) in answer.err
    assert content(tmp_path) == before


def test_a_journal_that_somebody_owns_is_refused_and_unchanged(duly: Duly, tmp_path: Path):
    crontab, state = write(tmp_path, GOOD), tmp_path / "state"
    with Scheduler.open(state):
        before = content(state)
        answer = duly("import", crontab, "-j", state)
        assert (answer.code, answer.out, len(answer.err.splitlines())) == (3, "", 1)
        assert "own" in answer.err
        assert content(state) == before


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "setuid"), reason="needs POSIX permissions")
def test_a_place_where_nothing_may_be_written_is_one_clear_line(tmp_path: Path):
    crontab = write(tmp_path, GOOD)
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    tmp_path.chmod(0o755)
    script = (
        "import os, sys\n"
        "if os.getuid() == 0: os.setgroups([]); os.setgid(65534)\n"
        "from duly.tools.cli import main\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "text = open(0).read()\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "import", "-", "-j", str(closed / "state")],
        input=crontab.read_text(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (3, "", 1)
    assert list(closed.iterdir()) == []
