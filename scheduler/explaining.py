"""Explaining: what became of one occurrence, told from the record.

Rules: what was decided is read and never decided anew; the calendar is asked only whether an instant that has no entry
of its own is an occurrence at all, for the occurrences next to one that is none, and for what lies in the future, which
is called projected. One pass over the entries answers for any number of instants of one schedule; where the journal has
an index, over those that concern the schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from duly.projections.schedules import ScheduleState
from duly.scheduler.explanations import Explanation
from duly.scheduler.instants import require_utc
from duly.scheduler.judging import judged
from duly.scheduler.lookups import Record, told
from duly.scheduler.sources import SourceFactory
from duly.scheduler.story import Story


def explain(  # noqa: PLR0913 - what an explanation rests on
    journal: Record,
    schedule_id: str,
    instant: datetime,
    *,
    sources: Mapping[str, SourceFactory] | None = None,
    now: datetime | None = None,
    through: int | None = None,
) -> Explanation:
    """What became of the schedule's occurrence at the aware `instant`, by the journal at a path or by its entries.

    `now` is what is past and what lies ahead; None: the record's last clock reading. `sources` are the factories of
    the host's own triggers. What follows the entry `through` is left out. Raises UnknownSchedule, with the closest ids,
    DefinitionError, and the journal's errors.
    """
    return explain_all(journal, schedule_id, [instant], sources=sources, now=now, through=through)[0]


def explain_all(  # noqa: PLR0913 - what an explanation rests on
    journal: Record,
    schedule_id: str,
    instants: Sequence[datetime],
    *,
    sources: Mapping[str, SourceFactory] | None = None,
    now: datetime | None = None,
    through: int | None = None,
) -> tuple[Explanation, ...]:
    """`explain` for many instants of one schedule, in one pass over the record."""
    asked = [require_utc(instant) for instant in instants]
    given = require_utc(now, "now") if now is not None else None

    def tell(story: Story, schedule: ScheduleState) -> tuple[Explanation, ...]:
        judged_at = story.setting.last_at if given is None else given
        return tuple(judged(story, schedule, story.threads[instant], judged_at, sources or {}) for instant in asked)

    return told(journal, schedule_id, asked, tell, through=through)
