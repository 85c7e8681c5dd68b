"""What travels: the forms of values that are no plain data, there and back.

Rules: instants, durations, triggers, inputs and entries have the form that the journal gives them; a result of a run is
told apart by its `kind`; a trigger is its rule, and becomes a trigger again only where somebody can evaluate it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import GenericAlias, NoneType, UnionType
from typing import Any, Final, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from duly.journal import entries
from duly.journal.entries import (
    ArrayOf,
    ErrorInfo,
    FromOccurrence,
    Json,
    Literally,
    ObjectOf,
    SourceRule,
    TriggerRule,
)
from duly.projections import Schedule
from duly.scheduler.decisions.runs import Completed, Failed, Interrupted, error_info
from duly.scheduler.definitions import check_json
from duly.scheduler.errors import DefinitionError, TriggerError
from duly.scheduler.inputs import parse_input
from duly.scheduler.sources import OccurrenceSource, SourceFactory, Unevaluable
from duly.scheduler.triggers import trigger_of

Bindings: TypeAlias = dict[str, Literally | ArrayOf | ObjectOf | FromOccurrence]
Sources: TypeAlias = Mapping[str, SourceFactory]


class CompletedForm(Completed, frozen=True, tag_field="kind", tag="completed"):
    """A success, as it travels."""


class FailedForm(msgspec.Struct, frozen=True, tag_field="kind", tag="failed"):
    """A failure, as it travels."""

    run_id: int
    attempt_id: int | None = None
    error: ErrorInfo | str = ""


class InterruptedForm(Interrupted, frozen=True, tag_field="kind", tag="interrupted"):
    """An interruption, as it travels."""


ResultForm: TypeAlias = CompletedForm | FailedForm | InterruptedForm

ScheduleForm: Final = msgspec.defstruct(
    "Schedule",
    [
        (name, TriggerRule if name == "trigger" else hint)
        for name, hint in get_type_hints(Schedule, localns=vars(entries)).items()
    ],
    kw_only=True,
)
"""A schedule as it travels: with its rule for a trigger."""

_BY_NAME: Final[dict[str, Any]] = {
    "trigger": TriggerRule,
    "input": Bindings,
    "limits": dict[str, Json],
    "error": ErrorInfo | str,
    "results": tuple[ResultForm, ...],
}


def form_of_parameter(name: str, hint: Any) -> Any:
    """The type that a parameter of this name and type travels as."""
    if name not in _BY_NAME:
        return hint
    form = _BY_NAME[name]
    return form | None if NoneType in get_args(hint) else form


def tuple_of(form: Any) -> Any:
    """The type of tuples of this form."""
    return GenericAlias(tuple, (form, ...))


def form_of(hint: Any) -> Any:
    """The type that a result of this type travels as."""
    if get_origin(hint) is Schedule:
        return ScheduleForm
    if get_origin(hint) is tuple:
        return tuple_of(form_of(get_args(hint)[0]))
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(map(form_of, get_args(hint)))]  # noqa: UP007 - the members are values here
    return hint


def plain(value: object) -> Any:
    """What a value of ours, inside of another one, is encoded as; for msgspec. Raises TypeError."""
    rule = getattr(value, "rule", None)
    if isinstance(rule, get_args(TriggerRule)):
        return rule
    raise TypeError(f"{type(value).__name__} has no form")


# What a client sends


def sent(name: str, value: object) -> object:
    """The argument `name` in the form in which it travels. Raises DefinitionError."""
    if name in _JSON and value is not None:
        return check_json(name, value)
    if name in _SENT and value is not None:
        return _SENT[name](value)
    return value


def _sent_trigger(trigger: object) -> object:
    try:
        return plain(trigger)
    except TypeError:
        remedy = "Give Cron, OneShot, OncePer, Every, or a source of your own that has a `rule`."
        raise DefinitionError("trigger", trigger, "is not a trigger that can be recorded", remedy) from None


def _sent_result(result: object) -> ResultForm:
    match result:
        case Completed(run_id, attempt_id, value):
            return CompletedForm(run_id, attempt_id, check_json("result", value))
        case Failed(run_id, attempt_id, error):
            return FailedForm(run_id, attempt_id, _sent_error(error))
        case Interrupted(run_id, attempt_id, checkpoint):
            return InterruptedForm(run_id, attempt_id, check_json("checkpoint", checkpoint))
        case _:
            raise DefinitionError("result", result, "is no result", "Give Completed, Failed or Interrupted.")


def _sent_results(results: Iterable[object]) -> tuple[ResultForm, ...]:
    return tuple(map(_sent_result, results))


def _sent_schedules(schedules: Iterable[object]) -> tuple[object, ...]:
    told: list[object] = []
    for one in schedules:
        if not isinstance(one, Mapping):
            raise DefinitionError("schedules", one, "is no mapping", "Give mappings of create()'s arguments.")
        told.append({name: sent(name, value) for name, value in cast("Mapping[str, object]", one).items()})
    return tuple(told)


def _sent_error(error: object) -> ErrorInfo:
    if isinstance(error, ErrorInfo | BaseException | str):
        return error_info(error)
    raise DefinitionError("error", error, "is no error", "Give an exception or a str.")


_JSON: Final = frozenset({"limits", "result", "checkpoint", "data"})
_SENT: Final[dict[str, Any]] = {
    "trigger": _sent_trigger,
    "input": parse_input,
    "error": _sent_error,
    "results": _sent_results,
    "schedules": _sent_schedules,
}


# What the server hands to the Scheduler


def received(name: str, value: object) -> object:
    """The argument `name` as the Scheduler takes it. Raises DefinitionError."""
    if name == "trigger":
        return _received_trigger(cast("TriggerRule", value))
    if name == "results":
        return tuple(_received_result(one) for one in cast("tuple[ResultForm, ...]", value))
    if name == "schedules":
        return tuple(received_fields(one) for one in cast("tuple[msgspec.Struct, ...]", value))
    return value


def received_fields(parameters: msgspec.Struct) -> dict[str, object]:
    """The arguments that were given, as the Scheduler takes them. Raises DefinitionError."""
    given = {name: getattr(parameters, name) for name in parameters.__struct_fields__}
    return {name: received(name, value) for name, value in given.items() if value is not msgspec.UNSET}


def _received_trigger(rule: TriggerRule) -> OccurrenceSource:
    if isinstance(rule, SourceRule):  # the Scheduler knows whether it can be evaluated there
        return Unevaluable(rule, TriggerError("it is evaluated where its source is registered"))
    try:
        return trigger_of(rule)
    except TriggerError as error:
        if isinstance(error.__cause__, DefinitionError):
            raise error.__cause__ from None
        raise DefinitionError("trigger", rule, f"cannot be used: {error.message}", error.hint) from None


def _received_result(form: ResultForm) -> Completed | Failed | Interrupted:
    return Failed(form.run_id, form.attempt_id, form.error) if isinstance(form, FailedForm) else form


# What a client gets


def obtained(value: object, sources: Sources) -> object:
    """A decoded result as the Scheduler would have returned it."""
    if isinstance(value, tuple):
        return tuple(obtained(one, sources) for one in cast("tuple[object, ...]", value))
    if isinstance(value, ScheduleForm):
        fields: dict[str, Any] = {name: getattr(value, name) for name in ScheduleForm.__struct_fields__}
        fields["trigger"] = _obtained_trigger(fields["trigger"], sources)
        return Schedule[OccurrenceSource](**fields)
    return value


def _obtained_trigger(rule: TriggerRule, sources: Sources) -> OccurrenceSource:
    try:
        return trigger_of(rule, sources)
    except TriggerError as error:
        return Unevaluable(rule, error)
