"""What waits: the instants of a schedule that are due and undecided, as rows beside those that were decided.

Rules: the calendar is asked, and nothing is decided; behind the end of a scan there may be more; where the trigger
cannot be evaluated there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from duly.journal.entries import TriggerRule
from duly.projections.history import Row
from duly.projections.runs import occurrence_id
from duly.projections.schedules import ScheduleState
from duly.scheduler.decisions.occurrences import due_instants
from duly.scheduler.errors import TriggerError
from duly.scheduler.sources import OccurrenceSource

WAITING: Final = "waiting"
"""The `detail` of a span that no entry has decided yet."""


def waiting_rows(
    schedule: ScheduleState, now: datetime, source_of: Callable[[TriggerRule], OccurrenceSource]
) -> list[Row]:
    """The instants that are due at `now` and undecided."""
    if schedule.deleted or schedule.exhausted:
        return []
    try:
        source = source_of(schedule.definition.trigger)
        due = due_instants(source, schedule.consumed_through, now, schedule.kept)
    except TriggerError:
        return []
    return [
        Row(
            scheduled_at=instant,
            occurrence_id=occurrence_id(schedule.id, instant),
            disposition="waiting",
            detail=why_waiting(schedule),
            revision=schedule.revision,
        )
        for instant in due.instants
    ]


def waiting_span(
    schedule: ScheduleState, now: datetime, source_of: Callable[[TriggerRule], OccurrenceSource]
) -> Row | None:
    """The instants before the one that `waiting_rows` has, where they are too many to be told one by one."""
    if schedule.deleted or schedule.exhausted:
        return None
    try:
        source = source_of(schedule.definition.trigger)
        due = due_instants(source, schedule.consumed_through, now, schedule.kept)
    except TriggerError:
        return None
    if not due.capped:
        return None
    through = due.instants[0] - datetime.resolution
    return Row(
        scheduled_at=through,
        occurrence_id=occurrence_id(schedule.id, through),
        disposition="interval",
        detail=WAITING,
        reason=why_waiting(schedule) or None,
        revision=schedule.revision,
        after=schedule.consumed_through,
        at_least=due.seen,
    )


def why_waiting(schedule: ScheduleState) -> str:
    """What an undecided instant waits for, where it is not a task slot or the next poll."""
    if schedule.block is not None:
        return f"blocked since #{schedule.block.sequence}"
    if schedule.paused:
        return f"paused since #{schedule.paused}"
    if schedule.disabled:
        return f"disabled since #{schedule.disabled}"
    return ""
