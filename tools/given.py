"""What a schedule gives its runs, in words: the command of an imported one, its other inputs, and its limits.

Rules kept here: pure; an input that is a plain value is told as that value, any other as it is recorded; of two values
that are told beside each other, the part in which they differ is never what is cut off.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import msgspec

from duly.journal.entries import Expression, Json, Literally
from duly.tools.moments import describe_duration

LONGEST_COMMAND: Final = 60
BEFORE_A_DIFFERENCE: Final = 12
"""How many characters that two values share are told before the first in which they differ."""


def command_of(given: Mapping[str, Expression]) -> str:
    """The command line that is run, where the input says it; else nothing."""
    command = given.get("command")
    return command.value if isinstance(command, Literally) and isinstance(command.value, str) else ""


def describe_inputs(given: Mapping[str, Expression]) -> str:
    """The inputs beside the command, as `name=value`."""
    return ", ".join(f"{name}={as_json(plain(value))}" for name, value in given.items() if not is_command(name, value))


def is_command(name: str, value: Expression) -> bool:
    """Whether this input is what `command_of` tells."""
    return name == "command" and command_of({name: value}) != ""


def describe_limits(limits: Mapping[str, Json]) -> str:
    """The limits as `name=value`; a timeout is told as a duration."""
    return " ".join(f"{name}={_limit(name, value)}" for name, value in limits.items())


def plain(value: object) -> object:
    """A value as it would be written: an input that is one stands for itself."""
    return value.value if isinstance(value, Literally) else msgspec.to_builtins(value)


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def cut(text: str, longest: int) -> str:
    """The text, and no more of it than `longest` characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def cut_apart(was: str, now: str, longest: int) -> tuple[str, str]:
    """Two different texts, each cut to `longest` characters so that they are seen to differ."""
    if max(len(was), len(now)) <= longest:
        return was, now
    differing = (at for at, (one, other) in enumerate(zip(was, now, strict=False)) if one != other)
    shared = next(differing, min(len(was), len(now)))
    start = max(shared - BEFORE_A_DIFFERENCE, 0)
    ahead = "…" if start else ""
    return cut(ahead + was[start:], longest), cut(ahead + now[start:], longest)


def _limit(name: str, value: Json) -> str:
    if name == "timeout" and isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
        return describe_duration(timedelta(seconds=value))
    return as_json(value)
