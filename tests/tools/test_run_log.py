"""The log of `duly run`: what becomes of lines that nobody reads."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import pytest

from duly import ManualClock
from duly.tools import run_log
from duly.tools.run_log import Lines, RunLog
from duly.tools.run_settings import LogFormat

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a pipe that is full")


def told(lost: int) -> str:
    return f"{lost} lost"


@contextmanager
def into_a_pipe() -> Generator[int]:
    """Makes standard output a pipe, which the descriptor reads."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), os.fdopen(writing, "w", encoding="ascii") as stream, redirect_stdout(stream):
        yield reading


def test_lines_come_in_their_order_and_are_all_there_at_the_end():
    with into_a_pipe() as pipe:
        lines = Lines(told)
        for number in range(1000):
            lines.put(f"{number} \xe9\n")
        lines.close()
        assert os.read(pipe, 1 << 20).decode() == "".join(f"{number} \\xe9\n" for number in range(1000))


def test_a_pipe_that_nobody_empties_makes_nobody_wait_and_is_told_of(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run_log, "WAITING", 10)
    monkeypatch.setattr(run_log, "PATIENCE", 0.1)
    with into_a_pipe() as pipe:
        lines = Lines(told)
        lines.put("x" * 200_000 + "\n")
        time.sleep(0.1)
        begun = time.monotonic()
        for number in range(30):
            lines.put(f"{number}\n")
        lines.close()
        assert time.monotonic() - begun < 10
        said = b""
        while not said.endswith(b"\n9\n"):
            more = os.read(pipe, 1 << 20)
            assert more
            said += more
    assert said.decode().splitlines()[1:] == [
        "20 lost",
        *map(str, range(10)),
    ]


def test_a_pipe_that_does_not_block_loses_nothing():
    with into_a_pipe() as pipe:
        os.set_blocking(sys.stdout.fileno(), False)
        lines = Lines(told)
        for number in range(2000):
            lines.put(f"{number} {'x' * 100}\n")
        said = b""
        while said.count(b"\n") < 2000:
            more = os.read(pipe, 1 << 20)
            assert more
            said += more
        lines.close()
    assert [int(line.split()[0]) for line in said.decode().splitlines()] == list(range(2000))


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_loss_is_told_in_the_form_of_the_log(form: LogFormat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run_log, "WAITING", 1)
    with into_a_pipe() as pipe:
        log = RunLog(tmp_path / "j", form, ManualClock(datetime(2026, 3, 2, tzinfo=UTC)), after=0)
        log.say("notice", "x" * 200_000)
        time.sleep(0.1)
        for number in range(3):
            log.say("notice", f"number {number}")
        said = b""
        while said.count(b"\n") < 3:
            said += os.read(pipe, 1 << 20)
        log.close()
    _, loss, kept = said.decode().splitlines()
    text = "2 lines of this log could not be written: nobody read them"
    if form == "json":
        assert json.loads(loss) == {
            "schema": "duly.run/1",
            "event": "warning",
            "at": "2026-03-02T00:00:00Z",
            "text": text,
        }
    else:
        assert loss.endswith(f"warning: {text}")
    assert "number 0" in kept
