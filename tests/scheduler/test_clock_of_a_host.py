"""A host's own clock: whatever zone it answers in, the record is in UTC; and the ends of the supported range."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from duly import ClockUnusable, ManualClock, OncePer
from duly.scheduler.clock import Wakeup
from tests.scheduler.embedding import NINE, QUARTERLY, Program, at, refused

ZONES = {"Berlin": ZoneInfo("Europe/Berlin"), "an offset": timezone(timedelta(hours=-9, minutes=-30))}


class Foreign:
    """A clock whose readings a test brings into a form of its own."""

    def __init__(self, form: Callable[[datetime], Any]) -> None:
        self.clock = ManualClock(NINE)
        self.form = form

    def now(self) -> datetime:
        reading: datetime = self.form(self.clock.now())
        return reading

    def monotonic(self) -> float:
        return self.clock.monotonic()

    def wait(self, seconds: float, wakeup: Wakeup) -> None:
        self.clock.wait(seconds, wakeup)


def as_it_is(reading: datetime) -> datetime:
    return reading


def naive(reading: datetime) -> datetime:
    return reading.replace(tzinfo=None)


@pytest.mark.parametrize("name", sorted(ZONES))
def test_the_record_of_a_clock_in_another_zone_is_in_utc(program: Program, name: str):
    clock = Foreign(lambda reading: reading.astimezone(ZONES[name]))
    scheduler = program.open(clock=clock)
    scheduler.create("a", QUARTERLY, target="x")
    clock.clock.advance(timedelta(minutes=15))
    poll = scheduler.poll(start=True)
    scheduler.complete(poll.offered[0].id)
    assert (poll.now, poll.now.tzinfo) == (at("09:15"), UTC)
    rows = scheduler.occurrences("a").items
    assert [row.occurrence_id for row in rows] == ["a@2026-03-02T09:00:00Z", "a@2026-03-02T09:15:00Z"]
    assert {record.entry.at.utcoffset() for record in program.records()} == {timedelta()}
    assert b"+01:00" not in program.bytes()
    assert b"-09:30" not in program.bytes()
    scheduler.wait(scheduler.poll())
    assert clock.clock.now() == at("09:16")


def test_a_clock_in_the_hour_that_a_zone_has_twice_goes_on_evenly(program: Program):
    """02:30 in Berlin comes twice on this day, and readings of one zone compare by their wall time."""
    clock = Foreign(lambda reading: reading.astimezone(ZONES["Berlin"]))
    clock.clock = ManualClock(datetime(2026, 10, 25, 0, 30, tzinfo=UTC))
    scheduler = program.open(clock=clock)
    scheduler.create("a", QUARTERLY, target="x")
    for minute in range(6):
        clock.clock.advance(timedelta(minutes=15))
        poll = scheduler.poll(start=True)
        assert (len(poll.admitted), poll.warnings) == (1, ()), minute
        scheduler.complete(poll.offered[0].id)


def absent(_: datetime) -> None:
    return None


@pytest.mark.parametrize("reading", [naive, absent, datetime.timestamp])
def test_a_clock_that_names_no_instant_opens_nothing(program: Program, reading: Callable[[datetime], Any]):
    with pytest.raises(ClockUnusable, match="names no instant"):
        program.open(clock=Foreign(reading))
    program.open()


def test_a_clock_that_becomes_naive_is_refused_by_every_call_and_records_nothing(program: Program):
    clock = Foreign(as_it_is)
    scheduler = program.open(clock=clock)
    scheduler.create("a", QUARTERLY, target="x")
    run = scheduler.run_now("a")
    scheduler.start(run.id)
    clock.form = naive
    refused(program, scheduler.poll, ClockUnusable)
    refused(program, lambda: scheduler.pause("a"), ClockUnusable)
    refused(program, lambda: scheduler.block("a", "why"), ClockUnusable)
    refused(program, lambda: scheduler.complete(run.id), ClockUnusable)
    clock.form = as_it_is
    assert scheduler.complete(run.id).state == "completed"


@pytest.mark.parametrize("period", ["day", "week", "month"])
def test_at_the_beginning_of_the_supported_range_nothing_is_blocked(program: Program, period: Any):
    program.clock = ManualClock(datetime(1972, 1, 1, 5, tzinfo=UTC))
    scheduler = program.open()
    scheduler.create("a", OncePer(period, zone="UTC"), target="x")
    scheduler.poll()
    assert scheduler.schedule("a").blocked is None
    program.clock.advance(timedelta(days=40))
    assert len(scheduler.poll().admitted) == 1


def test_at_the_end_of_the_supported_range_nothing_is_blocked(program: Program):
    program.clock = ManualClock(datetime(2100, 12, 31, 23, 40, tzinfo=UTC))
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.create("b", OncePer("month", zone="UTC"), target="x")
    program.clock.advance(timedelta(minutes=10))
    assert [run.schedule_id for run in scheduler.poll(start=True).admitted] == ["a", "b"]
    program.clock.advance(timedelta(minutes=10))
    assert scheduler.poll().decisions == ()
    assert [one.blocked for one in scheduler.schedules()] == [None, None]
