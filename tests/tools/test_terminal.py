"""The command line as a real process: pipes that close, Ctrl-C, terminals, and a journal whose owner is at work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO

import pytest
from rich.console import Console

from duly import Cron, ManualClock, Scheduler
from duly.tools import output
from tests.tools.eventful import hostile_text_is_escaped

DULY = [sys.executable, "-P", "-m", "duly"]
ESCAPE = "\x1b["
on_posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals or a pseudo-terminal")


def on_a_terminal(arguments: Sequence[str], environment: dict[str, str] | None = None) -> str:
    """What the command prints if both of its outputs are a terminal."""
    import pty

    master, slave = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [*DULY, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
        env={**plain, "TERM": "xterm-256color", **(environment or {})},
    )
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 65_536)
        except OSError:  # Linux ends a terminal with EIO
            break
        if not piece:
            break
        text += piece
    os.close(master)
    assert process.wait(60) == 0
    return text.decode()


@on_posix
def test_colour_appears_on_a_terminal_only(journal: Path):
    assert ESCAPE in on_a_terminal(["verify", str(journal)])
    assert ESCAPE not in on_a_terminal(["verify", str(journal)], {"NO_COLOR": "1"}).replace("\x1b[0m", "")
    piped = subprocess.run([*DULY, "verify", str(journal)], capture_output=True, text=True, check=True)
    assert ESCAPE not in piped.stdout


@on_posix
def test_nothing_in_a_journal_drives_a_terminal(journal: Path):
    for command in (["log", str(journal)], ["dump", str(journal), "-p", "history"]):
        printed = on_a_terminal(command, {"NO_COLOR": "1", "COLUMNS": "200"})
        assert hostile_text_is_escaped(printed.replace("\x1b[1m", "").replace("\x1b[0m", ""))


@on_posix
def test_the_demo_shows_its_progress_on_a_terminal(tmp_path: Path):
    (tmp_path / "crontab").write_text("0 */3 * * * job\n")
    printed = on_a_terminal(["demo", str(tmp_path / "crontab"), "--keep", str(tmp_path / "kept"), "--zone", "UTC"])
    assert "two weeks go by" in printed
    assert "/14" in printed
    assert "unaccounted: 0" in printed


@on_posix
@pytest.mark.parametrize("form", ["table", "json", "jsonl"])
def test_a_reader_that_has_seen_enough_ends_a_command_without_a_word(form: str, journal: Path):
    # So that what is printed does not fit into the pipe's buffer, it is printed again and again.
    script = (
        "import sys; from duly.tools import log_command; read = log_command.read\n"
        "def again(path, after=0):\n"
        "    for _ in range(200): yield from read(path)\n"
        "log_command.read = again\n"
        "from duly.tools.cli import main; sys.exit(main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", script, "log", str(journal), "--format", form],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 141
    process.stderr.close()


@on_posix
def test_a_full_shell_pipeline_with_head_is_silent(journal: Path):
    command = f"'{sys.executable}' -P -m duly log '{journal}' | head -n 1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")


@on_posix
def test_ctrl_c_ends_following_with_130_and_without_a_word(journal: Path):
    process = subprocess.Popen(
        [*DULY, "log", str(journal), "--follow", "-n", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().endswith("journal closed by test\n")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "", "")


def test_a_live_journal_is_followed(tmp_path: Path):
    clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
    with Scheduler.open(tmp_path / "state", clock=clock) as scheduler:
        scheduler.create("often", Cron("* * * * *", zone="UTC"), target="check")
        process = subprocess.Popen(
            [*DULY, "log", str(tmp_path / "state"), "--follow", "--format", "jsonl"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        first = [json.loads(process.stdout.readline())["entry"]["kind"] for _ in range(2)]
        clock.advance(timedelta(minutes=1))
        scheduler.poll()
        next_one = json.loads(process.stdout.readline())
        process.kill()
        process.communicate()
    assert first == ["JournalOpened", "ScheduleCreated"]
    assert (next_one["entry"]["kind"], next_one["confirmed"]) == ("OccurrenceAdmitted", True)


def test_every_reading_command_works_while_the_owner_writes(tmp_path: Path):
    state = tmp_path / "state"
    clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
    stop = threading.Event()
    with Scheduler.open(state, clock=clock) as scheduler:
        scheduler.create("often", Cron("* * * * *", zone="UTC"), target="check")

        def write() -> None:
            while not stop.is_set():
                clock.advance(timedelta(minutes=1))
                for run in scheduler.poll(start=True).offered:
                    scheduler.complete(run.id)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for command in ("verify", "replay", "dump", "log", "head"):
                done = subprocess.run([*DULY, command, str(state)], capture_output=True, text=True, check=False)
                assert (command, done.returncode, done.stderr) == (command, 0, "")
        finally:
            stop.set()
            writer.join()


def test_a_command_starts_without_loading_what_it_does_not_need(journal: Path):
    script = "import sys; import duly.journal; print('rich' in sys.modules, 'croniter' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_a_bar_appears_for_long_work_on_a_terminal_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch):
    drawn: list[str] = []

    class Terminal:
        encoding = "utf-8"

        def write(self, text: str) -> int:
            drawn.append(text)
            return len(text)

        def flush(self) -> None: ...

        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())

    def forced(stream: TextIO) -> Console:
        return Console(file=stream, force_terminal=True, width=80)

    monkeypatch.setattr(output, "terminal", forced)
    with output.working("short", after=60.0):
        pass
    assert "short" not in "".join(drawn)
    with output.working("long", after=0.0):
        deadline = time.monotonic() + 30
        while "long" not in "".join(drawn) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "long" in "".join(drawn)


def test_no_bar_appears_where_no_terminal_is(capsys: pytest.CaptureFixture[str]):
    with output.working("long", after=0.0):
        time.sleep(0.05)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_warning_of_the_library_is_one_line_that_drives_no_terminal(tmp_path: Path):
    script = (
        "import logging, sys; from duly.tools.entry import main; sys.argv = ['duly', 'head', 'nowhere']; main();"
        "logging.getLogger('duly.journal').warning('%s cannot be written', 'a\\x1b[2Jb')"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stderr.splitlines()[1:] == ["duly: warning: a\\x1b[2Jb cannot be written"]
