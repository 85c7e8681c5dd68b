"""Every command of the command line, read off its definition, so that one that is added is tested without being listed.

Rule kept here: what an argument is called says what it may be given. A command with a required argument or option of a
name that is not known here fails the tests, until somebody says what it means; so does a name that no command has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from duly.tools.cli import cli

ENDLESS = frozenset({"run"})
"""Commands that go on until they are told to stop, where nothing is wrong."""
CONNECTED = frozenset({"ctl resume", "ctl status"})
"""Commands that speak to a running host, and to nobody else."""
OWNING = frozenset({"archive"})
"""Commands that take the journal, beside those of `ctl` and those that make one."""
MAKING = frozenset({"import", "run"})
"""Commands that make a journal where none is."""
INSTANT = "2026-03-28T01:30:00Z"
ARGUMENTS = {
    "schedule": "nightly",
    "instant": INSTANT,
    "through": INSTANT,
    "started_at": INSTANT,
    "reason": "the disk is full",
    "run": "7",
    "shell": "bash",
    "crontab": "CRONTAB",
    "file": "CRONTAB",
    "path": "JOURNAL",
    "a": "JOURNAL",
    "b": "JOURNAL",
}
NEW = frozenset({"to", "target"})
"""Required options that name what is made."""
OPTIONS = {
    "start": ["--from", INSTANT],
    "end": ["--to", "2026-03-29T01:30:00Z"],
}
OPTIONAL = frozenset(
    {("next", "schedule"), ("ctl run-now", "schedule"), ("completion", "shell"), ("import", "zone"), ("run", "zone")}
)
"""What a command cannot do without, although it is not required; of a shell, where the environment names none."""


@dataclass(frozen=True)
class Verb:
    """A command as it is typed, and its definition."""

    name: str
    command: click.Command

    @property
    def parameters(self) -> set[str]:
        return {one.name or "" for one in self.command.params}

    @property
    def reads_a_journal(self) -> bool:
        return bool({"journal", "a"} & self.parameters) and self.name not in CONNECTED

    @property
    def writes(self) -> bool:
        return self.name.startswith("ctl ") or self.name in MAKING | OWNING

    @property
    def answers_in_json(self) -> bool:
        return "as_json" in self.parameters and self.name not in ENDLESS

    def words(self, journal: Path, made: Path, crontab: Path) -> list[str]:
        """The command line, about this journal."""
        given = [self.name.split(" ")[0], *self.name.split(" ")[1:]]
        for parameter in self.command.params:
            given += self._given(parameter)
        if "journal" in self.parameters and "path" not in self.parameters:
            given += ["-j", "JOURNAL"]
        places = {"JOURNAL": journal, "CRONTAB": crontab, "NEW": made / self.name.replace(" ", "-")}
        return [str(places.get(word, word)) for word in given]

    def _given(self, parameter: click.Parameter) -> list[str]:
        name = parameter.name or ""
        if name == "zone" and (self.name, name) in OPTIONAL:
            return ["--zone", "UTC"]
        if isinstance(parameter, click.Argument):
            wanted = parameter.required or name == "path" or (self.name, name) in OPTIONAL
            if wanted:
                assert name in ARGUMENTS, f"say in {__name__} what `duly {self.name}` may be given as {name}"
            return [ARGUMENTS[name]] if wanted else []
        if not parameter.required:
            return []
        if name in NEW:
            return [parameter.opts[0], "NEW"]
        assert name in OPTIONS, f"say in {__name__} what `duly {self.name}` may be given as {parameter.opts[0]}"
        return OPTIONS[name]


def verbs(group: click.Group = cli, prefix: str = "") -> Iterator[Verb]:
    """Every command, those of groups too."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from verbs(command, f"{prefix}{name} ")
        else:
            yield Verb(f"{prefix}{name}", command)


VERBS = {verb.name: verb for verb in verbs()}
READING = {name: verb for name, verb in VERBS.items() if verb.reads_a_journal}
