"""Who holds the task slots, from entries about runs alone: the same fold for a record that is read and for an index.

Rules: what contradicts the state of its run takes nothing and frees nothing, as in the fold of everything; a run that
is not known, because its admission was lost, can hold none. An admission is taken as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, cast

import msgspec

from duly.journal.entries import AttemptCleared, Entry, Instant, OccurrenceAdmitted, ResumeMarked, RunAdmittedManually
from duly.projections.runs import ENDED, RUN_ENTRIES, TRANSITIONS, RunEntry, RunState, objection

_ADMISSIONS: Final = (OccurrenceAdmitted, RunAdmittedManually)


class OpenRun(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A run that has not ended, and since when it is in its state."""

    run_id: int
    schedule_id: str | None
    state: RunState
    since: Instant
    attempt_id: int | None = None


class Slots:
    """The open runs: those that hold a task slot, in the order in which they took it, and the others."""

    def __init__(self, open_runs: Iterable[OpenRun] = ()) -> None:
        self.holding: dict[int, OpenRun] = {}
        self._idle: dict[int, OpenRun] = {}
        for run in open_runs:
            self._place(run)

    @property
    def open_runs(self) -> tuple[OpenRun, ...]:
        """All of them."""
        return *self.holding.values(), *self._idle.values()

    def __len__(self) -> int:
        return len(self.holding) + len(self._idle)

    def apply(  # noqa: PLR0913, PLR0917 - all that an index has of an entry
        self,
        sequence: int,
        kind: type[Entry],
        at: datetime,
        schedule_id: str | None,
        run_id: int | None,
        attempt_id: int | None,
    ) -> OpenRun | None:
        """Folds one entry in, by what it says of a run; returns the run that gave up its slot, or None."""
        if kind in _ADMISSIONS:
            self._place(OpenRun(sequence, schedule_id, "pending", at))
            return None
        if run_id is None or kind not in RUN_ENTRIES:
            return None
        run = self.holding.get(run_id) or self._idle.get(run_id)
        if run is None or run.schedule_id != schedule_id:
            return None
        return self._advance(run, sequence, cast("type[RunEntry]", kind), at, attempt_id)

    def _advance(
        self, run: OpenRun, sequence: int, kind: type[RunEntry], at: datetime, attempt_id: int | None
    ) -> OpenRun | None:
        if objection(run.run_id, run.state, run.attempt_id, kind, attempt_id):
            return None
        state = TRANSITIONS[run.state][kind]
        active = run.attempt_id
        if kind is ResumeMarked:
            active = sequence
        elif kind is AttemptCleared:
            active = None
        if (state, active) == (run.state, run.attempt_id):
            return None
        freed = self.holding.pop(run.run_id, None)
        self._idle.pop(run.run_id, None)
        if state not in ENDED:
            self._place(OpenRun(run.run_id, run.schedule_id, state, at, active))
        return freed

    def _place(self, run: OpenRun) -> None:
        (self.holding if run.state == "started" else self._idle)[run.run_id] = run
