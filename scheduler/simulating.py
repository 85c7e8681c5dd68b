"""Simulating: what schedules would do between two instants, with nothing recorded and nobody waiting.

Rules: pure: no clock, no host, no journal; the shipped decision functions decide, at every instant at which something
comes due or a run ends, as a host does that looks at once; targets and preflights accept. What would take too long to
tell is refused at a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from duly import __version__
from duly.journal.entries import (
    CandidateHeld,
    Entry,
    IntervalSkipped,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    RunCompleted,
    RunStarted,
    ScheduleBlocked,
)
from duly.scheduler.cron import croniter_version
from duly.scheduler.decisions.administration import Command, decide_create
from duly.scheduler.decisions.admission import ENGINE
from duly.scheduler.decisions.questions import Answer, AskTarget, Question, Target
from duly.scheduler.definitions import DefinitionFields, check_count, check_schedule_id, parse_definition
from duly.scheduler.durations import Durations
from duly.scheduler.errors import DefinitionError
from duly.scheduler.instants import in_range, require_utc
from duly.scheduler.lives import Lives, imagined
from duly.scheduler.outcomes import Outcomes
from duly.scheduler.sources import SourceFactory
from duly.scheduler.worlds import World
from duly.scheduler.zones import tzdata_version

LIMIT: Final = 100_000
"""How many decisions a simulation makes at most, unless told otherwise."""
_BATCH: Final = 1_000
_TICK: Final = timedelta(microseconds=1)
_TOLD: Final = (
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    IntervalSkipped,
    CandidateHeld,
    ScheduleBlocked,
)


class SimulatedSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one schedule's occurrences: `counts` by disposition, skips by their reason too; how long its runs
    were taken to last, and how long they were at work in all."""

    schedule_id: str
    counts: Counter[str]
    duration: timedelta
    busy: timedelta


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """What would be decided from `start` up to `end`, which is no more in it.

    `decisions` are sequences and entries, in order; a run's id is its admission's sequence, and `ended` says when those
    ended that did. `busy` is the time that runs were at work, all slots together, `peak` the most that were at once.
    """

    start: datetime
    end: datetime
    task_slots: int
    decisions: tuple[tuple[int, Entry], ...]
    ended: Mapping[int, datetime]
    schedules: tuple[SimulatedSchedule, ...]
    busy: timedelta
    peak: int

    @property
    def utilisation(self) -> float:
        """The share of all task slots' time that runs were at work, from 0 to 1."""
        return self.busy / ((self.end - self.start) * self.task_slots)


def simulate(  # noqa: PLR0913 - the world to be simulated
    definitions: Mapping[str, DefinitionFields],
    start: datetime,
    end: datetime,
    *,
    task_slots: int = 8,
    durations: Mapping[str, timedelta] | None = None,
    sources: Mapping[str, SourceFactory] | None = None,
    limit: int = LIMIT,
) -> Simulation:
    """Lets these schedules, each given by the arguments of `Scheduler.create`, live from `start` up to `end`.

    Both are aware; an occurrence at `start` itself is in it. `durations` says how long the runs of a schedule take, `*`
    those of all others; without it they end at once. Raises DefinitionError, also where more than `limit` decisions
    would have to be made, and UnknownSchedule for a duration of none of these.
    """
    begin, stop = (_checked(one, name) for one, name in ((start, "start"), (end, "end")))
    if begin >= stop:
        raise DefinitionError("end", end.isoformat(), "is not later than the start", "Give a later instant.")
    check_count("task_slots", task_slots)
    check_count("limit", limit)
    model = Durations({"*": timedelta(), **(durations or {})})
    model.check_schedules(definitions)
    living = _Simulating(begin, stop, task_slots, model, limit, dict(sources or {}))
    living.live(definitions)
    busy: dict[str, timedelta] = {}
    for schedule_id, span in living.spans():
        busy[schedule_id] = busy.get(schedule_id, timedelta()) + span
    return Simulation(
        start=begin,
        end=stop,
        task_slots=task_slots,
        decisions=tuple(living.decisions),
        ended=living.ended,
        schedules=tuple(
            SimulatedSchedule(
                schedule_id=one,
                counts=living.outcomes.counts(one),
                duration=model.of(one),
                busy=busy.get(one, timedelta()),
            )
            for one in sorted(definitions)
        ),
        busy=sum(busy.values(), timedelta()),
        peak=living.peak,
    )


class _Simulating:
    def __init__(  # noqa: PLR0913, PLR0917 - the world to be simulated
        self,
        start: datetime,
        end: datetime,
        task_slots: int,
        durations: Durations,
        limit: int,
        sources: Mapping[str, SourceFactory],
    ) -> None:
        self.start, self.end = start, end
        self.task_slots = task_slots
        self.durations = durations
        self.limit = limit
        self.outcomes = Outcomes()
        self.decisions: list[tuple[int, Entry]] = []
        self.began: dict[int, tuple[str, datetime]] = {}
        self.ended: dict[int, datetime] = {}
        self.peak = 0
        self.world = World(sources)
        self.lives = Lives(self.world.state, lambda: self.task_slots, self._write)

    def live(self, definitions: Mapping[str, DefinitionFields]) -> None:
        """Lives from the start to the end."""
        before = self.start - _TICK
        self._write([_opening(before, self.task_slots)])
        for schedule_id, fields in sorted(definitions.items()):
            checked = check_schedule_id(schedule_id)
            created = decide_create(checked, parse_definition(fields), Command(at=before), self.world.source_of)
            self._write(created)
        now: datetime | None = self.start
        while now is not None and now < self.end:
            self.lives.advance(now)
            while self._poll(now):
                pass
            now = self._next_moment(now)

    def spans(self) -> Iterator[tuple[str, timedelta]]:
        """How long each run was at work, by its schedule."""
        for run_id, (schedule_id, began) in self.began.items():
            yield schedule_id, self.ended.get(run_id, self.end) - began

    def _next_moment(self, now: datetime) -> datetime | None:
        moments = self.world.coming_after(now), self.lives.next_at()
        return min((one for one in moments if one is not None), default=None)

    def _poll(self, now: datetime) -> bool:
        """One poll; whether there is more to decide at once."""
        first, plan = self.world.poll(now, start=True, answer_to=_accepted)
        for sequence, entry in enumerate(plan.entries, first):
            self._note(sequence, entry)
            if isinstance(entry, RunStarted):
                run = self.world.state.runs_open[entry.run_id]
                steps = imagined(run, self.durations.of(run.schedule_id), started=True)
                self.lives.begin(run.id, steps, now)
        self.peak = max(self.peak, len(self.world.state.started))
        return plan.more

    def _write(self, entries: Sequence[Entry]) -> None:
        first = self.world.append(entries)
        for sequence, entry in enumerate(entries, first):
            self._note(sequence, entry)

    def _note(self, sequence: int, entry: Entry) -> None:
        self.outcomes.apply(sequence, entry)
        if isinstance(entry, RunStarted):
            self.began[entry.run_id] = entry.schedule_id or "", entry.at
        elif isinstance(entry, RunCompleted):
            self.ended[entry.run_id] = entry.at
        elif isinstance(entry, _TOLD):
            if len(self.decisions) >= self.limit:
                problem = f"decisions are made by {entry.at.isoformat()}, and there are more"
                remedy = "Give a shorter time, fewer schedules, or a higher limit."
                raise DefinitionError("limit", self.limit, problem, remedy)
            self.decisions.append((sequence, entry))


def _accepted(question: Question) -> Answer:
    return Target(question.name) if isinstance(question, AskTarget) else None


def _opening(at: datetime, task_slots: int) -> JournalOpened:
    return JournalOpened(
        at=at,
        host="",
        pid=0,
        duly=__version__,
        croniter=croniter_version(),
        tzdata=tzdata_version(),
        python="",
        task_slots=task_slots,
        batch=_BATCH,
        clock_tolerance=timedelta(minutes=5),
        engine=ENGINE,
    )


def _checked(instant: datetime, name: str) -> datetime:
    utc = require_utc(instant, name)
    if not in_range(utc):
        raise DefinitionError(name, instant.isoformat(), "lies outside of 1972 … 2100", "Give an instant within.")
    return utc
