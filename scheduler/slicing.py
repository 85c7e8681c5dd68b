"""Slices: which entries before a slice it rests on, so that everything in it is decided anew as it was.

Rules kept here:
- of what came before, everything is kept but what has no part in the slice any more: decisions about a schedule's older
  occurrences, with their runs, and runs by hand; never one that is open when the slice begins, that a kept entry
  refers to, that a step back of the clock reaches, or that is the schedule's last; nor the newest admission of all,
  after which turns begin;
- in the place of a schedule's older decisions stands one `ScheduleRebaselined` that covers them, so that its watermark
  and the account stay what they are;
- a record that contradicts itself, or lost entries, is kept whole: what it rests on cannot be told;
- what this module leaves out is a proposal: `duly.scheduler.exporting` decides everything anew before it is believed.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from duly.journal.entries import (
    CandidateHeld,
    Checkpoint,
    ClockRegressed,
    Entry,
    EntryLost,
    IntervalSkipped,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    OncePerRule,
    RunAdmittedManually,
    ScheduleCreated,
    ScheduleEdited,
    ScheduleRebaselined,
)
from duly.projections import State
from duly.projections.ranges import FIRST_INSTANT, LAST_INSTANT
from duly.projections.runs import RunEntry

DECIDED: Final = (OccurrenceAdmitted, OccurrenceSkipped, OccurrenceSuperseded, IntervalSkipped, CandidateHeld)


class _Step(NamedTuple):
    """A decision about a schedule's occurrences, before the slice."""

    sequence: int
    needs: int
    """The earliest entry that it rests on."""
    top: datetime
    """The latest instant that was decided until then."""
    through: datetime
    """The watermark after it."""


class Cover(msgspec.Struct, frozen=True):
    """What stands for a schedule's decisions up to the entry `sequence`."""

    sequence: int
    kept_from: int
    after: datetime
    through: datetime


class _Trace(msgspec.Struct):
    """What was seen of one schedule before the slice."""

    begins: datetime
    steps: list[_Step] = []
    held: int = 0


class Readings:
    """The clock readings of a record, as the fold notes them."""

    def __init__(self) -> None:
        self.highest: datetime | None = None
        self.last: datetime | None = None

    def note(self, entry: Entry) -> None:
        """Takes the entry's reading in."""
        if isinstance(entry, EntryLost):
            return
        if isinstance(entry, ClockRegressed):
            self.highest = None
        self.last = entry.at
        if FIRST_INSTANT <= entry.at < LAST_INSTANT and (self.highest is None or entry.at > self.highest):
            self.highest = entry.at


class Survey:
    """What a record says up to the end of a slice that begins at the entry `first`, gathered in one pass."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.state = State()
        self.readings = Readings()
        self.schedule_ids: set[str] = set()
        self.spending: set[str] = set()
        """The schedules that at any time run once per period, so that runs by hand count."""
        self._traces: dict[str, _Trace] = {}
        self._regressions: list[tuple[int, str | None, datetime]] = []
        self.manual: set[int] = set()
        """The runs by hand that were admitted before the slice."""
        self._open: dict[int, str | None] = {}
        self._held: dict[str, int] = {}
        self._newest = ("", 0)
        self._begun = False

    @property
    def whole(self) -> bool:
        """Whether nothing may be left out."""
        return bool(self.state.anomaly_count or self.state.lost)

    def note(self, sequence: int, entry: Entry) -> None:
        """Takes one entry in, in the order of the record."""
        if sequence >= self.first and not self._begun:
            self._begin()
        schedule_id: str | None = getattr(entry, "schedule_id", None)
        if schedule_id is not None:
            self.schedule_ids.add(schedule_id)
        if isinstance(entry, ScheduleCreated | ScheduleEdited) and isinstance(entry.definition.trigger, OncePerRule):
            self.spending.add(entry.schedule_id)
        needs = self._needs(sequence, entry)
        self.state.apply(sequence, entry)
        self.readings.note(entry)
        if isinstance(entry, ClockRegressed):
            self._regressions.append((sequence, None, entry.at))
        elif isinstance(entry, ScheduleRebaselined) and entry.regressed:
            self._regressions.append((sequence, schedule_id, entry.through))
        if not self._begun:
            self._trace(sequence, entry, needs)

    def _begin(self) -> None:
        self._begun = True
        self._open = {run.id: run.schedule_id for run in self.state.runs_open.values()}
        for schedule_id, trace in self._traces.items():
            if self.state.by_id[schedule_id].candidate is not None:
                self._held[schedule_id] = trace.held

    def _needs(self, sequence: int, entry: Entry) -> int:
        if self._begun or not isinstance(entry, DECIDED):
            return sequence
        schedule = self.state.by_id.get(entry.schedule_id)
        trace = self._traces.get(entry.schedule_id)
        if schedule is None or trace is None:
            return sequence
        needs = sequence
        if not isinstance(entry, IntervalSkipped) and entry.scheduled_at == schedule.candidate:
            needs = min(needs, trace.held)
        if isinstance(entry, OccurrenceSkipped) and entry.blocking_run is not None:
            needs = min(needs, entry.blocking_run)
        return needs

    def _trace(self, sequence: int, entry: Entry, needs: int) -> None:
        match entry:
            case ScheduleCreated():
                self._traces[entry.schedule_id] = _Trace(entry.covers_through)
            case RunAdmittedManually():
                self.manual.add(sequence)
            case _ if isinstance(entry, DECIDED) and entry.schedule_id in self._traces:
                trace = self._traces[entry.schedule_id]
                if isinstance(entry, CandidateHeld):
                    trace.held = sequence
                elif isinstance(entry, OccurrenceAdmitted):
                    self._newest = (entry.schedule_id, sequence)
                through = self.state.by_id[entry.schedule_id].consumed_through
                instant = through if isinstance(entry, IntervalSkipped) else entry.scheduled_at
                top = max(instant, trace.steps[-1].top) if trace.steps else instant
                trace.steps.append(_Step(sequence, needs, top, through))
            case _:
                pass

    def covers(self) -> dict[str, Cover]:
        """What may stand for the older decisions of each schedule that has such."""
        found = {} if self.whole else {one: self._cover(one, trace) for one, trace in self._traces.items()}
        return {one: cover for one, cover in found.items() if cover is not None}

    def _cover(self, schedule_id: str, trace: _Trace) -> Cover | None:
        steps = trace.steps
        if len(steps) < 2:
            return None
        concerned = [(seen, to) for seen, whose, to in self._regressions if whose in (None, schedule_id)]
        sequences, lowest = [seen for seen, _ in concerned], _lowest([to for _, to in concerned])
        place = len(steps) - 1
        needed = min(
            steps[place].needs,
            self._held.get(schedule_id, steps[place].sequence),
            self._newest[1] if self._newest[0] == schedule_id else steps[place].sequence,
            *(run_id for run_id, whose in self._open.items() if whose == schedule_id and run_id not in self.manual),
        )
        while place > 0:
            dropped = steps[place - 1]
            reached = lowest[bisect_right(sequences, dropped.sequence)]
            if needed > dropped.sequence and dropped.top <= min(dropped.through, reached):
                begins = min([trace.begins, *(to for seen, to in concerned if seen < dropped.sequence)])
                return Cover(dropped.sequence, steps[place].sequence, begins, dropped.through)
            place -= 1
            needed = min(needed, dropped.needs)
        return None

    def past_runs(self) -> frozenset[int]:
        """Runs by hand that ended before the slice, and that no period counts."""
        if self.whole:
            return frozenset()
        states = (self.state.by_id[one] for one in self.spending)
        counted = {sequence for one in states for _, sequence in one.spent or ()}
        return frozenset(self.manual - self._open.keys() - counted)


def _lowest(instants: list[datetime]) -> list[datetime]:
    """Of each instant and those after it the lowest; and one more, for after the last."""
    found = [LAST_INSTANT]
    for instant in reversed(instants):
        found.append(min(instant, found[-1]))
    return found[::-1]


class Selection:
    """Which entries go into a slice: those of the named schedules (None: of all), and what they rest on."""

    def __init__(self, survey: Survey, schedule_ids: frozenset[str] | None, *, trimmed: bool) -> None:
        self.first = survey.first
        self.trimmed = trimmed and not survey.whole and survey.first > 1
        self.schedule_ids = None if survey.whole else schedule_ids
        self._covers = survey.covers() if self.trimmed else {}
        self._past_runs = survey.past_runs() if self.trimmed else frozenset[int]()
        self._manual = survey.manual

    def holds(self, sequence: int, entry: Entry) -> bool:
        """Whether the entry goes in as it is."""
        if isinstance(entry, Checkpoint):
            return False  # it says nothing that the entries before it do not, and it tells of every schedule
        schedule_id: str | None = getattr(entry, "schedule_id", None)
        if self.schedule_ids is not None and schedule_id is not None and schedule_id not in self.schedule_ids:
            return False
        return not self.trimmed or sequence >= self.first or self._is_needed(sequence, entry)

    def _is_needed(self, sequence: int, entry: Entry) -> bool:
        """Whether the slice rests on this entry from before it."""
        match entry:
            case JournalOpened():
                return False
            case RunAdmittedManually():
                return sequence not in self._past_runs
            case _ if isinstance(entry, RunEntry):
                return self._is_needed_run(entry.run_id, entry.schedule_id)
            case _ if isinstance(entry, DECIDED):
                cover = self._covers.get(entry.schedule_id)
                return cover is None or sequence >= cover.kept_from
            case _:
                return True

    def _is_needed_run(self, run_id: int, schedule_id: str | None) -> bool:
        if run_id in self._manual:
            return run_id not in self._past_runs
        cover = self._covers.get(schedule_id or "")
        return cover is None or run_id >= cover.kept_from

    def cover_at(self, sequence: int, entry: Entry) -> Cover | None:
        """What stands in the place of this entry, and of the same schedule's decisions before it."""
        schedule_id: str = getattr(entry, "schedule_id", None) or ""
        if self.schedule_ids is not None and schedule_id not in self.schedule_ids:
            return None
        cover = self._covers.get(schedule_id)
        return cover if cover is not None and cover.sequence == sequence else None
