"""Definitions: what a user writes about a schedule, checked and brought into the form that is recorded.

Rules: everything is checked before anything is journaled; a refusal names the field, the value and the remedy; what is
accepted is a value that shares nothing mutable with what was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, TypedDict, cast, get_args

import msgspec

from duly.journal import UnencodableEntry, frozen_json
from duly.journal.entries import Definition, Expression, Json, Misfire, Overlap, TriggerRule
from duly.scheduler.errors import DefinitionError
from duly.scheduler.inputs import parse_input
from duly.scheduler.sources import OccurrenceSource
from duly.scheduler.wording import describe_error, is_encodable

_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,200}", re.ASCII)
_LONGEST_TARGET: Final = 200
LONGEST_WORDS: Final = 40_000
"""Characters that an actor, a note, a request key or a reason may have: encoded, that stays below 256 KiB."""


class PolicyFields(TypedDict, total=False):
    """What `create`, `declare` and `edit` take beside the trigger and the target."""

    target_revision: str | None
    overlap: Overlap
    max_active_runs: int | None
    misfire: Misfire
    lateness: timedelta
    input: Mapping[str, object]
    limits: Mapping[str, object]


class DefinitionFields(PolicyFields, total=False):
    """All fields of a definition."""

    trigger: OccurrenceSource
    target: str


FIELDS: Final = Definition.__struct_fields__


def parse_definition(fields: DefinitionFields, base: Definition | None = None) -> Definition:
    """The definition of these fields, over those of `base` where they are left out. Raises DefinitionError."""
    if not isinstance(fields, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all typed
        raise DefinitionError("schedule", fields, "is no mapping", "Give a mapping of create()'s arguments.")
    given = cast("dict[str, object]", fields)
    for name, value in given.items():
        if name not in FIELDS:
            raise DefinitionError(name, value, "is no field of a schedule", f"There are: {', '.join(FIELDS)}.")
    parsed: dict[str, Any] = {name: _PARSERS[name](value) for name, value in given.items()}
    if base is None:
        missing = [name for name in ("trigger", "target") if name not in parsed]
        if missing:
            raise DefinitionError(missing[0], None, "is missing", "Every schedule has a trigger and a target.")
        definition = Definition(**parsed)
    else:
        definition = msgspec.structs.replace(base, **parsed)
    _check_limit(definition)
    # As the journal gives it back, so that a live state and a replayed one hold the very same value.
    return msgspec.json.decode(msgspec.json.encode(definition), type=Definition)


def check_schedule_id(schedule_id: object) -> str:
    """The id, if it is one. Raises DefinitionError."""
    if isinstance(schedule_id, str) and _ID.fullmatch(schedule_id):
        return schedule_id
    raise DefinitionError(
        "schedule_id", schedule_id, "is not a schedule id", "Use 1 to 200 of the characters A-Z a-z 0-9 . _ : -"
    )


def check_words(field: str, words: object) -> str:
    """A short text for people. Raises DefinitionError."""
    if isinstance(words, str) and len(words) <= LONGEST_WORDS and is_encodable(words):
        return words
    raise DefinitionError(field, words, "is not a short text", f"Give a str of at most {LONGEST_WORDS:,} characters.")


def check_count(field: str, count: object) -> None:
    """Raises DefinitionError for what is no whole number from 1 to 1,000,000."""
    if type(count) is not int or not 1 <= count <= 1_000_000:
        raise DefinitionError(field, count, "is not a count", "Give a whole number from 1 to 1,000,000.")


def check_json(field: str, value: object) -> Json:
    """A copy of the value as strict JSON of at most 256 KiB. Raises DefinitionError."""
    try:
        return frozen_json(value, name=field)
    except UnencodableEntry as error:
        problem = f"cannot be recorded: {error}"
        raise DefinitionError(field, value, problem, "Give JSON of at most 256 KiB.") from error
    except Exception as error:  # a subclass of dict or list may do anything when it is looked into
        problem = f"cannot be looked into: {describe_error(error)}"
        raise DefinitionError(field, value, problem, "Give plain dicts and lists.") from error


def parse_limits(limits: object) -> dict[str, Json]:
    """Checked limits: `max_steps` ≥ 1, `timeout` > 0 seconds, and the host's own. Raises DefinitionError."""
    if not isinstance(limits, Mapping):
        raise DefinitionError("limits", limits, "is not a mapping", "Give a dict of names to JSON values.")
    checked = cast("dict[str, Json]", check_json("limits", dict(cast("Mapping[str, object]", limits))))
    steps = checked.get("max_steps", 1)
    if type(steps) is not int or steps < 1:
        raise DefinitionError("limits.max_steps", steps, "is not a count", "Give a whole number of at least 1.")
    timeout = checked.get("timeout", 1)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
        raise DefinitionError("limits.timeout", timeout, "is not a time", "Give seconds, more than 0.")
    return checked


def _parse_input(bindings: object) -> dict[str, Expression]:
    return parse_input(cast("Mapping[str, object]", bindings))


def _parse_trigger(trigger: object) -> TriggerRule:
    rule = getattr(trigger, "rule", None)
    if isinstance(rule, get_args(TriggerRule)):
        return cast("TriggerRule", rule)
    raise DefinitionError(
        "trigger",
        trigger,
        "is not a trigger that can be recorded",
        "Give Cron, OneShot, OncePer, Every, or a source of your own that has a `rule`.",
    )


def parse_target(target: object) -> str:
    """The name, if it can be a target's. Raises DefinitionError."""
    if isinstance(target, str) and 0 < len(target) <= _LONGEST_TARGET and is_encodable(target):
        return target
    remedy = f"Give a name of 1 to {_LONGEST_TARGET} characters."
    raise DefinitionError("target", target, "is not a target name", remedy)


def _parse_target_revision(revision: object) -> str | None:
    return None if revision is None else check_words("target_revision", revision)


def _parse_overlap(overlap: object) -> Overlap:
    if isinstance(overlap, str) and overlap in get_args(Overlap):
        return cast("Overlap", overlap)
    raise DefinitionError("overlap", overlap, "is no overlap policy", 'Give "skip" or "parallel".')


def _parse_misfire(misfire: object) -> Misfire:
    if isinstance(misfire, str) and misfire in get_args(Misfire):
        return cast("Misfire", misfire)
    raise DefinitionError("misfire", misfire, "is no misfire policy", 'Give "latest" or "skip".')


def _parse_max_active_runs(limit: object) -> int | None:
    if limit is None or (type(limit) is int and 1 <= limit <= 1_000_000):
        return limit
    raise DefinitionError("max_active_runs", limit, "is not a limit", "Give a whole number of at least 1.")


def _parse_lateness(lateness: object) -> timedelta:
    if isinstance(lateness, timedelta) and timedelta() <= lateness <= timedelta(days=36_500):
        return lateness
    remedy = "Give a timedelta from 0 to 36,500 days."
    raise DefinitionError("lateness", lateness, "is not an allowance", remedy)


_PARSERS: Final[dict[str, Callable[[object], object]]] = {
    "trigger": _parse_trigger,
    "target": parse_target,
    "target_revision": _parse_target_revision,
    "overlap": _parse_overlap,
    "max_active_runs": _parse_max_active_runs,
    "misfire": _parse_misfire,
    "lateness": _parse_lateness,
    "input": _parse_input,
    "limits": parse_limits,
}


def _check_limit(definition: Definition) -> None:
    if definition.overlap == "parallel" and definition.max_active_runs is None:
        raise DefinitionError(
            "max_active_runs", None, 'is missing beside overlap="parallel"', "Say how many runs may be active at once."
        )
    if definition.overlap == "skip" and definition.max_active_runs is not None:
        raise DefinitionError(
            "max_active_runs",
            definition.max_active_runs,
            'goes only with overlap="parallel"',
            'Leave it out, or write overlap="parallel".',
        )
