"""Strict JSON: what a host hands over is checked and copied before it may enter an entry.

Rules kept here: finite floats, integers below 2**53, string keys, no lone surrogates, at most 32 levels; tuples become
lists; anything else is refused with the place where it stands. The copy shares nothing mutable with the original, so
that what was decided cannot change afterwards.
"""

from __future__ import annotations

from math import isfinite
from typing import cast

import msgspec

from duly.journal.entries import Json
from duly.journal.errors import UnencodableEntry

MAX_DEPTH = 32
MAX_INTEGER = 2**53
JSON_BYTES = 256 * 1024

_encoder = msgspec.json.Encoder()


def frozen_json(value: object, *, name: str, limit: int = JSON_BYTES) -> Json:
    """A deep copy of `value` as strict JSON. `name` is what the error calls it; `limit` bounds its encoded size."""
    copy = _copy(value, name, 0)
    size = len(_encoder.encode(copy))
    if size > limit:
        raise UnencodableEntry(
            f"{name} takes {size:,} bytes as JSON, and {limit:,} is the limit",
            hint="Store it elsewhere and hand over a reference",
        )
    return copy


def require_json(value: object, name: str, *, depth: int = MAX_DEPTH) -> None:
    """Raises UnencodableEntry unless `value` is JSON of at most `depth` levels."""
    _copy(value, name, MAX_DEPTH - depth)


def within_bounds(value: Json, levels: int = MAX_DEPTH) -> bool:
    """Whether decoded JSON keeps the bounds on integers and nesting: what decoding does not see to. Quick, and mute."""
    kind = cast("type[object]", type(value))
    if kind is str or value is None or kind is float or kind is bool:
        return True
    if kind is int:
        return bool(-MAX_INTEGER < value < MAX_INTEGER)
    if levels == 0:
        return False
    for member in value.values() if kind is dict else value:
        if type(member) is not str and not within_bounds(member, levels - 1):
            return False
    return True


def _copy(value: object, place: str, depth: int) -> Json:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(value, place)
    if isinstance(value, int):
        return _integer(value, place)
    if isinstance(value, float):
        return _float(value, place)
    if isinstance(value, (list, tuple, dict)):
        if depth >= MAX_DEPTH:
            raise UnencodableEntry(
                f"{place} is nested deeper than {MAX_DEPTH} levels", hint="Flatten it, or hand it over as a string"
            )
        if isinstance(value, dict):
            return _object(cast("dict[object, object]", value), place, depth)
        items = cast("list[object]", value)
        return [_copy(item, f"{place}[{index}]", depth + 1) for index, item in enumerate(items)]
    raise UnencodableEntry(
        f"{place} is a {type(value).__name__}, which JSON does not have",
        hint="Use None, bool, int, float, str, list and dict",
    )


def _object(value: dict[object, object], place: str, depth: int) -> dict[str, Json]:
    copy: dict[str, Json] = {}
    for key, member in value.items():
        if not isinstance(key, str):
            raise UnencodableEntry(
                f"{place} has the key {key!r}, which is not a string", hint="Make the key a string, as JSON has it"
            )
        copy[_text(key, f"a key of {place}")] = _copy(member, f"{place}.{key}", depth + 1)
    return copy


def _text(value: str, place: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UnencodableEntry(
            f"{place} holds a lone surrogate: {value!r}"[:200],
            hint='Decode the text with errors="replace", or hand over the bytes as base64',
        ) from None
    return str(value)


def _integer(value: int, place: str) -> int:
    if not -MAX_INTEGER < value < MAX_INTEGER:
        raise UnencodableEntry(
            f"{place} is an integer of 2**53 or more, which many JSON readers round", hint="Use a string"
        )
    return int(value)


def _float(value: float, place: str) -> float:
    if not isfinite(value):
        raise UnencodableEntry(f"{place} is {value}, which JSON does not have", hint="Use None or a string")
    return float(value)
