"""The options that commands share: the journal, the format, and values as people write them.

Rule: a journal is named by the argument, by `-j`, or by $DULY_JOURNAL, in this order, and never guessed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from duly.journal import archive_at
from duly.tools.moments import parse_instant, parse_position
from duly.tools.output import Format, Output

Command: TypeAlias = Callable[..., Any]

if TYPE_CHECKING:  # before click 8.3 it was no generic class
    _ParamType: TypeAlias = click.ParamType[object]
else:
    _ParamType = click.ParamType


class Parsed(_ParamType):
    """A value that is read by a function raising `ValueError` with a remedy."""

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


INSTANT = Parsed("instant", parse_instant)
POSITION = Parsed("sequence or instant", parse_position)


def _read_with_archive(context: click.Context, _: click.Parameter, folder: str | None) -> None:
    if folder is not None:
        context.with_resource(archive_at(folder))


def output_options(command: Command) -> Command:
    """Adds --format and --json, and hands the command its `output`."""

    @click.option(
        "--format", "form", type=click.Choice([form.value for form in Format]), help="How to answer. [default: table]"
    )
    @click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
    @functools.wraps(command)
    def with_output(*args: Any, form: str | None, as_json: bool, **kwargs: Any) -> Any:
        if as_json and form not in (None, "json"):
            raise click.UsageError(f"--json and --format {form} contradict each other: keep one.")
        return command(*args, output=Output(Format(form or ("json" if as_json else "table"))), **kwargs)

    return with_output


def journal_argument(command: Command) -> Command:
    """Adds PATH, also as -j/--journal, and hands the command its `journal`."""
    return archived_journal_argument(_ARCHIVE(command))


def archived_journal_argument(command: Command) -> Command:
    """The same without --archive, for the command that makes one."""

    @click.argument("path", required=False)
    @_JOURNAL
    @functools.wraps(command)
    def with_journal(*args: Any, path: str | None, journal: str | None, **kwargs: Any) -> Any:
        source = click.get_current_context().get_parameter_source("journal")
        if path and journal and source is not click.core.ParameterSource.ENVIRONMENT:
            raise click.UsageError("The journal is named twice, by PATH and by --journal: keep one.")
        return command(*args, journal=_required(path or journal), **kwargs)

    return with_journal


def journal_option(command: Command) -> Command:
    """Adds -j/--journal, and hands the command its `journal`."""

    @_JOURNAL
    @_ARCHIVE
    @functools.wraps(command)
    def with_journal(*args: Any, journal: str | None, **kwargs: Any) -> Any:
        return command(*args, journal=_required(journal), **kwargs)

    return with_journal


def optional_journal(command: Command) -> Command:
    """Adds -j/--journal to a command that can do without."""
    return _JOURNAL(command)


def until_option(command: Command) -> Command:
    """Adds --until: the last entry to look at."""
    described = "Stop after this sequence, or after the last entry that is not later than this instant."
    return click.option("--until", type=POSITION, metavar="SEQ|INSTANT", help=described)(command)


_JOURNAL = click.option(
    "-j", "--journal", metavar="PATH", envvar="DULY_JOURNAL", help="The journal's folder. [$DULY_JOURNAL]"
)


_ARCHIVE = click.option(
    "--archive",
    metavar="FOLDER",
    expose_value=False,
    callback=_read_with_archive,
    help="Where its archived segments are. [default: where they were moved to]",
)


def _required(journal: str | None) -> str:
    if not journal:
        raise click.UsageError("No journal is named: give its folder as PATH or --journal, or set $DULY_JOURNAL.")
    return journal
