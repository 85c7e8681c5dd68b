"""A host's own source of instants: whatever it answers or raises, its schedule is blocked and all others go on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from duly import DefinitionError, SchedulerError, UnknownSchedule
from duly.journal.entries import ScheduleBlocked, SourceRule
from duly.scheduler.decisions.occurrences import SCAN_CAP
from tests.scheduler.embedding import DAY, MINUTE, QUARTERLY, EveryMinutes, Program, agenda_of, at


class Faulty(EveryMinutes):
    """Right until 09:15, and then what the test says."""

    def __init__(self, fault: Callable[[datetime], Any], calls: list[str]) -> None:
        super().__init__(15, calls, "faulty")
        self.fault = fault
        self.broken = False

    def next_after(self, instant: datetime, /) -> datetime | None:
        return self.fault(instant) if self.broken else super().next_after(instant)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def raising(error: BaseException) -> Callable[[datetime], Any]:
    def fault(_: datetime) -> Any:
        raise error

    return fault


FAULTS: dict[str, tuple[Callable[[datetime], Any], str]] = {
    "raises": (raising(RuntimeError("no network")), "RuntimeError: no network"),
    "raises StopIteration": (raising(StopIteration()), "StopIteration"),
    "raises RecursionError": (raising(RecursionError("too deep")), "too deep"),
    "raises DefinitionError": (raising(DefinitionError("zone", "X", "is unknown", "Name another.")), "'X' is unknown"),
    "raises SchedulerError": (raising(SchedulerError("from elsewhere")), "from elsewhere"),
    "raises UnknownSchedule": (raising(UnknownSchedule("no such feed")), "no such feed"),
    "raises what cannot be told": (raising(Unspeakable()), "Unspeakable"),
    "raises a surrogate": (raising(ValueError("bad \ud800 byte")), "bad"),
    "raises at length": (raising(ValueError("x" * 5_000_000)), "xxx"),
    "answers a naive datetime": (lambda instant: datetime(2026, 3, 2, 12), "naive"),  # noqa: DTZ001 - on purpose naive
    "answers the same instant": (lambda instant: instant, "not later"),
    "answers an earlier instant": (lambda instant: instant - timedelta(days=1), "not later"),
    "answers a float": (lambda instant: 1_772_450_000.0, "not a datetime"),
    "answers a str": (lambda instant: "12:00", "not a datetime"),
    "answers True": (lambda instant: True, "not a datetime"),
    "answers a date": (lambda instant: DAY.date(), "not a datetime"),
    "answers a fraction of a second": (lambda instant: instant + timedelta(milliseconds=1), "whole seconds"),
    "answers the year 2300": (lambda instant: DAY.replace(year=2300), "outside the supported range"),
    "answers the end of time": (
        lambda instant: datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
        "failed",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_source_that_goes_wrong_blocks_its_schedule_with_the_reason_and_all_others_go_on(program: Program, name: str):
    fault, told = FAULTS[name]
    source = Faulty(fault, [])
    scheduler = program.open(sources={"faulty": lambda parameters: source}, task_slots=50)
    for schedule_id in ("a", "c"):
        scheduler.create(schedule_id, QUARTERLY, target="x")
    scheduler.create("b", source, target="x")
    source.broken = True
    poll = program.poll_at(scheduler, "09:15")
    assert [run.schedule_id for run in poll.admitted] == ["a", "c"]
    blocks = [entry for _, entry in poll.decisions if isinstance(entry, ScheduleBlocked)]
    assert [(block.schedule_id, block.cause) for block in blocks] == [("b", "trigger")]
    assert told in blocks[0].reason
    assert len(blocks[0].reason) < 10_000
    blocked = scheduler.schedule("b").blocked
    assert blocked is not None
    assert blocked.reason == blocks[0].reason
    assert program.consistent(scheduler)


@pytest.mark.parametrize("name", FAULTS)
def test_a_source_that_is_wrong_at_create_is_refused_or_blocked_by_the_next_poll(program: Program, name: str):
    source = Faulty(FAULTS[name][0], [])
    source.broken = True
    scheduler = program.open(sources={"faulty": lambda parameters: source})
    scheduler.create("a", QUARTERLY, target="x")
    try:
        scheduler.create("b", source, target="x")
    except DefinitionError:
        assert scheduler.find("b") is None
    poll = program.poll_at(scheduler, "09:15")
    assert [run.schedule_id for run in poll.admitted] == ["a"]
    assert scheduler.find("b") is None or scheduler.schedule("b").blocked is not None
    assert program.consistent(scheduler)


@pytest.mark.parametrize("name", FAULTS)
def test_questions_about_a_source_that_goes_wrong_answer_or_raise_an_error_of_ours(program: Program, name: str):
    source = Faulty(FAULTS[name][0], [])
    scheduler = program.open(sources={"faulty": lambda parameters: source})
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.create("b", source, target="x")
    source.broken = True
    assert len(scheduler.schedules()) == 2
    assert [one.schedule_id for one in scheduler.upcoming(50)].count("a") > 10
    assert [row.disposition for row in scheduler.occurrences("b").items] == ["interval"]
    with pytest.raises(SchedulerError):
        scheduler.next_due("b")


def test_a_mended_source_goes_on_after_unblock(program: Program):
    source = Faulty(raising(RuntimeError("no network")), [])
    scheduler = program.open(sources={"faulty": lambda parameters: source})
    scheduler.create("b", source, target="x")
    source.broken = True
    program.poll_at(scheduler, "09:15")
    source.broken = False
    assert program.poll_at(scheduler, "09:16").decisions == ()
    scheduler.unblock("b")
    assert [run.scheduled_at for run in program.poll_at(scheduler, "09:16").admitted] == [at("09:15")]


def test_a_source_that_is_not_registered_any_more_is_blocked_at_opening_and_the_others_go_on(program: Program):
    source = EveryMinutes(15)
    first = program.open(sources=source.factory())
    first.create("a", QUARTERLY, target="x")
    first.create("b", source, target="x")
    first.close()
    second = program.open()
    assert [(type(entry).__name__, getattr(entry, "schedule_id", "")) for _, entry in second.recovery.decisions] == [
        ("ScheduleBlocked", "b")
    ]
    assert "'minutes' is not registered" in str(second.recovery)
    assert [run.schedule_id for run in program.poll_at(second, "09:15").admitted] == ["a"]
    trigger = second.schedule("b").trigger
    assert getattr(trigger, "rule", None) == SourceRule("minutes", {"minutes": 15})
    with pytest.raises(SchedulerError, match="not registered"):
        trigger.next_after(at("09:00"))
    second.close()
    third = program.open(sources=source.factory())
    assert third.recovery.decisions == (), "the block stays until somebody ends it"
    third.unblock("b")
    assert [run.schedule_id for run in program.poll_at(third, "09:16").admitted] == ["b"]


def test_a_factory_that_raises_blocks_its_schedule_alone(program: Program):
    source = EveryMinutes(15)
    first = program.open(sources=source.factory())
    first.create("a", QUARTERLY, target="x")
    first.create("b", source, target="x")
    first.close()

    def factory(parameters: Any) -> EveryMinutes:
        raise RuntimeError(f"cannot make {parameters}")

    second = program.open(sources={"minutes": factory})
    blocked = second.schedule("b").blocked
    assert blocked is not None
    assert "cannot make {'minutes': 15}" in blocked.reason
    assert [run.schedule_id for run in program.poll_at(second, "09:15").admitted] == ["a"]


def test_a_source_is_recorded_by_its_name_and_parameters_and_needs_both(program: Program):
    scheduler = program.open()
    before = program.bytes()
    with pytest.raises(DefinitionError, match="not registered"):
        scheduler.create("b", EveryMinutes(15), target="x")

    class Nameless:
        def next_after(self, instant: datetime, /) -> datetime | None:
            return instant + MINUTE

        def prev_before(self, instant: datetime, /) -> datetime | None:
            return instant - MINUTE

    with pytest.raises(DefinitionError, match="rule"):
        scheduler.create("b", Nameless(), target="x")
    assert program.bytes() == before


def minutely(program: Program, days: int) -> list[str]:
    """The calendar calls of the one poll after so many days without any."""
    source = EveryMinutes(1)
    scheduler = program.open(sources=source.factory(), task_slots=1)
    scheduler.create("minutely", source, target="x")
    program.clock.advance(timedelta(days=days))
    source.calls.clear()
    poll = scheduler.poll()
    assert len(poll.admitted) == 1
    assert len(poll.decisions) == 2
    return source.calls


def test_three_years_of_missed_minutes_cost_no_more_calls_than_a_day(program: Program):
    calls = minutely(program, 3 * 365)
    assert len(calls) <= SCAN_CAP + 2, calls
    assert calls.count("prev") == 1


def test_an_agenda_calls_nothing_due_that_is_not(program: Program):
    source = EveryMinutes(15)
    scheduler = program.open(sources=source.factory())
    scheduler.create("b", source, target="x")
    agenda = agenda_of(scheduler)
    assert agenda.next_due() == at("09:15")
    assert list(agenda.due(at("09:14:59")).members()) == []
