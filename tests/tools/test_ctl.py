"""`duly ctl`: administration of a stopped host's journal, and what it must leave alone."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duly import Cron, ManualClock, OncePer, Scheduler, StillRunning
from duly.journal import read
from duly.journal.entries import JournalClosed, JournalOpened, kind_of
from duly.projections import replay
from tests.tools.conftest import Duly

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
HOSTILE = "why\x1b[2J"


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A journal whose host died with run 5 at work."""
    clock = ManualClock(AT)
    with Scheduler.open(tmp_path / "journal", clock=clock) as scheduler:
        scheduler.create("job", Cron("0 * * * *", zone="UTC"), target="work")
        scheduler.create("tally", OncePer("day", zone="UTC"), target="tally")
        scheduler.create("other", Cron("5 5 5 5 *", zone="UTC"), target="work")
        clock.advance(timedelta(hours=1))
        first, _ = scheduler.poll(start=True).offered
        assert (first.id, first.schedule_id) == (5, "job")
        scheduler._journal.close()  # pyright: ignore[reportPrivateUsage] - a death leaves no closing mark
    return tmp_path / "journal"


def decided(path: Path, after: int) -> list[str]:
    visit = (JournalOpened, JournalClosed)
    return [kind_of(one.entry) for one in read(path, after=after) if not isinstance(one.entry, visit)]


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        (["pause", "job"], ["SchedulePaused"]),
        (["disable", "job"], ["ScheduleDisabled"]),
        (["delete", "job"], ["ScheduleDeleted"]),
        (["block", "job", "the disk is full"], ["ScheduleBlocked"]),
        (["rebaseline", "job", "2026-03-02T09:30:00Z"], ["ScheduleRebaselined"]),
        (["record-external-run", "tally", "2026-03-02T04:00:00Z"], ["ExternalRunRecorded"]),
        (["run-now", "job"], ["RunAdmittedManually"]),
        (["run-now", "--target", "import", "--input", '{"file": "a"}'], ["RunAdmittedManually"]),
        (["abandon", "5"], ["RunAbandoned"]),
        (["unpause", "job"], []),
        (["enable", "job"], []),
        (["unblock", "job"], []),
        (["settle"], []),
    ],
)
def test_a_command_records_what_was_asked_with_who_and_why_and_nothing_else(
    command: list[str], kinds: list[str], stopped: Path, duly: Duly
):
    before = replay(stopped)
    answer = duly("ctl", *command, "-j", stopped, "--actor", "ann", "--note", HOSTILE)
    assert (answer.code, answer.err) == (0, "")
    assert decided(stopped, before.sequence) == kinds
    assert len(answer.out.splitlines()) == 1
    assert answer.out == "nothing to change: it is so already\n" or "by ann: why\\x1b[2J" in answer.out
    after = replay(stopped)
    assert (after.anomalies, set(before.started) - set(after.started)) == ([], {5} if "abandon" in command else set())


@pytest.mark.parametrize(("on", "off"), [("pause", "unpause"), ("disable", "enable")])
def test_a_switch_is_turned_on_once_and_off_again(on: str, off: str, stopped: Path, duly: Duly):
    assert duly("ctl", on, "job", "-j", stopped).code == 0
    assert duly("ctl", on, "job", "-j", stopped).out == "nothing to change: it is so already\n"
    assert (replay(stopped).schedule("job").paused, replay(stopped).schedule("job").disabled) == (
        on == "pause",
        on == "disable",
    )
    assert duly("ctl", off, "job", "-j", stopped).code == 0
    assert not (replay(stopped).schedule("job").paused)
    assert not (replay(stopped).schedule("job").disabled)


def test_a_block_is_ended_and_says_so_as_a_document(stopped: Path, duly: Duly):
    duly("ctl", "block", "job", "the disk is full", "-j", stopped)
    assert replay(stopped).schedule("job").blocked is not None
    document = duly("ctl", "unblock", "job", "-j", stopped, "--actor", "ann", "--json").document
    assert document["schema"] == "duly.ctl/1"
    [recorded] = document["recorded"]
    assert (recorded["entry"]["kind"], recorded["entry"]["actor"]) == ("ScheduleUnblocked", "ann")
    assert replay(stopped).schedule("job").blocked is None


def test_what_the_host_left_at_work_is_still_the_host_s_to_tell_of(stopped: Path, duly: Duly):
    assert duly("ctl", "pause", "other", "-j", stopped).code == 0

    class Alive:
        def of(self, run: object, /) -> StillRunning:
            return StillRunning(5)

        def runs(self) -> tuple[tuple[int, str], ...]:
            return ()

    with Scheduler.open(stopped, clock=ManualClock(AT + timedelta(hours=2)), evidence=Alive()) as scheduler:
        assert scheduler.complete(5).state == "completed"


def test_a_journal_that_is_owned_is_refused_in_one_line(stopped: Path, duly: Duly):
    with Scheduler.open(stopped, clock=ManualClock(AT + timedelta(hours=2))):
        answer = duly("ctl", "pause", "job", "-j", stopped)
    assert (answer.code, answer.out, len(answer.err.splitlines())) == (3, "", 1)
    assert "process" in answer.err
    assert not replay(stopped).schedule("job").paused


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["pause", "jbo"], 2, "there is no schedule 'jbo'. The nearest: job."),
        (["rebaseline", "job", "2100-01-01T00:00:00Z"], 2, "THROUGH lies ahead"),
        (["rebaseline", "job", "yesterday"], 2, "is not an instant"),
        (["run-now"], 2, "Name a SCHEDULE"),
        (["run-now", "job", "--input", "{"], 2, "is not JSON"),
        (["abandon", "99"], 2, "there is no run 99. The nearest: 5, 7"),
        (["abandon", "five"], 2, "five"),
        (["nosuch"], 2, "No such command"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_recorded(
    command: list[str], code: int, said: str, stopped: Path, duly: Duly
):
    before = [record.sequence for record in read(stopped)]
    answer = duly("ctl", *command, *(["-j", stopped] if command != ["nosuch"] else []))
    assert (answer.code, answer.out, len(answer.err.splitlines())) == (code, "", 1)
    assert said in answer.err
    assert [record.sequence for record in read(stopped)] == before


def test_no_journal_is_made_and_a_damaged_one_is_not_touched(stopped: Path, duly: Duly, tmp_path: Path):
    assert duly("ctl", "pause", "job", "-j", tmp_path / "missing").code == 3
    assert not (tmp_path / "missing").exists()
    [segment] = stopped.glob("*.jsonl")
    content = segment.read_bytes()
    for place in range(100, len(content) - 400, len(content) // 8):
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(stopped, copy)
        damaged = content[:place] + b"\xff" + content[place + 1 :]
        (copy / segment.name).write_bytes(damaged)
        answer = duly("ctl", "pause", "job", "-j", copy)
        assert (answer.code, answer.out, len(answer.err.splitlines())) == (3, "", 1)
        assert (copy / segment.name).read_bytes() == damaged


def test_every_command_of_it_explains_itself_with_an_example(duly: Duly):
    from duly.tools.ctl_commands import ctl

    for name in ctl.commands:
        answer = duly("ctl", name, "--help")
        assert answer.code == 0
        assert f"Example: duly ctl {name}" in answer.out
