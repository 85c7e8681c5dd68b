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
from duly.projections import Run
from duly.scheduler.decisions.runs import StillRunning
from duly.scheduler.embedded import Scheduler
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


def open_as_visitor(journal: str, *, actor: str, create: bool) -> Scheduler:
    """The journal of a stopped host (or, with `create`, a new one), open for administration alone."""
    with working("opening"), nothing_left(RealDisk(), canonical(journal)):
        return Scheduler.open(journal, actor=actor, create=create, evidence=LeftToHost(), block_unevaluable=False)
