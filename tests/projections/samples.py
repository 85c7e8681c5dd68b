"""Entries by the dozen: each builder gives one that contradicts nothing, and names only what a test is about."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from duly import State
from duly.journal.entries import (
    AttemptCleared,
    CandidateHeld,
    ClockRegressed,
    CronRule,
    Definition,
    Entry,
    ErrorInfo,
    IntervalSkipped,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    ResumeMarked,
    RunAbandoned,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    ScheduleCreated,
    SkipReason,
)

DAY = datetime(2026, 3, 2, tzinfo=UTC)
CRON = CronRule("*/15 * * * *", "UTC")


def at(text: str) -> datetime:
    """An instant of the day: "09:15", or "09:15:30"."""
    return datetime.fromisoformat(f"{DAY:%Y-%m-%d}T{text}").replace(tzinfo=UTC)


def definition(**fields: Any) -> Definition:
    values: dict[str, Any] = {"trigger": CRON, "target": "report"}
    return Definition(**(values | fields))


def created(schedule_id: str = "report", when: str = "09:00", **fields: Any) -> ScheduleCreated:
    values: dict[str, Any] = {"at": at(when), "covers_through": at(when), "definition": definition()} | fields
    return ScheduleCreated(schedule_id=schedule_id, **values)


def admitted(instant: str, schedule_id: str = "report", **fields: Any) -> OccurrenceAdmitted:
    values: dict[str, Any] = {"at": at(instant), "scheduled_at": at(instant), "target": "report"} | fields
    return OccurrenceAdmitted(schedule_id=schedule_id, **values)


def skipped(instant: str, reason: SkipReason, schedule_id: str = "report", **fields: Any) -> OccurrenceSkipped:
    values: dict[str, Any] = {"at": at(instant), "scheduled_at": at(instant)} | fields
    return OccurrenceSkipped(schedule_id=schedule_id, reason=reason, **values)


def superseded(instant: str, by: str, schedule_id: str = "report") -> OccurrenceSuperseded:
    return OccurrenceSuperseded(at=at(by), schedule_id=schedule_id, scheduled_at=at(instant), by=at(by))


def held(instant: str, schedule_id: str = "report") -> CandidateHeld:
    return CandidateHeld(at=at(instant), schedule_id=schedule_id, scheduled_at=at(instant))


def interval(after: str, before: str, schedule_id: str = "report", **fields: Any) -> IntervalSkipped:
    values: dict[str, Any] = {"at": at(before), "at_least": 100, "reason": "superseded"}
    return IntervalSkipped(schedule_id=schedule_id, after=at(after), before=at(before), **(values | fields))


def regressed(now: str, highest: str, tolerance: timedelta = timedelta(minutes=5)) -> ClockRegressed:
    return ClockRegressed(at=at(now), tolerance=tolerance, highest=at(highest))


def opened(when: str = "09:00", **fields: Any) -> JournalOpened:
    values: dict[str, Any] = {"at": at(when), "host": "payroll-1", "pid": 4711, "python": "3.11.7"}
    values |= {"duly": "0.1.0", "croniter": "7.0.0", "tzdata": "2026.1"}
    values |= {"task_slots": 4, "batch": 1000, "clock_tolerance": timedelta(minutes=5)}
    return JournalOpened(**(values | fields))


def started(run_id: int, **fields: Any) -> RunStarted:
    return RunStarted(**_of_run(run_id, fields))


def completed(run_id: int, **fields: Any) -> RunCompleted:
    return RunCompleted(**_of_run(run_id, fields))


def failed(run_id: int, **fields: Any) -> RunFailed:
    return RunFailed(**_of_run(run_id, {"error": ErrorInfo("OSError", "the disk is full")} | fields))


def interrupted(run_id: int, **fields: Any) -> RunInterrupted:
    return RunInterrupted(**_of_run(run_id, fields))


def resumed(run_id: int, **fields: Any) -> ResumeMarked:
    return ResumeMarked(**_of_run(run_id, fields))


def cleared(run_id: int, attempt_id: int, **fields: Any) -> AttemptCleared:
    return AttemptCleared(**_of_run(run_id, {"attempt_id": attempt_id} | fields))


def abandoned(run_id: int, **fields: Any) -> RunAbandoned:
    return RunAbandoned(**_of_run(run_id, {"cause": "operator"} | fields))


def folded(*entries: Entry) -> State:
    """The state after these entries, numbered from 1."""
    return fold(State(), entries)


def fold(state: State, entries: Iterable[Entry]) -> State:
    """The state, with these entries folded in as the next ones."""
    for entry in entries:
        state.apply(state.sequence + 1, entry)
    return state


def _of_run(run_id: int, fields: dict[str, Any]) -> dict[str, Any]:
    return {"at": at("10:00"), "run_id": run_id, "schedule_id": "report"} | fields
