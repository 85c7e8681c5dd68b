"""Blocks: a trigger's block gives way to every other cause, and no text of a host's keeps one from being recorded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

import pytest

from duly import OccurrenceSource, Run, Scheduler, State, TriggerError
from duly.journal.entries import CronRule, Definition, RunCompleted, ScheduleBlocked, ScheduleCreated, ScheduleEdited
from duly.scheduler.wording import LONGEST
from tests.scheduler.embedding import NINE, QUARTERLY, EveryMinutes, Program

TEXTS = {"a surrogate": "bad \ud800 byte", "length": "x" * 5_000_000, "controls": "\x01" * 100_000}


class Refusing(EveryMinutes):
    """A source that raises an error of ours, in its own words."""

    def __init__(self, text: str) -> None:
        super().__init__(15, name="refusing")
        self.text = text

    def next_after(self, instant: datetime, /) -> datetime | None:
        raise TriggerError(self.text)


class Strangers:
    """A host that knows a run which the journal does not."""

    def of(self, run: Run, /) -> None:
        return None

    def runs(self) -> Iterable[tuple[int, str]]:
        return ((900, "a"),)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_trigger_error_of_a_hosts_own_blocks_its_schedule_alone_whatever_its_text(program: Program, name: str):
    source = Refusing(TEXTS[name])
    scheduler = program.open(sources={"refusing": lambda _: source})
    scheduler.create("bad", source, target="x")
    scheduler.create("good", QUARTERLY, target="x")
    assert [run.schedule_id for run in program.poll_at(scheduler, "09:15").admitted] == ["good"]
    block = scheduler.schedule("bad").blocked
    assert block is not None
    assert (block.cause, len(block.reason) <= LONGEST + 1) == ("trigger", True)
    assert program.consistent(scheduler)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_trigger_error_of_a_hosts_own_factory_blocks_at_opening_whatever_its_text(program: Program, name: str):
    source = EveryMinutes(15)
    scheduler = program.open(sources=source.factory())
    scheduler.create("bad", source, target="x")
    scheduler.close()

    def factory(_: Any) -> OccurrenceSource:
        raise TriggerError(TEXTS[name])

    block = program.open(sources={"minutes": factory}).schedule("bad").blocked
    assert block is not None
    assert (block.cause, len(block.reason) <= LONGEST + 1) == ("trigger", True)


def blocked_by_its_trigger(program: Program) -> Scheduler:
    """A schedule `a` that a poll blocked."""
    source = Refusing("no table")
    scheduler = program.open(sources={"refusing": lambda _: source})
    scheduler.create("a", source, target="x")
    program.poll_at(scheduler, "09:05")
    assert cause_of(scheduler) == "trigger"
    return scheduler


def cause_of(scheduler: Scheduler) -> str | None:
    block = scheduler.schedule("a").blocked
    return None if block is None else block.cause


def test_an_operators_block_takes_the_place_of_a_triggers_and_no_edit_lifts_it(program: Program):
    scheduler = blocked_by_its_trigger(program)
    block = scheduler.block("a", "not before the audit", actor="eve").blocked
    assert block is not None
    assert (block.cause, block.reason) == ("operator", "not before the audit")
    scheduler.edit("a", expected_revision=1, trigger=QUARTERLY)
    assert cause_of(scheduler) == "operator"
    assert program.poll_at(scheduler, "09:15").decisions == ()
    assert program.consistent(scheduler)
    scheduler.unblock("a")
    assert [run.schedule_id for run in scheduler.poll().admitted] == ["a"]


def test_without_another_cause_an_edit_to_a_good_trigger_lifts_its_block(program: Program):
    scheduler = blocked_by_its_trigger(program)
    scheduler.edit("a", expected_revision=1, trigger=QUARTERLY)
    assert cause_of(scheduler) is None


def test_an_operators_block_gives_way_to_nothing(program: Program):
    scheduler = blocked_by_its_trigger(program)
    scheduler.block("a", "first")
    assert scheduler.block("a", "second").blocked == scheduler.schedule("a").blocked
    block = scheduler.schedule("a").blocked
    assert (block and block.reason) == "first"
    scheduler.close()
    assert program.open(evidence=Strangers()).recovery.decisions == ()


def test_what_evidence_tells_takes_the_place_of_a_triggers_block(program: Program):
    blocked_by_its_trigger(program).close()
    scheduler = program.open(evidence=Strangers())
    assert cause_of(scheduler) == "evidence"
    scheduler.edit("a", expected_revision=1, trigger=QUARTERLY)
    assert cause_of(scheduler) == "evidence"


def test_a_contradiction_takes_the_place_of_a_triggers_block_and_no_edit_lifts_it():
    state = State()
    definition = Definition(trigger=CronRule("* * * * *", "UTC"), target="x")
    state.apply(1, ScheduleCreated(at=NINE, schedule_id="a", definition=definition, covers_through=NINE))
    state.apply(2, ScheduleBlocked(at=NINE, schedule_id="a", cause="trigger", reason="no such zone"))
    state.apply(3, RunCompleted(at=NINE, run_id=99, schedule_id="a"))
    edited = ScheduleEdited(
        at=NINE, schedule_id="a", revision=2, definition=definition, covers_after=NINE, covers_through=NINE
    )
    state.apply(4, edited)
    block = state.schedule("a").blocked
    assert (state.anomaly_count, block and (block.sequence, block.cause)) == (1, (3, "anomaly"))


def test_a_source_parameter_that_a_caller_changes_changes_nothing(program: Program):
    """What is shown of a schedule is a copy, also where its source is not registered."""
    source = EveryMinutes(15)
    scheduler = program.open(sources=source.factory())
    scheduler.create("a", source, target="x")
    scheduler.close()
    reopened = program.open()
    before = reopened.digest()
    shown = cast("EveryMinutes", reopened.schedule("a").trigger)
    cast("dict[str, int]", shown.rule.parameters)["minutes"] = 1
    assert reopened.digest() == before
    assert program.consistent(reopened)
