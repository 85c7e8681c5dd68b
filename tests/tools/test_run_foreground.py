"""`duly run` in the foreground, as a process of its own: what it says, what signals do, what a bad file cannot do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from duly.journal import verify
from duly.projections import Run, replay
from duly.scheduler.accounting import account
from duly.scheduler.clock import SystemClock
from duly.tools.converging import converge
from duly.tools.run_settings import Settings
from duly.tools.running import open_host
from tests.service.hosting import until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="commands need process groups")


class Running:
    """A `duly run` that is under way."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        command = [sys.executable, "-P", "-m", "duly", "run", "s.toml", "-j", "j", "--zone", "UTC", *options]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def says(self, *words: str) -> str:
        """Waits for a line with all the words."""
        return until(lambda: self.said(*words), f"{words} was never said")[0]

    def said(self, *words: str) -> list[str]:
        """The lines that have all the words."""
        return [line for line in self.lines if all(word in line for word in words)]

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ends(self) -> int:
        code = self.process.wait(60)
        self._reader.join(60)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


@contextmanager
def ending(process: subprocess.Popen[Any]) -> Generator[subprocess.Popen[Any]]:
    """The process, which ends with the block, however that ends."""
    with process:
        try:
            yield process
        finally:
            process.kill()


class World:
    """A folder with a file of schedules."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[Running] = []

    def write(self, **commands: str) -> None:
        """Schedules that are due once, at once, each with its command."""
        text = "".join(
            f"[schedules.{name}]\nonce_per = 'day'\ncommand = '''{command}'''\n" for name, command in commands.items()
        )
        (self.folder / "s.toml").write_text(text, encoding="utf-8")

    def run(self, *options: str) -> Running:
        self.started.append(Running(self.folder, *options))
        return self.started[-1]

    def last(self, schedule_id: str) -> Run:
        return replay(self.folder / "j").runs(schedule_id=schedule_id)[-1]


@pytest.fixture
def world(tmp_path: Path) -> Generator[World]:
    made = World(tmp_path)
    yield made
    for one in made.started:
        if one.process.poll() is None:
            one.process.kill()
            one.ends()


def test_it_executes_logs_its_decisions_and_ends_in_peace(world: World):
    world.write(hello="echo hello from $DULY_SCHEDULE_ID", fails="exit 4")
    host = world.run()
    host.says("hello", "completed")
    host.says("fails", "CommandFailed: exit code 4")
    host.signal(signal.SIGTERM)
    assert host.ends() == 0
    shown = "".join(host.lines)
    for words in ("file: s.toml: 2 created", "ready:", "journal opened by duly run", "hello                 admitted"):
        assert words in shown
    assert host.lines[-1].endswith("  closed: the journal is closed\n")
    [log] = (world.folder / "j-output" / "hello").iterdir()
    assert log.read_text(encoding="utf-8") == "hello from hello\n"
    assert (verify(world.folder / "j").intact, account(world.folder / "j").balanced) == (True, True)


def test_the_log_in_json_has_one_record_for_each_decision(world: World):
    world.write(hello="true")
    host = world.run("--log-format", "json")
    host.says('"RunCompleted"')
    host.signal(signal.SIGINT)
    assert host.ends() == 0
    rows: list[dict[str, Any]] = [json.loads(line) for line in host.lines]
    assert {row["schema"] for row in rows} == {"duly.run/1"}
    decided = [row["sequence"] for row in rows if row["event"] == "decision"]
    state = replay(world.folder / "j")
    first = next(row["sequence"] for row in rows if row["event"] == "decision")
    assert decided == list(range(first, state.sequence + 1))
    assert [row["event"] for row in rows if row["event"] != "decision"] == ["file", "ready", "draining", "closed"]


def test_what_runs_may_end_within_the_grace(world: World):
    world.write(slow="sleep 0.5; echo over")
    host = world.run()
    host.says("slow", "noted")
    host.signal(signal.SIGTERM)
    assert host.ends() == 0
    assert world.last("slow").state == "completed"


def test_what_does_not_end_within_the_grace_is_cancelled(world: World):
    world.write(slow="sleep 60")
    host = world.run("--drain-grace", "1s")
    host.says("slow", "noted")
    host.signal(signal.SIGTERM)
    assert host.ends() == 0
    error = world.last("slow").error
    assert error is not None
    assert (error.type, error.message) == ("Cancelled", "cancelled at shutdown")


def test_a_second_signal_ends_at_once_and_still_records(world: World):
    world.write(slow="trap '' TERM; sleep 60; sleep 60")
    host = world.run("--drain-grace", "1h")
    host.says("slow", "noted")
    host.signal(signal.SIGTERM)
    host.says("draining")
    began = time.monotonic()
    host.signal(signal.SIGTERM)
    assert host.ends() == 0
    assert time.monotonic() - began < 30
    error = world.last("slow").error
    assert error is not None
    assert error.type == "Cancelled"


def test_a_hangup_reads_the_file_again_while_work_is_under_way(world: World):
    slow = {f"slow{number}": f"while [ ! -e go{number} ]; do sleep 0.02; done" for number in range(4)}
    world.write(**slow)
    host = world.run()
    host.says("slow3", "noted")
    del slow["slow0"]
    world.write(**slow, fresh="echo fresh")
    host.signal(signal.SIGHUP)
    host.says("reloaded: s.toml: 3 unchanged, 1 created, 1 disabled")
    host.says("fresh", "completed")
    for number in range(4):
        (world.folder / f"go{number}").touch()
        host.says(f"slow{number}", "completed")
    host.signal(signal.SIGTERM)
    assert host.ends() == 0


def test_hangups_under_load_lose_nothing(world: World):
    commands = {f"job{number}": "sleep 0.05" for number in range(10)}
    world.write(**commands)
    host = world.run("--slots", "2")
    host.says("ready")
    for number in range(10, 30):
        commands[f"job{number}"] = "sleep 0.05"
        world.write(**commands)
        host.signal(signal.SIGHUP)
        time.sleep(0.02)
    for name in commands:
        host.says(f" {name} ", "completed")
    host.signal(signal.SIGTERM)
    assert host.ends() == 0
    assert [len(replay(world.folder / "j").runs(schedule_id=name)) for name in commands] == [1] * 30


@pytest.mark.parametrize(
    "text", ["[schedules.x", "[schedules.x]\ncron = '61 * * * *'\ncommand = 'true'\n", "# nothing\n", None]
)
def test_a_bad_file_changes_nothing(world: World, text: str | None):
    world.write(slow="while [ ! -e go ]; do sleep 0.02; done")
    host = world.run()
    host.says("slow", "noted")
    path = world.folder / "s.toml"
    path.unlink() if text is None else path.write_text(text, encoding="utf-8")
    host.signal(signal.SIGHUP)
    host.says("reload-refused")
    (world.folder / "go").touch()
    host.says("slow", "completed")
    host.signal(signal.SIGTERM)
    assert host.ends() == 0
    assert not replay(world.folder / "j").schedule("slow").disabled


def test_a_reader_who_leaves_stops_nothing(world: World):
    world.write(quick="true")
    command = [sys.executable, "-P", "-m", "duly", "run", "s.toml", "-j", "j", "--zone", "UTC"]
    with ending(subprocess.Popen(command, cwd=world.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        until(lambda: [run for run in replay(world.folder / "j").runs() if run.ended])
        world.write(quick="true", late="true")
        process.send_signal(signal.SIGHUP)
        until(lambda: [run for run in replay(world.folder / "j").runs(schedule_id="late") if run.ended])
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_reader_who_does_not_read_stops_nothing(world: World):
    text = "".join(f"[schedules.j{number}]\ncron = '0 0 1 1 *'\ncommand = 'true'\n" for number in range(1000))
    (world.folder / "s.toml").write_text(f"{text}[schedules.quick]\nonce_per = 'day'\ncommand = 'touch done'\n")
    command = [sys.executable, "-P", "-m", "duly", "run", "s.toml", "-j", "j", "--zone", "UTC"]
    with ending(subprocess.Popen(command, cwd=world.folder, stdout=subprocess.PIPE)) as process:
        until((world.folder / "done").exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_hangup_before_it_is_ready_ends_nothing(world: World):
    text = "".join(f"[schedules.j{number}]\ncron = '0 0 1 1 *'\ncommand = 'true'\n" for number in range(1000))
    (world.folder / "s.toml").write_text(text, encoding="utf-8")
    host = world.run()
    until((world.folder / "j").exists)
    host.signal(signal.SIGHUP)
    host.says("reloaded: s.toml: 1000 unchanged")
    host.signal(signal.SIGTERM)
    assert host.ends() == 0


def test_standard_input_is_not_read_again(world: World):
    world.write(slow="while [ ! -e go ]; do sleep 0.02; done")
    crontab = "# duly: id=daily\n0 0 * * * true\n"
    command = [sys.executable, "-P", "-m", "duly", "run", "-", "-j", "j", "--zone", "UTC"]
    with ending(
        subprocess.Popen(command, cwd=world.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(crontab)
        process.stdin.close()
        lines = iter(process.stdout.readline, "")
        assert any("ready" in line for line in lines)
        process.send_signal(signal.SIGHUP)
        refused = next(line for line in lines if "reload" in line)
        assert "reload-refused: standard input cannot be read again" in refused
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert not replay(world.folder / "j").schedule("daily").disabled


def test_a_bad_file_at_the_start_runs_nothing(world: World):
    (world.folder / "s.toml").write_text("[schedules.x]\n", encoding="utf-8")
    host = world.run()
    assert host.ends() == 1
    assert host.lines[-1] == "duly: nothing runs until the file is mended.\n"
    assert not (world.folder / "j").exists()


def test_a_second_owner_is_refused_and_the_first_goes_on(world: World):
    world.write(slow="while [ ! -e go ]; do sleep 0.02; done")
    first = world.run()
    first.says("slow", "noted")
    second = world.run()
    assert second.ends() == 3
    assert f"pid {first.process.pid}," in "".join(second.lines)
    (world.folder / "go").touch()
    first.says("slow", "completed")
    first.signal(signal.SIGTERM)
    assert first.ends() == 0


def test_a_killed_host_is_followed_by_one_that_knows_its_commands(world: World):
    world.write(slow="while [ ! -e go ]; do sleep 0.02; done")
    first = world.run()
    first.says("slow", "noted")
    first.process.kill()
    first.ends()
    second = world.run()
    second.says("ready", "goes on")
    (world.folder / "go").touch()
    second.says("slow", "OutlivedItsHost")
    second.signal(signal.SIGTERM)
    assert second.ends() == 0


def test_a_crontab_means_what_cron_means_by_it(tmp_path: Path):
    crontab = "SHELL=/bin/bash\nGREETING=hi\n'A NAME'=x\n# duly: id=job\n0 0 29 2 *  echo ${GREETING^^}; cat%one%two\n"
    (tmp_path / "crontab").write_text(crontab, encoding="utf-8")
    settings = Settings(tmp_path / "crontab", tmp_path / "j", "UTC")
    with open_host(settings) as host:
        converge(host.scheduler, settings.read(), SystemClock().now())
        run = host.scheduler.run_now("job")
        host.once()
    log = tmp_path / "j-output" / "job" / f"{run.id}.log"
    assert log.read_text(encoding="utf-8") == "HI\none\ntwo\n"
