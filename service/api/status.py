"""The status of a service: how it is, and what it decided last."""

from __future__ import annotations

from datetime import datetime

import msgspec

from duly.scheduler.explanations import RunFacts
from duly.service.loop import HostState
from duly.service.watching.record import Decision


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How a service is. `problem` says why it is not ready; `poll_age` is in seconds; `next_due` and `now` are UTC, by
    the last poll; `due` says when each of the first 200 schedules is due next; `runs` are the newest that are open or
    ended lately, and `decisions` the newest entries since the service began, both newest first."""

    version: str
    journal: str
    state: HostState
    ready: bool
    problem: str
    at_work: tuple[int, ...]
    poll_age: float | None
    now: datetime | None
    next_due: datetime | None
    due: dict[str, datetime]
    runs: tuple[RunFacts, ...]
    decisions: tuple[Decision, ...]
