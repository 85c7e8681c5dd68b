"""Commands: what is refused, in which words, and that nothing of it is recorded; what is recorded, and by whom."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from duly import (
    Cron,
    DefinitionError,
    DuplicateSchedule,
    Every,
    OneShot,
    RevisionConflict,
    Scheduler,
    UnknownRun,
    UnknownSchedule,
)
from duly.journal.entries import (
    Definition,
    ExternalRunRecorded,
    ScheduleBlocked,
    ScheduleCreated,
    ScheduleEdited,
)
from duly.projections import replay
from duly.scheduler.definitions import LONGEST_WORDS
from tests.scheduler import embedding
from tests.scheduler.embedding import MINUTE, QUARTERLY, Detached, Program, at


def refused(program: Program, work: Callable[[], object], kind: type[Exception] = DefinitionError) -> Any:
    return embedding.refused(program, work, kind)


# Definitions

NAIVE = datetime(2026, 3, 2, 12)  # noqa: DTZ001 - on purpose naive

BAD_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "no trigger": ({"trigger": None}, "trigger"),
    "a text for a trigger": ({"trigger": "* * * * *"}, "trigger"),
    "a one-shot in the past": ({"trigger": OneShot(at("08:00"))}, "trigger"),
    "a one-shot just beyond its lateness": ({"trigger": OneShot(at("08:58:59"))}, "trigger"),
    "an empty target": ({"target": ""}, "target"),
    "no target": ({"target": None}, "target"),
    "an endless target": ({"target": "x" * 201}, "target"),
    "a target with a surrogate": ({"target": "\ud800"}, "target"),
    "a number for a target": ({"target": 7}, "target"),
    "a number for a pin": ({"target_revision": 7}, "target_revision"),
    "an endless pin": ({"target_revision": "x" * (LONGEST_WORDS + 1)}, "target_revision"),
    "an unknown overlap": ({"overlap": "queue"}, "overlap"),
    "no overlap": ({"overlap": None}, "overlap"),
    "parallel without a limit": ({"overlap": "parallel"}, "max_active_runs"),
    "a limit without parallel": ({"max_active_runs": 2}, "max_active_runs"),
    "a limit of none": ({"overlap": "parallel", "max_active_runs": 0}, "max_active_runs"),
    "a negative limit": ({"overlap": "parallel", "max_active_runs": -1}, "max_active_runs"),
    "a limit of True": ({"overlap": "parallel", "max_active_runs": True}, "max_active_runs"),
    "half a limit": ({"overlap": "parallel", "max_active_runs": 1.5}, "max_active_runs"),
    "an unknown misfire": ({"misfire": "all"}, "misfire"),
    "an unhashable misfire": ({"misfire": ["latest"]}, "misfire"),
    "a negative lateness": ({"lateness": timedelta(seconds=-1)}, "lateness"),
    "an endless lateness": ({"lateness": timedelta(days=36_501)}, "lateness"),
    "a number for a lateness": ({"lateness": 60}, "lateness"),
    "a list of inputs": ({"input": [1]}, "input"),
    "limits in a list": ({"limits": ["max_steps"]}, "limits"),
    "no steps": ({"limits": {"max_steps": 0}}, "limits.max_steps"),
    "True steps": ({"limits": {"max_steps": True}}, "limits.max_steps"),
    "half a step": ({"limits": {"max_steps": 1.5}}, "limits.max_steps"),
    "steps in words": ({"limits": {"max_steps": "many"}}, "limits.max_steps"),
    "no time": ({"limits": {"timeout": 0}}, "limits.timeout"),
    "time in words": ({"limits": {"timeout": "1h"}}, "limits.timeout"),
    "True time": ({"limits": {"timeout": True}}, "limits.timeout"),
    "endless time": ({"limits": {"timeout": float("inf")}}, "limits"),
    "a limit that is not JSON": ({"limits": {"own": {1, 2}}}, "limits"),
    "limits with a number for a name": ({"limits": {1: 2}}, "limits"),
    "limits of 300,000 bytes": ({"limits": {"own": "x" * 300_000}}, "limits"),
    "an unknown field": ({"retries": 3}, "retries"),
    "an unknown field without a repr": ({"retries": Detached()}, "retries"),
    "a limit without a repr": ({"limits": {"own": Detached()}}, "limits"),
    "an input without a repr": ({"input": {"own": Detached()}}, "input.own"),
    **{f"a {name} without a repr": ({name: Detached()}, name) for name in Definition.__struct_fields__},
}


@pytest.mark.parametrize("name", BAD_FIELDS)
@pytest.mark.parametrize("command", ["create", "declare", "create_many", "edit"])
def test_a_definition_that_cannot_be_meant_is_refused_with_field_value_and_remedy(
    program: Program, command: str, name: str
):
    fields, field = BAD_FIELDS[name]
    scheduler = program.open()
    whole: dict[str, Any] = {"trigger": QUARTERLY, "target": "x"} | fields
    if command == "edit":
        scheduler.create("a", QUARTERLY, target="x")
        if "a one-shot" in name:
            return
        error = refused(program, lambda: scheduler.edit("a", expected_revision=1, **fields))
    elif command == "create_many":
        error = refused(program, lambda: scheduler.create_many([{"schedule_id": "b"} | whole]))
    else:
        trigger = whole.pop("trigger")
        error = refused(program, lambda: getattr(scheduler, command)("b", trigger, **whole))
    assert error.field == field
    assert field in str(error)
    assert len(error.remedy) > 10
    assert error.remedy in str(error)
    assert len(str(error)) < 1_000


@pytest.mark.parametrize(
    "schedule_id", ["", "a b", "ä", "a/b", "a@b", "x" * 201, "a\n", "\ud800", None, 7, "a\x00", ["a"], Detached()]
)
def test_an_id_outside_of_the_charset_is_refused(program: Program, schedule_id: Any):
    scheduler = program.open()
    for work in (
        lambda: scheduler.create(schedule_id, QUARTERLY, target="x"),
        lambda: scheduler.declare(schedule_id, QUARTERLY, target="x"),
        lambda: scheduler.create_many([{"schedule_id": schedule_id, "trigger": QUARTERLY, "target": "x"}]),
    ):
        assert refused(program, work).field == "schedule_id"


@pytest.mark.parametrize("schedule_id", ["a", "A-Z_0.9:x", "x" * 200, "-", "..", "0"])
def test_every_character_of_the_charset_will_do(program: Program, schedule_id: str):
    scheduler = program.open()
    assert scheduler.create(schedule_id, QUARTERLY, target="x").id == schedule_id
    assert scheduler.schedule(schedule_id).id == schedule_id


@pytest.mark.parametrize("item", [5, None, "a", [1, 2], {"trigger": QUARTERLY, "target": "x"}, {"schedule_id": "b"}])
def test_create_many_refuses_what_is_no_schedule(program: Program, item: Any):
    scheduler = program.open()
    refused(program, lambda: scheduler.create_many([{"schedule_id": "a", "trigger": QUARTERLY, "target": "x"}, item]))
    assert scheduler.schedules() == ()


BAD_WORDS: list[Any] = [7, None, "x" * (LONGEST_WORDS + 1), "\ud800", b"eve"]

WORDED: dict[str, Callable[[Scheduler, dict[str, Any]], object]] = {
    "create": lambda scheduler, words: scheduler.create("b", QUARTERLY, target="x", **words),
    "create_many": lambda scheduler, words: scheduler.create_many([], **words),
    "declare": lambda scheduler, words: scheduler.declare("b", QUARTERLY, target="x", **words),
    "edit": lambda scheduler, words: scheduler.edit("a", expected_revision=1, target="y", **words),
    "pause": lambda scheduler, words: scheduler.pause("a", **words),
    "unpause": lambda scheduler, words: scheduler.unpause("a", **words),
    "disable": lambda scheduler, words: scheduler.disable("a", **words),
    "enable": lambda scheduler, words: scheduler.enable("a", **words),
    "delete": lambda scheduler, words: scheduler.delete("a", **words),
    "block": lambda scheduler, words: scheduler.block("a", "wait", **words),
    "unblock": lambda scheduler, words: scheduler.unblock("a", **words),
    "rebaseline": lambda scheduler, words: scheduler.rebaseline("a", at("08:00"), **words),
    "record_external_run": lambda scheduler, words: scheduler.record_external_run("a", at("08:00"), **words),
    "run_now": lambda scheduler, words: scheduler.run_now("a", **words),
}


@pytest.mark.parametrize("command", WORDED)
@pytest.mark.parametrize("word", ["actor", "note"])
def test_words_are_short_texts_in_every_command(program: Program, command: str, word: str):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    for bad in BAD_WORDS:
        if bad is None and word == "actor":
            continue  # nobody in particular: the actor given when the scheduler was opened
        assert refused(program, lambda bad=bad: WORDED[command](scheduler, {word: bad})).field == word  # type: ignore[misc]  # bound at once


@pytest.mark.parametrize("command", sorted(WORDED.keys() - {"create_many", "unpause", "enable", "unblock"}))
def test_who_and_why_are_recorded_by_every_command(program: Program, command: str):
    scheduler = program.open(actor="the program")
    scheduler.create("a", QUARTERLY, target="x")
    WORDED[command](scheduler, {"actor": "eve", "note": "because"})
    last: Any = program.last()
    assert (last.actor, last.note, last.at) == ("eve", "because", at("09:00"))


def test_the_actor_of_the_opening_stands_for_whoever_gives_none(program: Program):
    scheduler = program.open(actor="the program")
    scheduler.create("a", QUARTERLY, target="x")
    created: Any = program.last()
    assert created.actor == "the program"
    run = scheduler.run_now(target="x", actor="eve")
    scheduler.abandon(run.id, note="not now")
    abandoned: Any = program.last()
    assert (abandoned.actor, abandoned.note) == ("the program", "not now")


# Moments

BAD_MOMENTS: list[Any] = [None, "2026-03-02", 1_772_450_000, NAIVE, at("09:00").date(), at("09:00").replace(year=1960)]


@pytest.mark.parametrize("moment", BAD_MOMENTS)
def test_a_moment_is_an_aware_datetime_in_the_supported_range(program: Program, moment: Any):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    assert refused(program, lambda: scheduler.rebaseline("a", moment)).field == "through"
    assert refused(program, lambda: scheduler.record_external_run("a", moment)).field == "started_at"


def test_a_rebaseline_into_the_future_is_refused(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    error = refused(program, lambda: scheduler.rebaseline("a", at("09:00") + timedelta(microseconds=1)))
    assert error.field == "through"


def test_an_external_run_may_be_stamped_in_any_zone_past_or_future_and_is_recorded_in_utc(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    east = at("09:00").astimezone(datetime.fromisoformat("2026-03-02T00:00:00+07:00").tzinfo)
    scheduler.record_external_run("a", east, actor="importer")
    entry = program.last()
    assert isinstance(entry, ExternalRunRecorded)
    assert (entry.started_at, entry.started_at.tzinfo) == (at("09:00"), at("09:00").tzinfo)
    scheduler.record_external_run("a", at("09:00").replace(year=2036))
    assert program.kinds() == ["ScheduleCreated", "ExternalRunRecorded", "ExternalRunRecorded"]


# Names that are taken, unknown, or gone

ABOUT_ONE = sorted(WORDED.keys() - {"create", "create_many", "declare"})


@pytest.mark.parametrize("command", ABOUT_ONE)
def test_a_command_about_an_unknown_or_deleted_schedule_is_refused(program: Program, command: str):
    scheduler = program.open()
    assert refused(program, lambda: WORDED[command](scheduler, {}), UnknownSchedule).schedule_id == "a"
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.delete("a")
    error = refused(program, lambda: WORDED[command](scheduler, {}), UnknownSchedule)
    assert "deleted" in str(error)
    assert isinstance(error, LookupError)


def test_what_has_no_repr_is_refused_as_any_other_id_and_word_is(program: Program):
    scheduler = program.open()
    odd: Any = Detached()
    refused(program, lambda: scheduler.schedule(odd), UnknownSchedule)
    refused(program, lambda: scheduler.pause(odd), UnknownSchedule)
    refused(program, lambda: scheduler.run(odd), UnknownRun)
    refused(program, lambda: scheduler.abandon(odd), UnknownRun)
    for words in ("actor", "note", "request"):
        given = {words: odd}
        assert refused(program, lambda: scheduler.run_now(target="x", **given)).field == words  # noqa: B023 - at once
    assert refused(program, lambda: scheduler.rebaseline("a", odd)).field == "through"
    untyped: Any = Scheduler
    with pytest.raises(DefinitionError, match="without a repr"):
        untyped(odd)


def test_an_id_is_never_used_again(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    assert "exists" in str(refused(program, lambda: scheduler.create("a", QUARTERLY, target="x"), DuplicateSchedule))
    scheduler.delete("a")
    for work in (
        lambda: scheduler.create("a", QUARTERLY, target="x"),
        lambda: scheduler.declare("a", QUARTERLY, target="x"),
        lambda: scheduler.create_many([{"schedule_id": "a", "trigger": QUARTERLY, "target": "x"}]),
    ):
        assert "deleted" in str(refused(program, work, DuplicateSchedule))
    scheduler.close()
    again = program.open()
    refused(program, lambda: again.create("a", QUARTERLY, target="x"), DuplicateSchedule)


def test_create_many_is_checked_whole_before_the_first_is_recorded(program: Program):
    scheduler = program.open()
    scheduler.create("taken", QUARTERLY, target="x")
    good = [{"schedule_id": f"s{n:04}", "trigger": QUARTERLY, "target": "x"} for n in range(2_500)]
    for bad in ({"schedule_id": "taken"}, {"schedule_id": "s0007"}):
        refused(
            program,
            lambda bad=bad: scheduler.create_many([*good, bad | {"trigger": QUARTERLY, "target": "x"}]),  # type: ignore[misc]  # bound at once
            DuplicateSchedule,
        )
    assert [one.id for one in scheduler.schedules()] == ["taken"]
    created = scheduler.create_many(good, actor="importer", note="moved house")
    assert [one.id for one in created] == [f"s{n:04}" for n in range(2_500)]
    entry = program.last()
    assert isinstance(entry, ScheduleCreated)
    assert (entry.actor, entry.note) == ("importer", "moved house")
    assert program.consistent(scheduler)


def test_chunks_keep_below_a_megabyte_too(program: Program):
    scheduler = program.open()
    large = {"own": "x" * 200_000}
    scheduler.create_many(
        [{"schedule_id": f"s{n}", "trigger": QUARTERLY, "target": "x", "limits": large} for n in range(12)]
    )
    sizes = [len(line) for line in program.bytes().split(b"\n")]
    assert max(sizes) < 1_300_000
    assert len([size for size in sizes if size > 200_000]) == 3


# Editing and declaring


def test_an_edit_names_what_changed_and_needs_the_revision_that_it_was_written_against(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x", limits={"max_steps": 3})
    error = refused(program, lambda: scheduler.edit("a", expected_revision=2, target="y"), RevisionConflict)
    assert (error.expected, error.actual, error.schedule_id) == (2, 1, "a")
    edited = scheduler.edit("a", expected_revision=1, target="y", lateness=5 * MINUTE)
    assert (edited.revision, edited.target, edited.limits) == (2, "y", {"max_steps": 3})
    entry = program.last()
    assert isinstance(entry, ScheduleEdited)
    assert (entry.changed, entry.revision) == (("target", "lateness"), 2)
    refused(program, lambda: scheduler.edit("a", expected_revision=1, target="z"), RevisionConflict)


def test_a_declaration_creates_then_rests_then_edits(program: Program):
    scheduler = program.open()
    assert scheduler.declare("a", QUARTERLY, target="x", input={"day": 1}).revision == 1
    before = program.bytes()
    assert scheduler.declare("a", Cron("*/15 * * * *", zone="UTC"), target="x", input={"day": 1}).revision == 1
    assert program.bytes() == before
    assert scheduler.declare("a", QUARTERLY, target="x").revision == 2
    assert scheduler.schedule("a").input == {}
    scheduler.close()
    again = program.open()
    assert again.declare("a", QUARTERLY, target="x").revision == 2
    assert program.kinds() == ["ScheduleCreated", "ScheduleEdited"]


@pytest.mark.parametrize("switch", ["disable", "pause"])
def test_a_declaration_switches_nothing_on(program: Program, switch: str):
    scheduler = program.open()
    scheduler.declare("a", QUARTERLY, target="x")
    getattr(scheduler, switch)("a")
    scheduler.declare("a", QUARTERLY, target="x")
    shown = scheduler.declare("a", QUARTERLY, target="y")
    assert (shown.disabled, shown.paused, shown.revision) == (switch == "disable", switch == "pause", 2)


def test_a_finished_one_shot_that_is_declared_again_stays_finished(program: Program):
    scheduler = program.open()
    scheduler.declare("a", OneShot(at("09:15")), target="x")
    program.poll_at(scheduler, "09:15")
    before = program.bytes()
    assert scheduler.declare("a", OneShot(at("09:15")), target="x").exhausted
    program.clock.advance(timedelta(days=1))
    assert scheduler.declare("a", OneShot(at("09:15")), target="x").exhausted
    assert program.bytes() == before


def test_an_edit_to_an_every_keeps_what_it_is(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    trigger = Every(2, "day", at="06:00", zone="Europe/Berlin", anchor=at("09:00").date())
    assert scheduler.edit("a", expected_revision=1, trigger=trigger).trigger == trigger
    scheduler.close()
    assert program.open().schedule("a").trigger == trigger


# Blocks


def test_a_block_keeps_its_first_reason_and_ends_with_unblock(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.block("a", "wait for the auditor", actor="eve")
    entry = program.last()
    assert isinstance(entry, ScheduleBlocked)
    assert (entry.cause, entry.reason, entry.actor) == ("operator", "wait for the auditor", "eve")
    before = program.bytes()
    blocked = scheduler.block("a", "another").blocked
    assert blocked is not None
    assert blocked.reason == "wait for the auditor"
    assert program.bytes() == before
    assert scheduler.unblock("a").blocked is None
    for bad in (7, None, "\ud800", "x" * (LONGEST_WORDS + 1)):
        assert refused(program, lambda bad=bad: scheduler.block("a", bad)).field == "reason"  # type: ignore[misc]  # bound at once


def test_what_a_restart_finds_is_what_was_commanded(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x", overlap="parallel", max_active_runs=3, misfire="skip")
    scheduler.pause("a")
    before = (scheduler.find("a"), scheduler.digest())
    scheduler.close()
    assert replay(program.path, until=3).digest() == before[1]
    assert program.open().find("a") == before[0]
