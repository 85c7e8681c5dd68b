"""The text of a timeline: lines in, values out, and the one canonical wording of a decision.

The grammar is in `tests.scheduler.timeline`. Rules kept here: nothing is guessed (an unknown word is an error with its
line number); every time of day becomes a full instant, so that two texts are equal when they mean the same.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

DEFAULT_DAY = date(2026, 3, 2)  # a Monday
INSTANT = re.compile(r"(?<![\dT:])(?:(\d{4}-\d\d-\d\d)T)?(\d\d:\d\d)(:\d\d)?(\.\d{1,6})?Z?(?![\d:])")
LEADING = re.compile(r"(?:(\d{4}-\d\d-\d\d)(?:T|$|(?=\s)))?(?:(\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)Z?)?(?:\s+|$)")
DURATION = re.compile(r"(-?)(\d+)(us|ms|s|m|h|d)")
UNITS = {"us": "microseconds", "ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
REMARK = re.compile(r"\s\([^()]*\)$")
# Commands whose own entry is understood; the text says how the entry reads in a transcript.
OWN = {
    "create": "create {0}",
    "edit": "edit {0}",
    "pause": "pause {0}",
    "unpause": "unpause {0}",
    "disable": "disable {0}",
    "enable": "enable {0}",
    "delete": "delete {0}",
    "block": "block {0} operator",
    "unblock": "unblock {0}",
    "rebaseline": "rebaseline {0}",
    "external": "external {0}",
    "start": "start {0}",
    "complete": "complete {0}",
    "fail": "fail {0}",
    "interrupt": "interrupt {0}",
    "resume": "resume {0}",
    "abandon": "abandon {0} operator",
    "note": "note {0}",
}
MUST_SAY = {"poll", "declare", "run_now"}
SILENT = {"open", "crash", "reopen", "host", "clock", "stop"}
QUESTIONS = {"schedule", "run", "occurrence"}
VERBS = {*OWN, *MUST_SAY, *SILENT, *QUESTIONS}


class TimelineError(Exception):
    """The timeline itself is wrong."""


@dataclass(frozen=True)
class Decision:
    """A decision as a transcript tells it; `details` are compared only where the timeline names them."""

    text: str
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Line:
    number: int
    now: datetime
    verb: str
    subjects: tuple[str, ...]
    options: dict[str, str]
    expected: tuple[Decision, ...]
    text: str


def parse_timeline(text: str) -> list[Line]:
    """The lines of a timeline, each with the instant at which it happens."""
    lines: list[Line] = []
    now = datetime.combine(DEFAULT_DAY, datetime.min.time(), UTC)
    for number, raw in _joined(text):
        when, command, arrow = _parts(raw, number)
        now = _moment(when, now)
        if command:
            lines.append(_parse_line(number, now, command, arrow, raw))
    return lines


def parse_duration(text: str) -> timedelta:
    pieces = DURATION.findall(text)
    if not pieces or "".join("".join(piece) for piece in pieces) != text:
        raise TimelineError(f"not a duration: {text!r} (write 90s, 5m, 1h30m, 2d)")
    return sum((timedelta(**{UNITS[unit]: int(sign + count)}) for sign, count, unit in pieces), timedelta())


def parse_instant(text: str, day: date) -> datetime:
    full = expand(text, day)
    try:
        return datetime.fromisoformat(full)
    except ValueError as error:
        raise TimelineError(f"not an instant: {text!r}") from error


def parse_decision(text: str, day: date) -> Decision:
    words = expand(text.strip(), day).split()
    details = [tuple(word.split("=", 1)) for word in words if "=" in word]
    plain = [word for word in words if "=" not in word]
    return Decision(" ".join(plain), tuple((name, value) for name, value in details))


def describe_instant(instant: datetime) -> str:
    """The canonical full form: seconds always, microseconds only where there are some."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def expand(text: str, day: date) -> str:
    """Every instant in the text in its full form, a bare time of day on `day`."""

    def full(match: re.Match[str]) -> str:
        given, minute, second, fraction = match.groups()
        moment = datetime.fromisoformat(f"{given or day.isoformat()}T{minute}{second or ':00'}{fraction or ''}+00:00")
        return describe_instant(moment)

    return INSTANT.sub(full, text)


def shorten(text: str, day: date) -> str:
    """The opposite of `expand`, for people."""
    return re.sub(rf"{day.isoformat()}T(\d\d:\d\d)(:\d\d(?:\.\d+)?)Z", _short_time, text)


def compared(expected: tuple[Decision, ...], actual: tuple[Decision, ...], day: date) -> tuple[list[str], list[str]]:
    """Both sides as lists of texts; of the actual details only those that the expectation at that place names."""
    actual = _own_first(expected, actual)
    left = [_wording(decision, decision.details, day) for decision in expected]
    right: list[str] = []
    for position, decision in enumerate(actual):
        named = {name for name, _ in expected[position].details} if position < len(expected) else set[str]()
        right.append(_wording(decision, tuple(pair for pair in decision.details if pair[0] in named), day))
    return left, right


def retold(line: Line, decided: list[str]) -> str:
    """The line as it went: the same command, in a text that can be pasted into a timeline and passes there."""
    command = re.sub(r"\s+(raises|covers|exhausts|next)=\S+", "", line.text.partition("->")[0].rstrip())
    named = [shorten(subject, line.now.date()) for subject in line.subjects]
    own = [OWN[line.verb].format(subject) for subject in named] if line.verb in OWN else []
    others = [text for text in decided if not text.startswith(("raises ", "next ", *own))]
    refused = [f"raises={text.removeprefix('raises ')}" for text in decided if text.startswith("raises ")]
    asked = [text.removeprefix("next ") for text in decided if text.startswith("next ")]
    if line.verb in QUESTIONS and not refused:
        return f"{command.partition(line.verb)[0]}{decided[0]}"
    silent = line.verb in OWN and not decided
    arrow = f"-> {', '.join(others) or 'nothing'}" if others or silent or line.verb in MUST_SAY else ""
    return "  ".join(part for part in (command, *refused, *asked, "" if refused else arrow) if part)


def _own_first(expected: tuple[Decision, ...], actual: tuple[Decision, ...]) -> tuple[Decision, ...]:
    """The entry of a command is understood: it may stand anywhere in its batch, and is compared in first place."""
    own = [decision for decision in actual if expected and decision.text == expected[0].text and _is_own(decision)]
    return (*own, *[decision for decision in actual if decision not in own])


def _is_own(decision: Decision) -> bool:
    return decision.text.split()[0] in OWN


def _short_time(match: re.Match[str]) -> str:
    return match[1] if match[2] == ":00" else f"{match[1]}{match[2]}"


def _wording(decision: Decision, details: tuple[tuple[str, str], ...], day: date) -> str:
    return shorten(" ".join([decision.text, *(f"{name}={value}" for name, value in sorted(details))]), day)


def _joined(text: str) -> list[tuple[int, str]]:
    """The lines with their numbers; a line that begins with an arrow continues the one above it."""
    joined: list[tuple[int, str]] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = REMARK.sub("", raw.rstrip()).strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("->"):
            if not joined:
                raise TimelineError(f"line {number}: an arrow without a command")
            first, above = joined[-1]
            separator = "," if "->" in above else "->"
            joined[-1] = first, f"{above} {separator} {line[2:].strip()}"
        else:
            joined.append((number, line))
    return joined


def _parts(raw: str, number: int) -> tuple[tuple[str | None, str | None], str, str | None]:
    day, time, rest = _leading(raw)
    command, arrow, expectation = rest.partition("->")
    if arrow and not expectation.strip():
        raise TimelineError(f"line {number}: nothing after the arrow (write '-> nothing')")
    return (day, time), command.strip(), expectation.strip() if arrow else None


def _leading(raw: str) -> tuple[str | None, str | None, str]:
    match = LEADING.match(raw)
    if match is None or match.end() == 0:
        return None, None, raw
    return match[1], match[2], raw[match.end() :]


def _moment(when: tuple[str | None, str | None], now: datetime) -> datetime:
    day, time = when
    if time is None:
        return now if day is None else datetime.fromisoformat(f"{day}T00:00:00+00:00")
    return datetime.fromisoformat(f"{day or now.date().isoformat()}T{time}+00:00")


def _parse_line(number: int, now: datetime, command: str, arrow: str | None, raw: str) -> Line:
    verb, *words = shlex.split(command)
    if verb not in VERBS:
        raise TimelineError(f"line {number}: unknown command {verb!r}")
    subjects = tuple(expand(word, now.date()) for word in words if "=" not in word)
    options = dict(word.split("=", 1) for word in words if "=" in word)
    try:
        expected = _expectation(verb, subjects, options, arrow, now.date())
    except TimelineError as error:
        raise TimelineError(f"line {number}: {error}") from None
    return Line(number, now, verb, subjects, options, expected, raw)


def _expectation(
    verb: str, subjects: tuple[str, ...], options: dict[str, str], arrow: str | None, day: date
) -> tuple[Decision, ...]:
    if "raises" in options:
        if arrow is not None:
            raise TimelineError("a refused command decides nothing: leave the arrow out")
        return (Decision(f"raises {options.pop('raises')}"),)
    if arrow is None and verb in MUST_SAY:
        raise TimelineError(f"{verb} must say what it decides (-> nothing, if so)")
    if verb in QUESTIONS:
        asked = tuple((name, expand(value, day)) for name, value in options.items())
        return (Decision(f"{verb} {subjects[0]}", asked),)
    nothing = arrow is not None and arrow.strip() == "nothing"
    details = tuple((name, expand(options.pop(name), day)) for name in ("covers", "exhausts") if name in options)
    own = [Decision(OWN[verb].format(subject), details) for subject in subjects if verb in OWN and not nothing]
    listed = [parse_decision(item, day) for item in arrow.split(",")] if arrow and not nothing else []
    due = [Decision("next", (("next", expand(options["next"], day)),))] if "next" in options else []
    return (*own, *listed, *due)
