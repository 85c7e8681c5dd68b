"""A file of schedules, as `duly run` keeps and `duly simulate` tries it: a crontab or a TOML file, read into one form.

Rules kept here: pure but for the reading of the one file; a file with any problem is known by it, so that whoever
reads it can refuse it whole; what an entry does not say is left to the scheduler's defaults.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from duly.scheduler.definitions import DefinitionFields
from duly.tools.crontab import Problem, is_system_crontab, parse_crontab
from duly.tools.declaring import definition_of

LARGEST = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Declared:
    """One schedule as the file has it: `fields` are the arguments of `Scheduler.declare`."""

    schedule_id: str
    line: int
    when: str
    zone: str
    fields: DefinitionFields


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """What a file says, in its order."""

    source: str
    zone: str
    entries: tuple[Declared, ...]
    problems: tuple[Problem, ...]
    notices: tuple[str, ...] = ()

    def note(self, line: int) -> str:
        """What the record holds about where a schedule comes from."""
        return f"{self.source} line {line}"


def read_text(name: str) -> tuple[str, str]:
    """The text of a file, of standard input for `-`, and what to call it in messages. Bytes that are no UTF-8 are left
    to the parser. Raises OSError, UsageError."""
    if name == "-":
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - it is, where it was closed
            raise click.UsageError("standard input is closed: name a file, or hand one to standard input.")
        content, source = sys.stdin.buffer.read(LARGEST + 1), "<stdin>"
    else:
        path = Path(name)
        if path.is_dir():
            raise click.UsageError(f"{name} is a folder: name the file in it.")
        with path.open("rb") as file:
            content, source = file.read(LARGEST + 1), name
    if len(content) > LARGEST:
        raise click.UsageError(f"{source} is larger than 16 MiB: that is no file of schedules.")
    return content.decode("utf-8", "surrogateescape"), source


def read_schedule_file(path: Path | str, *, zone: str, system: bool | None = None) -> ScheduleFile:
    """Reads the file: TOML if it is named so, else a crontab. Raises OSError, UsageError."""
    text, source = read_text(str(path))
    if Path(path).suffix == ".toml":
        from duly.tools.schedule_toml import parse_schedule_toml

        return parse_schedule_toml(text, source=source, zone=zone)
    as_system = is_system_crontab(Path(path).resolve()) if system is None else system
    found = parse_crontab(text, source=source, system=as_system, zone=zone)
    entries = tuple(
        Declared(one.schedule_id, one.line, one.expression, one.zone, definition_of(one)) for one in found.entries
    )
    return ScheduleFile(source, zone, entries, found.problems, found.notices)
