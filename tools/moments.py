"""Durations, instants and positions as people write and read them on the command line.

Rules kept here:
- pure: nothing reads a clock or the machine's zone, so an instant needs its offset in the text;
- a text that is not understood raises `ValueError` with a remedy, never anything else.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
DESCRIBED = ("d", "h", "m", "s")  # days are easier to compare than weeks
LONGEST = timedelta(days=36_600)
_DURATION = re.compile(r"(?:[0-9]{1,9}[wdhms])+", re.ASCII)
_PART = re.compile(r"([0-9]+)([wdhms])", re.ASCII)


def parse_duration(text: str) -> timedelta:
    """Read `90s`, `30m`, `1h30m`, `2d`, `1w`; also plain `0`."""
    if text == "0":
        return timedelta()
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration: write it as 90s, 30m, 1h30m, 2d or 1w")
    seconds = sum(int(count) * UNITS[unit] for count, unit in _PART.findall(text))
    if seconds > LONGEST.total_seconds():
        raise ValueError(f"{text!r} is longer than a hundred years: write a shorter duration")
    return timedelta(seconds=seconds)


def describe_duration(duration: timedelta) -> str:
    """The duration in the form that `parse_duration` reads; fractions of a second are kept, as in `0.5s`."""
    if duration < timedelta():
        return f"-{describe_duration(-duration)}"
    whole, parts = duration.days * 86_400 + duration.seconds, ""
    for unit in DESCRIBED:
        count, whole = divmod(whole, UNITS[unit])
        if unit == "s" and duration.microseconds:
            parts += f"{count}.{duration.microseconds:06d}".rstrip("0") + "s"
        elif count:
            parts += f"{count}{unit}"
    return parts or "0s"


def describe_roughly(duration: timedelta) -> str:
    """The duration for people: whole seconds from ten on, milliseconds below."""
    if abs(duration) >= timedelta(seconds=10):
        return describe_duration(timedelta(seconds=int(duration / timedelta(seconds=1))))
    return describe_duration(timedelta(milliseconds=round(duration / timedelta(milliseconds=1))))


def describe_span(start: datetime | None, end: datetime | None) -> str:
    """How long it was from one instant to the other; empty if one of them is not there."""
    return describe_roughly(end - start) if start is not None and end is not None else ""


def parse_instant(text: str) -> datetime:
    """Read an ISO 8601 date and time with an offset, such as `2026-03-29T01:00:00Z`, as UTC."""
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        instant = None
    if instant is None:
        raise ValueError(f"{text!r} is not an instant: write it as 2026-03-29T01:00:00Z")
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} does not say in which zone: end it with Z or an offset such as +01:00")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is outside of the years that can be computed with") from None


def parse_position(text: str) -> int | datetime:
    """Read a place in a journal: a sequence (`1204`) or an instant."""
    if re.fullmatch(r"[0-9]{1,16}", text, re.ASCII):
        return int(text)
    try:
        return parse_instant(text)
    except ValueError as error:
        raise ValueError(f"{error}; a sequence such as 1204 is understood too") from None
