"""The fold: what each kind of entry does to the state.

Rules: one `match` arm for each kind, and the type checker names a missing one; nothing raises and nothing is computed
anew, what an entry says is what holds; what contradicts the state is marked as an anomaly and has no other effect.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeGuard, assert_never

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
from duly.projections.facts import Facts, Request, key_hash
from duly.projections.folding_runs import fold_run
from duly.projections.ranges import FIRST_INSTANT, LAST_INSTANT, extended, range_holding
from duly.projections.runs import admitted_run
from duly.projections.schedules import Block, ScheduleState, may_block
from duly.projections.snapshot import found_state

KEPT_REASONS: Final = frozenset({"overlap", "preflight", "spent", "operator"})
"""Skips that stay decided when the clock steps back behind them."""

_Rebased: TypeAlias = (
    ScheduleEdited | SchedulePaused | ScheduleUnpaused | ScheduleDisabled | ScheduleEnabled | ScheduleDeleted
)
_Decided: TypeAlias = OccurrenceAdmitted | OccurrenceSkipped | OccurrenceSuperseded | CandidateHeld


def fold_entries(state: Facts, sequence: int, entries: Iterable[Entry]) -> None:
    """Folds entries into the state that follow one another, the first of them `sequence`."""
    for entry in entries:
        kind = type(entry)
        arm = _ARMS.get(kind)
        if arm is None:
            arm = _ARMS[kind] = _arm_of(entry)
        arm(state, sequence, entry)
        if kind is not EntryLost:
            state.last_at = at = entry.at
            highest = state.highest_at
            if (highest is None or at > highest) and FIRST_INSTANT <= at < LAST_INSTANT:
                state.highest_at = at
        # The very last store: an interrupted fold is known by its sequence.
        state.sequence = sequence
        sequence += 1


_Arm: TypeAlias = Callable[[Facts, int, Any], object]

_ARMS: Final[dict[type[Entry], _Arm]] = {}
"""What `_arm_of` gave: it would be most of what an entry costs, and an entry's kind settles it."""


def _arm_of(entry: Entry) -> _Arm:  # noqa: PLR0911, PLR0912 - one arm for each kind
    match entry:
        case OccurrenceAdmitted():
            return _fold_admitted
        case OccurrenceSkipped():
            return _fold_skipped
        case OccurrenceSuperseded():
            return _decided
        case CandidateHeld():
            return _fold_held
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
            return fold_run
        case IntervalSkipped():
            return _fold_interval
        case ScheduleCreated():
            return _fold_created
        case (
            ScheduleEdited()
            | SchedulePaused()
            | ScheduleUnpaused()
            | ScheduleDisabled()
            | ScheduleEnabled()
            | ScheduleDeleted()
        ):
            return _fold_baseline
        case ScheduleBlocked() | ScheduleUnblocked():
            return _fold_block
        case ScheduleRebaselined():
            return _fold_rebaselined
        case ExternalRunRecorded():
            return _fold_external
        case RunAdmittedManually():
            return _fold_manual
        case ClockRegressed():
            return _fold_regressed
        case JournalOpened():
            return _fold_opened
        case EntryLost():
            return _fold_lost
        case Checkpoint():
            return found_state
        case CalendarChanged() | JournalClosed() | ClockJumped():
            return _fold_nothing
        case _:
            assert_never(entry)


def _fold_nothing(state: Facts, sequence: int, entry: Entry) -> None:
    """Some entries are for people and for other tools; their clock reading counts all the same."""


def _fold_opened(state: Facts, sequence: int, entry: JournalOpened) -> None:
    state.opened = entry
    state.opened_sequence = sequence


def _fold_lost(state: Facts, sequence: int, entry: EntryLost) -> None:
    state.lost += 1


def _fold_regressed(state: Facts, sequence: int, entry: ClockRegressed) -> None:
    for schedule in state.by_id.values():
        if schedule.consumed_through - entry.at > entry.tolerance:
            _step_back(schedule, entry.at)
    state.highest_at = None


# Occurrences


def _decidable(state: Facts, sequence: int, entry: _Decided | IntervalSkipped) -> ScheduleState | None:
    schedule = state.by_id.get(entry.schedule_id)
    if schedule is None or schedule.deleted:
        text = "the schedule is unknown" if schedule is None else "the schedule is deleted"
        state.mark_anomaly(sequence, entry, text, schedule_id=entry.schedule_id)
        return None
    return schedule


def _fold_admitted(state: Facts, sequence: int, entry: OccurrenceAdmitted) -> None:
    schedule = _decided(state, sequence, entry)
    if schedule is None:
        return
    schedule.active = (*schedule.active, sequence)
    state.newest_admission = schedule.id
    state.pending[sequence] = None
    state.runs_open[sequence] = admitted_run(sequence, entry)
    if entry.exhausts:
        _exhaust(schedule, entry.scheduled_at)


def _fold_skipped(state: Facts, sequence: int, entry: OccurrenceSkipped) -> None:
    schedule = _decided(state, sequence, entry)
    if schedule is not None and entry.exhausts:
        _exhaust(schedule, entry.scheduled_at)


def _fold_held(state: Facts, sequence: int, entry: CandidateHeld) -> None:
    schedule = _decided(state, sequence, entry)
    if schedule is not None:
        schedule.candidate = entry.scheduled_at


def _decided(state: Facts, sequence: int, entry: _Decided) -> ScheduleState | None:
    """The schedule, for which the occurrence is decided now; None where that contradicts the state."""
    schedule = _decidable(state, sequence, entry)
    if schedule is None:
        return None
    instant = entry.scheduled_at
    through = schedule.consumed_through
    kept = schedule.kept
    if schedule.candidate is not None or instant <= through or (kept and instant <= kept[-1][1]):
        held = instant == schedule.candidate
        contradiction = _contradicting(schedule, entry, held=held)
        if contradiction:
            state.mark_anomaly(sequence, entry, contradiction, schedule_id=schedule.id)
            return None
        if held:
            schedule.candidate = None
    if is_kept(entry):
        schedule.kept = extended(kept, instant, through)
    if instant > through:
        schedule.consumed_through = instant
    schedule.last_decided = instant
    return schedule


def _contradicting(schedule: ScheduleState, entry: _Decided, *, held: bool) -> str:
    instant = entry.scheduled_at
    if isinstance(entry, CandidateHeld) and held:
        return f"{instant} is the held candidate already"
    if not held and (instant <= schedule.consumed_through or range_holding(schedule.kept, instant)):
        return f"{instant} is decided already"
    if isinstance(entry, CandidateHeld) and schedule.candidate is not None:
        return f"{schedule.candidate} is held already"
    return ""


def is_kept(entry: Entry) -> TypeGuard[OccurrenceAdmitted | OccurrenceSkipped]:
    """Whether the decision stays when the clock steps back behind it."""
    return type(entry) is OccurrenceAdmitted or (type(entry) is OccurrenceSkipped and entry.reason in KEPT_REASONS)


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
    if entry.request:
        state.creations[entry.schedule_id] = key_hash(entry.request)
    # The key of one of many is its own: it would only drive others out.
    if not entry.request.endswith(f"/{entry.schedule_id}"):
        state.note_request(entry.request, Request(sequence, kind_of(entry), entry.schedule_id))


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
    revision = entry.revision if isinstance(entry, ScheduleEdited) else 0
    state.note_request(entry.request, Request(sequence, kind_of(entry), schedule.id, revision))


def _fold_block(state: Facts, sequence: int, entry: ScheduleBlocked | ScheduleUnblocked) -> None:
    schedule = _existing(state, sequence, entry)
    if schedule is None:
        return
    if isinstance(entry, ScheduleUnblocked):
        schedule.block = None
    elif schedule.block is None or (may_block(schedule.block) and entry.cause != "trigger"):
        schedule.block = Block(sequence, entry.cause, entry.reason)
    state.note_request(entry.request, Request(sequence, kind_of(entry), entry.schedule_id))


def _fold_rebaselined(state: Facts, sequence: int, entry: ScheduleRebaselined) -> None:
    schedule = _existing(state, sequence, entry)
    if schedule is None:
        return
    state.note_request(entry.request, Request(sequence, kind_of(entry), entry.schedule_id))
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
        state.note_request(entry.request, Request(sequence, kind_of(entry), entry.schedule_id))


def _spend(schedule: ScheduleState, stamp: datetime, sequence: int) -> None:
    if schedule.spent is None:
        schedule.spent = []
    insort(schedule.spent, (stamp, sequence))


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
    state.note_request(entry.request, Request(sequence, kind_of(entry), entry.schedule_id))
