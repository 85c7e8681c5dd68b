"""What a host tells its observers: a closed union of plain values.

Rules: an event is told on the host's own thread, after what it tells of is durable; it carries results and asks for
nothing. Logs, metrics and health are made of these.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeAlias

import msgspec

from duly.projections import Run
from duly.scheduler.decisions.runs import Result
from duly.scheduler.polls import Poll
from duly.scheduler.reconciling import Recovery


class Opened(msgspec.Struct, frozen=True):
    """The journal is owned and recovered; `again` if it was reopened after a failure."""

    recovery: Recovery
    again: bool = False


class Polled(msgspec.Struct, frozen=True):
    """A poll was made, and what it offered has begun."""

    poll: Poll


class Began(msgspec.Struct, frozen=True):
    """A run, or an attempt of it, is being executed; its start is recorded."""

    run: Run
    attempt_id: int | None = None


class Ended(msgspec.Struct, frozen=True):
    """A result was recorded: `run` as it stands with it."""

    run: Run
    result: Result


class JournalFailed(msgspec.Struct, frozen=True):
    """The journal cannot be written, or not be opened again; the host tries in `retry_in`. Work goes on."""

    error: Exception
    retry_in: timedelta


class Draining(msgspec.Struct, frozen=True):
    """Nothing is admitted any more; `at_work` are the runs that may end within `grace`."""

    at_work: tuple[int, ...]
    grace: timedelta


class Closed(msgspec.Struct, frozen=True):
    """The host has closed the journal. `unrecorded` are results that the journal could not take."""

    unrecorded: tuple[Result, ...] = ()


class Warned(msgspec.Struct, frozen=True):
    """Something that a person should know, in words."""

    text: str
    run_id: int | None = None


Event: TypeAlias = Opened | Polled | Began | Ended | JournalFailed | Draining | Closed | Warned
Observer: TypeAlias = Callable[[Event], object]
