"""`duly doctor`: each trouble is made, found, and gone once its remedy was executed as it is printed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from duly import Cron, ManualClock, Scheduler, SystemClock
from duly.journal import Journal, RealDisk
from duly.journal.entries import ClockJumped, RunCompleted
from duly.scheduler.zones import tzdata_version
from duly.tools import doctoring
from duly.tools.doctoring import examine
from tests.tools.conftest import Answer, Duly
from tests.tree import ROOT

NOW = SystemClock().now().replace(minute=30, second=0, microsecond=0) - timedelta(hours=1)
"""Half past an hour, and past for the clock too, which the remedies are executed by."""
AT = ("--now", NOW.isoformat())
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def opened(path: Path, start: datetime) -> tuple[Scheduler, ManualClock]:
    clock = ManualClock(start)
    scheduler = Scheduler.open(path, clock=clock, task_slots=1)
    scheduler.create("job", Cron("0 * * * *", zone="UTC"), target="work")
    return scheduler, clock


def healthy(path: Path, start: datetime = NOW) -> Path:
    scheduler, _ = opened(path, start)
    scheduler.close()
    return path


def blocked(path: Path) -> Path:
    scheduler, _ = opened(path, NOW)
    scheduler.block("job", "the disk is full\x1b[2J")
    scheduler.close()
    return path


def starving(path: Path) -> Path:
    return healthy(path, NOW - 3 * HOUR)


def held(path: Path) -> Path:
    """The one task slot was never given back, and an occurrence is held since."""
    scheduler, clock = opened(path, NOW - 5 * HOUR)
    scheduler.start(scheduler.run_now(target="hang").id)
    clock.advance(5 * HOUR)
    scheduler.poll()
    scheduler.close()
    return path


def ahead(path: Path) -> Path:
    scheduler, clock = opened(path, NOW)
    clock.advance(4 * DAY)
    scheduler.poll()
    scheduler.close()
    return path


def long_run(path: Path) -> Path:
    scheduler, clock = opened(path, NOW - 2 * DAY)
    scheduler.start(scheduler.run_now("job").id)
    clock.advance(2 * DAY)
    scheduler.rebaseline("job", clock.now())
    scheduler.close()
    return path


def interrupted(path: Path) -> Path:
    scheduler, _ = opened(path, NOW)
    run = scheduler.run_now("job")
    scheduler.start(run.id)
    scheduler.interrupt(run.id)
    scheduler.close()
    return path


def torn(path: Path) -> Path:
    [segment] = healthy(path).glob("*.jsonl")
    with segment.open("ab") as file:
        file.write(b'{"c":"torn')
    return path


def without_head(path: Path) -> Path:
    (healthy(path) / "HEAD").unlink()
    return path


def damaged(path: Path) -> Path:
    [segment] = healthy(path).glob("*.jsonl")
    content = segment.read_bytes()
    segment.write_bytes(content[:400] + b"\xff" + content[401:])
    return path


@pytest.fixture(autouse=True)
def on_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the tests run: in memory, or in a container, there is a note."""

    def local(_: RealDisk, __: Path) -> str:
        return "ext4"

    monkeypatch.setattr(RealDisk, "file_system", local)


def test_a_healthy_journal_has_no_trouble(duly: Duly, tmp_path: Path):
    answer = duly("doctor", healthy(tmp_path / "journal"), *AT)
    assert (answer.code, answer.out, answer.err) == (0, "nothing is wrong\n", "")


@pytest.mark.parametrize(
    ("made", "code", "exit_code"),
    [
        (blocked, "blocked", 4),
        (starving, "starving", 4),
        (held, "starving", 4),
        (ahead, "watermark-ahead", 4),
        (long_run, "long-run", 1),
        (interrupted, "interrupted", 0),
        (torn, "torn", 1),
        (without_head, "head-behind", 1),
    ],
)
def test_a_trouble_is_found_and_its_remedy_mends_it(
    made: Callable[[Path], Path], code: str, exit_code: int, duly: Duly, tmp_path: Path
):
    path = made(tmp_path / "a journal")
    answer = duly("doctor", path, *AT)
    assert answer.code == exit_code
    trouble = the(code, duly("doctor", path, *AT, "--json"))
    assert f"    {trouble['remedy']}\n" in answer.out
    assert "\x1b" not in answer.out
    assert executed(trouble["remedy"], duly).code == 0
    assert code not in codes(duly("doctor", path, *AT, "--json"))


def test_damage_is_salvaged(duly: Duly, tmp_path: Path):
    path = damaged(tmp_path / "journal")
    answer = duly("doctor", path, *AT, "--json")
    assert (answer.code, codes(answer)) == (1, ["damaged"])
    assert executed(the("damaged", answer)["remedy"], duly).code == 1  # something is lost
    assert "damaged" not in codes(duly("doctor", tmp_path / "journal-salvaged", *AT, "--json"))


def test_what_is_over_is_a_note_with_the_entry_that_tells_of_it(duly: Duly, tmp_path: Path):
    path = torn(tmp_path / "journal")
    duly("ctl", "settle", "-j", path)
    scheduler = Scheduler.open(path, clock=ManualClock(NOW - timedelta(minutes=10)))
    scheduler.poll()
    scheduler.close()
    answer = duly("doctor", path, *AT, "--json")
    assert (answer.code, codes(answer)) == (0, ["torn-before", "clock-regressed"])
    assert "torn tail" in executed(the("torn-before", answer)["remedy"], duly).out
    assert "CLOCK went back" in executed(the("clock-regressed", answer)["remedy"], duly).out


def test_a_clock_behind_the_record_is_told(duly: Duly, tmp_path: Path):
    answer = duly("doctor", healthy(tmp_path / "journal"), "--now", (NOW - DAY).isoformat(), "--json")
    assert "clock-behind" in codes(answer)
    assert executed(the("clock-behind", answer)["remedy"], duly).code == 0


def test_an_older_tzdata_is_told(duly: Duly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = healthy(tmp_path / "journal")
    had = tzdata_version()
    monkeypatch.setattr("duly.tools.doctoring.tzdata_version", lambda: "2020.1")
    answer = duly("doctor", path, *AT, "--json")
    assert (answer.code, codes(answer)) == (1, ["tzdata-old"])
    remedy = the("tzdata-old", answer)["remedy"]
    assert f"tzdata>={had}" in remedy
    assert executed(f"{remedy} --no-index --quiet", duly).code == 0  # here that one is installed already


def test_a_full_disk_and_a_doubtful_file_system_are_told(duly: Duly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = healthy(tmp_path / "journal")
    usage = shutil.disk_usage(path)._replace(free=1024)

    def almost_full(_: Path) -> object:
        return usage

    def network(_: RealDisk, __: Path) -> str:
        return "nfs4"

    monkeypatch.setattr("duly.tools.doctoring.shutil.disk_usage", almost_full)
    monkeypatch.setattr(RealDisk, "file_system", network)
    answer = duly("doctor", path, *AT, "--json")
    assert (answer.code, codes(answer)) == (1, ["file-system", "disk-full"])
    (tmp_path / "local").mkdir()
    monkeypatch.chdir(tmp_path / "local")
    for trouble in answer.document["troubles"]:
        assert executed(trouble["remedy"], duly).code == 0
    assert duly("verify", tmp_path / "local" / "journal").code == 0


@pytest.mark.parametrize("kind", ["tmpfs", "overlay"])
def test_a_journal_that_does_not_stay_is_told(kind: str, duly: Duly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def passing(_: RealDisk, __: Path) -> str:
        return kind

    monkeypatch.setattr(RealDisk, "file_system", passing)
    path = healthy(tmp_path / "journal")
    answer = duly("doctor", path, *AT, "--json")
    assert (answer.code, codes(answer)) == (0, ["passing"])
    (tmp_path / "local").mkdir()
    monkeypatch.chdir(tmp_path / "local")
    assert executed(the("passing", answer)["remedy"], duly).code == 0
    assert duly("verify", tmp_path / "local" / "journal").code == 0


def test_a_record_that_contradicts_itself_is_told(duly: Duly, tmp_path: Path):
    path = healthy(tmp_path / "journal")
    with Journal.open(path, now=NOW) as journal:
        journal.append([RunCompleted(at=NOW, run_id=77), RunCompleted(at=NOW, run_id=78)], NOW)
    answer = duly("doctor", path, *AT, "--json")
    assert (answer.code, codes(answer)) == (1, ["contradiction"])
    assert "run 77 is not open, and 1 more" in the("contradiction", answer)["text"]
    shown = executed(the("contradiction", answer)["remedy"], duly)
    assert (shown.code, "contradicts the record" in shown.out) == (1, True)


def test_entries_that_were_lost_are_told_where_they_were_saved(duly: Duly, tmp_path: Path):
    duly("salvage", damaged(tmp_path / "journal"), "--to", tmp_path / "saved")
    answer = duly("doctor", tmp_path / "saved", *AT, "--json")
    shown = executed(the("lost", answer)["remedy"], duly)
    assert (shown.code, "LOST" in shown.out) == (0, True)


def test_a_clock_that_ran_ahead_is_told(duly: Duly, tmp_path: Path):
    path = healthy(tmp_path / "journal")
    with Journal.open(path, now=NOW) as journal:
        journal.append([ClockJumped(at=NOW, ahead=2 * HOUR)], NOW)
    answer = duly("doctor", path, *AT, "--json")
    assert (answer.code, codes(answer)) == (0, ["clock-jumped"])
    assert executed(the("clock-jumped", answer)["remedy"], duly).code == 0


def test_every_trouble_is_tested_and_documented():
    known = set(re.findall(r'code="([a-z-]+)"', Path(doctoring.__file__).read_text(encoding="utf-8")))
    reference = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    here = Path(__file__).read_text(encoding="utf-8")
    assert len(known) > 10
    assert {code for code in known if f"`{code}`" not in reference} == set()
    assert {code for code in known if f'"{code}"' not in here} == set()


def failing(path: Path, *, succeeded: int, failed: int) -> Path:
    """Runs that end well, and then runs that do not."""
    scheduler, clock = opened(path, NOW - (succeeded + failed) * HOUR)
    for number in range(succeeded + failed):
        clock.advance(HOUR)
        [run] = scheduler.poll(start=True).offered
        if number < succeeded:
            scheduler.complete(run.id)
        else:
            scheduler.fail(run.id, error="exit status 1\x1b[2J")
    scheduler.close()
    return path


@pytest.mark.parametrize(
    ("succeeded", "failed", "text"),
    [
        (0, 3, "job: all of its last 3 runs came to nothing, the latest, run 9, with: exit status 1\x1b[2J"),
        (1, 4, "job: its last 4 runs came to nothing, the latest, run 15, with: exit status 1\x1b[2J"),
    ],
)
def test_a_schedule_that_fails_in_a_row_is_told_with_its_runs(
    succeeded: int, failed: int, text: str, duly: Duly, tmp_path: Path
):
    path = failing(tmp_path / "journal", succeeded=succeeded, failed=failed)
    answer = duly("doctor", path, *AT, "--json")
    trouble = the("failing", answer)
    assert (answer.code, trouble["text"], trouble["gravity"]) == (1, text, "bad")
    assert executed(trouble["remedy"], duly).out.count("failed") == failed
    assert "\x1b" not in duly("doctor", path, *AT).out


def test_two_failures_or_a_success_after_them_are_no_trouble(duly: Duly, tmp_path: Path):
    assert duly("doctor", failing(tmp_path / "two", succeeded=1, failed=2), *AT).out == "nothing is wrong\n"
    path = failing(tmp_path / "journal", succeeded=0, failed=3)
    with Scheduler.open(path, clock=ManualClock(NOW)) as scheduler:
        run = scheduler.run_now("job")
        scheduler.start(run.id)
        scheduler.complete(run.id)
    assert duly("doctor", path, *AT).out == "nothing is wrong\n"


def test_that_nobody_owns_the_journal_is_told_once_and_first(duly: Duly, tmp_path: Path):
    path = starving(tmp_path / "journal")
    with Scheduler.open(path, clock=ManualClock(NOW - 3 * HOUR), actor="ann") as scheduler:
        scheduler.create("other", Cron("0 * * * *", zone="UTC"), target="work")
    answer = duly("doctor", path, *AT, "--json")
    assert codes(answer) == ["no-owner", "starving", "starving"]
    since = f"{NOW - 3 * HOUR:%Y-%m-%dT%H:%M:%SZ}"
    assert the("no-owner", answer)["text"] == (
        f"nobody has owned the journal since {since}, when ann closed it: start its host"
    )
    assert "journal closed by ann" in executed(the("no-owner", answer)["remedy"], duly).out


def test_a_run_is_long_after_what_is_said(duly: Duly, tmp_path: Path):
    path = long_run(tmp_path / "journal")
    assert codes(duly("doctor", path, *AT, "--long-run", "3d", "--json")) == []
    assert duly("doctor", path, *AT, "--long-run", "soon").code == 2


def test_the_troubles_are_data(tmp_path: Path):
    [trouble] = examine(blocked(tmp_path / "journal"), NOW)
    assert (trouble.code, trouble.gravity, trouble.schedule_id) == ("blocked", "help", "job")


def test_the_doctor_reads_beside_the_owner_and_writes_nothing(duly: Duly, tmp_path: Path):
    path = starving(tmp_path / "journal")
    with Scheduler.open(path, clock=ManualClock(NOW)):
        before = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}
        assert duly("doctor", path, *AT).code == 4
        assert {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()} == before
    assert duly("doctor", tmp_path / "missing", *AT).code == 3


def codes(answer: Answer) -> list[str]:
    return [trouble["code"] for trouble in answer.document["troubles"]]


def the(code: str, answer: Answer) -> dict[str, Any]:
    found: list[dict[str, Any]] = [one for one in answer.document["troubles"] if one["code"] == code]
    [trouble] = found
    return trouble


def executed(remedy: str, duly: Duly) -> Answer:
    """The remedy, as a shell would take it apart."""
    first, *words = shlex.split(remedy)
    if first == "duly":
        return duly(*words)
    done = subprocess.run([first, *words], capture_output=True, text=True, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


def test_verifying_what_is_damaged_names_the_command_that_saves_it(duly: Duly, tmp_path: Path):
    path = damaged(tmp_path / "a journal")
    answer = duly("verify", path)
    assert answer.code == 1
    [command] = [line.strip() for line in answer.out.splitlines() if line.startswith("    duly ")]
    assert executed(command, duly).code == 1  # something is lost
    assert duly("verify", f"{path}-salvaged").code == 0
