"""The runs of the reference model: SPEC sections 7 and 8 in plain words, and the record that numbers everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

EARLIEST, LATEST = datetime(1972, 1, 1, tzinfo=UTC), datetime(2101, 1, 1, tzinfo=UTC)
ENDED = ("completed", "failed", "abandoned")
RESULTS = {"RunCompleted": "completed", "RunFailed": "failed", "RunInterrupted": "interrupted"}

Told: TypeAlias = dict[str, Any]
"""One entry: its kind and the fields that the model vouches for."""


class Refused(Exception):
    """The command raises the error of this name, and nothing is journaled."""


@dataclass
class Run:
    schedule_id: str
    manual: bool
    state: str = "pending"
    attempt: int | None = None


class Runs:
    """What both halves of the model share: the sequence, the highest clock reading and the runs."""

    def __init__(self, task_slots: int) -> None:
        self.task_slots = task_slots
        self.sequence = 0
        self.highest = EARLIEST
        self.runs: dict[int, Run] = {}
        self.stopped = False
        self.blocked_schedules: set[str] = set()

    def tell(self, kind: str, now: datetime, **fields: object) -> Told:
        """One more entry. "Sequences start at 1, are dense"; `at` counts for the highest reading."""
        self.sequence += 1
        if EARLIEST <= now < LATEST:  # "such `at` values do not count for the highest `at`"
            self.highest = max(self.highest, now)
        return {"kind": kind, "at": now, **fields}

    def admit_run(self, run_id: int, schedule_id: str, *, manual: bool) -> None:
        self.runs[run_id] = Run(schedule_id, manual)

    def pending_runs(self) -> list[int]:
        return [run_id for run_id in sorted(self.runs) if self.runs[run_id].state == "pending"]

    def started_runs(self) -> int:
        return sum(run.state == "started" for run in self.runs.values())

    def active_runs(self, schedule_id: str) -> list[int]:
        """ "everything admitted and not ended (pending-dispatch, started, interrupted). Manual runs and other
        schedules' runs never count against a schedule's slots" """
        ours = [run_id for run_id, run in self.runs.items() if run.schedule_id == schedule_id and not run.manual]
        return sorted(run_id for run_id in ours if self.runs[run_id].state not in ENDED)

    # What the host reports

    def start(self, now: datetime, *run_ids: int) -> list[Told]:
        """ "all or none" """
        for run_id in run_ids:
            self._must_be(run_id, "pending")
        if any(self.runs[run_id].schedule_id in self.blocked_schedules for run_id in run_ids):
            raise Refused("Blocked")
        if self.started_runs() + len(run_ids) > self.task_slots:
            raise Refused("NoTaskSlot")
        return [self.started(now, run_id) for run_id in run_ids]

    def started(self, now: datetime, run_id: int) -> Told:
        self.runs[run_id].state = "started"
        return self.tell("RunStarted", now, run_id=run_id)

    def report(self, now: datetime, kind: str, run_id: int, attempt_id: int | None) -> list[Told]:
        """ "A result for a run with an ACTIVE attempt must carry its `attempt_id`; a stale or missing one raises" """
        self._must_be(run_id, "started", *(["pending"] if kind == "RunFailed" else []))
        run = self.runs[run_id]
        if run.attempt != attempt_id:
            raise Refused("StaleAttempt")
        return self._end(now, kind, run_id, RESULTS[kind])

    def resume(self, now: datetime, run_id: int) -> list[Told]:
        if self.stopped:
            raise Refused("SchedulerClosed")
        self._must_be(run_id, "interrupted")
        if self.runs[run_id].schedule_id in self.blocked_schedules:
            raise Refused("Blocked")
        if self.started_runs() + 1 > self.task_slots:
            raise Refused("NoTaskSlot")
        told = self.tell("ResumeMarked", now, run_id=run_id)
        self.runs[run_id].state, self.runs[run_id].attempt = "started", self.sequence
        return [told]

    def abandon(self, now: datetime, run_id: int) -> list[Told]:
        self._must_be(run_id, "pending", "started", "interrupted")
        return self._end(now, "RunAbandoned", run_id, "abandoned", cause="operator")

    # Recovery

    def reopen(self, now: datetime, evidence: Mapping[int, tuple[str, int | None]]) -> list[Told]:
        """Section 8's table. `evidence` says per run what is known: a result's kind or "StillRunning", and the attempt
        that it echoes; a run that is not in it is evidence None."""
        self.stopped = False
        told = [self.tell("JournalOpened", now)]
        for run_id in sorted(self.runs):
            run = self.runs[run_id]
            kind, attempt = evidence.get(run_id, ("", None))
            if run.state != "started" or kind == "StillRunning":
                continue  # pending-dispatch and interrupted stay as they are
            if kind and attempt == run.attempt:
                told += self._end(now, kind, run_id, RESULTS[kind])
            else:
                cause = "crash" if run.attempt is None else "ambiguous"
                told += self._end(now, "RunAbandoned", run_id, "abandoned", cause=cause)
        return told

    def _end(self, now: datetime, kind: str, run_id: int, state: str, **fields: object) -> list[Told]:
        """ "The result of an attempt and its `AttemptCleared` go into one atomic batch" """
        run = self.runs[run_id]
        told = [self.tell(kind, now, run_id=run_id, attempt_id=run.attempt, **fields)]
        if run.attempt is not None:
            told.append(self.tell("AttemptCleared", now, run_id=run_id, attempt_id=run.attempt))
        run.state, run.attempt = state, None
        return told

    def _must_be(self, run_id: int, *states: str) -> None:
        if run_id not in self.runs:
            raise Refused("UnknownRun")
        if self.runs[run_id].state not in states:
            raise Refused("WrongRunState")
