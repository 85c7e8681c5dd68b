"""One turn of one schedule in a poll of the reference model: SPEC section 6's table, rule by rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.scheduler.reference_model import Model

SCAN_CAP = 100


class BatchFull(Exception):
    """The poll's batch holds no further entry."""


@dataclass
class Batch:
    """One poll so far: what it decided and offers, and how many runs were started when it began."""

    size: int
    started: int
    start: bool
    entries: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    offered: list[int] = field(default_factory=list[int])

    def add(self, count: int, decision: Callable[[], list[dict[str, Any]]]) -> None:
        """ "At most `batch` entries"; "when it is cut there, `Poll.more` is true and nothing is lost". What belongs
        together (an admission and its start) is never cut apart, and may be the one thing in a batch too small."""
        if self.entries and len(self.entries) + count > self.size:
            raise BatchFull
        self.entries += decision()


@dataclass
class Turn:
    """The schedule's turn."""

    model: Model
    now: datetime
    schedule_id: str
    batch: Batch

    def take(self) -> bool:
        """Whether something was decided. "A turn decides due instants ascending, up to and including its first
        admission; a schedule with nothing due but a candidate <= now decides the candidate." """
        schedule = self.model.schedules[self.schedule_id]
        before = len(self.batch.entries)
        if schedule.deleted or self.schedule_id in self.model.blocked_schedules:
            return False  # "the schedule's instants stay undecided"
        due = self.model.due(schedule, self.now)
        if schedule.paused or schedule.disabled:
            self._pass_a_one_shot(due)
        elif due:
            self._decide_all(due)
        elif schedule.candidate is not None and schedule.candidate <= self.now:
            self._decide_candidate(schedule.candidate)
        return len(self.batch.entries) > before

    def _pass_a_one_shot(self, due: list[datetime]) -> None:
        """ "A paused or disabled one-shot whose time passes is skipped (`paused`, `disabled`) by the next poll." """
        schedule = self.model.schedules[self.schedule_id]
        if due and schedule.rule.cadence == "one_shot":
            self._skip(due[0], "paused" if schedule.paused else "disabled")

    def _decide_all(self, due: list[datetime]) -> None:
        schedule = self.model.schedules[self.schedule_id]
        newest = due[-1]
        if len(due) == SCAN_CAP:  # "If the hundredth is <= now, the cap is hit"
            newest = self.model.newest_due(schedule, self.now)
            self._pass_over(newest, seen=sum(one < newest for one in due))
            due = [newest]
        self._settle(newest)
        while due:
            if schedule.candidate is not None:  # one that this very turn has held
                self._supersede(schedule.candidate, due[-1])
            if self._decide(due[0], due[-1]) in ("admitted", "waiting"):
                break
            # "what lies between [two ranges that become one] counts as decided", in this turn, too
            due = [one for one in due[1:] if not any(kept.first <= one <= kept.last for kept in schedule.kept)]

    def _settle(self, newest: datetime) -> None:
        """ "an older candidate is held when any newer instant comes due" """
        schedule = self.model.schedules[self.schedule_id]
        held = schedule.candidate
        if held is None:
            return
        spent_by = self.model.spent_by(schedule, held)
        if spent_by is not None:  # "a held candidate is tested too"
            self._skip(held, "spent", by=spent_by)
        else:
            self._supersede(held, newest)

    def _decide_candidate(self, candidate: datetime) -> None:
        """ "a held candidate is tested [for `spent`] too, even with no slot free"; for all else "it stays untouched
        while no slot is free" """
        schedule = self.model.schedules[self.schedule_id]
        if self._slot_is_free() or self.model.spent_by(schedule, candidate) is not None:
            self._decide(candidate, candidate)

    def _decide(self, instant: datetime, newest: datetime) -> str:
        """ "For each due instant, ascending, the first rule that fits decides" """
        model, schedule = self.model, self.model.schedules[self.schedule_id]
        rule = schedule.rule
        active = model.active_runs(self.schedule_id)
        spent_by = model.spent_by(schedule, instant)
        if spent_by is not None:
            self._skip(instant, "spent", by=spent_by)
        elif self._missed(instant) and rule.misfire == "skip":
            self._skip(instant, "misfire" if self._slot_is_free() else "capacity")
        elif self._missed(instant) and instant < newest:
            self._supersede(instant, newest)
        elif not model.target_fits(rule):
            self._skip(instant, "preflight")
        elif len(active) >= rule.limit:
            self._skip(instant, "overlap", blocking_run=active[0])
        elif not self._slot_is_free():
            if rule.misfire == "skip":
                return "waiting"  # "undecided, nothing journaled, this schedule's later instants wait too"
            self._tell(lambda: model.hold(self.now, self.schedule_id, instant))
        elif self.schedule_id in model.refusing:
            self._skip(instant, "preflight")
        else:
            self._admit(instant)
            return "admitted"
        return "consumed"

    def _missed(self, instant: datetime) -> bool:
        """ "missed: due and not timely"; a period is "timely during the whole period" """
        return self.now >= self.model.deadline(self.model.schedules[self.schedule_id], instant)

    def _slot_is_free(self) -> bool:
        """ "task_slots - started runs (as they were when the poll began) - runs offered so far in this poll > 0" """
        return self.model.task_slots - self.batch.started - len(self.batch.offered) > 0

    def _pass_over(self, newest: datetime, seen: int) -> None:
        """ "one `IntervalSkipped` (C, N) with `at_least` = the instants seen inside it decides all of them" """
        schedule = self.model.schedules[self.schedule_id]
        self._settle(newest)  # "a held candidate first gets its own" entry
        reason = "backlog" if schedule.rule.misfire == "skip" else "superseded"
        self._tell(lambda: self.model.pass_over(self.now, self.schedule_id, newest, seen, reason))

    def _skip(self, instant: datetime, reason: str, **more: object) -> None:
        self._tell(lambda: self.model.skip(self.now, self.schedule_id, instant, reason, **more))

    def _supersede(self, instant: datetime, by: datetime) -> None:
        self._tell(lambda: self.model.supersede(self.now, self.schedule_id, instant, by))

    def _admit(self, instant: datetime) -> None:
        """ "A run that this poll admits is offered by it"; with `start`, "in the same fsync" it is started, too."""

        def decide() -> list[dict[str, Any]]:
            admitted = self.model.admit(self.now, self.schedule_id, instant)
            self.batch.offered.append(self.model.sequence)
            return [admitted, *([self.model.started(self.now, self.model.sequence)] if self.batch.start else [])]

        self.batch.add(1 + self.batch.start, decide)

    def _tell(self, decision: Callable[[], dict[str, Any]]) -> None:
        self.batch.add(1, lambda: [decision()])
