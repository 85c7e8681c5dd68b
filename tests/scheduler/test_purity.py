"""Decisions are pure: they change nothing they are given, and the same state, reading and answers give the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from duly import Completed, Cron, OncePer, OneShot, Scheduler, State, Target
from duly.journal.entries import Entry
from duly.projections import replay
from duly.scheduler.answers import driven
from duly.scheduler.decisions.administration import (
    Command,
    decide_block,
    decide_create,
    decide_edit,
    decide_external_run,
    decide_rebaseline,
    decide_switch,
    decide_unblock,
)
from duly.scheduler.decisions.admission import decide_poll, decide_regression
from duly.scheduler.decisions.manual import decide_manual_run
from duly.scheduler.decisions.plans import PollPlan, PollRequest
from duly.scheduler.decisions.questions import Answer, AskPreflight, AskTarget, Question, Refusal
from duly.scheduler.decisions.recovery import Findings, decide_recovery
from duly.scheduler.decisions.runs import (
    decide_abandon,
    decide_note,
    decide_results,
    decide_resume,
    decide_start,
)
from duly.scheduler.definitions import parse_definition
from duly.scheduler.roster import Roster
from duly.scheduler.triggers import trigger_of
from tests.scheduler.embedding import MINUTE, NINE, QUARTERLY, Program, at

NOW = at("10:05")
COMMAND = Command(NOW, actor="eve", note="because")


@pytest.fixture
def state(program: Program) -> State:
    """The state of a busy morning: due, held, pending, started, interrupted, blocked, paused."""
    scheduler = program.open(task_slots=2)
    scheduler.create("due", QUARTERLY, target="x", input={"day": [1]}, limits={"max_steps": 3})
    scheduler.create("held", QUARTERLY, target="x")
    scheduler.create("minutely", Cron("* * * * *", zone="UTC"), target="x", misfire="skip")
    scheduler.create("daily", OncePer("day", zone="UTC"), target="x")
    scheduler.create("once", OneShot(at("10:00")), target="x")
    scheduler.create("blocked", QUARTERLY, target="x")
    scheduler.block("blocked", "wait")
    scheduler.create("paused", QUARTERLY, target="x")
    scheduler.pause("paused")
    runs = [scheduler.run_now(target="x", input={"n": [n]}) for n in range(4)]
    scheduler.start(runs[0].id, runs[1].id)
    scheduler.interrupt(runs[0].id, checkpoint={"page": [3]})
    scheduler.start(runs[2].id)
    program.poll_at(scheduler, "09:15")
    scheduler.close()
    return replay(program.path)


def polled(state: State, answer_to: Callable[[Question], Answer], slots: int) -> PollPlan:
    request = PollRequest(
        now=NOW,
        task_slots=slots,
        batch=1_000,
        due=Roster((one, NOW) for one in state.by_id),
        queued=Roster(),
        source_of=lambda schedule: trigger_of(schedule.definition.trigger),
    )
    return driven(decide_poll(state, request), answer_to)


def agreeable(question: Question) -> Answer:
    return Target(question.name, "r1", {"image": []}) if isinstance(question, AskTarget) else None


DECISIONS: dict[str, Callable[[State], object]] = {
    "a poll": lambda state: polled(state, agreeable, 8),
    "a poll without a slot": lambda state: polled(state, agreeable, 2),
    "a poll that is refused": lambda state: polled(state, lambda question: Refusal("no"), 8),
    "a regression": lambda state: decide_regression(state, NINE - timedelta(days=1), 5 * MINUTE),
    "recovery": lambda state: decide_recovery(
        state, Findings(strangers=((99, "due"),), unevaluable={"daily": "x"}), NOW
    ),
    "recovery with evidence": lambda state: decide_recovery(
        state, Findings(evidence={run_id: Completed(run_id, None, {"a": []}) for run_id in state.started}), NOW
    ),
    "create": lambda state: decide_create("new", state.by_id["due"].definition, COMMAND, trigger_of),
    "edit": lambda state: decide_edit(
        state.by_id["held"],
        parse_definition({"target": "y"}, state.by_id["held"].definition),
        1,
        COMMAND,
        trigger_of,
    ),
    "pause": lambda state: decide_switch(state.by_id["held"], "pause", COMMAND, trigger_of),
    "unpause": lambda state: decide_switch(state.by_id["paused"], "unpause", COMMAND, trigger_of),
    "delete": lambda state: decide_switch(state.by_id["held"], "delete", COMMAND, trigger_of),
    "block": lambda state: decide_block(state.by_id["due"], "wait", COMMAND),
    "unblock": lambda state: decide_unblock(state.by_id["blocked"], COMMAND),
    "rebaseline back": lambda state: decide_rebaseline(state.by_id["due"], NINE, COMMAND, trigger_of),
    "rebaseline ahead": lambda state: decide_rebaseline(state.by_id["held"], NOW, COMMAND, trigger_of),
    "external": lambda state: decide_external_run(state.by_id["daily"], NINE, COMMAND),
    "run_now": lambda state: driven(decide_manual_run(state.by_id["due"], None, None, None, COMMAND), agreeable),
    "start": lambda state: decide_start(state, list(state.pending)[:1], 8, NOW),
    "results": lambda state: decide_results(state, [Completed(next(iter(state.started)), None, {"rows": []})], NOW),
    "resume": lambda state: decide_resume(state, interrupted(state), 8, NOW),
    "abandon": lambda state: decide_abandon(state, interrupted(state), actor="eve", note="", now=NOW),
    "note": lambda state: decide_note(state, interrupted(state), {"pid": 1}, NOW),
}


def interrupted(state: State) -> int:
    return state.runs(state="interrupted")[0].id


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_changes_nothing_it_is_given_and_comes_out_the_same_again(state: State, name: str):
    digest, text = state.digest(), everything(state)
    first = DECISIONS[name](state)
    assert first, "it decides something here"
    assert (state.digest(), everything(state)) == (digest, text)
    assert DECISIONS[name](state) == first


def everything(state: State) -> str:
    """All that the state holds, also what a digest might leave out."""
    return repr([state.by_id, state.runs_open, state.runs_recent, state.pending, state.started, state.opened])


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_is_the_same_from_a_state_that_was_replayed_anew(state: State, program: Program, name: str):
    assert DECISIONS[name](state) == DECISIONS[name](replay(program.path))


def test_what_a_poll_decides_are_entries_that_the_journal_can_hold(state: State):
    entries = polled(state, agreeable, 8).entries
    assert len(entries) > 5
    again = msgspec.json.decode(msgspec.json.encode(entries), type=tuple[Entry, ...])
    assert again == entries


def test_a_poll_asks_for_each_admission_its_target_and_its_preflight_in_that_order(state: State):
    asked: list[Question] = []

    def answer_to(question: Question) -> Answer:
        asked.append(question)
        return agreeable(question)

    polled(state, answer_to, 50)
    checked = [question for question in asked if isinstance(question, AskPreflight)]
    assert len({question.invocation.occurrence_id for question in checked}) == len(checked)
    for question in checked:
        before = asked[asked.index(question) - 1]
        assert isinstance(before, AskTarget)
        assert before.name == question.invocation.target


def test_a_live_scheduler_decides_as_its_replayed_twin(program: Program):
    """Nothing of a process's memory decides: two owners, one of them fresh, come to the same."""

    def morning(restart: bool) -> list[str]:
        program.path = program.path.parent / f"restart-{restart}"
        program.clock.step(NINE - program.clock.now())
        scheduler: Scheduler = program.open(task_slots=2)
        scheduler.create("a", QUARTERLY, target="x")
        scheduler.create("b", Cron("*/7 * * * *", zone="UTC"), target="x")
        told: list[str] = []
        for _ in range(30):
            program.clock.advance(5 * MINUTE)
            if restart:
                scheduler.close()
                scheduler = program.open(task_slots=2)
            poll = scheduler.poll()
            told += [
                repr(msgspec.structs.asdict(entry) | {"run_id": 0, "blocking_run": 0}) for _, entry in poll.decisions
            ]
            for run in poll.offered:
                scheduler.fail(run.id, error="no")
        return told

    assert morning(restart=False) == morning(restart=True)
