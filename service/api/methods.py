"""The methods that are served: the Scheduler's own, each with the form of its parameters and of its result.

Rules: a method is listed here by its function and described nowhere else; its parameters, their types and defaults are
read off the signature; what cannot travel as it is (a trigger, an exception, `input`) has its form in `wire`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from duly.projections import Page, Run, Schedule
from duly.scheduler.embedded import Scheduler
from duly.scheduler.execution import Attempt
from duly.scheduler.explanations import Explanation
from duly.scheduler.inspection import Inspection
from duly.service.api.wire import form_of, form_of_parameter, tuple_of

Function = Callable[..., Any]

FUNCTIONS: Final[tuple[Function, ...]] = (
    Scheduler.create,
    Scheduler.create_many,
    Scheduler.declare,
    Scheduler.edit,
    Scheduler.pause,
    Scheduler.unpause,
    Scheduler.disable,
    Scheduler.enable,
    Scheduler.delete,
    Scheduler.block,
    Scheduler.unblock,
    Scheduler.rebaseline,
    Scheduler.record_external_run,
    Scheduler.run_now,
    Scheduler.start,
    Scheduler.complete,
    Scheduler.fail,
    Scheduler.interrupt,
    Scheduler.report,
    Scheduler.resume,
    Scheduler.abandon,
    Scheduler.note_run,
    Scheduler.find,
    Scheduler.schedule,
    Scheduler.schedules,
    Scheduler.run,
    Scheduler.runs,
    Scheduler.upcoming,
    Scheduler.next_due,
    Scheduler.occurrences,
    Scheduler.explain,
    Scheduler.digest,
)
# What is named in signatures may be imported there for type checkers alone.
NAMES: Final = {kind.__name__: kind for kind in (Attempt, Explanation, Page, Run, Schedule, datetime)}
COMMANDED: Final = ("actor", "note", "request")


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """One method: how it is called and what it returns.

    `parameters` is the struct that its parameters are decoded into, in which what was left out is UNSET; `spread` names
    the one that stands for `*arguments`; `result` is the type that its result travels as. A `question` changes nothing;
    a `keyed` method takes a `request` key; a `listing` is answered in pieces.
    """

    name: str
    function: Function
    parameters: type[msgspec.Struct]
    result: Any
    spread: str | None
    question: bool
    keyed: bool
    listing: bool

    @property
    def signature(self) -> inspect.Signature:
        """How it is called in Python."""
        return inspect.signature(self.function)

    @property
    def description(self) -> str:
        """What the method's own docstring says, on one line."""
        return " ".join((inspect.getdoc(self.function) or "").split())


class Parameter(NamedTuple):
    """One parameter: the type that it travels as, and whether it must be given."""

    name: str
    form: Any
    required: bool


def _method(function: Function) -> Method:
    name = function.__name__
    parameters = _parameters(function)
    names = [one.name for one in parameters]
    result = form_of(get_type_hints(function, localns=NAMES)["return"])
    python = inspect.signature(function).parameters.values()
    return Method(
        name=name,
        function=function,
        parameters=_struct(name, parameters),
        result=result,
        spread=next((one.name for one in python if one.kind is inspect.Parameter.VAR_POSITIONAL), None),
        question=name in vars(Inspection),
        keyed="request" in names,
        listing="limit" in names and "after" in names and get_origin(result) is tuple,
    )


def _parameters(function: Function) -> list[Parameter]:
    hints = get_type_hints(function, localns=NAMES, include_extras=True)
    found: list[Parameter] = []
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        hint = hints[name]
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            (fields,) = get_args(hint)
            found.extend(
                Parameter(one, form_of_parameter(one, its), False) for one, its in get_type_hints(fields).items()
            )
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            found.append(Parameter(name, tuple_of(hint), False))
        elif name == "schedules":
            found.append(Parameter(name, tuple_of(_new_schedule()), True))
        else:
            required = parameter.default is inspect.Parameter.empty
            found.append(Parameter(name, form_of_parameter(name, hint), required))
    return found


def _new_schedule() -> type[msgspec.Struct]:
    """What one of many schedules is created from: what `create` takes about a schedule."""
    return _struct("NewSchedule", [one for one in _parameters(Scheduler.create) if one.name not in COMMANDED])


def _struct(name: str, parameters: Iterable[Parameter]) -> type[msgspec.Struct]:
    fields = [
        (one.name, one.form) if one.required else (one.name, one.form | msgspec.UnsetType, msgspec.UNSET)
        for one in parameters
    ]
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


METHODS: Final = MappingProxyType({function.__name__: _method(function) for function in FUNCTIONS})
