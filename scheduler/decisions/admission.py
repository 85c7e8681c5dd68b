"""Admission: what one poll decides.

Rules (the specification's section 6): every due instant gets exactly one disposition, in ascending order; the first
rule that fits decides; a skip is for good; at most one candidate is ever in question; schedules take turns, beginning
after the one that was admitted last, so that none starves; what does not fit the batch stays as it is for the next
poll. Nothing here reads a clock, calls the host or changes what it is given.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from duly.journal.entries import (
    CandidateHeld,
    ClockRegressed,
    IntervalSkipped,
    Json,
    OccurrenceAdmitted,
    OneShotRule,
    RunStarted,
    ScheduleBlocked,
    SkipReason,
)
from duly.projections import State
from duly.projections.runs import occurrence_id
from duly.projections.schedules import ScheduleState
from duly.scheduler.decisions.batch import Batch
from duly.scheduler.decisions.occurrences import Due, due_instants
from duly.scheduler.decisions.plans import PollPlan, PollRequest, Waiting
from duly.scheduler.decisions.questions import (
    Answer,
    AskPreflight,
    AskTarget,
    Invocation,
    Question,
    Refusal,
    Target,
    the_target,
)
from duly.scheduler.decisions.turns import TICK, Turn, deadline, spending
from duly.scheduler.errors import TriggerError
from duly.scheduler.inputs import InputUnresolved, resolve_input
from duly.scheduler.roster import turn_order
from duly.scheduler.wording import shortened

ENGINE: Final = 1
"""The version of these rules: it is recorded, and records of another are not comparable."""

Deciding: TypeAlias = Generator[Question, Answer, None]


def decide_regression(state: State, now: datetime, tolerance: timedelta) -> ClockRegressed | None:
    """The entry that a clock calls for which reads earlier than the record by more than the tolerance, or None."""
    if state.highest_at is None or now >= state.highest_at - tolerance:
        return None
    return ClockRegressed(at=now, tolerance=tolerance, highest=state.highest_at)


def decide_poll(state: State, request: PollRequest) -> Generator[Question, Answer, PollPlan]:
    """Decides one poll; asks for targets and preflights on the way."""
    poll = _Poll(state, request)
    poll.sweep()
    yield from poll.take_turns()
    return PollPlan(tuple(poll.batch.entries), tuple(poll.offered), tuple(poll.waiting), poll.upcoming, poll.batch.cut)


class _Poll:
    """One poll on its way: the batch so far and the slots that are left."""

    def __init__(self, state: State, request: PollRequest) -> None:
        self.state = state
        self.request = request
        self.now = request.now
        self.batch = Batch(request.now, request.batch)
        self.offered: list[int] = []
        self.waiting: list[Waiting] = []
        self.upcoming: dict[str, datetime | None] = {}
        self._free = request.task_slots - len(state.started)
        self._known: dict[tuple[int, datetime], Due] = {}

    def sweep(self) -> None:
        """Offers the runs that were admitted and not started, the oldest first, while task slots are free."""
        for run_id in self.state.pending:
            if self._free <= 0:
                return
            run = self.state.runs_open[run_id]
            if self.state.blocking(run.schedule_id) is not None:
                continue
            if self.request.start and not self.batch.add(
                RunStarted(at=self.now, run_id=run_id, schedule_id=run.schedule_id)
            ):
                return
            self._offer(run_id)

    def _offer(self, run_id: int) -> None:
        self.offered.append(run_id)
        self._free -= 1

    # Turns

    def take_turns(self) -> Deciding:
        """Round after round, each schedule in its turn, while a round decides something.

        What only waits for a slot has its turn while there is one: without one, nothing about it could be decided.
        """
        request = self.request
        order = turn_order(request.due, request.queued, self.state.newest_admission, lambda: self._free > 0)
        turns: Iterable[Turn] = (Turn(self.state.by_id[one]) for one in order)
        decided = True
        while decided:
            before = len(self.batch.entries)
            unfinished: list[Turn] = []
            for turn in turns:
                yield from self._take(turn)
                if self.batch.cut:
                    return
                if not turn.finished:
                    unfinished.append(turn)
            decided = len(self.batch.entries) > before
            turns = unfinished

    def _take(self, turn: Turn) -> Deciding:
        schedule, request = turn.schedule, self.request
        if schedule.block is not None or schedule.deleted or schedule.exhausted:
            turn.finished = True
            return
        offered = len(self.offered)
        while not (turn.finished or self.batch.cut or len(self.offered) > offered):
            due = turn.due or self._due(turn)
            if due is None:
                return
            if schedule.paused or schedule.disabled:
                self._pass_over(turn, due)
                break
            if due.capped and not self._jump(turn, due):
                return
            instant = self._eligible(turn, due)
            if instant is None:
                continue
            name = schedule.definition.target
            target = (yield AskTarget(name, schedule.id, instant)) if request.asks_target else Target(name)
            admission = self._admission(turn, due, instant, target)
            if admission is None:
                continue
            refusal = (yield AskPreflight(_invocation(admission))) if request.asks_preflight else None
            if isinstance(refusal, Refusal):
                self._refuse(turn, instant, refusal.detail, exhausts=admission.exhausts)
            else:
                self._admit(turn, admission)
        if turn.due is not None and not turn.due.instants and not self.batch.cut:
            self.upcoming[schedule.id] = turn.due.upcoming

    def _due(self, turn: Turn) -> Due | None:
        """What the schedule has due beyond what this poll decided; None if that cannot be told, which is decided."""
        schedule = turn.schedule
        # Many go by one rule and are decided up to one instant, and then the same is due of them.
        like = (id(schedule.definition.trigger), turn.through)
        ahead = bool(turn.kept) and turn.kept[-1][1] > turn.through
        known = None if ahead else self._known.get(like)
        if known is not None:
            turn.due = known
            return known
        try:
            due = due_instants(self.request.source_of(schedule), turn.through, self.now, turn.kept)
        except TriggerError as error:
            reason = shortened(str(error))
            self.batch.add(ScheduleBlocked(at=self.now, schedule_id=schedule.id, cause="trigger", reason=reason))
            turn.finished = True
            return None
        if not ahead:
            self._known[like] = due
        turn.due = due
        return due

    def _pass_over(self, turn: Turn, due: Due) -> None:
        """A paused or disabled one-shot is skipped when its time passes: nothing else would ever decide it."""
        turn.finished = True
        if isinstance(turn.schedule.definition.trigger, OneShotRule) and due.instants:
            reason: SkipReason = "paused" if turn.schedule.paused else "disabled"
            self.batch.skip(turn, due.instants[0], reason, exhausts=True)

    def _jump(self, turn: Turn, due: Due) -> bool:
        """Decides everything between the watermark and the newest due instant with one entry."""
        newest = due.instants[0]
        if turn.position > 0 or turn.through >= newest - TICK:
            return True
        if not self._settle_candidate(turn, newest) or turn.due is None:
            return False
        interval = IntervalSkipped(
            at=self.now,
            schedule_id=turn.schedule.id,
            revision=turn.schedule.revision,
            after=turn.through,
            before=newest,
            at_least=due.seen,
            reason="superseded" if turn.schedule.definition.misfire == "latest" else "backlog",
        )
        if not self.batch.add(interval):
            return False
        turn.through = newest - TICK
        return True

    # The rows of the table

    def _eligible(self, turn: Turn, due: Due) -> datetime | None:
        """Decides by the rows before the recheck; gives the instant that is left to the others, or None."""
        if turn.position == len(due.instants):
            turn.finished = True
            return self._eligible_candidate(turn, due)
        instant = due.instants[turn.position]
        newest = due.instants[-1]
        if turn.candidate is not None and (not self._settle_candidate(turn, newest) or turn.due is None):
            return None
        schedule = turn.schedule
        by = spending(schedule, instant)
        if by is not None:
            skipped = self.batch.skip(turn, instant, "spent", by=by, exhausts=self._last(turn, due))
            self._consume(turn, instant, skipped, kept=True)
            return None
        missed = self.now >= deadline(schedule, instant)
        if missed and schedule.definition.misfire != "latest":
            reason: SkipReason = "misfire" if self._free > 0 else "capacity"
            self._consume(turn, instant, self.batch.skip(turn, instant, reason, exhausts=self._last(turn, due)))
            return None
        if missed and instant < newest:
            self._consume(turn, instant, self.batch.supersede(turn, instant, newest))
            return None
        return instant

    def _eligible_candidate(self, turn: Turn, due: Due) -> datetime | None:
        candidate = turn.candidate
        if candidate is None:
            return None
        if candidate > self.now:
            # The clock stepped back a little: without this note nobody would look again when its time comes.
            self.waiting.append(Waiting(turn.schedule.id, candidate, candidate))
            return None
        by = spending(turn.schedule, candidate)
        if by is not None:
            skipped = self.batch.skip(turn, candidate, "spent", by=by, exhausts=self._last(turn, due))
            self._consume(turn, candidate, skipped, kept=True)
            return None
        return candidate if self._free > 0 else None

    def _admission(self, turn: Turn, due: Due, instant: datetime, target: Answer) -> _Admission | None:
        """Decides by the rows from the recheck on; gives what is left to the preflight, or None."""
        schedule = turn.schedule
        exhausts = self._last(turn, due)
        found = _rechecked(schedule, target)
        if isinstance(found, Refusal):
            self._refuse(turn, instant, found.detail, exhausts=exhausts)
        elif turn.active >= turn.limit:
            skipped = self.batch.skip(turn, instant, "overlap", blocking_run=turn.blocking, exhausts=exhausts)
            self._consume(turn, instant, skipped, kept=True)
        elif self._free <= 0:
            self._await_slot(turn, due, instant)
        else:
            try:
                resolved = resolve_input(schedule.definition.input, schedule.id, instant)
            except InputUnresolved as error:
                self._refuse(turn, instant, str(error), exhausts=exhausts)
            else:
                return _Admission(schedule, instant, found, resolved, exhausts)
        return None

    def _last(self, turn: Turn, due: Due) -> bool:
        """Whether the decision at hand is the schedule's last: nothing else is due, held or to come."""
        others_due = turn.position < len(due.instants) - 1
        deciding_candidate = turn.position == len(due.instants)
        return due.upcoming is None and not others_due and (deciding_candidate or turn.candidate is None)

    # Outcomes

    def _await_slot(self, turn: Turn, due: Due, instant: datetime) -> None:
        schedule = turn.schedule
        if schedule.definition.misfire == "skip":
            until = deadline(schedule, instant)
            self.waiting.append(Waiting(schedule.id, instant, min(until, due.upcoming or until)))
            turn.finished = True
            return
        held = CandidateHeld(at=self.now, schedule_id=schedule.id, scheduled_at=instant, revision=schedule.revision)
        if self.batch.add(held):
            self._consume(turn, instant, True)
            turn.candidate = instant

    def _refuse(self, turn: Turn, instant: datetime, detail: str, *, exhausts: bool) -> None:
        skipped = self.batch.skip(turn, instant, "preflight", detail=detail, exhausts=exhausts)
        self._consume(turn, instant, skipped, kept=True)

    def _admit(self, turn: Turn, admission: _Admission) -> None:
        schedule, instant, target = admission.schedule, admission.instant, admission.target
        definition = schedule.definition
        admitted = OccurrenceAdmitted(
            at=self.now,
            schedule_id=schedule.id,
            scheduled_at=instant,
            revision=schedule.revision,
            target=target.name,
            target_revision=target.revision,
            environment=target.environment,
            input=admission.input,
            limits=definition.limits,
            lateness=definition.lateness,
            exhausts=admission.exhausts,
        )
        run_id = self.state.sequence + len(self.batch.entries) + 1
        started = (RunStarted(at=self.now, run_id=run_id, schedule_id=schedule.id),) if self.request.start else ()
        if not self.batch.add(admitted, *started):
            return
        self._consume(turn, instant, True, kept=True)
        turn.active += 1
        turn.blocking = turn.blocking or run_id
        self._offer(run_id)

    def _settle_candidate(self, turn: Turn, newest: datetime) -> bool:
        """A newer instant is due: the candidate gives way, whatever becomes of the newer one."""
        candidate = turn.candidate
        if candidate is None:
            return True
        by = spending(turn.schedule, candidate)
        if by is not None:
            settled = self.batch.skip(turn, candidate, "spent", by=by, exhausts=False)
            if settled:
                turn.keep(candidate)
        else:
            settled = self.batch.supersede(turn, candidate, newest)
        if settled:
            turn.candidate = None
        return settled

    def _consume(self, turn: Turn, instant: datetime, recorded: bool, *, kept: bool = False) -> None:
        """Moves the turn on, if the decision found its place in the batch."""
        if not recorded:
            return
        due = turn.due
        if kept:
            turn.keep(instant)
        if instant == turn.candidate:
            turn.candidate = None
            return
        turn.through = instant
        if turn.due is None:
            return
        turn.position += 1
        if due is not None and turn.position == len(due.instants):
            self.upcoming[turn.schedule.id] = due.upcoming
            turn.finished = turn.candidate is None


class _Admission(NamedTuple):
    """An occurrence that nothing but the host's preflight stands in the way of."""

    schedule: ScheduleState
    instant: datetime
    target: Target
    input: dict[str, Json]
    exhausts: bool


def _rechecked(schedule: ScheduleState, target: Answer) -> Target | Refusal:
    """The schedule's target as it is now, or why it cannot be used: unknown, refused, or not at the pinned revision."""
    name, pinned = schedule.definition.target, schedule.definition.target_revision
    if target is None:
        return Refusal(f"{the_target(name)} unknown")
    if isinstance(target, Target) and pinned is not None and target.revision != pinned:
        return Refusal(f"{the_target(name)} at revision {target.revision!r}, and {pinned!r} is pinned")
    return target


def _invocation(admission: _Admission) -> Invocation:
    schedule, instant, target = admission.schedule, admission.instant, admission.target
    return Invocation(
        schedule_id=schedule.id,
        occurrence_id=occurrence_id(schedule.id, instant),
        scheduled_at=instant,
        target=target.name,
        target_revision=target.revision,
        environment=target.environment,
        input=admission.input,
        limits=schedule.definition.limits,
    )
