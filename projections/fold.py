"""The fold: what each kind of entry does to the state.

Rules: one `match` arm for each kind, and the type checker names a missing one; nothing raises and nothing is computed
anew, what an entry says is what holds; what contradicts the state is marked as an anomaly and has no other effect.
"""

from __future__ import annotations

from bisect import insort
from datetime import UTC, datetime
from typing import Final, TypeAlias, TypeGuard, assert_never

from duly.journal.entries import (
    AttemptCleared,
    CalendarChanged,
    CandidateHeld,
    Checkpoint,
    ClockJumped,
    ClockRegressed,
    Entry,
    EntryLost,
    ExternalRunRecorded,
    IntervalSkipped,
    JournalClosed,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    OneShotRule,
    ResumeMarked,
    RunAbandoned,
    RunAdmittedManually,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunNoted,
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
    kind_of,
)
from duly.projections.facts import RECENT_REQUESTS, RECENT_RUNS, Facts, Request
from duly.projections.ranges import extended, range_holding
from duly.projections.runs import Run, RunEntry, admitted_run, advanced, contradiction
from duly.projections.schedules import Block, ScheduleState, may_block

FIRST_INSTANT: Final = datetime(1972, 1, 1, tzinfo=UTC)
LAST_INSTANT: Final = datetime(2101, 1, 1, tzinfo=UTC)
"""Clock readings outside of these do not count for the highest `at`."""

KEPT_REASONS: Final = frozenset({"overlap", "preflight", "spent", "operator"})
"""Skips that stay decided when the clock steps back behind them."""

_Rebased: TypeAlias = (
    ScheduleEdited | SchedulePaused | ScheduleUnpaused | ScheduleDisabled | ScheduleEnabled | ScheduleDeleted
)
_Commanded: TypeAlias = (
    ScheduleCreated
    | _Rebased
    | ScheduleBlocked
    | ScheduleUnblocked
    | ScheduleRebaselined
    | ExternalRunRecorded
    | RunAdmittedManually
)
_Decided: TypeAlias = OccurrenceAdmitted | OccurrenceSkipped | OccurrenceSuperseded | CandidateHeld


def fold_entry(state: Facts, sequence: int, entry: Entry) -> None:  # noqa: PLR0912 - one arm for each kind
    """Folds one entry into the state."""
    match entry:
        case OccurrenceAdmitted() | OccurrenceSkipped() | OccurrenceSuperseded() | CandidateHeld():
            _fold_occurrence(state, sequence, entry)
        case (
            RunStarted()
            | RunCompleted()
            | RunFailed()
            | RunInterrupted()
            | ResumeMarked()
            | AttemptCleared()
            | RunAbandoned()
            | RunNoted()
        ):
            _fold_run(state, sequence, entry)
        case IntervalSkipped():
            _fold_interval(state, sequence, entry)
        case ScheduleCreated():
            _fold_created(state, sequence, entry)
        case (
            ScheduleEdited()
            | SchedulePaused()
            | ScheduleUnpaused()
            | ScheduleDisabled()
            | ScheduleEnabled()
            | ScheduleDeleted()
        ):
            _fold_baseline(state, sequence, entry)
        case ScheduleBlocked() | ScheduleUnblocked():
            _fold_block(state, sequence, entry)
        case ScheduleRebaselined():
            _fold_rebaselined(state, sequence, entry)
        case ExternalRunRecorded():
            _fold_external(state, sequence, entry)
        case RunAdmittedManually():
            _fold_manual(state, sequence, entry)
        case ClockRegressed():
            for schedule in state.by_id.values():
                if schedule.consumed_through - entry.at > entry.tolerance:
                    _step_back(schedule, entry.at)
            state.highest_at = None
        case JournalOpened():
            state.opened = entry
            state.opened_sequence = sequence
        case EntryLost():
            state.lost += 1
        case CalendarChanged() | JournalClosed() | ClockJumped() | Checkpoint():
            pass
        case _:
            assert_never(entry)
    _note_reading(state, entry)
    # The very last store: an interrupted fold is known by its sequence.
    state.sequence = sequence


def _note_reading(state: Facts, entry: Entry) -> None:
    if isinstance(entry, EntryLost):
        return
    at = entry.at
    state.last_at = at
    if FIRST_INSTANT <= at < LAST_INSTANT and (state.highest_at is None or at > state.highest_at):
        state.highest_at = at


# Occurrences


def _decidable(state: Facts, sequence: int, entry: _Decided | IntervalSkipped) -> ScheduleState | None:
    schedule = state.by_id.get(entry.schedule_id)
    if schedule is None:
        state.mark_anomaly(sequence, entry, "the schedule is unknown", schedule_id=entry.schedule_id)
        return None
    if schedule.deleted:
        state.mark_anomaly(sequence, entry, "the schedule is deleted", schedule_id=entry.schedule_id)
        return None
    return schedule


def _fold_occurrence(state: Facts, sequence: int, entry: _Decided) -> None:
    schedule = _decidable(state, sequence, entry)
    if schedule is None:
        return
    instant = entry.scheduled_at
    held = schedule.candidate is not None and instant == schedule.candidate
    if held == isinstance(entry, CandidateHeld) and held:
        state.mark_anomaly(sequence, entry, f"{instant} is the held candidate already", schedule_id=schedule.id)
        return
    if not held and (instant <= schedule.consumed_through or range_holding(schedule.kept, instant)):
        state.mark_anomaly(sequence, entry, f"{instant} is decided already", schedule_id=schedule.id)
        return
    if isinstance(entry, CandidateHeld) and schedule.candidate is not None:
        state.mark_anomaly(sequence, entry, f"{schedule.candidate} is held already", schedule_id=schedule.id)
        return
    if isinstance(entry, OccurrenceAdmitted):
        _admit(state, sequence, entry, schedule)
    if is_kept(entry):
        schedule.kept = extended(schedule.kept, instant, schedule.consumed_through)
    if held:
        schedule.candidate = None
    if isinstance(entry, CandidateHeld):
        schedule.candidate = instant
    schedule.consumed_through = max(schedule.consumed_through, instant)
    schedule.last_decided = instant
    if isinstance(entry, OccurrenceAdmitted | OccurrenceSkipped) and entry.exhausts:
        _exhaust(schedule, instant)


def is_kept(entry: Entry) -> TypeGuard[OccurrenceAdmitted | OccurrenceSkipped]:
    """Whether the decision stays when the clock steps back behind it."""
    return isinstance(entry, OccurrenceAdmitted) or (
        isinstance(entry, OccurrenceSkipped) and entry.reason in KEPT_REASONS
    )


def _admit(state: Facts, sequence: int, entry: OccurrenceAdmitted, schedule: ScheduleState) -> None:
    schedule.active = (*schedule.active, sequence)
    state.newest_admission = schedule.id
    state.pending[sequence] = None
    state.runs_open[sequence] = admitted_run(sequence, entry)


def _fold_interval(state: Facts, sequence: int, entry: IntervalSkipped) -> None:
    schedule = _decidable(state, sequence, entry)
    if schedule is None:
        return
    if entry.after != schedule.consumed_through or entry.before <= entry.after:
        text = f"it begins at {entry.after}, and {schedule.consumed_through} is what is decided through"
        state.mark_anomaly(sequence, entry, text, schedule_id=schedule.id)
        return
    schedule.consumed_through = entry.before - datetime.resolution


def _exhaust(schedule: ScheduleState, through: datetime) -> None:
    if schedule.exhausted:
        return
    schedule.exhausted = True
    schedule.exhausted_through = through


# Administration


def _fold_created(state: Facts, sequence: int, entry: ScheduleCreated) -> None:
    if entry.schedule_id in state.by_id:
        state.mark_anomaly(sequence, entry, "the schedule exists already", schedule_id=entry.schedule_id)
        return
    schedule = ScheduleState(
        id=entry.schedule_id,
        definition=state.shared(entry.definition),
        created_at=entry.at,
        consumed_through=entry.covers_through,
    )
    if entry.exhausts:
        _exhaust(schedule, entry.covers_through)
    state.by_id[entry.schedule_id] = schedule
    _note_request(state, sequence, entry)


def _existing(
    state: Facts,
    sequence: int,
    entry: _Rebased | ScheduleBlocked | ScheduleUnblocked | ScheduleRebaselined | ExternalRunRecorded,
) -> ScheduleState | None:
    schedule = state.by_id.get(entry.schedule_id)
    if schedule is None or schedule.deleted:
        text = "the schedule is unknown" if schedule is None else "the schedule is deleted"
        state.mark_anomaly(sequence, entry, text, schedule_id=entry.schedule_id)
        return None
    return schedule


def _fold_baseline(state: Facts, sequence: int, entry: _Rebased) -> None:
    schedule = _existing(state, sequence, entry)
    if schedule is None:
        return
    match entry:
        case ScheduleEdited():
            if entry.revision != schedule.revision + 1:
                text = f"revision {entry.revision} does not follow on {schedule.revision}"
                state.mark_anomaly(sequence, entry, text, schedule_id=schedule.id)
                return
            schedule.revision = entry.revision
            schedule.definition = state.shared(entry.definition)
            schedule.last_decided = None
            schedule.exhausted = False
            schedule.exhausted_through = None
            if schedule.block is not None and schedule.block.cause == "trigger":
                schedule.block = None
        case SchedulePaused():
            schedule.paused = sequence
        case ScheduleUnpaused():
            schedule.paused = 0
        case ScheduleDisabled():
            schedule.disabled = sequence
        case ScheduleEnabled():
            schedule.disabled = 0
        case ScheduleDeleted():
            schedule.deleted = sequence
        case _:
            assert_never(entry)
    schedule.consumed_through = max(schedule.consumed_through, entry.covers_through)
    if entry.exhausts:
        _exhaust(schedule, entry.covers_through)
    _note_request(state, sequence, entry)


def _fold_block(state: Facts, sequence: int, entry: ScheduleBlocked | ScheduleUnblocked) -> None:
    schedule = _existing(state, sequence, entry)
    if schedule is None:
        return
    if isinstance(entry, ScheduleUnblocked):
        schedule.block = None
    elif schedule.block is None or (may_block(schedule.block) and entry.cause != "trigger"):
        schedule.block = Block(sequence, entry.cause, entry.reason)
    _note_request(state, sequence, entry)


def _fold_rebaselined(state: Facts, sequence: int, entry: ScheduleRebaselined) -> None:
    schedule = _existing(state, sequence, entry)
    if schedule is None:
        return
    _note_request(state, sequence, entry)
    if entry.regressed:
        _step_back(schedule, entry.through)
        return
    schedule.consumed_through = max(schedule.consumed_through, entry.through)
    if entry.exhausts:
        _exhaust(schedule, entry.through)


def _step_back(schedule: ScheduleState, now: datetime) -> None:
    """The watermark returns to `now`; above it, only what the kept ranges hold stays decided."""
    schedule.consumed_through = now
    if schedule.candidate is not None and schedule.candidate > now:
        schedule.candidate = None
    if schedule.exhausted_through is None:
        return
    rule = schedule.definition.trigger
    last = rule.at if isinstance(rule, OneShotRule) else schedule.exhausted_through
    if last <= now or range_holding(schedule.kept, last):
        return
    schedule.exhausted = False
    schedule.exhausted_through = None


def _fold_external(state: Facts, sequence: int, entry: ExternalRunRecorded) -> None:
    schedule = _existing(state, sequence, entry)
    if schedule is not None:
        _spend(schedule, entry.started_at, sequence)
        _note_request(state, sequence, entry)


def _spend(schedule: ScheduleState, stamp: datetime, sequence: int) -> None:
    if schedule.spent is None:
        schedule.spent = []
    insort(schedule.spent, (stamp, sequence))


def _note_request(state: Facts, sequence: int, entry: _Commanded) -> None:
    if not entry.request:
        return
    state.requests.setdefault(entry.request, Request(sequence, kind_of(entry), entry.schedule_id))
    if len(state.requests) > RECENT_REQUESTS:
        del state.requests[next(iter(state.requests))]


# Runs


def _fold_manual(state: Facts, sequence: int, entry: RunAdmittedManually) -> None:
    schedule = state.by_id.get(entry.schedule_id) if entry.schedule_id is not None else None
    if entry.schedule_id is not None and (schedule is None or schedule.deleted):
        state.mark_anomaly(sequence, entry, "the schedule is unknown or deleted", schedule_id=entry.schedule_id)
        return
    if schedule is not None:
        _spend(schedule, entry.at, sequence)
    state.pending[sequence] = None
    state.runs_open[sequence] = admitted_run(sequence, entry)
    _note_request(state, sequence, entry)


def _fold_run(state: Facts, sequence: int, entry: RunEntry) -> None:
    run = state.runs_open.get(entry.run_id)
    if run is None:
        text = f"run {entry.run_id} is not open"
        state.mark_anomaly(sequence, entry, text, schedule_id=entry.schedule_id)
        return
    text = contradiction(run, entry)
    if not text and entry.schedule_id != run.schedule_id:
        text = f"run {run.id} belongs to {run.schedule_id}, not to {entry.schedule_id}"
    if text:
        state.mark_anomaly(sequence, entry, text, schedule_id=run.schedule_id)
        return
    after = advanced(run, sequence, entry)
    if after.state != run.state:
        state.pending.pop(run.id, None)
        state.started.pop(run.id, None)
        if after.state == "started":
            state.started[run.id] = None
        if after.ended:
            _free_slot(state, run)
    if after.ended and after.attempt_id is None:
        del state.runs_open[run.id]
        _remember(state, after)
    else:
        state.runs_open[run.id] = after


def _free_slot(state: Facts, run: Run) -> None:
    schedule = state.by_id.get(run.schedule_id) if run.schedule_id is not None else None
    if schedule is not None and not run.manual:
        schedule.active = tuple(other for other in schedule.active if other != run.id)


def _remember(state: Facts, run: Run) -> None:
    state.runs_recent[run.id] = run
    if len(state.runs_recent) > RECENT_RUNS:
        del state.runs_recent[next(iter(state.runs_recent))]
