"""Entries to bytes and back.

Rules kept here:
- What is written can be read back, and reads back equal: every batch is decoded again before it is accepted. So no
  NaN that turns into null, no set or tuple that turns into an array, no key that turns into a string and no field of a
  wrong type ever reaches a disk.
- Unknown fields are tolerated when decoding (a newer version may have added them); an unknown kind is not.
- One encoder and decoder for whole batches: the cost per entry stays in C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

import msgspec

from duly.journal.entries import ENTRY_CLASSES, Entry, kind_of
from duly.journal.errors import UnencodableEntry
from duly.journal.format import MAX_LINE
from duly.journal.strict import MAX_DEPTH, require_json, within_bounds

MAX_BATCH = MAX_LINE - 256
"""What an encoded batch may take: the envelope around it needs less than the rest of the line."""

_JSON_ONLY = "Only finite numbers, strings, lists and dicts with string keys are JSON, and instants need a time zone"

KINDS: frozenset[str] = frozenset(kind_of(each) for each in ENTRY_CLASSES)

_Outlined: Any = msgspec.defstruct("_Outlined", [("kind", Literal[tuple(sorted(KINDS))])], gc=False)


class Line(msgspec.Struct, gc=False):
    """A batch line, decoded."""

    s: int
    d: int
    t: int
    e: tuple[Entry, ...]


class Outline(msgspec.Struct, gc=False):
    """A batch line of which only the kinds of its entries are looked at: for counting and checking at speed."""

    s: int
    d: int
    t: int
    e: list[Any]


class _TypedOutline(Outline, gc=False):
    e: list[_Outlined]  # pyright: ignore[reportGeneralTypeIssues, reportInvalidTypeForm]  # the kinds are known at run time


class RawLine(msgspec.Struct, gc=False):
    """A batch line whose entries stay bytes: for copying, whatever their kind."""

    s: int
    d: int
    t: int
    e: list[msgspec.Raw]


decode_line: Callable[[bytes], Line] = msgspec.json.Decoder(Line).decode
decode_outline: Callable[[bytes], Outline] = msgspec.json.Decoder(_TypedOutline).decode
decode_raw: Callable[[bytes], RawLine] = msgspec.json.Decoder(RawLine).decode

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(tuple[Entry, ...])


class JsonFields(NamedTuple):
    """Which fields of a class can hold JSON of a host, by their annotations."""

    plain: tuple[str, ...]
    """JSON, or an object of it."""
    nested: tuple[str, ...]
    """A struct, or some of them, with JSON somewhere inside."""


def json_fields(kind: type[msgspec.Struct]) -> JsonFields:
    """Read off the annotations: a kind or a field that is added is checked without anybody thinking of it."""
    found = {name: hint for name, hint in get_type_hints(kind).items() if _reaches_json(hint, frozenset())}
    plain = tuple(name for name, hint in found.items() if hint in (Any, dict[str, Any]))
    return JsonFields(plain, tuple(name for name in found if name not in plain))


def _reaches_json(hint: Any, seen: frozenset[type]) -> bool:
    if hint is Any:
        return True
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        if hint in seen:
            return False
        return any(_reaches_json(each, seen | {hint}) for each in get_type_hints(hint).values())
    return any(_reaches_json(each, seen) for each in get_args(hint))


_JSON_FIELDS: dict[type[Any], JsonFields] = {}
"""Of the kinds that were written: reading the annotations of all of them would be a tenth of an import."""


def encode_batch(entries: tuple[Entry, ...]) -> bytes:
    """The batch as a JSON array. UnencodableEntry if it would not read back equal, or is too large."""
    if not entries:
        raise UnencodableEntry("an empty batch cannot be written", hint="Append at least one entry")
    try:
        data = _encoder.encode(entries)
        twins = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError, ValueError, OverflowError) as error:
        raise UnencodableEntry(f"the batch cannot be encoded: {error}", hint=_JSON_ONLY) from error
    if len(data) > MAX_BATCH:
        raise UnencodableEntry(
            f"the batch takes {len(data):,} bytes, and {MAX_BATCH:,} is the limit of a line",
            hint="Append it in smaller batches",
        )
    if twins != entries:
        raise _differing(entries, twins)
    for twin in twins:
        fields = _JSON_FIELDS.get(type(twin))
        if fields is None:
            fields = _JSON_FIELDS[type(twin)] = json_fields(type(twin))
        if fields.plain or fields.nested:
            _check_fields(twin, fields)
    return data


def _check_fields(entry: Entry, fields: JsonFields) -> None:
    for name in fields.plain:
        value: Any = getattr(entry, name)
        if value and not within_bounds(value):
            require_json(value, f"{kind_of(entry)}.{name}")
    for name in fields.nested:
        value = msgspec.to_builtins(getattr(entry, name))
        # An expression takes two levels of the record for each of its own, so the record may go that much deeper.
        if not within_bounds(value, 3 * MAX_DEPTH):
            require_json(value, f"{kind_of(entry)}.{name}", depth=3 * MAX_DEPTH)


def _differing(entries: tuple[Entry, ...], twins: tuple[Entry, ...]) -> UnencodableEntry:
    for entry, twin in zip(entries, twins, strict=True):
        for name in entry.__struct_fields__:
            if getattr(entry, name) != getattr(twin, name):
                value = getattr(entry, name)
                return UnencodableEntry(
                    f"{kind_of(entry)}.{name} would not read back as what it is: {value!r}"[:400],
                    hint=_JSON_ONLY,
                )
    return UnencodableEntry("the batch would not read back as what it is", hint=_JSON_ONLY)
