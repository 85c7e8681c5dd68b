"""What if: the recorded polls, results and commands, replayed under another policy by the shipped decision functions.

Rules kept here (the how-to tells them to users):
- every recorded poll is a poll in the other world, at the same clock reading, and so is every command;
- a poll that decided nothing left no entry, so the other world also polls whenever something in it comes due or a run
  ends in it, but only where the record cannot tell that nobody polled: while the owner was surely there, and while a
  poll of the recorded world would have decided nothing. So a replay without a change adds no poll of its own;
- a run that began when it is recorded to have begun does all else when it is recorded to have done it; one that began
  at another instant does the same things as long after; one that never came to an end of its own on the record ends by
  the duration model, and what rests on that is an estimate;
- nothing is written, and the record's host is asked nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from duly.journal import Reader
from duly.projections.runs import occurrence_id
from duly.scheduler.changes import Changes
from duly.scheduler.commands import Refused
from duly.scheduler.durations import Durations
from duly.scheduler.engine import EngineCheck
from duly.scheduler.errors import DefinitionError
from duly.scheduler.outcomes import Fate, Outcomes, partings
from duly.scheduler.recorded import Line, Record
from duly.scheduler.replaying import Replaying
from duly.scheduler.sources import SourceFactory


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """An occurrence that the other policy decides otherwise, or admits at another clock reading.

    It is an `estimate` if it rests on how long a run takes that is not on record.
    """

    schedule_id: str
    scheduled_at: datetime
    recorded: Fate
    now: Fate
    estimate: bool

    @property
    def occurrence_id(self) -> str:
        """The occurrence's derived name."""
        return occurrence_id(self.schedule_id, self.scheduled_at)

    @property
    def moved(self) -> bool:
        """Whether it is admitted in both worlds, at different clock readings."""
        return self.recorded.is_like(self.now)


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """How many occurrences of one schedule have which disposition, as recorded and under the other policy."""

    schedule_id: str
    recorded: Counter[str]
    now: Counter[str]


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """What another policy would have made of a record.

    `identical` is whether the very same entries came out, and `check` what the engine check says of the record itself:
    where it diverges, so does this. `polls` are those of the record, `assumed_polls` those that were added.
    `durations` are what estimated runs are taken to last, by schedule and "by hand" for those of none, None where
    nothing tells (only without a change: they end at once); `estimated_runs` are those, `shifted_runs` those that began
    at another instant and took what they took. `refused` are commands that the other world refuses. `lost` entries of
    the record are not replayed.
    """

    changes: Mapping[str, object]
    identical: bool
    differences: tuple[Difference, ...]
    totals: tuple[Total, ...]
    polls: int
    assumed_polls: int
    estimated_runs: int
    shifted_runs: int
    durations: Mapping[str, timedelta | None]
    refused: tuple[Refused, ...]
    check: EngineCheck
    lost: int
    until: datetime | None

    @property
    def differs(self) -> bool:
        """Whether any occurrence is decided otherwise."""
        return bool(self.differences)


def whatif(
    journal: Path | str | Sequence[Line],
    changes: Mapping[str, object],
    *,
    durations: Mapping[str, timedelta] | None = None,
    sources: Mapping[str, SourceFactory] | None = None,
) -> WhatIf:
    """Replays the journal at a path, or its batches, under `changes`.

    `changes` maps `SCHEDULE.FIELD` (misfire, lateness, overlap, max_active_runs, cron, zone, fold; `*` is every
    schedule) and settings (task_slots, batch, clock_tolerance) to values as `Scheduler.create` and `Scheduler.open`
    take them. `durations` says what a run of a schedule takes that never happened, or `*` for all; without it, the
    median of the schedule's recorded runs. `sources` are the factories of the host's own triggers.

    Raises UnknownSchedule with the nearest, DefinitionError (also if a duration is needed that nothing tells), and the
    journal's errors.
    """
    asked = Changes(changes)
    record = Record(_lines(journal, None))
    asked.check_schedules(record.schedule_ids)
    model = Durations(durations or {}, record.durations)
    model.check_schedules(record.schedule_ids)
    known = dict(sources or {})
    _check_sources(record, known)
    replaying = Replaying(record, asked, model, known)
    told, now_told = Outcomes(), Outcomes()
    for first, entries in _lines(journal, record.last_sequence):
        made = replaying.follow(first, tuple(entries))
        for sequence, entry in enumerate(entries, first):
            told.apply(sequence, entry)
        for sequence, entry in made:
            now_told.apply(sequence, entry)
    if asked.given:
        # Without a change only a record that does not come out needs one, and that is what is to be told.
        model.require_all()
    return WhatIf(
        changes=asked.given,
        identical=replaying.identical,
        differences=tuple(sorted(_differences(told, now_told, replaying, known), key=_when)),
        totals=tuple(
            Total(schedule_id=one, recorded=told.counts(one), now=now_told.counts(one))
            for one in sorted(told.histories)
        ),
        polls=replaying.polls,
        assumed_polls=replaying.assumed_polls,
        estimated_runs=replaying.estimated_runs,
        shifted_runs=replaying.shifted_runs,
        durations=dict(sorted(model.used.items())),
        refused=tuple(replaying.refused),
        check=replaying.checker.found,
        lost=told.lost,
        until=told.last_at,
    )


def _differences(
    told: Outcomes, now_told: Outcomes, replaying: Replaying, sources: Mapping[str, SourceFactory]
) -> Iterator[Difference]:
    if told.last_at is None:
        return
    for one in partings(told, now_told, told.last_at, sources):
        by_calendar = one.other.disposition == "none" and now_told.never_had(*one[:2], sources)
        yield Difference(
            schedule_id=one.schedule_id,
            scheduled_at=one.scheduled_at,
            recorded=one.one,
            now=one.other,
            estimate=not by_calendar and replaying.is_estimate(one.schedule_id, one.other.sequence),
        )


def _when(one: Difference) -> tuple[datetime, str]:
    return one.scheduled_at, one.schedule_id


def _check_sources(record: Record, sources: Mapping[str, SourceFactory]) -> None:
    for name, schedule_id in record.sources.items():
        if name not in sources:
            problem = f"is a trigger of the host's own, of schedule {schedule_id!r}, and this process does not have it"
            raise DefinitionError("sources", name, problem, "Ask in a program that has: whatif(…, sources={…}).")


def _lines(journal: Path | str | Sequence[Line], through: int | None) -> Iterator[Line]:
    """The batches, up to the sequence `through`: of a journal that is being written both readings are the same."""
    if not isinstance(journal, Path | str):
        yield from journal
        return
    for line in Reader(journal).lines():
        if through is not None and line.first > through:
            return
        yield line.first, line.entries
