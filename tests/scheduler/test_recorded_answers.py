"""In another world the host refuses at the question that it refused at, whatever its words are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from duly import Target
from duly.journal import Reader
from duly.journal.entries import OccurrenceSkipped
from duly.projections import replay
from duly.scheduler.decisions.questions import Answer, AskPreflight, AskTarget, Invocation, Refusal
from duly.scheduler.recorded import Record
from duly.scheduler.recorded_answers import Answers
from tests.scheduler.embedding import QUARTERLY, Program, at


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.close()


def raising(_: object) -> Any:
    raise RuntimeError("the target disk is full")


def accepting(name: str) -> Target:
    return Target(name, "1")


NO_JSON: Any = {1, 2}
TARGETS: dict[str, Callable[[str], Any]] = {
    "none is known": lambda _: None,
    "another revision": lambda name: Target(name, "2"),
    "no target": lambda name: f"the target {name}",
    "what cannot be recorded": lambda name: Target(name, "1", NO_JSON),
    "an error": raising,
}
PREFLIGHTS: dict[str, Callable[[Invocation], Any]] = {
    "words about a target": lambda _: "the target disk is full",
    "words of a target": lambda _: "targets(all) are busy",
    "other words": lambda _: "no",
    "an error": raising,
}


def answers_of(program: Program, **callbacks: Any) -> tuple[Answer, Answer]:
    """What another world hears of the target and of the preflight, for an occurrence that was refused."""
    scheduler = program.open(**callbacks)
    scheduler.create("a", QUARTERLY, target="x", target_revision="1")
    program.poll_at(scheduler, "09:15")
    [skip] = [record.entry for record in program.records() if isinstance(record.entry, OccurrenceSkipped)]
    assert skip.reason == "preflight"
    record = Record([(line.first, line.entries) for line in Reader(program.path).lines()])
    answers = Answers(record, replay(program.path), ())
    invocation = Invocation(
        schedule_id="a",
        occurrence_id="a@2026-03-02T09:15:00Z",
        scheduled_at=at("09:15"),
        target="x",
        target_revision="1",
        environment=None,
        input={},
        limits={},
    )
    return answers.answer_to(AskTarget("x", "a", at("09:15"))), answers.answer_to(AskPreflight(invocation))


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_is_refused_when_it_is_asked_for(name: str, program: Program):
    target, preflight = answers_of(program, targets=TARGETS[name])
    assert (isinstance(target, Refusal), preflight) == (True, None)


@pytest.mark.parametrize("name", PREFLIGHTS)
def test_a_preflight_refuses_behind_the_target(name: str, program: Program):
    target, preflight = answers_of(program, targets=accepting, preflight=PREFLIGHTS[name])
    assert (target, isinstance(preflight, Refusal)) == (Target("x", "1"), True)
