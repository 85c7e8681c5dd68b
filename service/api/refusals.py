"""Errors, as they travel: a code, the words, and data from which a client makes the same error again.

Rules: an error of duly keeps its class and its attributes, read off the constructor of the class; any other exception
is the server's own fault, and nothing of it is told; codes are never used for another error.
"""

from __future__ import annotations

import inspect
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypedDict, cast

import msgspec

from duly.journal.entries import ErrorInfo, Json
from duly.journal.errors import (
    Error,
    ForeignJournal,
    JournalCorrupt,
    JournalError,
    JournalLocked,
    JournalPoisoned,
    LockUnsupported,
    UnconfirmedGone,
    UnencodableEntry,
    UnreadableJournal,
)
from duly.projections import BadCursor, NotRecorded
from duly.scheduler.errors import (
    Blocked,
    ClockUnusable,
    DefinitionError,
    DuplicateSchedule,
    NoTaskSlot,
    RevisionConflict,
    SchedulerClosed,
    SchedulerError,
    StaleAttempt,
    TriggerError,
    UnknownRun,
    UnknownSchedule,
    WrongRunState,
)
from duly.scheduler.wording import describe_value
from duly.service.api.wire import plain

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REPLY_TOO_LARGE: Final = -32001
"""The reply to a batch grew too long: this call of it was not made."""
NOT_LET_IN: Final = -32002
"""There are too many requests: this one was not looked at. The same one may be let in later."""

CODES: Final = MappingProxyType(
    {
        SchedulerError: 1000,
        DefinitionError: 1001,
        UnknownSchedule: 1002,
        DuplicateSchedule: 1003,
        RevisionConflict: 1004,
        UnknownRun: 1005,
        WrongRunState: 1006,
        NoTaskSlot: 1007,
        StaleAttempt: 1008,
        Blocked: 1009,
        ClockUnusable: 1010,
        SchedulerClosed: 1011,
        TriggerError: 1012,
        BadCursor: 1013,
        NotRecorded: 1014,
        JournalError: 1100,
        JournalPoisoned: 1101,
        JournalLocked: 1102,
        LockUnsupported: 1103,
        JournalCorrupt: 1104,
        ForeignJournal: 1105,
        UnreadableJournal: 1106,
        UnconfirmedGone: 1107,
        UnencodableEntry: 1108,
    }
)
_CLASSES: Final[dict[str, type[Error]]] = {known.__name__: known for known in CODES}
_LONGEST_VALUE: Final = 4_096


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """The `error` of a reply: a code of JSON-RPC's or of `CODES`, words for people, data for programs."""

    code: int
    message: str
    data: dict[str, Json] | None = None


class _Recorded(TypedDict):
    state: str
    result: Json
    error: ErrorInfo | None
    ended_at: datetime | None


def refusal_of(error: Error, code: int | None = None) -> Refusal:
    """The error as it travels."""
    known = next((one for one in type(error).__mro__ if one in CODES), None)
    if known is None:
        return Refusal(code or INTERNAL_ERROR, str(error))
    data = {name: _told(getattr(error, name)) for name in attributes_of(known) if hasattr(error, name)}
    words = getattr(error, "message", str(error))
    return Refusal(code or CODES[known], str(error), {"error": known.__name__, "message": words, **data})


def error_of(refusal: Refusal) -> Error | None:
    """The error that the refusal tells of, or None if it is none of duly's."""
    data = dict(refusal.data or {})
    known = _CLASSES.get(str(data.pop("error", "")))
    if known is None:
        return None
    message = str(data.pop("message", refusal.message))
    names = attributes_of(known)
    fields = {name: _understood(name, value) for name, value in data.items() if name in names}
    if known is DefinitionError:
        refused = DefinitionError(*(cast("Any", fields.get(name)) for name in names))
        refused.message = message
        refused.args = (message,)
        return refused
    return known(message, **fields)


def attributes_of(kind: type[Error]) -> tuple[str, ...]:
    """What errors of this class carry beside their message: what its constructor takes."""
    if not inspect.isfunction(kind.__init__):  # it is that of a built-in exception, which takes anything
        return ()
    return tuple(name for name in inspect.signature(kind).parameters if name != "message")


def _told(value: object) -> Json:
    if isinstance(value, Path):
        return str(value)
    try:
        encoded = msgspec.json.encode(value, enc_hook=plain)
    except (TypeError, ValueError, RecursionError):
        return describe_value(value)[:_LONGEST_VALUE]
    return msgspec.json.decode(encoded) if len(encoded) <= _LONGEST_VALUE else describe_value(value)[:_LONGEST_VALUE]


def _understood(name: str, value: Json) -> object:
    if name == "recorded" and value is not None:
        return msgspec.convert(value, _Recorded)
    if name in ("instant", "reading") and value is not None:
        return msgspec.convert(value, datetime)
    return value
