"""The `# duly:` comment above a crontab entry: what a crontab itself cannot say about it.

    # duly: id=nightly-backup misfire=skip lateness=30m overlap=parallel max=3 fold=first timeout=2h

Rules kept here: pure; every option has one spelling; whatever is not understood is refused with its column, because a
misspelt policy must never turn into the default one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

from duly.journal.entries import Fold, Misfire, Overlap
from duly.tools.moments import parse_duration

DIRECTIVE = re.compile(r"[ \t]*#[ \t]*duly:")
SCHEDULE_ID = re.compile(r"[A-Za-z0-9._:-]{1,200}", re.ASCII)
_WORD = re.compile(r"[^ \t]+")


class Malformed(Exception):
    """What stands at `column` (from 1) of a line is not understood; `remedy` says what to write instead."""

    def __init__(self, column: int, message: str, remedy: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Options:
    """The policies of one entry; what is None is left to the scheduler's default."""

    schedule_id: str | None = None
    misfire: Misfire | None = None
    lateness: timedelta | None = None
    overlap: Overlap | None = None
    max_active_runs: int | None = None
    fold: Fold | None = None
    timeout: timedelta | None = None


def parse_options(line: str, before: Options) -> Options:
    """Read the options of one `# duly:` line on top of those of the lines `before` it."""
    directive = DIRECTIVE.match(line)
    if directive is None:
        raise ValueError("this is not a '# duly:' comment")
    options, seen = before, set[str]()
    words = list(_WORD.finditer(line, directive.end()))
    if not words:
        raise Malformed(directive.end(), "the '# duly:' comment is empty", f"write {_KNOWN}, or remove it")
    for word in words:
        name, equals, value = word.group().partition("=")
        column = word.start() + 1
        reader = READERS.get(name)
        if reader is None or not equals or not value:
            raise Malformed(column, f"{word.group()!r} is not an option", _remedy(name))
        field, read = reader
        if name in seen or getattr(before, field) is not None:
            raise Malformed(column, f"the option {name!r} is given twice", "keep one of the two")
        seen.add(name)
        try:
            options = replace(options, **{field: read(value)})
        except ValueError as error:
            message, _, remedy = str(error).partition(": ")
            raise Malformed(column + len(name) + 1, message, remedy) from None
    return options


def check_together(options: Options) -> None:
    """Raise `ValueError` for options that are right alone and wrong together."""
    if options.overlap == "parallel" and options.max_active_runs is None:
        raise ValueError("overlap=parallel needs a limit: add max=3, or any other number of runs")
    if options.max_active_runs is not None and options.overlap != "parallel":
        raise ValueError("max goes with overlap=parallel only: add overlap=parallel, or remove max")


def _schedule_id(value: str) -> str:
    if not SCHEDULE_ID.fullmatch(value):
        raise ValueError(f"{value!r} is not an id: use 1 to 200 letters, digits, and the characters . _ : -")
    return value


def _one_of(*allowed: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"{value!r} is not known here: write {' or '.join(allowed)}")
        return value

    return read


def _count(value: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,8}", value, re.ASCII):
        raise ValueError(f"{value!r} is not a number of runs: write a whole number from 1 on")
    return int(value)


def _timeout(value: str) -> timedelta:
    duration = parse_duration(value)
    if not duration:
        raise ValueError("a timeout of nothing leaves no time to run: write a longer one, or remove it")
    return duration


READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "id": ("schedule_id", _schedule_id),
    "misfire": ("misfire", _one_of("latest", "skip")),
    "lateness": ("lateness", parse_duration),
    "overlap": ("overlap", _one_of("skip", "parallel")),
    "max": ("max_active_runs", _count),
    "fold": ("fold", _one_of("both", "first")),
    "timeout": ("timeout", _timeout),
}
_KNOWN = ", ".join(f"{name}=…" for name in READERS)


def _remedy(name: str) -> str:
    near = get_close_matches(name, READERS, n=1)
    return f"write {near[0]}=…" if near else f"write one of {_KNOWN}"
