"""State: the fold of a journal, and the questions that can be asked of it.

Rules: `apply` is total: an entry that contradicts the state becomes an anomaly and blocks its schedule, and nothing
else happens. A question changes nothing. What needs a calendar is asked in `duly.scheduler`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge

from duly.journal.entries import Entry, TriggerRule
from duly.journal.errors import Error
from duly.projections.facts import Facts
from duly.projections.fold import fold_entries
from duly.projections.runs import Run, RunState
from duly.projections.schedules import Block, Schedule, rule_view


class NotRecorded(Error, LookupError):
    """The record has no such schedule or run."""


class State(Facts):
    """The fold of a journal up to `sequence`."""

    def apply(self, sequence: int, entry: Entry) -> None:
        """Folds one entry in. Never raises for what an entry says."""
        fold_entries(self, sequence, (entry,))

    def apply_all(self, first: int, entries: Iterable[Entry]) -> None:
        """Folds entries in that follow one another, from the sequence `first` on."""
        fold_entries(self, first, entries)

    def find(self, schedule_id: str) -> Schedule[TriggerRule] | None:
        """The schedule, also a deleted one, or None."""
        found = self.by_id.get(schedule_id)
        return None if found is None else rule_view(found)

    def schedule(self, schedule_id: str) -> Schedule[TriggerRule]:
        """The schedule. Raises NotRecorded if there is none, or if it is deleted."""
        found = self.find(schedule_id)
        if found is None or found.deleted:
            raise NotRecorded(f"there is no schedule {schedule_id!r} after entry {self.sequence}")
        return found

    def schedules(self, *, deleted: bool = False) -> tuple[Schedule[TriggerRule], ...]:
        """All schedules by id; deleted ones only if asked for."""
        living = (one for _, one in sorted(self.by_id.items()) if deleted or not one.deleted)
        return tuple(rule_view(one) for one in living)

    def run(self, run_id: int) -> Run:
        """A run that is open or ended lately. Raises NotRecorded."""
        run = self.known_run(run_id)
        if run is None:
            raise NotRecorded(f"there is no run {run_id} that is open, or ended lately, after entry {self.sequence}")
        return run

    def runs(self, *, schedule_id: str | None = None, state: RunState | None = None) -> tuple[Run, ...]:
        """The runs that are open, and those that ended lately, by id; of one schedule or in one state if asked."""
        return tuple(
            run
            for run in self.runs_after(0)
            if (schedule_id is None or run.schedule_id == schedule_id) and (state is None or run.state == state)
        )

    def runs_after(self, run_id: int) -> Iterator[Run]:
        """The same runs, those with ids above `run_id`; what is not taken costs little."""
        # A run is admitted with the highest id so far, and ends whenever it ends.
        recent = sorted(one for one in self.runs_recent if one > run_id)
        for one in merge(recent, (one for one in self.runs_open if one > run_id)):
            yield self.runs_open[one] if one in self.runs_open else self.runs_recent[one]

    def known_run(self, run_id: int) -> Run | None:
        """A run that is open or ended lately, or None."""
        return self.runs_open.get(run_id) or self.runs_recent.get(run_id)

    def blocking(self, schedule_id: str | None) -> Block | None:
        """The block on a schedule, or None."""
        found = self.by_id.get(schedule_id) if schedule_id is not None else None
        return None if found is None else found.block
