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
from typing import Any, Literal

import msgspec

from duly.journal.entries import (
    ENTRY_CLASSES,
    Entry,
    OccurrenceAdmitted,
    RunAdmittedManually,
    RunCompleted,
    RunInterrupted,
    RunNoted,
    ScheduleCreated,
    ScheduleEdited,
    SourceRule,
    kind_of,
)
from duly.journal.errors import UnencodableEntry
from duly.journal.format import MAX_LINE
from duly.journal.strict import MAX_DEPTH, check_json, within_bounds

MAX_BATCH = MAX_LINE - 256
"""What an encoded batch may take: the envelope around it needs less than the rest of the line."""

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

_JSON_FIELDS: dict[type[Any], tuple[str, ...]] = {
    OccurrenceAdmitted: ("environment", "input", "limits"),
    RunAdmittedManually: ("environment", "input", "limits"),
    RunNoted: ("data",),
    RunCompleted: ("result",),
    RunInterrupted: ("checkpoint",),
    ScheduleCreated: ("definition",),
    ScheduleEdited: ("definition",),
}


def encode_batch(entries: tuple[Entry, ...]) -> bytes:
    """The batch as a JSON array. UnencodableEntry if it would not read back equal, or is too large."""
    if not entries:
        raise UnencodableEntry("an empty batch cannot be written")
    try:
        data = _encoder.encode(entries)
        twins = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError, ValueError, OverflowError) as error:
        raise UnencodableEntry(f"the batch cannot be encoded: {error}") from error
    if len(data) > MAX_BATCH:
        raise UnencodableEntry(
            f"the batch takes {len(data):,} bytes, and {MAX_BATCH:,} is the limit of a line",
            hint="Append it in smaller batches",
        )
    if twins != entries:
        raise _differing(entries, twins)
    for twin in twins:
        if type(twin) in _JSON_FIELDS:
            _check_fields(twin)
    return data


def _check_fields(entry: Entry) -> None:
    for name in _JSON_FIELDS[type(entry)]:
        value: Any = getattr(entry, name)
        if name != "definition":
            if value and not within_bounds(value):
                check_json(value, f"{kind_of(entry)}.{name}")
        elif value.input or value.limits or type(value.trigger) is SourceRule:
            # An expression takes two levels of the record for each of its own, so the record may go that much deeper.
            check_json(msgspec.to_builtins(value), f"{kind_of(entry)}.definition", depth=3 * MAX_DEPTH)


def _differing(entries: tuple[Entry, ...], twins: tuple[Entry, ...]) -> UnencodableEntry:
    for entry, twin in zip(entries, twins, strict=True):
        for name in entry.__struct_fields__:
            if getattr(entry, name) != getattr(twin, name):
                value = getattr(entry, name)
                return UnencodableEntry(
                    f"{kind_of(entry)}.{name} would not read back as what it is: {value!r}"[:400],
                    hint="Only finite numbers, strings, lists and dicts with string keys are JSON",
                )
    return UnencodableEntry("the batch would not read back as what it is")
