"""The engine check: every recorded poll, decided anew from the state before it, gives the entries that are recorded.

Rules: it drives the shipped decision functions and never a copy; the clock readings, the settings and the host's
answers come from the record; what the record of another engine version says is not comparable, and is called so. It
only reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from duly.journal import Reader
from duly.journal.entries import (
    CandidateHeld,
    ClockJumped,
    ClockRegressed,
    Entry,
    IntervalSkipped,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    RunStarted,
    ScheduleBlocked,
    TriggerRule,
)
from duly.projections import State
from duly.projections.schedules import ScheduleState
from duly.scheduler.agenda import Agenda
from duly.scheduler.answers import driven
from duly.scheduler.decisions.admission import ENGINE, decide_poll, decide_regression
from duly.scheduler.decisions.plans import PollRequest
from duly.scheduler.decisions.questions import Answer, AskTarget, Question, Refusal, Target
from duly.scheduler.decisions.recovery import AT_OPENING
from duly.scheduler.errors import TriggerError
from duly.scheduler.roster import Roster
from duly.scheduler.sources import OccurrenceSource, SourceFactory
from duly.scheduler.triggers import trigger_of

_DECIDED: Final = (OccurrenceAdmitted, OccurrenceSkipped, OccurrenceSuperseded, IntervalSkipped, CandidateHeld)
_IN_A_POLL: Final = (*_DECIDED, ScheduleBlocked, RunStarted)


class Divergence(msgspec.Struct, frozen=True):
    """A recorded poll that the engine would decide otherwise: its first sequence, what is recorded, what it gives."""

    sequence: int
    recorded: tuple[Entry, ...]
    decided: tuple[Entry, ...]


class EngineCheck(msgspec.Struct, frozen=True, kw_only=True):
    """How many polls were decided anew, how many could not be compared, and where the engine differs."""

    polls: int
    incomparable: int
    divergences: tuple[Divergence, ...]

    @property
    def ok(self) -> bool:
        """Whether every comparable poll came out as it is recorded."""
        return not self.divergences


def engine_check(path: Path | str, *, sources: Mapping[str, SourceFactory] | None = None) -> EngineCheck:
    """Checks the journal at `path`. Raises the journal's errors."""
    lines = ((line.first, line.entries) for line in Reader(path).lines())
    return check_lines(lines, sources=sources)


def check_lines(
    lines: Iterable[tuple[int, Sequence[Entry]]], *, sources: Mapping[str, SourceFactory] | None = None
) -> EngineCheck:
    """Checks these batches, each with its first sequence, from the beginning of a journal on."""
    checker = _Checker(dict(sources or {}))
    for first, entries in lines:
        checker.check(first, tuple(entries))
    return EngineCheck(polls=checker.polls, incomparable=checker.incomparable, divergences=tuple(checker.divergences))


class _Checker:
    def __init__(self, sources: Mapping[str, SourceFactory]) -> None:
        self.state = State()
        self.polls = 0
        self.incomparable = 0
        self.divergences: list[Divergence] = []
        self._sources = sources
        self._agenda = Agenda(self._source_of)
        self._faults: tuple[ScheduleBlocked, ...] = ()

    def check(self, first: int, entries: tuple[Entry, ...]) -> None:
        """Compares one batch, if a poll made it, then folds it in."""
        if _is_poll(entries):
            self._compare(first, entries)
        elif any(isinstance(entry, ClockRegressed) for entry in entries):
            self._compare_regression(first, entries)
        self._fold(first, entries)

    def _compare(self, first: int, recorded: tuple[Entry, ...]) -> None:
        settings = self.state.opened
        if settings is None or settings.engine != ENGINE or self.state.lost:
            self.incomparable += 1
            return
        self.polls += 1
        now = recorded[0].at
        self._faults = tuple(entry for entry in recorded if isinstance(entry, ScheduleBlocked))
        decided = self._decided(now, settings, recorded, start=any(isinstance(one, RunStarted) for one in recorded))
        if decided != recorded and not any(isinstance(one, RunStarted) for one in recorded):
            # A poll that starts its runs and was cut before the first one leaves no start to know it by.
            decided = self._decided(now, settings, recorded, start=True)
        self._faults = ()
        if decided != recorded:
            self.divergences.append(Divergence(first, recorded, decided))

    def _decided(
        self, now: datetime, settings: JournalOpened, recorded: tuple[Entry, ...], *, start: bool
    ) -> tuple[Entry, ...]:
        # All that might be decided is looked at, also where the live poll knew that nothing could be.
        due = Roster(self._agenda.due(now).instants.items())
        for schedule_id in (*self._agenda.queued.instants, *(fault.schedule_id for fault in self._faults)):
            due.add(schedule_id, now)
        request = PollRequest(
            now=now,
            task_slots=settings.task_slots,
            batch=settings.batch,
            due=due,
            queued=Roster(),
            source_of=self._source_for,
            start=start,
        )
        regression = decide_regression(self.state, now, settings.clock_tolerance)
        plan = driven(decide_poll(self.state, request), _Record(self.state, recorded).answer_to)
        return plan.entries if regression is None else (regression, *plan.entries)

    def _compare_regression(self, first: int, recorded: tuple[Entry, ...]) -> None:
        settings = self.state.opened
        if settings is None:
            return
        decided = decide_regression(self.state, recorded[0].at, settings.clock_tolerance)
        observed = tuple(entry for entry in recorded if not isinstance(entry, ClockJumped))
        if observed != (decided,):
            self.divergences.append(Divergence(first, recorded, () if decided is None else (decided,)))

    def _fold(self, first: int, entries: tuple[Entry, ...]) -> None:
        for sequence, entry in enumerate(entries, first):
            self.state.apply(sequence, entry)
        touched = {getattr(entry, "schedule_id", None) for entry in entries}
        everything = any(isinstance(entry, ClockRegressed) for entry in entries)
        for schedule_id in self.state.by_id if everything else touched:
            schedule = self.state.by_id.get(schedule_id or "")
            if schedule is not None:
                self._agenda.refresh(schedule)

    def _source_of(self, rule: TriggerRule) -> OccurrenceSource:
        return trigger_of(rule, self._sources)

    def _source_for(self, schedule: ScheduleState) -> OccurrenceSource:
        for fault in self._faults:
            if fault.schedule_id == schedule.id:
                raise TriggerError(fault.reason)
        return self._source_of(schedule.definition.trigger)


class _Record:
    """Answers a decision's questions as the host did, as far as the recorded outcome tells."""

    def __init__(self, state: State, recorded: tuple[Entry, ...]) -> None:
        self._state = state
        self._outcomes = {
            (entry.schedule_id, entry.scheduled_at): entry
            for entry in recorded
            if isinstance(entry, OccurrenceAdmitted | OccurrenceSkipped)
        }

    def answer_to(self, question: Question) -> Answer:
        asked = question if isinstance(question, AskTarget) else question.invocation
        schedule_id, scheduled_at = asked.schedule_id, asked.scheduled_at
        outcome = self._outcomes.get((schedule_id or "", scheduled_at)) if scheduled_at is not None else None
        if isinstance(outcome, OccurrenceSkipped) and outcome.reason == "preflight":
            return Refusal(outcome.detail)
        if not isinstance(question, AskTarget):
            return None
        if isinstance(outcome, OccurrenceAdmitted):
            return Target(question.name, outcome.target_revision, outcome.environment)
        pinned = self._state.by_id[schedule_id].definition.target_revision if schedule_id is not None else None
        return Target(question.name, pinned)


def _is_poll(entries: tuple[Entry, ...]) -> bool:
    return all(isinstance(entry, _IN_A_POLL) and _by_itself(entry) for entry in entries) and any(
        isinstance(entry, (*_DECIDED, ScheduleBlocked)) for entry in entries
    )


def _by_itself(entry: Entry) -> bool:
    return not isinstance(entry, ScheduleBlocked) or (entry.cause == "trigger" and entry.note != AT_OPENING)
