"""The chronicle: what raw entries say, read by a second pair of eyes, and the rules that they must keep.

Rules: it is written from the specification and imports nothing but the entries themselves. It is fed every entry in
order; each rule of section 14.9 that one entry can break is checked when that entry comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from duly.journal.entries import (
    AttemptCleared,
    CandidateHeld,
    ClockRegressed,
    Definition,
    Entry,
    IntervalSkipped,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    OncePerRule,
    OneShotRule,
    ResumeMarked,
    RunAbandoned,
    RunAdmittedManually,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    ScheduleBlocked,
    ScheduleCreated,
    ScheduleDeleted,
    ScheduleDisabled,
    ScheduleEdited,
    ScheduleEnabled,
    SchedulePaused,
    ScheduleRebaselined,
    ScheduleUnblocked,
    ScheduleUnpaused,
)

TICK = timedelta(microseconds=1)
LASTING = {"overlap", "preflight", "spent", "operator"}
BY_ADMINISTRATION = {"paused", "edited", "disabled", "deleted", "operator"}
NEXT_STATE = {RunCompleted: "completed", RunFailed: "failed", RunInterrupted: "interrupted", RunAbandoned: "abandoned"}
Flag = tuple[str, bool]


@dataclass
class RunLife:
    """One run, as the entries tell it."""

    id: int
    schedule_id: str | None
    manual: bool
    state: str = "pending"
    attempt_id: int | None = None
    history: list[tuple[str, int | None]] = field(default_factory=lambda: [("pending", None)])

    @property
    def ended(self) -> bool:
        return self.state in ("completed", "failed", "abandoned")

    def become(self, state: str, attempt_id: int | None) -> None:
        self.state, self.attempt_id = state, attempt_id
        self.history.append((state, attempt_id))


@dataclass
class ScheduleLife:
    """One schedule, as the entries tell it."""

    id: str
    definition: Definition
    through: datetime
    revision: int = 1
    held: datetime | None = None
    blocked: bool = False
    block_cause: str = ""
    deleted: bool = False
    paused: bool = False
    disabled: bool = False
    decided: dict[datetime, bool] = field(default_factory=dict[datetime, bool])
    """Each instant with an entry of its own, and whether it stays decided when the clock steps back behind it."""
    ever: set[Flag] = field(default_factory=set[Flag])

    @property
    def limit(self) -> int:
        """How many runs it may have at once."""
        return self.definition.max_active_runs or 1

    @property
    def by_period(self) -> bool:
        """Whether its instants are calendar periods, which have no lateness."""
        return isinstance(self.definition.trigger, OncePerRule)

    def become(self, flag: str, value: bool) -> None:
        setattr(self, flag, value)
        self.ever.add((flag, value))

    def step_back(self, now: datetime) -> None:
        self.through = now
        self.decided = {one: lasting for one, lasting in self.decided.items() if lasting or one <= now}
        if self.held is not None and self.held > now:
            self.held = None


def is_one_shot(definition: Definition) -> bool:
    return isinstance(definition.trigger, OneShotRule)


class Chronicle:
    """The schedules and runs of a journal, and everything that was ever said in it."""

    def __init__(self, entries: Iterable[tuple[int, Entry]] = ()) -> None:
        self.schedules: dict[str, ScheduleLife] = {}
        self.runs: dict[int, RunLife] = {}
        self.words: dict[str, int] = {}
        """Each token that a command left in its entry, with the sequence."""
        self.slots = 0
        self.tolerance = timedelta()
        self.highest: datetime | None = None
        """The highest clock reading since the last one that stepped back."""
        self.sequence = 0
        self.newest_admission: str | None = None
        for sequence, entry in entries:
            self.take(sequence, entry)

    @property
    def started(self) -> list[RunLife]:
        return [run for run in self.runs.values() if run.state == "started"]

    @property
    def pending(self) -> list[RunLife]:
        return [run for run in self.runs.values() if run.state == "pending"]

    def active(self, schedule_id: str) -> int:
        """How many schedule slots are taken."""
        return sum(run.schedule_id == schedule_id and not run.manual and not run.ended for run in self.runs.values())

    def blocked(self, schedule_id: str | None) -> bool:
        return schedule_id is not None and schedule_id in self.schedules and self.schedules[schedule_id].blocked

    def take(self, sequence: int, entry: Entry) -> None:
        """The next entry. Raises AssertionError where it breaks a rule."""
        assert sequence == self.sequence + 1, "sequences are dense"
        self.sequence = sequence
        self._listen(sequence, entry)
        match entry:
            case OccurrenceAdmitted() | OccurrenceSkipped() | OccurrenceSuperseded() | CandidateHeld():
                self._take_occurrence(sequence, entry)
            case IntervalSkipped():
                schedule = self.schedules[entry.schedule_id]
                assert entry.after == schedule.through < entry.before - TICK, "an interval begins at the watermark"
                assert entry.before <= entry.at, "an interval ends by now"
                schedule.through = entry.before - TICK
            case RunAdmittedManually():
                assert entry.schedule_id is None or entry.schedule_id in self.schedules
                self.runs[sequence] = RunLife(sequence, entry.schedule_id, manual=True)
            case JournalOpened():
                self.slots = entry.task_slots
                self.tolerance = entry.clock_tolerance
            case ClockRegressed():
                self.highest = None
                for schedule in self.schedules.values():
                    if schedule.through > entry.at + entry.tolerance:
                        schedule.step_back(entry.at)
            case _:
                self._take_administration(entry)
                self._take_run(sequence, entry)
        if 1972 <= entry.at.year <= 2100:
            self.highest = entry.at if self.highest is None else max(self.highest, entry.at)

    def _listen(self, sequence: int, entry: Entry) -> None:
        heard = [
            getattr(entry, "note", None),
            getattr(entry, "result", None),
            getattr(entry, "checkpoint", None),
            getattr(entry, "data", None),
            entry.error.message if isinstance(entry, RunFailed) else None,
        ]
        for word in heard:
            if isinstance(word, str) and word.startswith("said-"):
                assert word not in self.words, f"{word} is recorded twice, at {self.words[word]} and {sequence}"
                self.words[word] = sequence

    def _take_occurrence(
        self, sequence: int, entry: OccurrenceAdmitted | OccurrenceSkipped | OccurrenceSuperseded | CandidateHeld
    ) -> None:
        schedule = self.schedules[entry.schedule_id]
        instant = entry.scheduled_at
        was_held = schedule.held == instant
        by_administration = isinstance(entry, OccurrenceSkipped) and entry.reason in BY_ADMINISTRATION
        noticed = self.highest is None or entry.at >= self.highest - self.tolerance
        assert by_administration or noticed, "the clock stepped back, and nobody took notice"
        assert by_administration or instant <= entry.at, f"{instant} is decided before it is due"
        assert by_administration or not schedule.blocked, "nothing of a blocked schedule is decided"
        assert not schedule.deleted, "nothing of a deleted schedule is decided"
        if isinstance(entry, CandidateHeld):
            assert schedule.held is None, f"{schedule.held} and {instant} are held at once"
            assert instant not in schedule.decided, f"{instant} is decided already"
            assert instant > schedule.through, f"{instant} lies at or below the watermark"
            assert self.active(schedule.id) < schedule.limit, "an overlap comes before the capacity"
            assert schedule.definition.misfire == "latest", "only `latest` holds a candidate"
            schedule.held = instant
            schedule.through = instant
            return
        assert instant not in schedule.decided, f"{schedule.id}@{instant} has two dispositions"
        assert was_held or instant > schedule.through, f"{instant} lies at or below the watermark"
        lasting = isinstance(entry, OccurrenceAdmitted)
        if isinstance(entry, OccurrenceSkipped):
            lasting = entry.reason in LASTING
            if entry.reason in ("misfire", "capacity"):
                assert schedule.definition.misfire == "skip"
                late = entry.at - instant > schedule.definition.lateness
                assert late or schedule.by_period, f"{instant} is not missed yet"
            if entry.blocking_run is not None:
                blocking = self.runs[entry.blocking_run]
                assert blocking.schedule_id == schedule.id, "an overlap names a run of the schedule"
                assert not blocking.ended, "an overlap names a run that has not ended"
        if isinstance(entry, OccurrenceSuperseded):
            assert instant < entry.by <= entry.at, "what supersedes is newer, and due"
        schedule.decided[instant] = lasting
        schedule.through = max(schedule.through, instant)
        if was_held:
            schedule.held = None
        if isinstance(entry, OccurrenceAdmitted):
            assert self.active(schedule.id) < schedule.limit, f"run {sequence} is admitted beyond the schedule's slots"
            assert not schedule.paused, "nothing of a paused schedule is admitted"
            assert not schedule.disabled, "nothing of a disabled schedule is admitted"
            late = entry.at - instant > schedule.definition.lateness
            made_up = schedule.definition.misfire == "latest" or schedule.by_period
            assert made_up or not late, f"{instant} is missed, and nothing makes up for it"
            self.newest_admission = schedule.id
            self.runs[sequence] = RunLife(sequence, schedule.id, manual=False)

    def _take_administration(self, entry: Entry) -> None:
        match entry:
            case ScheduleCreated():
                assert entry.schedule_id not in self.schedules, "an id is used once"
                schedule = ScheduleLife(entry.schedule_id, entry.definition, entry.covers_through)
                self.schedules[entry.schedule_id] = schedule
                assert entry.covers_through <= entry.at, "a creation covers nothing that is still to come"
                return
            case ScheduleEdited():
                schedule = self.schedules[entry.schedule_id]
                assert entry.revision == schedule.revision + 1, "revisions are dense"
                schedule.revision = entry.revision
                schedule.definition = entry.definition
                if schedule.block_cause == "trigger":
                    schedule.become("blocked", False)
                    schedule.block_cause = ""
            case SchedulePaused() | ScheduleUnpaused():
                self.schedules[entry.schedule_id].become("paused", isinstance(entry, SchedulePaused))
            case ScheduleDisabled() | ScheduleEnabled():
                self.schedules[entry.schedule_id].become("disabled", isinstance(entry, ScheduleDisabled))
            case ScheduleBlocked() | ScheduleUnblocked():
                schedule = self.schedules[entry.schedule_id]
                schedule.become("blocked", isinstance(entry, ScheduleBlocked))
                schedule.block_cause = entry.cause if isinstance(entry, ScheduleBlocked) else ""
                return
            case ScheduleDeleted():
                self.schedules[entry.schedule_id].become("deleted", True)
            case ScheduleRebaselined():
                schedule = self.schedules[entry.schedule_id]
                if entry.regressed:
                    schedule.step_back(entry.through)
                schedule.through = max(schedule.through, entry.through)
                return
            case _:
                return
        schedule = self.schedules[entry.schedule_id]
        assert schedule.held is None, "a baseline settles the candidate first"
        assert entry.covers_after == schedule.through, "a baseline covers from the watermark on"
        if not (schedule.by_period or (isinstance(entry, ScheduleEdited) and is_one_shot(entry.definition))):
            assert entry.covers_through == max(schedule.through, entry.at), "a baseline covers up to now"
        schedule.through = max(schedule.through, entry.covers_through)

    def _take_run(self, sequence: int, entry: Entry) -> None:
        if not isinstance(
            entry,
            RunStarted | RunCompleted | RunFailed | RunInterrupted | ResumeMarked | AttemptCleared | RunAbandoned,
        ):
            return
        run = self.runs[entry.run_id]
        assert entry.schedule_id == run.schedule_id, "a run's entries name its schedule"
        match entry:
            case RunStarted() | ResumeMarked():
                resumed = isinstance(entry, ResumeMarked)
                wanted = "interrupted" if resumed else "pending"
                assert (run.state, run.attempt_id) == (wanted, None), f"run {run.id} is {run.state}, and begins again"
                assert len(self.started) < self.slots, f"run {run.id} begins beyond the task slots"
                assert not self.blocked(run.schedule_id), f"run {run.id} of a blocked schedule begins"
                run.become("started", sequence if resumed else None)
            case AttemptCleared():
                assert run.attempt_id == entry.attempt_id, "only the ACTIVE attempt is cleared"
                assert run.state != "started", "an attempt is cleared after its result"
                run.attempt_id = None
            case RunAbandoned():
                assert not run.ended, f"run {run.id} has ended twice"
                run.become("abandoned", run.attempt_id)
            case _:
                legal = run.state == "started" or (run.state == "pending" and isinstance(entry, RunFailed))
                assert legal, f"run {run.id} is {run.state}, and has a result"
                assert entry.attempt_id == run.attempt_id, f"run {run.id} has a result of another attempt"
                run.become(NEXT_STATE[type(entry)], run.attempt_id)
