"""The host's answers to what a decision asks, and the loop that brings both together.

Rules: a target is asked for once in a decision; a host that raises, or gives what cannot be recorded, has refused, in
its own words; what it is shown is a copy. The same loop drives a decision live, in the engine check and in a what-if.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

from duly.journal import UnencodableEntry, frozen_json
from duly.scheduler.copies import round_trip
from duly.scheduler.decisions.questions import (
    Answer,
    AskPreflight,
    Invocation,
    Question,
    Refusal,
    Target,
    by_targets,
)
from duly.scheduler.definitions import check_words
from duly.scheduler.errors import DefinitionError
from duly.scheduler.wording import describe_error, describe_value, shortened

T = TypeVar("T")

Targets: TypeAlias = Callable[[str], Target | None]
"""The host's answer to what a target name stands for; None if it knows none."""
Preflight: TypeAlias = Callable[[Invocation], str | None]
"""The host's word on an invocation: None, or why it may not be admitted."""


def driven(decision: Generator[Question, Answer, T], answer_to: Callable[[Question], Answer]) -> T:
    """Runs a decision to its end, answering what it asks."""
    answer: Answer = None
    while True:
        try:
            question = decision.send(answer)
        except StopIteration as end:
            outcome: T = end.value
            return outcome
        answer = answer_to(question)


class HostAnswers:
    """Asks the host; without a callback every target is accepted unpinned, and nothing is refused."""

    def __init__(self, targets: Targets | None, preflight: Preflight | None) -> None:
        self._targets = targets
        self._preflight = preflight
        self.has_targets = targets is not None
        self.has_preflight = preflight is not None

    def drive(self, decision: Generator[Question, Answer, T]) -> T:
        """Runs one decision to its end with the host's answers."""
        targets: dict[str, Target | Refusal | None] = {}

        def answer_to(question: Question) -> Answer:
            if isinstance(question, AskPreflight):
                return self._preflighted(question.invocation)
            if question.name not in targets:
                targets[question.name] = self._target(question.name)
            return targets[question.name]

        return driven(decision, answer_to)

    def _target(self, name: str) -> Target | Refusal | None:
        if self._targets is None:
            return Target(name)
        try:
            target = self._targets(name)
            if target is None:
                return None
            if not isinstance(target, Target):  # pyright: ignore[reportUnnecessaryIsInstance] - hosts are not all typed
                return Refusal(f"{by_targets(name)} gave {describe_value(target)}, which is no Target")
            revision = None if target.revision is None else check_words("revision", target.revision)
            return Target(name, revision, frozen_json(target.environment, name="the environment"))
        except (DefinitionError, UnencodableEntry) as error:
            return Refusal(shortened(f"{by_targets(name)} gave what cannot be recorded: {error}"))
        except Exception as error:  # whatever the host raises is its refusal, in its own words
            return Refusal(f"{by_targets(name)} raised {describe_error(error)}")

    def _preflighted(self, invocation: Invocation) -> Refusal | None:
        if self._preflight is None:
            return None
        try:
            reason: object = self._preflight(round_trip(invocation))
            return None if reason is None else Refusal(shortened(str(reason)))
        except Exception as error:  # whatever the host raises is its refusal, in its own words
            return Refusal(f"preflight raised {describe_error(error)}")
