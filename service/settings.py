"""What a host is given beside its journal, checked before the journal is touched.

Rules: what would fail later, at a shutdown perhaps, is refused at once, in words that say what to write instead.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import cast

import msgspec

from duly.scheduler.errors import DefinitionError
from duly.scheduler.reconciling import EvidenceSource
from duly.service.commands import Command, CommandOf
from duly.service.output import Outputs


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a host executes: at most `task_slots` at once; the graces are of its end. See `Host.open`."""

    task_slots: int
    drain_grace: timedelta
    kill_grace: timedelta
    resume_at_start: bool
    evidence: EvidenceSource | None
    loop: asyncio.AbstractEventLoop | None


def check_duration(field: str, value: object) -> None:
    """Raises DefinitionError for what is no time to wait."""
    if isinstance(value, timedelta):
        if value < timedelta():
            raise DefinitionError(field, value, "is negative", "Give a timedelta of 0 or more.")
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    remedy = f"Write timedelta(seconds={value})." if number else "Give a timedelta, such as timedelta(seconds=30)."
    raise DefinitionError(field, value, "is no timedelta", remedy)


def check_path(path: Path | str) -> str:
    """The path as text. Raises DefinitionError."""
    try:
        return os.fspath(path)
    except TypeError:
        raise DefinitionError("path", path, "is no path", "Give the journal's folder, as a str or a Path.") from None


def check_settings(settings: Settings) -> None:
    """Raises DefinitionError."""
    check_duration("drain_grace", settings.drain_grace)
    check_duration("kill_grace", settings.kill_grace)
    if not isinstance(settings.resume_at_start, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all typed
        raise DefinitionError("resume_at_start", settings.resume_at_start, "is no bool", "Give True or False.")
    evidence, loop = settings.evidence, settings.loop
    if evidence is not None and not all(callable(getattr(evidence, name, None)) for name in ("of", "runs")):
        raise DefinitionError("evidence", evidence, "is no EvidenceSource", "Give an object with of(run) and runs().")
    if loop is not None and not isinstance(loop, asyncio.AbstractEventLoop):  # pyright: ignore[reportUnnecessaryIsInstance] - see above
        raise DefinitionError("loop", loop, "is no event loop", "Give asyncio.get_running_loop(), or leave it out.")


def check_parts(handlers: object, outputs: object, observers: object) -> None:
    """Raises DefinitionError for what executes nothing, or cannot be told anything."""
    if not isinstance(handlers, Mapping):
        raise DefinitionError("handlers", handlers, "is no mapping", "Give a dict of targets to handlers.")
    for target, handler in cast("Mapping[object, object]", handlers).items():
        if not isinstance(target, str):
            raise DefinitionError("handlers", target, "is no target's name", "Give a str.")
        if not isinstance(handler, Command | CommandOf) and not callable(handler):
            remedy = "Give a function, a coroutine function, a Command or a CommandOf."
            raise DefinitionError(f"handlers.{target}", handler, "is no handler", remedy)
    if outputs is not None and not isinstance(outputs, Outputs):
        raise DefinitionError("outputs", outputs, "is no Outputs", "Give Outputs(folder), or leave it out.")
    told = cast("Sequence[object]", observers)
    if not isinstance(observers, Sequence) or not all(callable(one) for one in told):
        raise DefinitionError("observers", told, "are no observers", "Give a list of functions that take an event.")
