"""A world: a state, the agenda beside it, and the shipped decision functions that act on both, with no journal behind.

Rules: what is folded in is what holds; a poll is decided by `decide_poll` and a step of the clock by
`decide_regression`, as in the Scheduler, and never by a copy of them. The engine check follows a record with one; a
what-if and a simulation let one decide for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from duly.journal.entries import ClockRegressed, Entry, JournalOpened, ScheduleBlocked, TriggerRule
from duly.projections import State
from duly.projections.ranges import range_holding
from duly.projections.schedules import ScheduleState
from duly.scheduler.agenda import Agenda
from duly.scheduler.answers import driven
from duly.scheduler.decisions.admission import decide_poll, decide_regression
from duly.scheduler.decisions.plans import PollPlan, PollRequest
from duly.scheduler.decisions.questions import Answer, Question
from duly.scheduler.errors import SchedulerError, TriggerError
from duly.scheduler.roster import Roster
from duly.scheduler.sources import OccurrenceSource, SourceFactory
from duly.scheduler.triggers import trigger_of


class World:
    """What holds, and what is due in it."""

    def __init__(self, sources: Mapping[str, SourceFactory]) -> None:
        self.state = State()
        self._sources = dict(sources)
        self._agenda = Agenda(self.source_of)

    @property
    def settings(self) -> JournalOpened:
        """The settings in force. Raises SchedulerError where no owner has opened anything yet."""
        opened = self.state.opened
        if opened is None:
            raise SchedulerError(
                "nothing has been opened yet", hint="A record begins with its opening; see `duly verify`"
            )
        return opened

    def coming_after(self, now: datetime) -> datetime | None:
        """When something comes due after `now`, or ceases to wait for a slot; None if nothing does."""
        return self._agenda.coming_after(now)

    def source_of(self, rule: TriggerRule) -> OccurrenceSource:
        """The rule's trigger. Raises TriggerError, DefinitionError."""
        return trigger_of(rule, self._sources)

    def fold(self, first: int, entries: Sequence[Entry], upcoming: Mapping[str, datetime | None] | None = None) -> None:
        """Folds a batch in that begins with the sequence `first`. `upcoming` holds next instants that are known."""
        for sequence, entry in enumerate(entries, first):
            self.state.apply(sequence, entry)
        touched = {getattr(entry, "schedule_id", None) for entry in entries}
        everything = any(isinstance(entry, ClockRegressed) for entry in entries)
        for schedule_id in self.state.by_id if everything else touched:
            schedule = self.state.by_id.get(schedule_id or "")
            if schedule is None:
                continue
            instant = None if upcoming is None else upcoming.get(schedule.id)
            # What was just decided may make it count as decided, too.
            if upcoming is None or schedule.id not in upcoming or (instant and range_holding(schedule.kept, instant)):
                self._agenda.refresh(schedule)
            else:
                self._agenda.changed(schedule, instant)

    def append(self, entries: Sequence[Entry], upcoming: Mapping[str, datetime | None] | None = None) -> int:
        """Folds a batch in behind what there is; returns its first sequence."""
        first = self.state.sequence + 1
        self.fold(first, entries, upcoming)
        return first

    def regression(self, now: datetime) -> ClockRegressed | None:
        """The entry that a poll at `now` would record about its clock, or None."""
        return decide_regression(self.state, now, self.settings.clock_tolerance)

    def decide(
        self,
        now: datetime,
        *,
        start: bool,
        answer_to: Callable[[Question], Answer],
        faults: Sequence[ScheduleBlocked] = (),
    ) -> PollPlan:
        """What a poll at `now` would decide. The triggers of the schedules in `faults` cannot be evaluated in it."""
        settings = self.settings
        # Everything that might be decided is looked at, also where a live poll knows that nothing can be.
        due = Roster((one, now) for one in self.due(now))
        reasons = {fault.schedule_id: fault.reason for fault in faults}

        def source_of(schedule: ScheduleState) -> OccurrenceSource:
            if schedule.id in reasons:
                raise TriggerError(reasons[schedule.id])
            return self.source_of(schedule.definition.trigger)

        for schedule_id in reasons:
            if schedule_id in self.state.by_id:
                due.add(schedule_id, now)
        request = PollRequest(
            now=now,
            task_slots=settings.task_slots,
            batch=settings.batch,
            due=due,
            queued=Roster(),
            source_of=source_of,
            start=start,
        )
        return driven(decide_poll(self.state, request), answer_to)

    def poll(
        self,
        now: datetime,
        *,
        start: bool,
        answer_to: Callable[[Question], Answer],
        faults: Sequence[ScheduleBlocked] = (),
    ) -> tuple[int, PollPlan]:
        """Decides a poll and folds it in; returns its first sequence and what it decided."""
        plan = self.decide(now, start=start, answer_to=answer_to, faults=faults)
        first = self.append(plan.entries, plan.upcoming)
        decided = {getattr(entry, "schedule_id", None) for entry in plan.entries}
        for schedule_id, instant in plan.upcoming.items():
            if schedule_id not in decided:
                self._agenda.place(self.state.by_id[schedule_id], instant)
        self._agenda.wait(plan.waiting, looking=True)
        return first, plan

    def due(self, now: datetime) -> tuple[str, ...]:
        """The schedules that a poll at `now` would look at."""
        queued = self._agenda.queued.instants if len(self.state.started) < self.settings.task_slots else ()
        return tuple({*self._agenda.due(now).instants, *queued})
