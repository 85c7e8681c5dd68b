"""State: the fold of a journal, and the questions that can be asked of it.

Rules: `apply` is total: an entry that contradicts the state becomes an anomaly and blocks its schedule, and nothing
else happens. A question changes nothing.
"""

from __future__ import annotations

from datetime import timedelta

from duly.journal.entries import Entry, TriggerRule
from duly.projections.facts import Facts
from duly.projections.fold import fold_entry
from duly.projections.runs import Run
from duly.projections.schedules import Block, Schedule, rule_view


class State(Facts):
    """The fold of a journal up to `sequence`."""

    def apply(self, sequence: int, entry: Entry) -> None:
        """Folds one entry in. Never raises for what an entry says."""
        fold_entry(self, sequence, entry)

    def find(self, schedule_id: str) -> Schedule[TriggerRule] | None:
        """The schedule, also a deleted one, or None."""
        found = self.schedules.get(schedule_id)
        return None if found is None else rule_view(found)

    def listed(self, *, deleted: bool = False) -> list[Schedule[TriggerRule]]:
        """All schedules by id; deleted ones only if asked for."""
        return [rule_view(self.schedules[key]) for key in sorted(self.schedules) if self._listed(key, deleted)]

    def run(self, run_id: int) -> Run | None:
        """A run that is open or ended lately, or None."""
        return self.runs_open.get(run_id) or self.runs_recent.get(run_id)

    def blocking(self, schedule_id: str | None) -> Block | None:
        """The block on a schedule, or None."""
        found = self.schedules.get(schedule_id) if schedule_id is not None else None
        return None if found is None else found.block

    @property
    def task_slots(self) -> int:
        """The settings in force, as the last owner recorded them (0 before the first owner)."""
        return self.opened.task_slots if self.opened is not None else 0

    @property
    def clock_tolerance(self) -> timedelta:
        """How far the clock may step back unnoticed."""
        return self.opened.clock_tolerance if self.opened is not None else timedelta(minutes=5)

    def _listed(self, schedule_id: str, deleted: bool) -> bool:
        return deleted or not self.schedules[schedule_id].deleted
