"""The reference model: what SPEC sections 6, 8, 9 and 10 say, once more, slowly and in plain words.

It shares nothing with the code that it judges. Schedules come with their instants as data (a sorted sequence), so that
there is no calendar here; the host's answers (targets, preflight, evidence) are data too. Every command returns the
entries that it appends, as dicts of the fields that the model vouches for, or raises `Refused`. Sentences in quotation
marks are the specification's.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from tests.scheduler.reference_kept import Kept, keep
from tests.scheduler.reference_runs import Refused, Runs, Told
from tests.scheduler.reference_turn import Batch, BatchFull, Turn

MICROSECOND = timedelta(microseconds=1)
SCAN_CAP = 100
EARLIEST, LATEST = datetime(1972, 1, 1, tzinfo=UTC), datetime(2101, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Rule:
    """A definition. `instants` is the calendar, handed in; `cadence` says how it is to be read."""

    instants: Sequence[datetime]
    cadence: str = "recurring"  # or "one_shot", or "once_per" (the instants are the first ones of the periods)
    overlap: str = "skip"
    limit: int = 1
    misfire: str = "latest"
    lateness: timedelta = timedelta(seconds=60)
    target: str = "work"
    pin: str | None = None


@dataclass
class Schedule:
    rule: Rule
    revision: int = 1
    consumed_through: datetime | None = None
    candidate: datetime | None = None
    kept: list[Kept] = field(default_factory=list[Kept])
    exhausted: bool = False
    paused: bool = False
    disabled: bool = False
    deleted: bool = False
    stamps: list[tuple[datetime, int]] = field(default_factory=list[tuple[datetime, int]])
    admitted: dict[datetime, int] = field(default_factory=dict[datetime, int])


@dataclass
class Polled:
    entries: list[Told]
    offered: list[int]
    more: bool


class Model(Runs):
    def __init__(
        self, *, task_slots: int = 8, batch: int = 1000, clock_tolerance: timedelta = timedelta(minutes=5)
    ) -> None:
        super().__init__(task_slots)
        self.batch = batch
        self.clock_tolerance = clock_tolerance
        self.schedules: dict[str, Schedule] = {}
        self.newest_admission = ""
        self.targets: dict[str, str | None] | None = None  # None: every target is accepted, unpinned
        self.refusing: set[str] = set()  # the schedules whose preflight refuses

    # Administration

    def create(self, now: datetime, schedule_id: str, rule: Rule) -> list[Told]:
        if schedule_id in self.schedules:
            raise Refused("DuplicateSchedule")  # "the id is never reusable"
        if rule.cadence == "one_shot" and now - rule.instants[0] > rule.lateness:
            raise Refused("DefinitionError")  # "In the past beyond its lateness: refused at create."
        schedule = Schedule(rule)
        self.schedules[schedule_id] = schedule
        start = now
        if rule.cadence == "one_shot":  # "Creating a OneShot sets C = min(now, at - 1 µs)"
            start = min(now, rule.instants[0] - MICROSECOND)
        return self._baseline(now, schedule_id, "ScheduleCreated", "", start)

    def edit(self, now: datetime, schedule_id: str, revision: int, rule: Rule) -> list[Told]:
        schedule = self._living(schedule_id)
        if revision != schedule.revision:
            raise Refused("RevisionConflict")
        if rule == schedule.rule:
            return []  # "an edit that changes nothing, journal nothing"
        start = now
        if rule.cadence == "one_shot":
            at, through = rule.instants[0], schedule.consumed_through
            to_another = (rule.cadence, rule.instants) != (schedule.rule.cadence, schedule.rule.instants)
            if to_another and ((through is not None and at <= through) or now - at > rule.lateness):
                raise Refused("DefinitionError")  # "is refused if `at` <= C"; "one-shot in the past": as at create
            start = min(now, at - MICROSECOND)
        schedule.rule, schedule.exhausted = rule, False
        schedule.revision += 1
        return self._baseline(now, schedule_id, "ScheduleEdited", "edited", start)

    def pause(self, now: datetime, schedule_id: str) -> list[Told]:
        return self._switch(now, schedule_id, "paused", True, "SchedulePaused")

    def unpause(self, now: datetime, schedule_id: str) -> list[Told]:
        return self._switch(now, schedule_id, "paused", False, "ScheduleUnpaused")

    def disable(self, now: datetime, schedule_id: str) -> list[Told]:
        return self._switch(now, schedule_id, "disabled", True, "ScheduleDisabled")

    def enable(self, now: datetime, schedule_id: str) -> list[Told]:
        return self._switch(now, schedule_id, "disabled", False, "ScheduleEnabled")

    def delete(self, now: datetime, schedule_id: str) -> list[Told]:
        schedule = self._living(schedule_id)
        told = self._baseline(now, schedule_id, "ScheduleDeleted", "deleted", now)
        schedule.deleted = True
        return told

    def block(self, now: datetime, schedule_id: str) -> list[Told]:
        self._living(schedule_id)
        self.blocked_schedules.add(schedule_id)
        return [self.tell("ScheduleBlocked", now, schedule_id=schedule_id, cause="operator")]

    def unblock(self, now: datetime, schedule_id: str) -> list[Told]:
        self._living(schedule_id)
        self.blocked_schedules.discard(schedule_id)
        return [self.tell("ScheduleUnblocked", now, schedule_id=schedule_id)]

    def rebaseline(self, now: datetime, schedule_id: str, through: datetime) -> list[Told]:
        schedule = self._living(schedule_id)
        before = schedule.consumed_through
        fields: Told = {"schedule_id": schedule_id, "through": through}
        if before is not None and before > through:  # "it acts as a regression to `through` for this schedule"
            told = self.tell("ScheduleRebaselined", now, regressed=True, **fields)
            self._regress(schedule, through)
            return [told]
        held = schedule.candidate is not None and schedule.candidate <= through
        if before == through and not held:
            return []  # nothing moves
        skipped = self._skip_candidate(now, schedule_id, "operator") if held else []
        schedule.consumed_through = through
        fields |= {"covers_after": before, "exhausts": self._exhausts(schedule), "regressed": False}
        return [*skipped, self.tell("ScheduleRebaselined", now, **fields)]

    def external(self, now: datetime, schedule_id: str, started_at: datetime) -> list[Told]:
        schedule = self._living(schedule_id)
        told = self.tell("ExternalRunRecorded", now, schedule_id=schedule_id, started_at=started_at)
        schedule.stamps.append((started_at, self.sequence))
        return [told]

    def run_now(self, now: datetime, schedule_id: str) -> list[Told]:
        """ "a manual run: no occurrence, moves no watermark, admitted pending, never refused for capacity" """
        if self.stopped:
            raise Refused("SchedulerClosed")  # "`run_now` and `resume` after `stop_admitting` raise it too"
        schedule = self._living(schedule_id)
        if schedule_id in self.blocked_schedules:
            raise Refused("Blocked")
        if not self.target_fits(schedule.rule) or schedule_id in self.refusing:
            raise Refused("DefinitionError")
        told = self.tell("RunAdmittedManually", now, schedule_id=schedule_id)
        self.admit_run(self.sequence, schedule_id, manual=True)
        schedule.stamps.append((now, self.sequence))
        return [told]

    def _switch(self, now: datetime, schedule_id: str, name: str, on: bool, kind: str) -> list[Told]:
        schedule = self._living(schedule_id)
        if getattr(schedule, name) == on:
            return []  # "Repeating a pause, unpause, disable or enable ... journal nothing."
        told = self._baseline(now, schedule_id, kind, name, now)
        setattr(schedule, name, on)
        return told

    def _baseline(self, now: datetime, schedule_id: str, kind: str, reason: str, start: datetime) -> list[Told]:
        """ "Create, pause, unpause, edit, disable, enable and delete set C = max(C, now), say in the entry what they
        cover, and skip a held candidate in the same batch" """
        told = self._skip_candidate(now, schedule_id, reason)
        schedule = self.schedules[schedule_id]
        rule, before = schedule.rule, schedule.consumed_through
        # "C = max(C, first instant of the current period - 1 µs)"; but nothing decides what a deletion leaves of it.
        if rule.cadence == "once_per" and kind != "ScheduleDeleted":
            start = rule.instants[bisect_right(rule.instants, now) - 1] - MICROSECOND
        schedule.consumed_through = start if before is None else max(before, start)
        exhausts = self._exhausts(schedule)
        covers: Told = {"covers_after": before, "covers_through": schedule.consumed_through}
        return [*told, self.tell(kind, now, schedule_id=schedule_id, exhausts=exhausts, **covers)]

    def _skip_candidate(self, now: datetime, schedule_id: str, reason: str) -> list[Told]:
        schedule = self.schedules[schedule_id]
        held = schedule.candidate
        if held is None:
            return []
        self._consume(schedule, held, kept=reason == "operator")  # if that was the last instant, the baseline says so
        fields: Told = {"schedule_id": schedule_id, "scheduled_at": held, "reason": reason, "exhausts": False}
        return [self.tell("OccurrenceSkipped", now, **fields)]

    # The poll

    def poll(self, now: datetime, *, start: bool = False) -> Polled:
        if self.stopped or not EARLIEST <= now < LATEST:
            return Polled([], [], False)
        regression = [self._regress_all(now)] if now < self.highest - self.clock_tolerance else []
        batch = Batch(self.batch, self.started_runs(), start)
        more = False
        try:
            self._sweep(now, batch)
            self._rounds(now, batch)
        except BatchFull:
            more = True
        return Polled([*regression, *batch.entries], batch.offered, more)

    def _sweep(self, now: datetime, batch: Batch) -> None:
        """ "Runs admitted and not started, oldest run id first, are offered while task slots are free." """
        for run_id in self.pending_runs():
            blocked = self.runs[run_id].schedule_id in self.blocked_schedules
            if batch.started + len(batch.offered) < self.task_slots and not blocked:
                if batch.start:  # "`poll(start=True)` also starts what it offers (swept runs too)"
                    batch.add(1, partial(self._starts, now, run_id))
                batch.offered.append(run_id)

    def _starts(self, now: datetime, run_id: int) -> list[Told]:
        return [self.started(now, run_id)]

    def _rounds(self, now: datetime, batch: Batch) -> None:
        """ "by schedule id, beginning after the schedule of the newest OccurrenceAdmitted in the journal. They take
        turns in that order, round after round, while a round decided something." """
        ids = sorted(self.schedules)
        order = [one for one in ids if one > self.newest_admission] + [
            one for one in ids if one <= self.newest_admission
        ]
        decided = True
        while decided:
            turns = [Turn(self, now, schedule_id, batch).take() for schedule_id in order]
            decided = any(turns)

    def _regress_all(self, now: datetime) -> Told:
        """ "the rebaseline of every schedule whose C > now + tolerance (blocked and paused ones too)" """
        told = self.tell("ClockRegressed", now, tolerance=self.clock_tolerance, highest=self.highest)
        for schedule in self.schedules.values():
            through = schedule.consumed_through
            if through is not None and through > now + self.clock_tolerance:
                self._regress(schedule, now)
        self.highest = now  # "the highest `at` from the last ClockRegressed on, itself included"
        return told

    def _regress(self, schedule: Schedule, through: datetime) -> None:
        """ "C returns to now. Above now, only [kept decisions] stay decided; ... candidates above now are void." """
        schedule.consumed_through = through
        if schedule.candidate is not None and schedule.candidate > through:
            schedule.candidate = None
        if self._next(schedule, through) is not None:
            schedule.exhausted = False

    # What the entries do to a schedule

    def admit(self, now: datetime, schedule_id: str, instant: datetime) -> Told:
        schedule = self.schedules[schedule_id]
        last = self._is_last(schedule, instant)
        fields: Told = {"schedule_id": schedule_id, "scheduled_at": instant, "revision": schedule.revision}
        told = self.tell("OccurrenceAdmitted", now, exhausts=last, lateness=schedule.rule.lateness, **fields)
        self.admit_run(self.sequence, schedule_id, manual=False)
        self.newest_admission = schedule_id
        assert instant not in schedule.admitted, "no occurrence is ever admitted twice"
        schedule.admitted[instant] = self.sequence
        self._consume(schedule, instant, kept=True, last=last)
        return told

    def skip(self, now: datetime, schedule_id: str, instant: datetime, reason: str, **more: object) -> Told:
        schedule = self.schedules[schedule_id]
        last = self._is_last(schedule, instant)
        self._consume(schedule, instant, kept=reason in ("overlap", "preflight", "spent", "operator"), last=last)
        fields: Told = {"schedule_id": schedule_id, "scheduled_at": instant, "reason": reason, "exhausts": last}
        return self.tell("OccurrenceSkipped", now, **fields, **more)

    def supersede(self, now: datetime, schedule_id: str, instant: datetime, by: datetime) -> Told:
        self._consume(self.schedules[schedule_id], instant)
        return self.tell("OccurrenceSuperseded", now, schedule_id=schedule_id, scheduled_at=instant, by=by)

    def hold(self, now: datetime, schedule_id: str, instant: datetime) -> Told:
        schedule = self.schedules[schedule_id]
        self._consume(schedule, instant)
        schedule.candidate = instant
        return self.tell("CandidateHeld", now, schedule_id=schedule_id, scheduled_at=instant)

    def pass_over(self, now: datetime, schedule_id: str, before: datetime, seen: int, reason: str) -> Told:
        schedule = self.schedules[schedule_id]
        bounds: Told = {"after": schedule.consumed_through, "before": before, "at_least": seen, "reason": reason}
        schedule.consumed_through = before - MICROSECOND
        return self.tell("IntervalSkipped", now, schedule_id=schedule_id, **bounds)

    def _consume(self, schedule: Schedule, instant: datetime, *, kept: bool = False, last: bool = False) -> None:
        """ "Every outcome but "undecided" consumes the instant (C advances to it)." """
        before = schedule.consumed_through
        if kept:
            schedule.kept = keep(schedule.kept, before, instant)
        if schedule.candidate == instant:
            schedule.candidate = None
        schedule.consumed_through = instant if before is None else max(before, instant)
        schedule.exhausted = schedule.exhausted or last

    # What the calendar, the record and the host say

    def due(self, schedule: Schedule, now: datetime) -> list[datetime]:
        """ "at most SCAN_CAP = 100 instants <= now" """
        found: list[datetime] = []
        instant = self._next(schedule, schedule.consumed_through)
        while instant is not None and instant <= now and len(found) < SCAN_CAP:
            found.append(instant)
            instant = self._next(schedule, instant)
        return found

    def newest_due(self, schedule: Schedule, now: datetime) -> datetime:
        """ "one `prev_before(now + 1 µs)` gives the newest due instant N"; "the choice of N jump[s] over ranges" """
        instants, limit = schedule.rule.instants, now + MICROSECOND
        while True:
            newest = instants[bisect_left(instants, limit) - 1]
            over = next((one for one in schedule.kept if one.first <= newest <= one.last), None)
            if over is None:
                return newest
            limit = over.first

    def next_due(self, now: datetime, *, slot_free: bool = True) -> datetime | None:
        """ "the earliest of: next instant of any live schedule, expiry of a waiting one" """
        times: list[datetime] = []
        for schedule_id, schedule in self.schedules.items():
            off = (schedule.paused or schedule.disabled) and schedule.rule.cadence != "one_shot"
            if off or schedule.deleted or schedule.exhausted or schedule_id in self.blocked_schedules:
                continue  # (a one-shot that is off is skipped when its time passes: that is something to decide)
            upcoming = self._next(schedule, max(now, schedule.consumed_through or now))
            held = schedule.candidate  # after a small step back, one that is still to come
            decidable = slot_free or schedule.rule.cadence == "once_per"  # without a slot nothing is to be decided then
            times += [held] if held is not None and held > now and decidable else []
            waiting = self._next(schedule, schedule.consumed_through)
            times += [] if upcoming is None else [upcoming]
            times += [self.deadline(schedule, waiting)] if waiting is not None and waiting <= now else []
        return min(times, default=None)

    def deadline(self, schedule: Schedule, instant: datetime) -> datetime:
        """The first moment at which the instant is missed: "now - instant <= lateness allowance" is timely; a period is
        timely as a whole."""
        if schedule.rule.cadence == "once_per":
            return self.period_end(schedule, instant)
        return instant + schedule.rule.lateness + MICROSECOND

    def period_end(self, schedule: Schedule, instant: datetime) -> datetime:
        instants = schedule.rule.instants
        return instants[bisect_right(instants, instant)]

    def spent_by(self, schedule: Schedule, instant: datetime) -> int | None:
        """ "by = the lowest sequence that spent it"; "The rule is over the set, never over the newest row" """
        if schedule.rule.cadence != "once_per":
            return None
        end = self.period_end(schedule, instant)
        spending = [sequence for stamp, sequence in schedule.stamps if instant <= stamp < end]
        spending += [sequence for admitted, sequence in schedule.admitted.items() if admitted == instant]
        return min(spending, default=None)

    def target_fits(self, rule: Rule) -> bool:
        if self.targets is None:
            return True
        return rule.target in self.targets and rule.pin in (None, self.targets[rule.target])

    def _next(self, schedule: Schedule, after: datetime | None) -> datetime | None:
        """The next instant that is not decided: "Enumeration ... jump[s] over ranges" """
        instants = schedule.rule.instants
        while True:
            position = 0 if after is None else bisect_right(instants, after)
            if position == len(instants):
                return None
            over = next((one for one in schedule.kept if one.first <= instants[position] <= one.last), None)
            if over is None:
                return instants[position]
            after = over.last

    def _exhausts(self, schedule: Schedule) -> bool:
        """Whether a baseline that has moved the watermark is what leaves the schedule without a further instant."""
        newly = not schedule.exhausted and self._next(schedule, schedule.consumed_through) is None
        schedule.exhausted = schedule.exhausted or newly
        return newly

    def _is_last(self, schedule: Schedule, instant: datetime) -> bool:
        """ "Exhaustion is a flag set by the entry that decides the last instant, whatever its outcome" """
        through = schedule.consumed_through
        return self._next(schedule, instant if through is None else max(through, instant)) is None

    def _living(self, schedule_id: str) -> Schedule:
        schedule = self.schedules.get(schedule_id)
        if schedule is None or schedule.deleted:
            raise Refused("UnknownSchedule")
        return schedule
