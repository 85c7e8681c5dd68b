"""Opening the journal of a host that is not running, to administer it.

Rules kept here:
- a visitor decides what it came for and nothing else: what the host's process left at work stays at work, for the
  host to give evidence of, and what only the host can evaluate (its own sources, its zones) is not blocked;
- a journal that somebody owns is not touched: opening it raises JournalLocked;
- where a new one cannot be begun, no empty files are left in its place.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable

from duly.journal import RealDisk
from duly.journal.making import nothing_left
from duly.journal.ownership import canonical
from duly.projections import Run, replay
from duly.scheduler.decisions.runs import StillRunning
from duly.scheduler.embedded import Scheduler
from duly.scheduler.errors import UnknownRun
from duly.scheduler.unknown import unknown_schedule
from duly.tools.output import working


class LeftToHost:
    """Evidence that decides nothing: about a run that is at work only its host can tell."""

    def of(self, run: Run, /) -> StillRunning:
        return StillRunning(run.id)

    def runs(self) -> Iterable[tuple[int, str]]:
        return ()


def acting(actor: str | None) -> str:
    """Who acts, for the record: who was named, else the user of this process."""
    if actor is not None:
        return actor
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a process need not have a user with a name
        return ""


def refuse_unknown(journal: str, schedule_id: str | None, run_id: int | None) -> None:
    """Refuses a schedule or a run that the record does not know before the journal is taken, for that is recorded.
    Raises UnknownSchedule and UnknownRun, with the nearest, and the journal's errors."""
    if schedule_id is None and run_id is None:
        return
    with working("reading"):
        state = replay(journal)
    if schedule_id is not None and schedule_id not in state.by_id:
        raise unknown_schedule(schedule_id, state.by_id)
    if run_id is not None and state.known_run(run_id) is None:
        runs = sorted((run.id for run in state.runs()), key=lambda one: abs(one - run_id))
        near = ", ".join(map(str, sorted(runs[:3])))
        hint = f"The nearest: {near}." if near else "There are no runs."
        raise UnknownRun(f"there is no run {run_id}", run_id=run_id, hint=hint)


def open_as_visitor(journal: str, *, actor: str, create: bool) -> Scheduler:
    """The journal of a stopped host (or, with `create`, a new one), open for administration alone."""
    with working("opening"), nothing_left(RealDisk(), canonical(journal)):
        return Scheduler.open(journal, actor=actor, create=create, evidence=LeftToHost(), block_unevaluable=False)
