"""What the options of `duly run` say, and the file they name.

Rule kept here: nothing that executes is loaded by this.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal, TypeAlias

from duly.scheduler.clock import Clock, SystemClock
from duly.tools.crontab import Problem
from duly.tools.exit_codes import BAD
from duly.tools.output import terminal
from duly.tools.printable import printable
from duly.tools.schedule_file import ScheduleFile, read_schedule_file

STANDARD_INPUT: Final = "-"
LogFormat: TypeAlias = Literal["text", "json"]


@dataclass(frozen=True)
class Settings:
    """What the options say; `clock` is the system's, unless a test brings another."""

    file: Path
    journal: Path
    zone: str
    system: bool | None = None
    slots: int = 8
    drain_grace: timedelta = timedelta(seconds=30)
    outputs: Path | None = None
    resume: bool = False
    serve: str | None = None
    token_file: Path | None = None
    schedule_labels: int = 0
    clock: Clock = field(default_factory=SystemClock)

    def read(self) -> ScheduleFile:
        """The file as it is now. Raises OSError, UsageError."""
        return read_schedule_file(self.file, zone=self.zone, system=self.system)


def tell_notices(file: ScheduleFile) -> None:
    """Tells what a person should know about a file that is read."""
    to_stderr = terminal(sys.stderr)
    for notice in file.notices:
        to_stderr.print(printable(f"{file.source}: {notice}"), soft_wrap=True)


def refuse(problems: Sequence[Problem]) -> int:
    """Tells what is wrong with a file that is refused whole; the exit code."""
    to_stderr = terminal(sys.stderr)
    for problem in problems:
        to_stderr.print(printable(str(problem)), soft_wrap=True)
    to_stderr.print("duly: nothing runs until the file is mended.", soft_wrap=True)
    return BAD
