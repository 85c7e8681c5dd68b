"""What a host knows about runs: evidence for the opening of its journal.

Rules: what this process executes is still running, until its result is there; of what a dead host began, the machine
is asked whether its process lives; whatever neither tells is left to the host's own evidence, if it has any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from duly.projections import Run
from duly.scheduler.decisions.runs import Completed, Failed, Interrupted, Result, StillRunning
from duly.scheduler.reconciling import EvidenceSource
from duly.service.at_work import AtWork
from duly.service.outliving import noted
from duly.service.processes import Process


class Knowledge:
    """The evidence of a host."""

    def __init__(self, at_work: AtWork, unrecorded: Mapping[int, Result], others: EvidenceSource | None) -> None:
        self._at_work = at_work
        self._unrecorded = unrecorded
        self._others = others
        self.outlived: Final[dict[int, tuple[Run, Process, Path | None]]] = {}
        """Runs of a dead host whose processes live on, as the last opening found them."""

    def forget(self) -> None:
        """Begins anew: the journal is opened, and what an opening found that failed is no longer true."""
        self.outlived.clear()

    def of(self, run: Run, /) -> Completed | Failed | Interrupted | StillRunning | None:
        """What is known of a started run."""
        if run.id in self._unrecorded:
            return self._unrecorded[run.id]
        if run.id in self._at_work:
            return StillRunning(run.id)
        told = None if self._others is None else self._others.of(run)
        if told is not None:
            return told
        found = noted(run.notes, run.attempt_id)
        if found is None:
            return None
        self.outlived[run.id] = (run, *found)
        return StillRunning(run.id)

    def runs(self) -> Iterable[tuple[int, str]]:
        """Every run that this process executes, with its schedule."""
        own = [(one.run.id, one.run.schedule_id) for one in self._at_work]
        others = () if self._others is None else self._others.runs()
        return [*((run_id, name) for run_id, name in own if name is not None), *others]
