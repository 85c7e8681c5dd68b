"""`duly run --once`, for use under another scheduler: it runs what is due once, and says why the rest did not run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from duly import Every, OncePer, Scheduler
from duly.journal import verify
from duly.scheduler.accounting import account
from duly.service.processes import process_of
from duly.tools.output import Format, Output
from duly.tools.running import run_once
from duly.tools.visiting import LeftToHost
from tests.tools.once import START, Invocations, once

__all__ = ["once"]  # a fixture

pytestmark = pytest.mark.skipif(os.name != "posix", reason="commands need process groups")
MINUTES = timedelta(minutes=1)
DAILY = '[schedules.daily]\nonce_per = "day"\ncommand = "echo ran >> {}"\n'


def three_hundred(once: Invocations) -> list[tuple[int, str]]:
    """300 invocations in one day, five minutes less a little apart; each with its code and its one line."""
    said: list[tuple[int, str]] = []
    for _ in range(300):
        code, [line] = once(timedelta(minutes=4.75))
        said.append((code, line))
    return said


def test_three_hundred_invocations_in_a_day_run_a_daily_schedule_exactly_once(once: Invocations):
    once.write(DAILY.format(once.folder / "ran"))
    said = three_hundred(once)
    assert (once.folder / "ran").read_text(encoding="utf-8") == "ran\n"
    assert said[0][1].startswith("daily  ran (00:00, run ")
    run = said[0][1].partition("run ")[2].partition(")")[0]
    assert set(said[1:]) == {(0, f"daily  already ran today (run {run}, 00:04)")}
    assert (verify(once.journal).intact, account(once.journal).balanced) == (True, True)


def test_a_run_stamped_ten_years_ahead_neither_storms_nor_starves(once: Invocations):
    once.write(DAILY.format(once.folder / "ran"))
    once.clock.step(-MINUTES)
    with once.open() as scheduler:
        scheduler.declare("daily", OncePer("day", zone="UTC"), target="command")
        scheduler.record_external_run("daily", datetime.fromisoformat("2036-03-02T12:00:00Z"))
    once.clock.step(MINUTES)
    said = three_hundred(once)
    assert [line.split(" (")[0] for _, line in said[:2]] == ["daily  ran", "daily  already ran today"]
    assert len(set(said[1:])) == 1
    once(timedelta(days=1))
    assert (once.folder / "ran").read_text(encoding="utf-8") == "ran\n" * 2
    once.clock.advance(datetime.fromisoformat("2036-03-02T01:00:00Z") - once.clock.now())
    code, [line] = once()
    assert (code, line) == (0, "daily  spent by an external run stamped 2036-03-02 (entry 3)")


def test_a_period_is_spent_by_a_run_by_hand(once: Invocations):
    once.write('[schedules.weekly]\nonce_per = "week"\nzone = "Europe/Berlin"\ncommand = "true"\n')
    with once.open() as scheduler:
        scheduler.declare("weekly", OncePer("week", zone="Europe/Berlin"), target="command", input={"command": "true"})
        run = scheduler.run_now("weekly")
        scheduler.start(run.id)
        scheduler.complete(run.id)
    code, [line] = once(timedelta(days=2))
    assert (code, line) == (0, f"weekly  already ran this week, by hand (run {run.id}, 2026-03-02 01:00)")


def test_a_run_by_hand_that_is_interrupted_is_said_to_be(once: Invocations):
    once.write(DAILY.format(once.folder / "ran"))
    with once.open() as scheduler:
        scheduler.declare("daily", OncePer("day", zone="UTC"), target="command", input={"command": "true"})
        run = scheduler.run_now("daily")
        scheduler.start(run.id)
        scheduler.interrupt(run.id)
    code, [line] = once(MINUTES)
    told = f"daily  already ran today, by hand (run {run.id}, 00:00; it is interrupted, and goes on with --resume)"
    assert (code, line) == (0, told)


def test_a_failed_run_is_said_and_is_the_exit_code(once: Invocations):
    once.write(DAILY.replace("echo ran >> {}", "exit 3"))
    code, [line] = once(MINUTES)
    assert (code, line.split("; ")[0]) == (
        1,
        "daily  FAILED (00:00, run 3): CommandFailed: exit code 3",
    )
    code, [line] = once(MINUTES)
    assert (code, line) == (0, "daily  already ran today (run 3, 00:01; it is failed)")


def test_what_is_not_due_says_when_and_why(once: Invocations):
    once.write(
        """
        [schedules.nightly]
        cron = "30 2 * * *"
        command = "true"
        [schedules.paused]
        cron = "* * * * *"
        command = "true"
        [schedules.past]
        once = 2026-03-02T00:01:00Z
        command = "true"
        [schedules.strict]
        cron = "0 1 * * *"
        misfire = "skip"
        command = "true"
        """
    )
    once()
    with once.open() as scheduler:
        scheduler.pause("paused")
    code, lines = once(MINUTES)
    assert (code, lines[0], lines[1].split(" since ")[0]) == (
        0,
        "nightly  not due: the next is 2026-03-02T02:30:00Z",
        "past     ran (00:01, run 11): completed",
    )
    assert lines[2].startswith("paused   paused since entry ")
    code, lines = once(timedelta(hours=1.5))
    assert (code, lines[1], lines[3]) == (
        0,
        "past     finished: there are no more occurrences",
        "strict   skipped 2026-03-02T01:00:00Z: too late, 31m late",
    )


def test_an_interrupted_run_holds_its_schedule_until_it_is_resumed(once: Invocations):
    line = 'echo half > \\"$DULY_CHECKPOINT_FILE\\"; [ -n \\"$DULY_ATTEMPT_ID\\" ] || exit 75'
    once.write(f'[schedules.c]\ncron = "* * * * *"\ncommand = "{line}"\n')
    once()
    code, [first] = once(MINUTES)
    assert (code, first) == (0, "c  interrupted (00:01, run 5): it can go on, with duly run --resume")
    code, [second] = once(MINUTES)
    assert (code, second) == (0, "c  interrupted, goes on with --resume (run 5, since 00:01)")
    code, [third] = once(resume=True)
    assert (code, third) == (0, "c  ran (00:01, run 5): completed")


def test_a_blocked_and_a_starving_schedule_have_lines_and_an_exit_code_of_their_own(once: Invocations):
    once.slots = 1
    once.write(
        '[schedules.c]\ncron = "0 1 * * *"\ncommand = "true"\n[schedules.d]\nonce_per = "day"\ncommand = "true"\n'
    )
    once()
    with once.open() as scheduler:
        scheduler.block("d", "the disk is full")
    code, lines = once(MINUTES)
    assert (code, lines[1]) == (
        4,
        "d  BLOCKED: d is blocked since #10, by operator: the disk is full. "
        f"To mend it: duly ctl unblock d -j {once.journal}",
    )
    with once.open() as scheduler:
        scheduler.unblock("d")
        hog = scheduler.run_now(target="hog")
        scheduler.start(hog.id)
        # Somebody else's worker holds the only slot.
        scheduler.note_run(hog.id, {"process": os.getpid(), "started": started(), "attempt": None})
    code, lines = once(timedelta(hours=1))
    assert (code, lines[0]) == (0, "c  waits for a task slot (01:00)")
    code, lines = once(timedelta(hours=1))
    assert (code, lines[0].split(" is due")[0]) == (4, "c  STARVING: c: 2026-03-02T01:00:00Z")


def started() -> str:
    mine = process_of(os.getpid())
    assert mine is not None
    return mine.started


def test_a_run_whose_process_died_with_an_earlier_invocation_has_failed(once: Invocations):
    once.write('[schedules.c]\ncron = "* * * * *"\ncommand = "true"\n')
    once()
    once.clock.advance(MINUTES)
    with once.open() as scheduler:
        [run] = scheduler.poll(start=True).offered
    code, lines = once()
    assert (code, lines) == (
        1,
        [
            f"c  FAILED (00:01, run {run.id}): its host ended before it did, and nobody saw how it went: "
            "look at what it has done before you run it again"
        ],
    )


def test_a_schedule_of_others_is_left_to_them(once: Invocations):
    once.write("")
    with once.open() as scheduler:
        scheduler.declare("theirs", Every(1, "minute", anchor=START), target="theirs")
    code, [line] = once(MINUTES)
    assert (code, line.split(": ")[0]) == (0, "theirs  skipped 2026-03-02T00:01:00Z")


def test_a_run_of_a_deleted_schedule_is_said_as_well(once: Invocations):
    once.write("")
    with once.open() as scheduler:
        scheduler.declare("c", OncePer("week", zone="UTC"), target="command", input={"command": "exit 3"})
        run = scheduler.run_now("c")
        scheduler.delete("c")
    code, [line] = once(MINUTES)
    assert (code, line.split("; ")[0]) == (1, f"c  FAILED (run {run.id}): CommandFailed: exit code 3")


def test_a_file_that_may_be_misread_says_so(once: Invocations, capsys: pytest.CaptureFixture[str]):
    once.name = "crontab"
    once.write("0 1 * * *  root  true\n")
    assert run_once(once.settings(), Output(Format.TABLE)) == 0
    assert "this is a system crontab" in capsys.readouterr().err


def test_all_of_it_as_json(once: Invocations, capsys: pytest.CaptureFixture[str]):
    once.write(DAILY.format(once.folder / "ran"))
    once.clock.advance(MINUTES)
    assert run_once(once.settings(), Output(Format.JSON)) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema": "duly.run-once/1",
        "exit_code": 0,
        "schedules": [
            {"schedule_id": "daily", "gravity": "fine", "text": "ran (00:00, run 3): completed", "run_id": 3}
        ],
    }


def test_real_invocations_run_it_once_and_a_second_owner_is_refused(tmp_path: Path):
    (tmp_path / "s.toml").write_text(DAILY.format(tmp_path / "ran"), encoding="utf-8")
    command = [sys.executable, "-P", "-m", "duly", "run", "s.toml", "-j", "j", "--once", "--zone", "UTC"]
    for expected in ("ran (", "already ran today (", "already ran today ("):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(f"daily  {expected}")
    assert (tmp_path / "ran").read_text(encoding="utf-8") == "ran\n"
    with Scheduler.open(tmp_path / "j", evidence=LeftToHost()):
        refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode == 3
    assert "process" in refused.stderr


def test_a_file_with_a_problem_runs_nothing(once: Invocations, capsys: pytest.CaptureFixture[str]):
    once.write(DAILY.format(once.folder / "ran") + "\n[schedules.bad]\ncommand = 'true'\n")
    code, lines = once(MINUTES)
    assert (code, lines) == (1, [])
    assert not (once.folder / "ran").exists()
    assert not once.journal.exists()
