"""`duly run --once` as a test calls it: in this process, at the time that the test says."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from duly import ManualClock, Scheduler
from duly.tools.output import Format, Output
from duly.tools.run_settings import Settings
from duly.tools.running import run_once

START = datetime(2026, 3, 2, 0, 0, tzinfo=UTC)


@dataclass
class Invocations:
    """A file, a journal and a clock; each call is one invocation of `duly run FILE --once`."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    name: str = "schedules.toml"
    slots: int = 8
    clock: ManualClock = field(default_factory=lambda: ManualClock(START))

    @property
    def journal(self) -> Path:
        return self.folder / "j"

    def write(self, text: str) -> None:
        (self.folder / self.name).write_text(text, encoding="utf-8")

    def settings(self, **more: Any) -> Settings:
        return Settings(self.folder / self.name, self.journal, "UTC", slots=self.slots, clock=self.clock, **more)

    def __call__(self, after: timedelta = timedelta(), **more: Any) -> tuple[int, list[str]]:
        """Lets time pass, invokes, and gives the exit code and the lines."""
        self.clock.advance(after)
        self.capsys.readouterr()
        code = run_once(self.settings(**more), Output(Format.TABLE))
        return code, self.capsys.readouterr().out.splitlines()

    def open(self) -> Scheduler:
        """The journal, for what others do between two invocations."""
        return Scheduler.open(self.journal, clock=self.clock)


@pytest.fixture
def once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Invocations:
    return Invocations(tmp_path, capsys)
