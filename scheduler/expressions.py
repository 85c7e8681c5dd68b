"""Cron expressions as text: what is accepted, what is refused, and the plain form that croniter is asked with.

Rules kept here:
- five fields, the Unix dialect: numbers, names, `*`, ranges (also over the end), steps, lists, `@hourly` … `@yearly`;
- what crons read in different ways, or silently in a way that nobody means, is refused with what to write instead;
- the plain form has only `*` and ascending lists of numbers, so that no reading of a spelling is left to croniter; it
  still owns which minutes match. Three of its readings would surprise: `59/15` and `3-3` (the whole field, in some
  versions), and the steps of a range that wraps (off by one);
- a day of the month that no month of the expression has is left out: some versions fail on it, even beside a weekday.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from duly.scheduler.errors import DefinitionError

LONGEST = 256
ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
LONGEST_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
NOT_UNIX_DAY = re.compile(r"l(-?[0-9]+|w)?|([0-9]+|sun|mon|tue|wed|thu|fri|sat)l|w[0-9]+|[0-9]+w")
ELEMENT = re.compile(r"(?P<low>\*|[a-z]+|[0-9]+)(?:-(?P<high>[a-z]+|[0-9]+))?(?:/(?P<step>[0-9]+))?")


class Field(msgspec.Struct, frozen=True):
    """One of the five places: its name, its bounds, and the names that stand for its numbers from `low` on."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    @property
    def highest_written(self) -> int:
        return 7 if self is DAY_OF_WEEK else self.high

    @property
    def bounds(self) -> str:
        said = f"{self.low} … {self.highest_written}"
        return f"{said} or {self.names[0]} … {self.names[-1]}" if self.names else said


MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY_OF_MONTH = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"))
DAY_OF_WEEK = Field("day of week", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat"))
FIELDS = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)
DAY_FIELDS = (DAY_OF_MONTH, DAY_OF_WEEK)


class Expression(msgspec.Struct, frozen=True):
    """An accepted expression: `text` as it was written, with single spaces, and its `plain` form."""

    text: str
    plain: str


class Values(msgspec.Struct, frozen=True):
    """What one field says: the numbers, and how it was written where that matters to the day fields."""

    numbers: frozenset[int]
    text: str
    star: bool  # a bare `*` (or `*/1`)
    stepped_star: bool  # `*/n`, or `*` beside something else: crons differ on what it restricts


@lru_cache(maxsize=4096)
def parse_expression(text: str) -> Expression:
    """The expression that `text` is, or a `DefinitionError` that names the field, the text and what to write."""
    words = _words(text)
    written = " ".join(words)
    alias = ALIASES.get(written.lower())
    words = alias.split() if alias else words
    fields = [_values(field, word.lower()) for field, word in zip(FIELDS, words, strict=True)]
    _refuse_ambiguous_days(fields[2], fields[4])
    return Expression(written, " ".join(_plain(fields, written)))


def _words(text: str) -> list[str]:
    if len(text) > LONGEST:
        raise DefinitionError("expression", text, f"is longer than {LONGEST} characters", "Split it over schedules.")
    odd = next((character for character in text if not " " <= character <= "~"), None)
    if odd is not None:
        kind = "a control character" if odd.isascii() else "a character outside ASCII"
        remedy = "Separate the fields by spaces and write plain ASCII."
        raise DefinitionError("expression", text, f"contains {kind}, {odd!r}", remedy)
    words = text.split()
    first = words[0].lower() if words else ""
    if first == "@reboot":
        raise DefinitionError("expression", text, "names no time", "Call run_now when your program starts.")
    if first == "@every":
        raise DefinitionError("expression", text, "is not cron", 'Use Every(5, "minute", anchor=…) for elapsed time.')
    if first.startswith("@") and (len(words) > 1 or first not in ALIASES):
        raise DefinitionError("expression", text, "is no known alias", f"Known: {', '.join(sorted(ALIASES))}.")
    if not first.startswith("@") and len(words) != len(FIELDS):
        remedy = "Write minute, hour, day of month, month and day of week; there are no seconds and no years."
        raise DefinitionError("expression", text, f"has {len(words)} fields, not 5", remedy)
    return words


def _values(field: Field, text: str) -> Values:
    elements = text.split(",")
    parsed = [_element(field, text, element) for element in elements]
    numbers = frozenset[int]().union(*(numbers for numbers, _ in parsed))
    star = all(bare for _, bare in parsed)
    return Values(numbers, text, star, "*" in text and not star)


def _element(field: Field, text: str, element: str) -> tuple[frozenset[int], bool]:
    """The numbers of one element of a list, and whether it is a bare `*`."""
    match = ELEMENT.fullmatch(element)
    if match is None or (match["low"] == "*" and match["high"]):
        raise _unreadable(field, text, element)
    step = 1 if match["step"] is None else _step(field, element, match["step"])
    if match["low"] == "*":
        return frozenset(range(field.low, field.high + 1, step)), step == 1
    low = _number(field, text, element, match["low"])
    if match["high"] is None:
        if match["step"] is None:
            return frozenset([_alias(field, low)]), False
        return frozenset(range(_alias(field, low), field.high + 1, step)), False
    high = _number(field, text, element, match["high"])
    # A range over the end goes on counting from the field's beginning: 22-4/3 is 22, 1, 4.
    numbers = range(low, high + 1, step) if low <= high else range(low, high + field.size + 1, step)
    return frozenset((number - field.low) % field.size + field.low for number in numbers), False


def _alias(field: Field, number: int) -> int:
    return 0 if field is DAY_OF_WEEK and number == 7 else number


def _step(field: Field, element: str, digits: str) -> int:
    step = int(digits)
    if step == 0:
        raise DefinitionError(field.name, element, "has a step of 0", "Write a step of 1 or more.")
    if step >= field.size:
        raise DefinitionError(
            field.name,
            element,
            f"has a step that leaves the field: its second value would be past {field.high}",
            "Write the one value that is meant, or use Every(…) for a longer interval.",
        )
    return step


def _number(field: Field, text: str, element: str, word: str) -> int:
    if word in field.names:
        return field.names.index(word) + field.low
    if not word.isdigit():
        raise _unreadable(field, text, element)
    number = int(word)
    if not field.low <= number <= field.highest_written:
        raise DefinitionError(field.name, element, "is out of range", f"Write {field.bounds}.")
    return number


def _unreadable(field: Field, text: str, element: str) -> DefinitionError:
    if not element:
        return DefinitionError(field.name, text, "has an empty element", "Remove the comma that nothing stands beside.")
    if "?" in element:
        return DefinitionError(field.name, element, "is Quartz's notation", "Write * instead of ?.")
    if "#" in element:
        remedy = "Cron has no n-th weekday: let the task look at the date, or bring your own OccurrenceSource."
        return DefinitionError(field.name, element, "is not in the Unix dialect", remedy)
    if re.fullmatch(r"[hr](\(.*\))?(/.*)?", element):
        remedy = "It would fire at another time on every machine: write the number that is meant."
        return DefinitionError(field.name, element, "is drawn from a hash or at random", remedy)
    if field in DAY_FIELDS and NOT_UNIX_DAY.fullmatch(element):
        remedy = (
            'Cron has no last day and no nearest weekday: use Every(1, "month", at=…, zone=…, anchor=…) from a 31st, '
            "or bring your own OccurrenceSource."
        )
        return DefinitionError(field.name, element, "is not in the Unix dialect", remedy)
    return DefinitionError(
        field.name,
        element,
        "is not understood",
        f"Write *, a value ({field.bounds}), a range a-b, a step */n, a/n or a-b/n, or a list of these.",
    )


def _refuse_ambiguous_days(days: Values, weekdays: Values) -> None:
    for field, values, other in ((DAY_OF_MONTH, days, weekdays), (DAY_OF_WEEK, weekdays, days)):
        if values.stepped_star and not other.star:
            listed = ",".join(map(str, sorted(values.numbers)))
            raise DefinitionError(
                field.name,
                values.text,
                "is a * beside a restricted day field, which some crons read as AND and some as OR",
                f"Write the numbers, which means OR: {listed}; or split the schedule.",
            )


def _plain(fields: list[Values], written: str) -> list[str]:
    minutes, hours, days, months, weekdays = fields
    last_day = max(LONGEST_MONTH[month - 1] for month in months.numbers)
    possible = frozenset(day for day in days.numbers if day <= last_day)
    if not possible and weekdays.star:
        raise DefinitionError(
            "expression",
            written,
            "never fires: no month in it has such a day",
            f"The longest month in it has {last_day} days; change the day of month or the month.",
        )
    any_day = days.star or not possible
    return [
        _list(MINUTE, minutes.numbers),
        _list(HOUR, hours.numbers),
        "*" if any_day else _list(DAY_OF_MONTH, possible, spelled=not weekdays.star),
        _list(MONTH, months.numbers),
        "*" if weekdays.star else _list(DAY_OF_WEEK, weekdays.numbers, spelled=not any_day),
    ]


def _list(field: Field, numbers: frozenset[int], *, spelled: bool = False) -> str:
    """The numbers as a list; all of them as `*`, unless `spelled`: a day field that is restricted to everything is
    OR-ed with the other one, and then fires every day."""
    if len(numbers) == field.size and not spelled:
        return "*"
    return ",".join(map(str, sorted(numbers)))
