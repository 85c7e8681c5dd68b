"""What a poll is asked, and what it decided: the values on both sides of `decide_poll`.

Rules: a request holds everything that a decision may depend on beside the state; a plan changes nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from duly.journal.entries import Entry
from duly.projections.schedules import ScheduleState
from duly.scheduler.roster import Roster
from duly.scheduler.sources import OccurrenceSource


class PollRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One poll: the clock reading, the settings in force, and the schedules that have something to decide: those with
    something `due`, and those that are `queued` for a slot alone. Where the host answers nothing about targets or
    preflights it is not asked."""

    now: datetime
    task_slots: int
    batch: int
    due: Roster
    queued: Roster
    source_of: Callable[[ScheduleState], OccurrenceSource]
    start: bool = False
    asks_target: bool = True
    asks_preflight: bool = True


class Waiting(msgspec.Struct, frozen=True):
    """A schedule whose `instant` waits for a slot, or for the clock; `until` is when to look again at the latest."""

    schedule_id: str
    instant: datetime
    until: datetime


class PollPlan(msgspec.Struct, frozen=True):
    """What a poll decided: the entries of its batch, the runs it offers, who waits, the next instants of the schedules
    with nothing due any more, and whether it was cut."""

    entries: tuple[Entry, ...]
    offered: tuple[int, ...]
    waiting: tuple[Waiting, ...]
    upcoming: Mapping[str, datetime | None]
    more: bool
