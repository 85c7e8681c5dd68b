"""Redaction: entries in which everything that a host or a person put in has another name, always the same one.

Rules kept here:
- what decisions and the calendar rest on stays as it is: instants, durations, triggers (expressions, zones, a host's
  source and its parameters), policies, reasons, versions and the words that duly itself writes;
- every other text, key and number of JSON is replaced, also in a field that is added one day: what is kept is listed,
  and what is replaced is not;
- equal values get equal names and different values different ones, of the same type, in the same shape of JSON; a name
  tells nothing of the length of what it stands for;
- names of schedules sort as the schedules did, because turns are taken in that order; an occurrence's id is made of its
  schedule's, also inside of an input, so that an input resolves to what is recorded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec

from duly.journal.entries import CronRule, Definition, EveryRule, Json, OncePerRule, OneShotRule, SourceRule
from duly.scheduler.decisions.recovery import AMBIGUOUS, AT_OPENING, EFFECTS

S = TypeVar("S", bound=msgspec.Struct)

OWN_WORDS: Final = frozenset({AT_OPENING, EFFECTS, AMBIGUOUS})
"""Texts that duly writes itself: the engine tells decisions apart by the first. None of them can be an id."""
CHANGED: Final = "changed"
"""The field in which an edit names the fields that it changed; anywhere else such a word is somebody's."""
TRIGGERS: Final = (CronRule, OneShotRule, OncePerRule, EveryRule, SourceRule)
VERSIONS: Final = frozenset({"duly", "croniter", "tzdata", "python"})
PROCESS: Final = frozenset({"pid"})
"""Whole numbers that are no quantity of a decision, and tell of the machine."""

_VERSION: Final = re.compile(r"\d{1,4}(\.\d{1,4}){0,3}[a-z0-9.+]{0,8}")
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Redactor:
    """Gives names, in the order in which values are met: the same entries are redacted in the same way."""

    def __init__(self, schedule_ids: Iterable[str], own_words: Iterable[str] = ()) -> None:
        ordered = sorted(set(schedule_ids))
        width = len(str(len(ordered)))
        self.schedules: dict[str, str] = {one: f"schedule-{number:0{width}d}" for number, one in enumerate(ordered, 1)}
        """The new name of each schedule: the key to what is redacted."""
        self._own = OWN_WORDS | set(own_words)
        self._texts: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._numbers: dict[tuple[type, float], float] = {}

    def redacted(self, value: S) -> S:
        """The entry, or a part of one, with its texts and JSON replaced."""
        if isinstance(value, TRIGGERS):
            return value
        hints = _hints(type(value))
        fields = {name: self._field(name, hints[name], getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)

    def _field(self, name: str, hint: Any, value: object) -> object:
        if hint is Any or hint == dict[str, Any]:
            return self._json(name, value)
        if isinstance(value, str):
            return value if _is_choice(hint, value) else self._text(name, value)
        if isinstance(value, msgspec.Struct | tuple | Mapping):
            return self._nested(name, cast("msgspec.Struct | tuple[object, ...] | Mapping[str, msgspec.Struct]", value))
        if name in PROCESS:
            return 1
        if value is None or isinstance(value, bool | int | datetime | timedelta):
            return value
        raise TypeError(f"nobody has said how {name} is redacted: {type(value).__name__}")

    def _nested(self, name: str, value: msgspec.Struct | tuple[object, ...] | Mapping[str, msgspec.Struct]) -> object:
        match value:
            case msgspec.Struct():
                return self.redacted(value)
            case tuple():
                return tuple(self._field(name, str, item) for item in value)
            case _:
                return {self._key(key): self.redacted(member) for key, member in value.items()}

    def _json(self, name: str, value: Json) -> Json:
        match value:
            case None | bool():
                return value
            case str():
                return self._text(name, value)
            case int() | float():
                return self._number(value)
            case dict():
                members = cast("dict[str, Json]", value)
                return {self._key(key): self._json(name, member) for key, member in members.items()}
            case _:
                return [self._json(name, item) for item in value]

    def _text(self, name: str, text: str) -> str:
        if (name == CHANGED and text in Definition.__struct_fields__) or (
            name in VERSIONS and _VERSION.fullmatch(text)
        ):
            return text
        if text in self.schedules:
            return self.schedules[text]
        if not text or text in self._own:
            return text
        schedule_id, at, instant = text.rpartition("@")
        if _INSTANT.fullmatch(instant) and (not at or schedule_id in self.schedules):
            return f"{self.schedules.get(schedule_id, '')}{at}{instant}"
        found = self._texts.get(text)
        if found is None:
            self._counts[name] += 1
            found = self._texts[text] = f"{name}-{self._counts[name]}"
        return found

    def _key(self, key: str) -> str:
        """Part by part: where an input is bound by a path with dots, its parts become keys of their own."""
        return ".".join(self._text("key", part) for part in key.split("."))

    def _number(self, number: float) -> float:
        known = (type(number), number)
        if known not in self._numbers:
            count = len(self._numbers) + 1
            self._numbers[known] = count if isinstance(number, int) else count + 0.5
        return self._numbers[known]


def _is_choice(hint: Any, value: str) -> bool:
    """Whether the text is one of those that the field's type lists."""
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    return any(_is_choice(one, value) for one in get_args(hint))


@cache
def _hints(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return get_type_hints(kind)
