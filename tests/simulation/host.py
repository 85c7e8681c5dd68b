"""The host of a simulation: what it executes, what it knows, and what it has really done.

Rules: it begins a run only when a start or a resume has returned. `begun` is the world outside: no crash undoes it,
and nothing there may happen twice.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from duly import Completed, Failed, Interrupted, Run, StillRunning
from tests.simulation.chronicle import Chronicle
from tests.simulation.evidence import Answer

Result: TypeAlias = Completed | Failed | Interrupted


class Host:
    """One host, over all its lives."""

    def __init__(self) -> None:
        self.executing: dict[int, int | None] = {}
        """What runs now, and its attempt."""
        self.finished: dict[int, Result] = {}
        """Results whose report was not acknowledged."""
        self.offers: dict[int, None] = {}
        self.begun: Counter[tuple[int, int | None]] = Counter()
        self.occurrences: dict[str, int] = {}
        self.names: dict[int, str] = {}

    def begin(self, run: Run, attempt_id: int | None) -> None:
        """Work starts, with effects that nobody can take back."""
        name = run.occurrence_id or f"manual {run.target}"
        assert self.names.setdefault(run.id, name) == name, f"run {run.id} was {self.names[run.id]}, and is {name} now"
        if run.occurrence_id is not None:
            first = self.occurrences.setdefault(run.occurrence_id, run.id)
            assert first == run.id, f"{name} was begun by run {first}, and by run {run.id} again"
        self.begun[run.id, attempt_id] += 1
        assert self.begun[run.id, attempt_id] == 1, f"run {run.id} ({name}) was begun twice for attempt {attempt_id}"
        self.offers.pop(run.id, None)
        self.executing[run.id] = attempt_id

    def reported(self, result: Result) -> None:
        """A result was acknowledged."""
        self.executing.pop(result.run_id, None)
        self.finished.pop(result.run_id, None)

    def left_unclear(self, result: Result) -> None:
        """The work has ended, and whether its result is recorded cannot be told."""
        if self.executing.get(result.run_id, -1) == result.attempt_id:
            del self.executing[result.run_id]
            self.finished[result.run_id] = result

    def dies(self, *, workers_survive: bool, store_survives: bool) -> None:
        """The process ends; what it had in memory is gone, but for workers and a store of their own."""
        self.offers.clear()
        if not workers_survive:
            self.executing.clear()
        if not store_survives:
            self.finished.clear()

    def truth(self, run_id: int, attempt_id: int | None) -> Answer:
        """What it knows of a run."""
        result = self.finished.get(run_id)
        if result is not None:
            return result
        return StillRunning(run_id) if self.executing.get(run_id, -1) == attempt_id else None

    def hears_of(self, chronicle: Chronicle) -> None:
        """After an opening: what the journal holds as ended or interrupted is not executed any more."""
        for run_id, attempt_id in list(self.executing.items()):
            run = chronicle.runs[run_id]
            if run.state != "started" or run.attempt_id != attempt_id:
                del self.executing[run_id]
        self.finished.clear()
        self.offers = {one: None for one in self.offers if chronicle.runs[one].state == "pending"}
