"""Explaining: what became of one occurrence, told from the record.

Rules: what was decided is read and never decided anew; the calendar is asked only whether an instant that has no entry
of its own is an occurrence at all, for the occurrences next to one that is none, and for what lies in the future, which
is called projected. One pass over the entries answers for any number of instants of one schedule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from duly.journal import read
from duly.journal.entries import Entry
from duly.scheduler.errors import UnknownSchedule
from duly.scheduler.explanations import Explanation
from duly.scheduler.instants import require_aware
from duly.scheduler.judging import judged
from duly.scheduler.sources import SourceFactory
from duly.scheduler.story import Story


def explain(
    journal: Path | str | Iterable[tuple[int, Entry]],
    schedule_id: str,
    instant: datetime,
    *,
    sources: Mapping[str, SourceFactory] | None = None,
    now: datetime | None = None,
) -> Explanation:
    """What became of the schedule's occurrence at the aware `instant`, by the journal at a path or by its entries.

    `now` is what is past and what lies ahead; None: the record's last clock reading. `sources` are the factories of
    the host's own triggers. Raises UnknownSchedule, with the closest ids, DefinitionError, and the journal's errors.
    """
    return explain_all(journal, schedule_id, [instant], sources=sources, now=now)[0]


def explain_all(
    journal: Path | str | Iterable[tuple[int, Entry]],
    schedule_id: str,
    instants: Sequence[datetime],
    *,
    sources: Mapping[str, SourceFactory] | None = None,
    now: datetime | None = None,
) -> tuple[Explanation, ...]:
    """`explain` for many instants of one schedule, in one pass over the record."""
    asked = [require_aware(instant).astimezone(UTC) for instant in instants]
    story = Story(schedule_id, asked)
    for sequence, entry in _entries(journal):
        story.apply(sequence, entry)
    schedule = story.history.schedule
    if schedule is None:
        raise unknown_schedule(schedule_id, story.setting.ids)
    judged_at = require_aware(now, "now").astimezone(UTC) if now is not None else story.setting.last_at
    return tuple(judged(story, schedule, story.threads[instant], judged_at, sources or {}) for instant in asked)


def unknown_schedule(schedule_id: str, ids: Iterable[str]) -> UnknownSchedule:
    """The error for an id that the record does not know, with the closest that it knows."""
    # Costs its import only when something is refused.
    from difflib import get_close_matches

    near = get_close_matches(schedule_id, sorted(ids), n=3)
    hint = f"The nearest: {', '.join(near)}." if near else "`duly schedules` lists what there is."
    return UnknownSchedule(f"there is no schedule {schedule_id!r}", schedule_id=schedule_id, hint=hint)


def _entries(journal: Path | str | Iterable[tuple[int, Entry]]) -> Iterable[tuple[int, Entry]]:
    if isinstance(journal, Path | str):
        return ((record.sequence, record.entry) for record in read(journal))
    return journal
