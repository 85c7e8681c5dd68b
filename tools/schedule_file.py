"""The file that `duly run` keeps: a crontab or a TOML file, read into one form.

Rules kept here: pure but for the reading of the one file; a file with any problem is known by it, so that whoever
reads it can refuse it whole; what an entry does not say is left to the scheduler's defaults.
"""

from __future__ import annotations

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


def read_schedule_file(path: Path, *, zone: str, system: bool | None = None) -> ScheduleFile:
    """Reads the file: TOML if it is named so, else a crontab. Raises OSError, UsageError."""
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise click.UsageError(f"{path} is larger than 16 MiB: that is no file of schedules.")
    text = content.decode("utf-8", "surrogateescape")
    if path.suffix == ".toml":
        from duly.tools.schedule_toml import parse_schedule_toml

        return parse_schedule_toml(text, source=str(path), zone=zone)
    as_system = is_system_crontab(path.resolve()) if system is None else system
    found = parse_crontab(text, source=str(path), system=as_system, zone=zone)
    entries = tuple(
        Declared(one.schedule_id, one.line, one.expression, one.zone, definition_of(one)) for one in found.entries
    )
    return ScheduleFile(str(path), zone, entries, found.problems, found.notices)
