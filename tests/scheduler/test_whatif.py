"""What if: single stories, each with another policy, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from duly import Cron, DefinitionError, OneShot, UnknownSchedule
from duly.journal import Reader
from duly.journal.entries import Entry, EntryLost, JournalOpened, OccurrenceAdmitted, SourceRule
from duly.scheduler.engine import engine_check
from duly.scheduler.whatif import Difference, WhatIf, whatif
from tests.scheduler.embedding import MINUTE, QUARTERLY, Program, at

TEN = timedelta(minutes=10)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.close()


def name_of(one: Difference) -> str:
    return f"{one.schedule_id}@{one.scheduled_at:%H:%M}"


def told(found: WhatIf) -> dict[str, tuple[str, str]]:
    """What differs, by the occurrence's schedule and time of day."""
    return {
        f"{one.schedule_id}@{one.scheduled_at:%H:%M}": (str(one.recorded), str(one.now)) for one in found.differences
    }


def decided(found: WhatIf) -> dict[str, datetime | None]:
    """When the other world decided what differs."""
    return {name_of(one): one.now.at for one in found.differences}


def crowded(program: Program) -> None:
    """One task slot, taken by hand from 09:00 to 09:40: `a` is held, `b` is too late."""
    scheduler = program.open(task_slots=1)
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.create("b", Cron("15 * * * *", zone="UTC"), target="x", misfire="skip", lateness=2 * MINUTE)
    by_hand = scheduler.start(scheduler.run_now(target="x").id)[0]
    program.poll_at(scheduler, "09:16")
    program.poll_at(scheduler, "09:18", start=True)
    program.poll_at(scheduler, "09:31", start=True)
    program.clock.advance(9 * MINUTE)
    scheduler.complete(by_hand.id)
    [a] = scheduler.poll(start=True).offered
    program.clock.advance(TEN)
    scheduler.complete(a.id)
    scheduler.poll(start=True)


def test_without_a_change_nothing_is_different(program: Program):
    crowded(program)
    found = whatif(program.path, {})
    assert (found.identical, found.differences, found.assumed_polls) == (True, (), 0)
    assert found.polls == engine_check(program.path).polls == 5


def test_with_more_slots_the_same_polls_admit_what_had_to_wait(program: Program):
    crowded(program)
    found = whatif(program.path, {"task_slots": 3}, durations={"b": MINUTE})
    assert told(found) == {
        "a@09:15": ("superseded", "admitted"),
        "a@09:30": ("admitted", "admitted"),
        "b@09:15": ("skipped: capacity", "admitted"),
    }
    # Nobody polled at 09:15 or 09:30: the recorded world had its candidate to decide about then.
    assert decided(found) == {"a@09:15": at("09:16"), "a@09:30": at("09:31"), "b@09:15": at("09:16")}
    assert [one.estimate for one in found.differences] == [True, True, True]
    assert found.durations == {"a": TEN, "b": MINUTE}


def test_where_a_poll_may_have_been_and_decided_nothing_the_other_world_polls(program: Program):
    scheduler = program.open(task_slots=1)
    scheduler.create("b", Cron("15 * * * *", zone="UTC"), target="x", misfire="skip", lateness=2 * MINUTE)
    by_hand = scheduler.start(scheduler.run_now(target="x").id)[0]
    program.poll_at(scheduler, "09:15")  # waits for a slot, which leaves no entry
    program.poll_at(scheduler, "09:18", start=True)
    scheduler.complete(by_hand.id)
    found = whatif(program.path, {"task_slots": 2}, durations={"b": MINUTE})
    assert told(found) == {"b@09:15": ("skipped: capacity", "admitted")}
    assert decided(found) == {"b@09:15": at("09:15")}
    assert found.assumed_polls == 1


def test_what_a_run_takes_is_the_median_of_what_the_record_has(program: Program):
    scheduler = program.open(task_slots=1)
    scheduler.create("a", QUARTERLY, target="x")
    for when, takes in (("09:15", 4), ("09:30", 2), ("09:45", 9)):
        [run] = program.poll_at(scheduler, when, start=True).offered
        program.clock.advance(takes * MINUTE)
        scheduler.complete(run.id)
    scheduler.pause("a")
    program.clock.advance(30 * MINUTE)
    scheduler.unpause("a")
    program.poll_at(scheduler, "10:30", start=True)
    found = whatif(program.path, {"a.cron": "5-59/15 * * * *"})
    assert found.durations == {"a": 4 * MINUTE}
    given = whatif(program.path, {"a.cron": "5-59/15 * * * *"}, durations={"a": MINUTE})
    assert given.durations == {"a": MINUTE}
    everyone = whatif(program.path, {"a.cron": "5-59/15 * * * *"}, durations={"*": 3 * MINUTE})
    assert everyone.durations == {"a": 3 * MINUTE}


def test_a_run_that_nothing_tells_the_duration_of_is_asked_for(program: Program):
    crowded(program)
    with pytest.raises(DefinitionError, match=r"'b' has no recorded run that ended.*--duration b=10m") as caught:
        whatif(program.path, {"task_slots": 3})
    assert caught.value.field == "durations"


def taken_by_hand(program: Program) -> None:
    """Four task slots; a run by hand that is of no schedule waits for nothing, and never ends."""
    scheduler = program.open(task_slots=4)
    for schedule_id in ("a", "b"):
        scheduler.create(schedule_id, QUARTERLY, target="x", misfire="skip", lateness=2 * MINUTE)
    first = program.poll_at(scheduler, "09:15", start=True).offered
    scheduler.start(scheduler.run_now(target="x").id)
    program.clock.advance(MINUTE)
    for run in first:
        scheduler.complete(run.id)
    for when in ("09:30", "09:45"):
        offered = program.poll_at(scheduler, when, start=True).offered
        program.clock.advance(MINUTE)
        for run in offered:
            scheduler.complete(run.id)


def test_a_run_by_hand_of_no_schedule_is_asked_for_like_any_other(program: Program):
    taken_by_hand(program)
    with pytest.raises(
        DefinitionError, match=r"'by hand' has no recorded run.*--duration \*=10m is for all, runs by hand"
    ):
        whatif(program.path, {"task_slots": 1})


def test_what_a_run_by_hand_of_no_schedule_could_hold_up_is_an_estimate(program: Program):
    taken_by_hand(program)
    found = whatif(program.path, {"task_slots": 1}, durations={"*": 60 * MINUTE})
    assert found.durations == {"by hand": 60 * MINUTE}
    assert {name_of(one): (str(one.now), one.estimate) for one in found.differences} == {
        "a@09:30": ("skipped: capacity", True),
        "a@09:45": ("waiting", True),
        "b@09:15": ("skipped: capacity", True),
        "b@09:30": ("skipped: capacity", True),
        "b@09:45": ("waiting", True),
    }


def test_without_a_change_a_duration_that_nothing_tells_is_none(program: Program):
    """The only admission was lost: the replay admits anew, and no run of the schedule is on record."""
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.create("b", QUARTERLY, target="x", overlap="parallel", max_active_runs=9)
    program.poll_at(scheduler, "09:15")
    program.poll_at(scheduler, "09:30")
    lines = [(line.first, tuple(map(as_lost, line.entries))) for line in Reader(program.path).lines()]
    found = whatif(lines, {})
    assert (found.estimated_runs, found.durations) == (1, {"a": None})


def as_lost(entry: Entry) -> Entry:
    return EntryLost(at=at("23:00")) if isinstance(entry, OccurrenceAdmitted) and entry.schedule_id == "a" else entry


def test_while_the_host_provably_did_not_poll_the_other_world_does_not_either(program: Program):
    """Nobody polled from 09:00 to 10:01: 09:15 was due and undecided, which a poll would have decided."""
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    program.poll_at(scheduler, "10:01", start=True)
    found = whatif(program.path, {"a.misfire": "skip", "a.lateness": timedelta(hours=2)}, durations={"a": MINUTE})
    assert told(found)["a@09:15"] == ("superseded", "admitted")
    assert set(decided(found).values()) == {at("10:01")}
    assert found.assumed_polls == 0


def test_a_run_that_begins_earlier_takes_what_it_took(program: Program):
    scheduler = program.open(task_slots=1)
    scheduler.create("c", OneShot(at("09:15")), target="x")
    scheduler.create("d", OneShot(at("09:20")), target="x")
    by_hand = scheduler.start(scheduler.run_now(target="x").id)[0]
    program.poll_at(scheduler, "09:15", start=True)  # `c` is held
    program.poll_at(scheduler, "09:20", start=True)  # and so is `d`
    program.clock.advance(TEN)
    scheduler.complete(by_hand.id)
    for takes in (3, 1):
        [run] = scheduler.poll(start=True).offered
        program.clock.advance(takes * MINUTE)
        scheduler.complete(run.id)
    scheduler.close()
    found = whatif(program.path, {"task_slots": 2})
    assert decided(found) == {"c@09:15": at("09:15"), "d@09:20": at("09:20")}
    assert all(one.moved and not one.estimate for one in found.differences)
    assert (found.shifted_runs, found.estimated_runs, found.identical) == (2, 0, False)


def test_another_lateness_lets_the_same_poll_decide_otherwise(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x", misfire="skip")
    program.poll_at(scheduler, "09:20", start=True)
    found = whatif(program.path, {"a.lateness": TEN}, durations={"a": MINUTE})
    assert told(found) == {"a@09:15": ("skipped: misfire", "admitted")}
    [one] = found.differences
    assert (one.now.at, one.moved, one.occurrence_id) == (at("09:20"), False, "a@2026-03-02T09:15:00Z")
    [total] = found.totals
    assert (total.recorded["skipped"], total.now["admitted"]) == (1, 1)


def test_a_step_of_the_clock_is_no_regression_with_more_tolerance(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    program.poll_at(scheduler, "10:00", start=True)
    program.clock.step(-timedelta(minutes=30))
    scheduler.poll(start=True)
    program.clock.advance(TEN)
    scheduler.poll(start=True)
    found = whatif(program.path, {"clock_tolerance": timedelta(hours=1)}, durations={"*": MINUTE})
    assert not found.identical
    assert found.refused == ()


def test_a_run_of_the_other_world_ends_with_a_process_that_died(program: Program):
    scheduler = program.open(task_slots=1)
    scheduler.create("a", Cron("15 * * * *", zone="UTC"), target="x", misfire="skip")
    by_hand = scheduler.start(scheduler.run_now(target="x").id)[0]
    program.poll_at(scheduler, "09:20", start=True)  # too late for `a`
    del by_hand
    scheduler._journal.close()  # pyright: ignore[reportPrivateUsage] - a death leaves no closing mark
    program.clock.advance(TEN)
    again = program.open(task_slots=1)
    program.poll_at(again, "10:15", start=True)
    found = whatif(program.path, {"a.lateness": TEN, "task_slots": 2}, durations={"a": timedelta(hours=9)})
    assert told(found) == {"a@09:15": ("skipped: capacity", "admitted")}
    assert found.estimated_runs == 1  # had it gone on for nine hours, 10:15 would be skipped for overlap


def test_a_run_of_the_other_world_goes_on_over_a_clean_close(program: Program):
    scheduler = program.open(task_slots=1)
    scheduler.create("a", Cron("15 * * * *", zone="UTC"), target="x", misfire="skip")
    by_hand = scheduler.start(scheduler.run_now(target="x").id)[0]
    program.poll_at(scheduler, "09:20", start=True)
    scheduler.complete(by_hand.id)
    scheduler.close()
    program.clock.advance(TEN)
    again = program.open(task_slots=1)
    program.poll_at(again, "10:15", start=True)
    changes: dict[str, object] = {"a.lateness": TEN, "task_slots": 2}
    found = whatif(program.path, changes, durations={"a": timedelta(hours=9)})
    assert told(found)["a@10:15"] == ("admitted", "skipped: overlap")
    assert whatif(program.path, changes, durations={"a": MINUTE}).differences[1:] == ()


def test_a_visit_to_the_journal_polls_nothing(program: Program):
    scheduler = program.open()
    scheduler.create("a", Cron("0 12 * * *", zone="UTC"), target="x")
    program.poll_at(scheduler, "09:30")
    scheduler.close()
    program.clock.advance(timedelta(hours=1))
    visitor = program.open()
    visitor.block("a", "the disk is full")
    program.clock.advance(TEN)
    visitor.close()
    found = whatif(program.path, {"a.cron": "*/15 * * * *"}, durations={"a": MINUTE})
    assert found.assumed_polls == 0
    assert set(told(found).values()) <= {("none", "waiting")}


def test_a_command_that_the_other_world_refuses_is_told(program: Program):
    scheduler = program.open()
    scheduler.create("once", OneShot(at("08:59:30")), target="x")
    scheduler.poll(start=True)
    scheduler.pause("once")
    found = whatif(program.path, {"once.lateness": timedelta()})
    [refused] = found.refused
    assert (refused.kind, refused.schedule_id) == ("ScheduleCreated", "once")
    assert "is past, beyond the lateness" in refused.why
    assert told(found) == {}


def test_the_host_is_heard_as_it_answered(program: Program):
    scheduler = program.open(preflight=lambda invocation: "no" if invocation.schedule_id == "a" else None)
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.create("b", QUARTERLY, target="x", misfire="skip")
    program.poll_at(scheduler, "09:20", start=True)
    found = whatif(program.path, {"*.lateness": TEN}, durations={"*": MINUTE})
    assert told(found) == {"b@09:15": ("skipped: misfire", "admitted")}  # `a` is refused in both


def test_a_trigger_of_the_hosts_own_is_needed(program: Program):
    class Own:
        rule = SourceRule("own", {})
        next_after = staticmethod(QUARTERLY.next_after)
        prev_before = staticmethod(QUARTERLY.prev_before)

    def make(_: Any) -> Own:
        return Own()

    scheduler = program.open(sources={"own": make})
    scheduler.create("a", Own(), target="x")
    program.poll_at(scheduler, "09:15", start=True)
    with pytest.raises(DefinitionError, match="'own' is a trigger of the host's own, of schedule 'a'"):
        whatif(program.path, {})
    assert whatif(program.path, {}, sources={"own": make}).identical
    without, with_it = engine_check(program.path), engine_check(program.path, sources={"own": make})
    assert (without.polls, without.incomparable, without.ok) == (0, 1, True)
    assert (with_it.polls, with_it.incomparable, with_it.ok) == (1, 0, True)


def test_the_record_of_another_engine_says_so(program: Program):
    crowded(program)
    import msgspec

    from tests.scheduler.test_engine_and_account import read_lines

    lines = read_lines(program.path)
    opened = lines[0][1][0]
    assert isinstance(opened, JournalOpened)
    lines[0][1][0] = msgspec.structs.replace(opened, engine=opened.engine + 1)
    found = whatif(lines, {})
    assert (found.check.polls, found.check.incomparable) == (0, 5)


# What is refused


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown field": (
        {"a.misfrie": "skip"},
        "names no field.*The nearest: misfire; fields of a",
    ),
    "no field": ({"a.": "skip"}, "names no field"),
    "an unknown setting": ({"slots": 2}, "names no setting.*The nearest: task_slots"),
    "a field without its schedule": ({"misfire": "skip"}, r"Name its schedule, as in nightly\.misfire"),
    "a setting of a schedule": ({"a.task_slots": 2}, "write task_slots alone"),
    "a value that is none": (
        {"a.misfire": "later"},
        'a.misfire: \'later\' is no misfire policy. Give "latest" or "skip"',
    ),
    "no slots": ({"task_slots": 0}, "task_slots: 0 is not a count"),
    "no tolerance": ({"clock_tolerance": 5}, "clock_tolerance: 5 is no tolerance"),
    "a text for a duration": ({"a.lateness": "30m"}, "a.lateness: '30m' is not an allowance"),
    "a limit of nothing": ({"a.overlap": "parallel"}, r"a\.max_active_runs: None is missing"),
    "a limit too many": ({"a.max_active_runs": 2}, r"a\.max_active_runs: 2 goes only with"),
    "a malformed expression": ({"a.cron": "61 * * * *"}, "a.cron: '61' is out of range"),
    "an unknown zone": ({"a.zone": "Europe/Berln"}, "a.zone: 'Europe/Berln' is"),
    "an expression for a one-shot": ({"once.cron": "0 9 * * *"}, r"Give once\.cron and once\.zone together"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused_with_a_remedy(case: str, program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.create("once", OneShot(at("10:00")), target="x")
    changes, words = REFUSED[case]
    with pytest.raises(DefinitionError, match=words):
        whatif(program.path, changes)


def test_an_unknown_schedule_suggests_the_closest(program: Program):
    program.open().create("nightly", QUARTERLY, target="x")
    with pytest.raises(UnknownSchedule, match="The nearest: nightly"):
        whatif(program.path, {"nihgtly.misfire": "skip"})
    with pytest.raises(UnknownSchedule, match="The nearest: nightly"):
        whatif(program.path, {}, durations={"nihgtly": MINUTE})


@pytest.mark.parametrize("duration", [-MINUTE, timedelta(days=400), 5])
def test_a_duration_that_is_none_is_refused(duration: Any, program: Program):
    program.open().create("a", QUARTERLY, target="x")
    with pytest.raises(DefinitionError, match=r"durations\.a: .* is no duration"):
        whatif(program.path, {}, durations={"a": duration})


def test_a_limit_falls_away_with_the_policy_that_it_is_for(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x", overlap="parallel", max_active_runs=3)
    program.poll_at(scheduler, "09:15", start=True)
    program.poll_at(scheduler, "09:30", start=True)
    assert told(whatif(program.path, {"a.overlap": "skip"})) == {"a@09:30": ("admitted", "skipped: overlap")}


def test_a_zone_alone_moves_every_cron_schedule_and_no_other(program: Program):
    scheduler = program.open()
    scheduler.create("a", Cron("0 10 * * *", zone="UTC"), target="x")
    scheduler.create("once", OneShot(at("09:30")), target="x")
    program.poll_at(scheduler, "09:30", start=True)
    program.poll_at(scheduler, "11:05", start=True)
    found = whatif(program.path, {"*.zone": "Europe/London", "a.cron": "30 9 * * *"}, durations={"*": MINUTE})
    assert told(found) == {"a@09:30": ("none", "admitted"), "a@10:00": ("admitted", "none")}
