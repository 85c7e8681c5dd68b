"""Entries that hypothesis draws: any kind, any field, few names, so that they agree and contradict each other often.

They come from a pool that is made once, by a generator with a fixed seed: drawing a history costs little, and a failing
one shrinks to the few entries that matter.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from duly.journal.entries import (
    ENTRY_CLASSES,
    CronRule,
    Definition,
    Entry,
    ErrorInfo,
    OncePerRule,
    OneShotRule,
    TornTail,
    TriggerRule,
)
from tests.projections.samples import CRON, DAY

OF_EACH_KIND: Final = 60
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
QUARTERS = [DAY + timedelta(minutes=15 * quarter) for quarter in range(36, 48)]
ODD_INSTANTS = [DAY + timedelta(days=3_650), DAY - timedelta(microseconds=1), FIRST, LAST]
RULES: list[TriggerRule] = [CRON, CronRule("0 3 * * *", "UTC"), OneShotRule(DAY), OncePerRule("day", "UTC")]
JSON: list[Any] = [None, True, 0, -(2**53) + 1, 1.5, "é\x00", [], [1, [2]], {}, {"a": {"b": None}}, {"": "x"}]
CHOICES: dict[str, list[Any]] = {
    "schedule_id": ["a", "a", "b", "never created"],
    "run_id": list(range(1, 12)),
    "attempt_id": list(range(1, 12)),
    "revision": [1, 1, 2, 3],
    "at_least": [1, 100],
}
BY_TYPE: dict[Any, Callable[[Random], Any]] = {
    int: lambda random: random.randrange(12),
    bool: lambda random: random.random() < 0.3,
    str: lambda random: random.choice(["", "eve", "key"]),
    timedelta: lambda random: random.choice([timedelta(), timedelta(minutes=5), timedelta(days=365), timedelta.max]),
    datetime: lambda random: random.choice(QUARTERS if random.random() < 0.9 else ODD_INSTANTS),
    Definition: lambda random: Definition(random.choice(RULES), random.choice("xy"), limits={"max_steps": 3}),
    ErrorInfo: lambda random: ErrorInfo("OSError", random.choice(["", "no"])),
    Any: lambda random: random.choice(JSON),
    type(None): lambda random: None,
    TornTail: lambda random: TornTail("00000001-0000000000000001.jsonl", 7, 3, "torn/x.bin"),
}


def entries() -> st.SearchStrategy[Entry]:
    """Any entry of any kind."""
    return st.sampled_from(POOL)


def histories(most: int = 40) -> st.SearchStrategy[list[Entry]]:
    """Entries in any order."""
    return st.lists(entries(), max_size=most)


def _any_of(kind: type[Entry], random: Random) -> Entry:
    hints = get_type_hints(kind)
    return kind(**{name: _field(name, hints[name], random) for name in kind.__struct_fields__})


def _field(name: str, kind: Any, random: Random) -> Any:
    chosen = CHOICES.get(name)
    if chosen is None:
        return _value(kind, random)
    optional = type(None) in get_args(kind)
    return None if optional and random.random() < 0.4 else random.choice(chosen)


def _value(kind: Any, random: Random) -> Any:
    if kind in BY_TYPE:
        return BY_TYPE[kind](random)
    members = get_args(kind)
    if get_origin(kind) is tuple:
        return tuple(_value(members[0], random) for _ in range(random.randrange(3)))
    if get_origin(kind) is dict:
        return {key: _value(members[1], random) for key in ["k", "ö"][: random.randrange(3)]}
    if all(isinstance(member, str) for member in members):
        return random.choice(members)
    return _value(random.choice(members), random)


def _pool() -> list[Entry]:
    random = Random(20_260_302)  # noqa: S311 - the same pool in every run
    return [_any_of(kind, random) for kind in ENTRY_CLASSES for _ in range(OF_EACH_KIND)]


POOL: Final = _pool()
