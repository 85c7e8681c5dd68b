"""Calls that cannot be meant: what is missing or too much is told as any other wrong argument is.

Rule kept here: only a call that does not fit the signature is told anew; whatever a call raises inside passes through.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from duly.scheduler.errors import DefinitionError
from duly.scheduler.wording import describe_value

P = ParamSpec("P")
R = TypeVar("R")


def explained(name: str, remedy: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """For what users call as `name`: a call that does not fit raises DefinitionError, with the remedy."""

    def decorated(call: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(call)

        @functools.wraps(call)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return call(*args, **kwargs)
            except TypeError:
                problem = _misfit(signature, args, kwargs)
                if not problem:
                    raise
            given = [describe_value(one) for one in args[1:]]
            given += [f"{key}={describe_value(value)}" for key, value in kwargs.items()]
            raise DefinitionError(name, _Written(f"({', '.join(given)})"), f"cannot be meant: {problem}", remedy)

        return checked

    return decorated


def _misfit(signature: inspect.Signature, args: tuple[object, ...], kwargs: dict[str, object]) -> str:
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return ""


class _Written(str):
    """A text that stands for itself in a message."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
