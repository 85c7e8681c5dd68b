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
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    RunStarted,
    ScheduleBlocked,
    SourceRule,
)
from duly.projections import State
from duly.scheduler.decisions.admission import ENGINE
from duly.scheduler.decisions.questions import Answer, AskTarget, Question, Refusal, Target
from duly.scheduler.decisions.recovery import AT_OPENING
from duly.scheduler.sources import SourceFactory
from duly.scheduler.worlds import World

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
    checker = EngineChecker(dict(sources or {}))
    for first, entries in lines:
        checker.check(first, tuple(entries))
    return checker.found


class EngineChecker:
    """Follows a record batch by batch, and decides each of its polls anew."""

    def __init__(self, sources: Mapping[str, SourceFactory]) -> None:
        self.world = World(sources)
        self.polls = 0
        self.incomparable = 0
        self.divergences: list[Divergence] = []
        self.starts = True
        """Whether the host lets its polls start what they offer, as far as the record has shown."""
        self._sources = sources

    @property
    def found(self) -> EngineCheck:
        """What was found so far."""
        return EngineCheck(polls=self.polls, incomparable=self.incomparable, divergences=tuple(self.divergences))

    def check(self, first: int, entries: tuple[Entry, ...]) -> None:
        """Compares one batch, if a poll made it, then folds it in."""
        if is_poll(entries):
            self._compare(first, entries)
        elif any(isinstance(entry, ClockRegressed) for entry in entries):
            self._compare_regression(first, entries)
        self.world.fold(first, entries)

    def leaves_undecided(self, now: datetime) -> bool:
        """Whether a poll at `now` would have decided something: as nothing is recorded there, there was none.

        If so at one instant, then at every later one up to the next batch, too.
        """
        if not self.world.due(now) and not (self.starts and self.world.state.pending):
            return False
        return bool(self._decided(now, (), start=self.starts))

    def _compare(self, first: int, recorded: tuple[Entry, ...]) -> None:
        now = recorded[0].at
        started = any(isinstance(one, RunStarted) for one in recorded)
        admitted = any(isinstance(one, OccurrenceAdmitted) for one in recorded)
        starts = started if started or admitted else self.starts
        if not self._is_comparable(now):
            self.incomparable += 1
            self.starts = starts
            return
        self.polls += 1
        decided = self._decided(now, recorded, start=starts)
        if decided != recorded and not started:
            # A poll that starts its runs and was cut before the first one leaves no start to know it by.
            starts = not starts
            decided = self._decided(now, recorded, start=starts)
        self.starts = starts
        if decided != recorded:
            self.divergences.append(Divergence(first, recorded, decided))

    def _is_comparable(self, now: datetime) -> bool:
        """Whether the record says all that the decision rests on: not for another engine, what is lost, or a trigger
        of the host that this process does not have."""
        if not self._is_believed():
            return False
        rules = (self.world.state.by_id[one].definition.trigger for one in self.world.due(now))
        return not any(isinstance(rule, SourceRule) and rule.source not in self._sources for rule in rules)

    def _is_believed(self) -> bool:
        """Whether the record says all that was known when it was decided, and by these rules: a lost entry may have had
        the highest reading of the clock."""
        state = self.world.state
        return state.opened is not None and state.opened.engine == ENGINE and not state.lost

    def _decided(self, now: datetime, recorded: tuple[Entry, ...], *, start: bool) -> tuple[Entry, ...]:
        faults = [entry for entry in recorded if isinstance(entry, ScheduleBlocked)]
        answers = RecordedAnswers(self.world.state, recorded)
        regression = self.world.regression(now)
        plan = self.world.decide(now, start=start, answer_to=answers.answer_to, faults=faults)
        return plan.entries if regression is None else (regression, *plan.entries)

    def _compare_regression(self, first: int, recorded: tuple[Entry, ...]) -> None:
        if not self._is_believed():
            return
        decided = self.world.regression(recorded[0].at)
        observed = tuple(entry for entry in recorded if not isinstance(entry, ClockJumped))
        if observed != (decided,):
            self.divergences.append(Divergence(first, recorded, () if decided is None else (decided,)))


class RecordedAnswers:
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


def is_poll(entries: Sequence[Entry]) -> bool:
    """Whether a batch is one that a poll decides."""
    return all(isinstance(entry, _IN_A_POLL) and _by_itself(entry) for entry in entries) and any(
        isinstance(entry, (*_DECIDED, ScheduleBlocked)) for entry in entries
    )


def _by_itself(entry: Entry) -> bool:
    return not isinstance(entry, ScheduleBlocked) or (entry.cause == "trigger" and entry.note != AT_OPENING)
