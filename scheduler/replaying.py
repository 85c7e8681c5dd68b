"""Replaying: a record that is lived through again, batch by batch, in a world whose policy may be another.

Rules: see `duly.scheduler.whatif`. One reading of the record steers both worlds: the engine check follows it as it is,
and tells when nobody can have polled; the other world follows its clock readings, its commands and its results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from duly.journal.entries import (
    CalendarChanged,
    ClockJumped,
    ClockRegressed,
    Entry,
    JournalClosed,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    RunStarted,
    ScheduleBlocked,
)
from duly.projections import Run
from duly.projections.runs import RunEntry
from duly.scheduler.changes import Changes
from duly.scheduler.commands import Commands, Refused
from duly.scheduler.decisions.plans import PollPlan
from duly.scheduler.decisions.recovery import Findings, decide_recovery
from duly.scheduler.decisions.runs import StillRunning
from duly.scheduler.durations import Durations
from duly.scheduler.engine import EngineChecker, is_poll
from duly.scheduler.errors import Blocked, NoTaskSlot, SchedulerError
from duly.scheduler.instants import in_range
from duly.scheduler.lives import Lives, imagined, step_taken
from duly.scheduler.recorded import LIVED, Key, Record, is_end_of_process, reading_of
from duly.scheduler.recorded_answers import Answers
from duly.scheduler.sources import SourceFactory
from duly.scheduler.worlds import World


class Replaying:
    """One replay on its way. `follow` takes the record's batches in order."""

    def __init__(
        self, record: Record, changes: Changes, durations: Durations, sources: Mapping[str, SourceFactory]
    ) -> None:
        self.checker = EngineChecker(sources)
        self.identical = True
        self.polls = 0
        self.assumed_polls = 0
        self.estimated_runs = 0
        self.shifted_runs = 0
        self._record = record
        self._changes = changes
        self._durations = durations
        self._world = World(sources)
        self._commands = Commands(self._world, changes)
        self._lives = Lives(self._world.state, lambda: self._world.settings.task_slots, self._write)
        self._made: list[tuple[int, Entry]] = []
        self._run_ids: dict[Key, int] = {}
        self._by_hand: dict[int, Key] = {}
        self._loose: set[int] = set()
        self._now: datetime | None = None
        self._closed = True
        self._is_owned = False
        self._leant: set[str] = set()
        self._all_lean = False
        self._moment_leans = False
        self._estimates: set[int] = set()

    @property
    def refused(self) -> Sequence[Refused]:
        """The commands that this world refused."""
        return self._commands.refused

    def is_estimate(self, schedule_id: str, sequence: int | None) -> bool:
        """Whether what this world says of an occurrence of the schedule, in the entry `sequence` or by leaving it
        undecided, rests on how long a run takes that is not on record."""
        if sequence is not None:
            return sequence in self._estimates
        # Undecided: for want of a slot, or behind a run that does not end in time.
        return self._all_lean or schedule_id in self._leant

    def follow(self, first: int, entries: tuple[Entry, ...]) -> list[tuple[int, Entry]]:
        """Lives through one recorded batch and the time before it; returns what this world records meanwhile."""
        self._made = []
        at = reading_of(entries)
        opening = any(isinstance(entry, JournalOpened | CalendarChanged) for entry in entries)
        if at is not None and in_range(at):
            self._let_pass(at, entries, opening=opening)
        before = len(self._made)
        self.checker.check(first, entries)
        if is_poll(entries):
            self.polls += 1
            self._observe_clock(entries[0].at)
            self._poll(entries[0].at, entries)
        else:
            for sequence, entry in enumerate(entries, first):
                self._replay(sequence, entry)
        self.identical = self.identical and before == 0 and [one for _, one in self._made] == list(entries)
        if at is not None and in_range(at):
            self._settle(at, entries, opening=opening)
        self.identical = self.identical and len(self._made) == len(entries)
        return self._made

    # Time

    def _let_pass(self, at: datetime, entries: Sequence[Entry], *, opening: bool) -> None:
        """Lets the time before a batch pass."""
        last, self._now = self._now, at
        if last is None:
            return
        ahead = next((entry.ahead for entry in entries if isinstance(entry, ClockJumped)), None)
        if ahead is not None:
            # The clock was set ahead: nobody was there in between.
            self._lives.shift(ahead)
            self._pass_until(last, max(last, at - ahead), polls=True)
        elif opening:
            if self._closed:
                self._pass_until(last, at, polls=False)
        elif at < last:
            self._lives.shift(at - last)
        else:
            self._pass_until(last, at, polls=True)

    def _pass_until(self, start: datetime, end: datetime, *, polls: bool) -> None:
        now = start
        polls = polls and self._is_owned
        while True:
            due = self._world.coming_after(now) if polls else None
            coming = min((one for one in (self._lives.next_at(), due) if one is not None), default=None)
            if coming is None or coming >= end:
                break
            now = max(now, coming)
            # Whether there is a poll at all may rest on when a run ends that is not on record.
            self._moment_leans = bool(self._leant or self._loose) and coming != due
            self._lives.advance(now)
            polls = polls and self._poll_unrecorded(now)
        self._moment_leans = False
        self._lives.advance(end)

    def _settle(self, at: datetime, entries: Sequence[Entry], *, opening: bool) -> None:
        """What happens at the instant of a batch, behind it."""
        if opening:
            self._end_what_died(at, entries)
        self._closed = any(isinstance(entry, JournalClosed) for entry in entries)
        self._lives.retry(at)
        self._share_estimates(None)
        if self._is_owned and not self._closed:
            self._poll_unrecorded(at)

    def _end_what_died(self, at: datetime, entries: Sequence[Entry]) -> None:
        """Behind an opening: runs of this world alone ended with a process that died, as recovery decides it."""
        vouched = self.checker.world.state.started and not any(is_end_of_process(entry) for entry in entries)
        if self._closed or vouched:
            return
        alone = [run_id for run_id in self._world.state.started if run_id in self._lives]
        if not alone:
            return
        evidence = {one: StillRunning(one) for one in self._world.state.started if one not in alone}
        self._write(decide_recovery(self._world.state, Findings(evidence=evidence), at))
        for run_id in alone:
            self._lives.end(run_id)

    # Polls

    def _poll_unrecorded(self, now: datetime) -> bool:
        """Polls where the host may have polled without leaving an entry; False if it cannot have, up to the next."""
        if self.checker.world.regression(now) is not None:
            # A poll would have told of the clock; a later one would not, once the clock has caught up.
            return True
        more = True
        while more:
            if self.checker.leaves_undecided(now):
                return False
            self._observe_clock(now)
            decided = len(self._made)
            more = self._poll(now, ()).more
            self.assumed_polls += len(self._made) > decided
        return True

    def _poll(self, now: datetime, recorded: tuple[Entry, ...]) -> PollPlan:
        faults = [
            entry
            for entry in recorded
            if isinstance(entry, ScheduleBlocked) and not self._changes.retimes(entry.schedule_id)
        ]
        answers = Answers(self._record, self._world.state, recorded)
        first, plan = self._world.poll(now, start=self.checker.starts, answer_to=answers.answer_to, faults=faults)
        decided = list(enumerate(plan.entries, first))
        self._made.extend(decided)
        self._share_estimates(plan)
        self._mark_estimates(decided)
        started = {entry.run_id for _, entry in decided if isinstance(entry, RunStarted)}
        for sequence, entry in decided:
            if isinstance(entry, OccurrenceAdmitted):
                self._run_ids[entry.schedule_id, entry.scheduled_at] = sequence
                if sequence not in started:
                    self._live(sequence, now)
        for run_id in started:
            self._live(run_id, now)
        return plan

    def _observe_clock(self, now: datetime) -> None:
        regression = self._world.regression(now)
        if regression is not None:
            self._write((regression,))

    def _share_estimates(self, plan: PollPlan | None) -> None:
        """Notes from when on anything may rest on how long a run took that is not on record, and not only its own
        schedule: when task slots could be short, were all schedules at their limits that had such runs, and when a poll
        comes near its batch, which schedules share, too. A run by hand is beyond every limit."""
        if self._all_lean or not (self._leant or self._loose):
            return
        state, slots = self._world.state, self._world.settings.task_slots
        offered, entries = (0, 0) if plan is None else (len(plan.offered), len(plan.entries))
        could_run = sum(
            schedule.definition.max_active_runs or 1
            for one in self._leant
            if (schedule := state.by_id.get(one)) is not None
        )
        open_by_hand = (one for one in self._by_hand if one in state.runs_open)
        leant_by_hand = {one for one in open_by_hand if state.runs_open[one].schedule_id in self._leant}
        could_run += len(leant_by_hand | self._loose)
        for_sure = sum(
            1 for one in state.started if state.runs_open[one].schedule_id not in self._leant and one not in self._loose
        )
        self._all_lean = for_sure + could_run + offered >= slots or 2 * entries >= self._world.settings.batch

    def _mark_estimates(self, decided: Sequence[tuple[int, Entry]]) -> None:
        """Marks what was decided while the duration of a run that is not on record could make a difference."""
        for sequence, entry in decided:
            schedule_id = getattr(entry, "schedule_id", None)
            leans = self._all_lean or self._moment_leans or schedule_id in self._leant
            if schedule_id is not None and leans:
                self._estimates.add(sequence)

    # Runs

    def _live(self, run_id: int, now: datetime) -> None:
        """Settles how a run goes on that was admitted or started just now: as recorded, shifted, or by estimate."""
        run = self._world.state.runs_open[run_id]
        recorded = self._record.runs.get(self._key_of(run))
        started = run.state == "started"
        if recorded is not None and (recorded.started_at if started else recorded.admitted_at) == now:
            self._lives.end(run_id)
            return
        if recorded is None or not recorded.ended or (started and recorded.started_at is None):
            self._estimate(run, now)
            return
        behind = 1 + next((n for n, one in enumerate(recorded.steps) if isinstance(one.entry, RunStarted)), -1)
        steps = recorded.steps[behind:] if started else recorded.steps
        self.shifted_runs += 1
        self._lives.begin(run_id, steps, now)

    def _estimate(self, run: Run, now: datetime) -> None:
        self.estimated_runs += 1
        if run.schedule_id is not None:
            self._leant.add(run.schedule_id)
        if run.id in self._by_hand:
            # No limit of a schedule says how many of them there can be, and by another duration it is open still.
            self._loose.add(run.id)
        self._estimates.add(run.id)
        duration = self._durations.of(run.schedule_id)
        self._lives.begin(run.id, imagined(run, duration, started=run.state == "started"), now)

    # What is recorded, entry by entry

    def _replay(self, sequence: int, entry: Entry) -> None:
        commanded = self._commands.decided(sequence, entry)
        if commanded is not None:
            first = self._write(commanded)
            if sequence in self._record.keys and commanded:
                self._run_ids[sequence] = first
                self._by_hand[first] = sequence
        elif isinstance(entry, RunEntry):
            self._replay_run(sequence, entry)
        elif isinstance(entry, ClockRegressed):
            self._observe_clock(entry.at)
        elif isinstance(entry, JournalOpened):
            self._is_owned = sequence in self._record.polled
            self._write((self._changes.opened(entry),))
        elif not isinstance(entry, OccurrenceSkipped):
            # A skip that stands beside a command is that command's, which decides it anew.
            self._write((entry,))

    def _replay_run(self, sequence: int, entry: RunEntry) -> None:
        recorded = self._record.run(entry.run_id)
        run_id = self._run_ids.get(recorded.key) if recorded is not None else None
        run = self._world.state.runs_open.get(run_id or 0)
        if recorded is None or run is None:
            return
        by_operator = not isinstance(entry, LIVED) and not is_end_of_process(entry)
        if run.id in self._lives and not by_operator:
            return
        try:
            taken = step_taken(self._world.state, run, entry, self._world.settings.task_slots, entry.at)
        except (NoTaskSlot, Blocked):
            steps = [one for one in recorded.steps if one.sequence >= sequence]
            if recorded.ended:
                self.shifted_runs += 1
                self._lives.begin(run.id, steps, entry.at)
            else:
                self._estimate(run, entry.at)
            return
        except SchedulerError:
            return
        self._write(taken)
        if by_operator and run.id not in self._world.state.runs_open:
            self._lives.end(run.id)

    def _write(self, entries: Sequence[Entry]) -> int:
        first = self._world.append(entries)
        written = list(enumerate(entries, first))
        self._made.extend(written)
        self._mark_estimates(written)
        return first

    def _key_of(self, run: Run) -> Key:
        if run.schedule_id is None or run.scheduled_at is None:
            return self._by_hand[run.id]
        return run.schedule_id, run.scheduled_at
