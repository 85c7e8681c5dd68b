"""What `duly log` shows of some schedules, found by the journal's indexes.

Rule: the records are the very ones that a reading of the whole journal gives, for the same options.
"""

from __future__ import annotations

from datetime import datetime
from heapq import merge
from typing import NamedTuple

from duly.journal import Record
from duly.projections.indexed import IndexedJournal, NotIndexed
from duly.projections.parts import Found, Parts
from duly.scheduler.unknown import unknown_schedule


class Wanted(NamedTuple):
    """Which records: of which schedules, from and up to which sequence or clock reading, and how many of the last."""

    schedules: frozenset[str]
    since: int | datetime | None
    until: int | datetime | None
    last: int | None


def found_by_index(path: str, wanted: Wanted) -> list[Record] | None:
    """The records, in order; None if the journal is to be read as a whole. Raises UnknownSchedule."""
    journal = IndexedJournal(path)
    try:
        found = journal.ask(lambda parts: _found(parts, wanted))
    except NotIndexed:
        return None
    durable = journal.durable
    return [Record(one.sequence, one.entry, one.sequence <= durable, one.segment, one.offset) for one in found]


def _found(parts: Parts, wanted: Wanted) -> list[Found]:
    for schedule_id in wanted.schedules:
        if not parts.names(schedule_id):
            raise unknown_schedule(schedule_id, parts.created())
    after = parts.first_since(wanted.since) - 1 if isinstance(wanted.since, datetime) else (wanted.since or 1) - 1
    through = parts.last_until(wanted.until) if isinstance(wanted.until, datetime) else wanted.until
    if wanted.last is None:
        lists = [list(parts.entries(each, after=after, through=through)) for each in wanted.schedules]
        return list(merge(*lists))
    lists = [parts.newest(each, wanted.last, after=after, through=through) for each in wanted.schedules]
    return list(merge(*lists))[-wanted.last :] if wanted.last else []
