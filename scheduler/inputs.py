"""Inputs: what a schedule binds to its target's parameters, checked at definition and resolved at admission.

Rules: an input is strict JSON in which `occurrence.scheduled_at` and its like may stand; no arithmetic, no formats, no
references to other runs. Everything is checked when it is defined, one traversal resolves it, and what comes out is
frozen in the admission.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Protocol, cast

import msgspec

from duly.journal import UnencodableEntry, frozen_json
from duly.journal.entries import ArrayOf, Expression, FromOccurrence, Json, Literally, ObjectOf
from duly.projections.runs import occurrence_id
from duly.scheduler.errors import DefinitionError
from duly.scheduler.wording import is_encodable

MAX_DEPTH: Final = 32
MAX_NODES: Final = 1_000
MAX_BYTES: Final = 64 * 1024


_OCCURRENCE_FIELDS: Final = ("schedule_id", "occurrence_id", "scheduled_at")


class InputUnresolved(ValueError):
    """An input cannot be resolved for this occurrence."""


class _OccurrenceFields:
    """Placeholders for what an input may take from the occurrence that is being admitted."""

    schedule_id: Final = FromOccurrence("schedule_id")
    occurrence_id: Final = FromOccurrence("occurrence_id")
    scheduled_at: Final = FromOccurrence("scheduled_at")


occurrence: Final = _OccurrenceFields()
"""`occurrence.schedule_id`, `occurrence.occurrence_id`, `occurrence.scheduled_at`: to be used inside `input=`."""


class SourceResolver(Protocol):
    """Where the references inside an input get their values."""

    def value_of(self, reference: FromOccurrence) -> Json:
        """The value that the reference stands for."""
        ...


class OccurrenceResolver(msgspec.Struct, frozen=True):
    """Resolves references to one occurrence; `scheduled_at` becomes `YYYY-MM-DDTHH:MM:SSZ`."""

    schedule_id: str
    scheduled_at: datetime

    def value_of(self, reference: FromOccurrence) -> Json:
        """The field of the occurrence."""
        match reference.field:
            case "schedule_id":
                return self.schedule_id
            case "occurrence_id":
                return occurrence_id(self.schedule_id, self.scheduled_at)
            case "scheduled_at":
                return f"{self.scheduled_at:%Y-%m-%dT%H:%M:%SZ}"


class _NoOccurrence:
    def value_of(self, reference: FromOccurrence) -> Json:
        raise InputUnresolved(f"the input refers to occurrence.{reference.field}, and a manual run has no occurrence")


def parse_input(bindings: Mapping[str, object], field: str = "input") -> dict[str, Expression]:
    """The expressions of what a user wrote as `input=`. Raises DefinitionError."""
    if not isinstance(bindings, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all typed
        raise DefinitionError(field, bindings, "is not a mapping", "Give a dict of parameter paths to JSON values.")
    for path in bindings:
        _check_path(path, field)
    _check_overlap(sorted(bindings), field)
    budget = _Budget(field)
    expressions = {path: _expression(value, f"{field}.{path}", 1, budget) for path, value in bindings.items()}
    size = len(msgspec.json.encode(expressions))
    if size > MAX_BYTES:
        raise DefinitionError(field, f"{size:,} bytes", f"is over {MAX_BYTES:,} bytes", "Hand over a reference.")
    _check_resolvable(expressions, bindings, field)
    return expressions


def _check_resolvable(expressions: Mapping[str, Expression], bindings: object, field: str) -> None:
    """Resolves it once, for the longest id there can be: what cannot resolve is refused now, not skipped later."""
    try:
        resolve_input(expressions, "x" * 200, datetime(2000, 1, 1, tzinfo=UTC))
    except InputUnresolved as error:
        raise DefinitionError(field, bindings, f"can never resolve: {error}", "Flatten or shorten it.") from error


def resolve_input(bindings: Mapping[str, Expression], schedule_id: str, scheduled_at: datetime) -> dict[str, Json]:
    """The input of one occurrence; paths with dots become nested objects. Raises InputUnresolved."""
    return resolve_with(bindings, OccurrenceResolver(schedule_id, scheduled_at))


def resolve_with(bindings: Mapping[str, Expression], resolver: SourceResolver) -> dict[str, Json]:
    """The input with its references resolved. Raises InputUnresolved."""
    resolved: dict[str, Json] = {}
    for path, expression in bindings.items():
        *parents, name = path.split(".")
        inner = resolved
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[name] = _resolve(expression, resolver)
    if not resolved:
        return resolved
    try:
        return cast("dict[str, Json]", frozen_json(resolved, name="the input"))
    except UnencodableEntry as error:
        raise InputUnresolved(str(error)) from error


def resolve_unbound(bindings: Mapping[str, Expression]) -> dict[str, Json]:
    """The input of a run that belongs to no occurrence. Raises InputUnresolved if it refers to one."""
    return resolve_with(bindings, _NoOccurrence())


def _resolve(expression: Expression, resolver: SourceResolver) -> Json:
    match expression:
        case Literally(value):
            return value
        case FromOccurrence():
            return resolver.value_of(expression)
        case ArrayOf(items):
            return [_resolve(item, resolver) for item in items]
        case ObjectOf(members):
            return {name: _resolve(member, resolver) for name, member in members.items()}


class _Budget:
    def __init__(self, field: str) -> None:
        self.field = field
        self.nodes = 0

    def spend(self, place: str, depth: int) -> None:
        self.nodes += 1
        if depth > MAX_DEPTH:
            raise DefinitionError(place, "…", f"is nested deeper than {MAX_DEPTH} levels", "Flatten it.")
        if self.nodes > MAX_NODES:
            raise DefinitionError(self.field, f"{self.nodes} values", f"is over {MAX_NODES:,} values", "Shorten it.")


def _expression(value: object, place: str, depth: int, budget: _Budget) -> Expression:
    budget.spend(place, depth)
    if isinstance(value, FromOccurrence):
        return _reference(value, place)
    if isinstance(value, Literally | ArrayOf | ObjectOf):
        return _expression(_written(value), place, depth, budget)
    if isinstance(value, Mapping):
        return _object(cast("Mapping[object, object]", value), place, depth, budget)
    if isinstance(value, list | tuple):
        return _array(cast("list[object]", value), place, depth, budget)
    return _literal(value, place)


def _object(value: Mapping[object, object], place: str, depth: int, budget: _Budget) -> Expression:
    members = {
        _key(key, place): _expression(member, f"{place}.{key}", depth + 1, budget) for key, member in value.items()
    }
    if all(isinstance(member, Literally) for member in members.values()):
        return _literal({key: cast("Literally", member).value for key, member in members.items()}, place)
    return ObjectOf(members)


def _array(value: list[object], place: str, depth: int, budget: _Budget) -> Expression:
    items = [_expression(item, f"{place}[{index}]", depth + 1, budget) for index, item in enumerate(value)]
    if all(isinstance(item, Literally) for item in items):
        return _literal([cast("Literally", item).value for item in items], place)
    return ArrayOf(tuple(items))


def _written(expression: Literally | ArrayOf | ObjectOf) -> object:
    """What a user would have written for the expression."""
    match expression:
        case Literally(value):
            return value
        case ArrayOf(items):
            return items
        case ObjectOf(members):
            return members


def _reference(reference: FromOccurrence, place: str) -> FromOccurrence:
    if reference.field in _OCCURRENCE_FIELDS:
        return reference
    raise DefinitionError(
        place, reference.field, "is no field of an occurrence", f"There are: {', '.join(_OCCURRENCE_FIELDS)}."
    )


def _key(key: object, place: str) -> str:
    if isinstance(key, str):
        return key
    raise DefinitionError(place, key, "is a key that is no string", "Give strings as the keys of objects.")


def _literal(value: object, place: str) -> Literally:
    try:
        return Literally(frozen_json(value, name=place))
    except UnencodableEntry as error:
        remedy = "Give None, bool, int, float, str, list or dict."
        raise DefinitionError(place, value, f"is not JSON: {error}", remedy) from error


def _check_path(path: object, field: str) -> None:
    if not isinstance(path, str) or not all(path.split(".")) or not is_encodable(path):
        raise DefinitionError(field, path, "is not a parameter path", "Write names joined by dots, as in 'report.day'.")


def _check_overlap(paths: list[str], field: str) -> None:
    known = set(paths)
    for path in paths:
        parts = path.split(".")
        for length in range(1, len(parts)):
            parent = ".".join(parts[:length])
            if parent in known:
                raise DefinitionError(
                    field, path, f"lies inside {parent!r}, which is bound as well", f"Bind {parent!r} or its parts."
                )
