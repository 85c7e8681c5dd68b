"""What the host would have answered in another world, as far as its record tells.

Rules: the poll that is being replayed is asked first, then what the record says of that occurrence anywhere; an
occurrence that was never asked about is accepted, at the revision that its schedule pins. A refusal comes at the
question that it answered: of the target before overlap and capacity, of the preflight after them.
"""

from __future__ import annotations

from collections.abc import Sequence

from duly.journal.entries import Entry, OccurrenceAdmitted, OccurrenceSkipped
from duly.projections import State
from duly.scheduler.decisions.questions import Answer, AskTarget, Question, Refusal, Target, is_of_target
from duly.scheduler.recorded import Key, Record


class Answers:
    """The host's answers within one poll."""

    def __init__(self, record: Record, state: State, recorded: Sequence[Entry]) -> None:
        self._record = record
        self._state = state
        self._here: dict[Key, Entry] = {
            (entry.schedule_id, entry.scheduled_at): entry
            for entry in recorded
            if isinstance(entry, OccurrenceAdmitted | OccurrenceSkipped)
        }

    def answer_to(self, question: Question) -> Answer:
        """The answer to one question."""
        asked = question if isinstance(question, AskTarget) else question.invocation
        key: Key = (asked.schedule_id or "", asked.scheduled_at) if asked.scheduled_at is not None else 0
        refusal = self._refusal(key)
        name = asked.name if isinstance(asked, AskTarget) else asked.target
        of_target = refusal is not None and is_of_target(refusal, name)
        if refusal is not None and of_target == isinstance(question, AskTarget):
            return Refusal(refusal)
        return self._target(question.name, asked.schedule_id, key) if isinstance(question, AskTarget) else None

    def _refusal(self, key: Key) -> str | None:
        here = self._here.get(key)
        if isinstance(here, OccurrenceSkipped) and here.reason == "preflight":
            return here.detail
        return None if here is not None else self._record.refusals.get(key)

    def _target(self, name: str, schedule_id: str | None, key: Key) -> Target:
        here = self._here.get(key)
        if isinstance(here, OccurrenceAdmitted):
            return Target(name, here.target_revision, here.environment)
        if key in self._record.pins:
            return Target(name, *self._record.pins[key])
        schedule = self._state.by_id.get(schedule_id or "")
        return Target(name, schedule.definition.target_revision if schedule is not None else None)
