"""What somebody supposes on the command line: another policy, how long runs take; and fates in words.

Rules kept here: a text becomes the value that the library takes, by the field that it is for; what the field itself
forbids the library says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

import click
import msgspec

from duly.scheduler.instants import describe_instant
from duly.scheduler.outcomes import Fate
from duly.tools.moments import describe_duration, parse_duration
from duly.tools.options import Command, Parsed


def _whole_number(text: str) -> int:
    if not text.isdecimal() or not text.isascii():
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


_READERS: Final[dict[str, Callable[[str], object]]] = {
    "lateness": parse_duration,
    "clock_tolerance": parse_duration,
    "max_active_runs": _whole_number,
    "task_slots": _whole_number,
    "batch": _whole_number,
}


def parse_supposition(text: str) -> tuple[str, object]:
    """Read `nightly.misfire=skip` or `task_slots=2`."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} sets nothing: write it as nightly.misfire=skip or task_slots=2")
    reader = _READERS.get(name.rpartition(".")[2], str)
    try:
        return name, reader(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def parse_durations(text: str) -> dict[str, timedelta]:
    """Read `nightly=10m`, or several with commas; `*=10m` is for all others."""
    found: dict[str, timedelta] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or not name:
            raise ValueError(f"{part.strip()!r} is no duration of a schedule: write nightly=10m, or *=10m for all")
        if name in found:
            raise ValueError(f"{name} has two durations: keep one")
        try:
            found[name] = parse_duration(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return found


def durations_option(command: Command) -> Command:
    """Adds --duration; what it gathers is to be joined by `joined_durations`."""
    return click.option(
        "--duration",
        "--durations",
        "durations",
        type=Parsed("durations", parse_durations),
        multiple=True,
        metavar="NAME=10m",
        help="How long a run of the schedule takes; several with commas or again; *=10m for all others.",
    )(command)


def joined_durations(given: Iterable[Mapping[str, timedelta]]) -> dict[str, timedelta]:
    """All that was given. Raises UsageError for a schedule that has two."""
    joined: dict[str, timedelta] = {}
    for some in given:
        for name, duration in some.items():
            if name in joined:
                raise click.UsageError(f"{name} has two durations: keep one.")
            joined[name] = duration
    return joined


def joined_suppositions(given: Iterable[tuple[str, object]]) -> dict[str, object]:
    """All that was set. Raises UsageError for a name that is set twice."""
    joined: dict[str, object] = {}
    for name, value in given:
        if name in joined:
            raise click.UsageError(f"{name} is set twice: keep one.")
        joined[name] = value
    return joined


def describe_value(value: object) -> str:
    """A supposed value as it would be written."""
    return describe_duration(value) if isinstance(value, timedelta) else str(value)


WORDS: Final = {
    "none": "no occurrence",
    "waiting": "waiting, undecided",
    "ahead": "not due yet",
    "ended": "its schedule had ended",
    "kept": "counts as decided",
}


def describe_fate(fate: Fate, *, when: bool = False) -> str:
    """A fate in a few words; `when` adds the clock reading of its decision."""
    said = WORDS.get(fate.disposition, fate.disposition)
    reason = f" ({fate.reason})" if fate.reason is not None else ""
    at = f" at {describe_instant(fate.at)}" if when and fate.at is not None else ""
    return f"{said}{reason}{at}"


def fate_row(fate: Fate) -> dict[str, Any]:
    """The fate as a JSON object."""
    row: dict[str, Any] = msgspec.to_builtins(fate)
    row["at"] = describe_instant(fate.at) if fate.at is not None else None
    return row
