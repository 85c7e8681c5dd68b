"""What the API has acknowledged or shown: the oracle that nothing of it is ever lost.

Rules: a claim is made when a call returns, or refuses with words about what is recorded; from then on every journal
that is found, after whatever happened, must bear it out. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from duly import (
    Attempt,
    Blocked,
    Error,
    Poll,
    RevisionConflict,
    Run,
    Schedule,
    StaleAttempt,
    WrongRunState,
)
from duly.journal.entries import Entry
from tests.simulation.chronicle import Chronicle


class Claims:
    """Everything that was claimed so far."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.words: set[str] = set()
        self.run_states: set[tuple[int, str, int | None]] = set()
        self.flags: set[tuple[str, str, bool]] = set()
        self.revisions: dict[str, int] = {}
        self.blocks: set[tuple[str, int]] = set()
        self.admitted: set[int] = set()

    def heard(self, outcome: object) -> None:
        """A call returned this."""
        match outcome:
            case Poll():
                self.entries.update(outcome.decisions)
                for run in (*outcome.admitted, *outcome.offered):
                    self.heard(run)
                for run in outcome.admitted:
                    assert run.id not in self.admitted, f"run id {run.id} was given twice"
                    self.admitted.add(run.id)
            case Attempt():
                self.run_states.add((outcome.run.id, "started", outcome.attempt_id))
            case Run():
                self.run_states.add((outcome.id, outcome.state, outcome.attempt_id))
            case Schedule():
                self._schedule(outcome.id, outcome.revision)
                flags = {"paused": outcome.paused, "disabled": outcome.disabled, "deleted": outcome.deleted}
                self.flags |= {(outcome.id, flag, True) for flag, on in flags.items() if on}
                if outcome.blocked is not None:
                    self.blocks.add((outcome.id, outcome.blocked.sequence))
            case tuple():
                parts = cast("tuple[object, ...]", outcome)  # pyright: ignore[reportUnknownArgumentType] - of any kind
                for one in parts:
                    self.heard(one)
            case _:
                pass

    def refused(self, error: Error) -> None:
        """A call was refused with this, which says something about the record too."""
        match error:
            case WrongRunState():
                assert error.run_id is not None
                self.run_states.add((error.run_id, error.state, -1))
            case StaleAttempt():
                assert error.run_id is not None
                if error.active is not None:
                    self.run_states.add((error.run_id, "started", error.active))
            case RevisionConflict():
                assert error.schedule_id is not None
                self._schedule(error.schedule_id, error.actual)
            case Blocked():
                assert error.schedule_id is not None
                assert error.sequence is not None
                self.blocks.add((error.schedule_id, error.sequence))
            case _:
                pass

    def said(self, word: str) -> None:
        """A command with this word in its entry was acknowledged."""
        self.words.add(word)

    def _schedule(self, schedule_id: str, revision: int) -> None:
        self.revisions[schedule_id] = max(revision, self.revisions.get(schedule_id, 1))

    def check(self, entries: Sequence[Entry], chronicle: Chronicle) -> None:
        """Holds a journal to all that was claimed."""
        for sequence, entry in self.entries.items():
            assert sequence <= len(entries), f"the acknowledged entry {sequence} is lost"
            assert entries[sequence - 1] == entry, f"the acknowledged entry {sequence} is another now"
        lost = self.words - set(chronicle.words)
        assert not lost, f"acknowledged and lost: {lost}"
        for run_id, state, attempt_id in self.run_states:
            assert run_id in chronicle.runs, f"run {run_id} was shown and is lost"
            history = chronicle.runs[run_id].history
            known = any(one == state and attempt_id in (-1, attempt, None) for one, attempt in history)
            assert known, f"run {run_id} was shown as {state} (attempt {attempt_id}), and the record says {history}"
        for schedule_id, revision in self.revisions.items():
            assert schedule_id in chronicle.schedules, f"schedule {schedule_id} was shown and is lost"
            assert chronicle.schedules[schedule_id].revision >= revision, f"{schedule_id} was at revision {revision}"
        for schedule_id, flag, value in self.flags:
            assert (flag, value) in chronicle.schedules[schedule_id].ever, f"{schedule_id} was shown as {flag}"
        for schedule_id, sequence in self.blocks:
            assert sequence <= chronicle.sequence, f"{schedule_id} was shown as blocked by {sequence}, which is lost"
