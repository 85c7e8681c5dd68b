"""Inputs: what may be bound, what is refused, and that JSON goes through the journal exactly."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duly import DefinitionError, occurrence
from duly.journal.entries import (
    ArrayOf,
    CronRule,
    Definition,
    Entry,
    FromOccurrence,
    Literally,
    ObjectOf,
    OccurrenceAdmitted,
)
from duly.scheduler.inputs import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_NODES,
    InputUnresolved,
    parse_input,
    resolve_input,
    resolve_unbound,
)
from tests.scheduler.embedding import QUARTERLY, Program, at, refused


def nested(levels: int, inside: Any = 1) -> Any:
    value = inside
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


BAD: dict[str, tuple[Any, str]] = {
    "a list": ([1], "input"),
    "a text": ("x", "input"),
    "None": (None, "input"),
    "a number for a path": ({1: 2}, "input"),
    "an empty path": ({"": 2}, "input"),
    "a path that ends in a dot": ({"a.": 2}, "input"),
    "a path with an empty part": ({"a..b": 2}, "input"),
    "a path with a surrogate": ({"\ud800": 2}, "input"),
    "a path inside another": ({"a": 1, "a.b": 2}, "input"),
    "a path deep inside another": ({"a.b.c.d": 1, "a.b": 2}, "input"),
    "a set": ({"a": {1, 2}}, "input.a"),
    "bytes": ({"a": b"x"}, "input.a"),
    "an object": ({"a": object()}, "input.a"),
    "a set deep inside": ({"a": {"b": [1, {2}]}}, "input.a.b[1]"),
    "not a number": ({"a": float("nan")}, "input.a"),
    "an endless number": ({"a": [float("-inf")]}, "input.a[0]"),
    "an integer of 2**53": ({"a": 2**53}, "input.a"),
    "a surrogate": ({"a": "\ud800"}, "input.a"),
    "a number for a key": ({"a": {1: 2}}, "input.a"),
    "a number for a key beside a reference": ({"a": {1: occurrence.schedule_id}}, "input.a"),
    "a surrogate for a key": ({"a": {"\ud800": 2}}, "input.a"),
    "too deep": ({"a": nested(MAX_DEPTH)}, "input.a"),
    "too deep around a reference": ({"a": nested(MAX_DEPTH, occurrence.scheduled_at)}, "input.a"),
    "too many values": ({"a": [0] * MAX_NODES}, "input"),
    "too many values in all": ({f"p{n}": 0 for n in range(MAX_NODES + 1)}, "input"),
    "too many bytes": ({"a": "x" * MAX_BYTES}, "input"),
    "an unknown reference": ({"a": FromOccurrence("run_id")}, "input.a"),  # type: ignore[arg-type]  # on purpose
    "an expression around a set": ({"a": Literally({1, 2})}, "input.a"),
    "an expression around not a number": ({"a": ObjectOf({"b": Literally(float("nan"))})}, "input.a"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_input_that_cannot_be_meant_is_refused_with_its_place(program: Program, name: str):
    bindings, place = BAD[name]
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    for work in (
        lambda: scheduler.create("b", QUARTERLY, target="x", input=bindings),
        lambda: scheduler.edit("a", expected_revision=1, input=bindings),
    ):
        error = refused(program, work, DefinitionError)
        assert error.field.startswith(place)
        assert error.remedy
        assert len(str(error)) < 1_000


def test_the_bounds_themselves_are_allowed(program: Program):
    scheduler = program.open()
    scheduler.create("deep", QUARTERLY, target="x", input={"a": nested(MAX_DEPTH - 1)})
    scheduler.create(
        "deep reference".replace(" ", "-"),
        QUARTERLY,
        target="x",
        input={"a": nested(MAX_DEPTH - 2, occurrence.schedule_id)},
    )
    scheduler.create("wide", QUARTERLY, target="x", input={"a": [0] * (MAX_NODES - 1)})
    scheduler.create("long", QUARTERLY, target="x", input={"a": "x" * (MAX_BYTES - 100)})
    program.poll_at(scheduler, "09:15")
    inputs = {run.schedule_id: run.input["a"] for run in scheduler.runs()}
    assert inputs["wide"] == [0] * (MAX_NODES - 1)
    assert inputs["deep"] == nested(MAX_DEPTH - 1)
    assert inputs["deep-reference"] == nested(MAX_DEPTH - 2, "deep-reference")
    assert len(inputs["long"]) == MAX_BYTES - 100
    scheduler.close()
    assert program.consistent(program.open())


def test_references_are_resolved_wherever_they_stand_and_frozen_at_the_admission(program: Program):
    scheduler = program.open()
    bindings = {
        "report.day": occurrence.scheduled_at,
        "report.name": "daily",
        "all": [occurrence.schedule_id, {"id": occurrence.occurrence_id, "n": (1, 2)}],
    }
    scheduler.create("a", QUARTERLY, target="x", input=bindings)
    (run,) = program.poll_at(scheduler, "09:15").admitted
    resolved = {
        "report": {"day": "2026-03-02T09:15:00Z", "name": "daily"},
        "all": ["a", {"id": "a@2026-03-02T09:15:00Z", "n": [1, 2]}],
    }
    assert run.input == resolved
    scheduler.edit("a", expected_revision=1, input={"other": 1})
    assert scheduler.run(run.id).input == resolved
    entry = next(record.entry for record in program.records() if record.sequence == run.id)
    assert isinstance(entry, OccurrenceAdmitted)
    assert entry.input == resolved


def test_what_a_schedule_shows_as_its_input_may_be_given_again(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x", input={"a": [occurrence.schedule_id, {"b": 1}], "c.d": None})
    before = program.bytes()
    scheduler.declare("a", QUARTERLY, target="x", input=scheduler.schedule("a").input)
    assert program.bytes() == before
    assert parse_input({"a": ArrayOf((Literally(7),))}) == {"a": Literally([7])}


def test_a_manual_run_has_no_occurrence_to_refer_to(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x", input={"day": occurrence.scheduled_at})
    error = refused(program, lambda: scheduler.run_now("a"), DefinitionError)
    assert (error.field, "no occurrence" in str(error)) == ("input", True)
    assert scheduler.run_now("a", input={"day": "2026-03-02"}).input == {"day": "2026-03-02"}
    with pytest.raises(InputUnresolved):
        resolve_unbound(parse_input({"a": [occurrence.schedule_id]}))


def test_an_input_that_grows_too_large_when_it_is_resolved_is_a_preflight_skip(program: Program):
    scheduler = program.open()
    name = "x" * 200
    scheduler.create(name, QUARTERLY, target="x", input={"a": [occurrence.occurrence_id] * 999})
    scheduler.create("other", QUARTERLY, target="x")
    assert len(program.poll_at(scheduler, "09:15").decisions) == 2


PATHS = st.text("ab.", min_size=1, max_size=5)
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53) + 1, 2**53 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])),
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(["a", "b.c", "b.d", "ö"]), JSON, max_size=4))
def test_json_comes_out_of_an_input_exactly_as_it_went_in(bindings: dict[str, Any]):
    expressions = parse_input(bindings)
    definition = Definition(CronRule("* * * * *", "UTC"), "x", input=expressions)
    again = msgspec.json.decode(msgspec.json.encode(definition), type=Definition).input
    expected: dict[str, Any] = {}
    for path, value in bindings.items():
        *parents, name = path.split(".")
        inner = expected
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[name] = value
    assert exactly(resolve_input(expressions, "a", at("09:15"))) == exactly(expected)
    assert exactly(resolve_input(again, "a", at("09:15"))) == exactly(expected)


@settings(max_examples=150)
@given(JSON)
def test_json_goes_through_an_entry_exactly(value: Any):
    entry = OccurrenceAdmitted(
        at=at("09:15"), schedule_id="a", scheduled_at=at("09:15"), target="x", environment=value, input={"a": value}
    )
    again = msgspec.json.decode(msgspec.json.encode(entry), type=Entry)
    assert isinstance(again, OccurrenceAdmitted)
    assert exactly(again.environment) == exactly(again.input["a"]) == exactly(value)


def exactly(value: object) -> str:
    """Tells 1 from 1.0 and from True, and 0.0 from -0.0, which are equal."""
    return repr(value)


@settings(max_examples=200)
@given(st.lists(PATHS, min_size=1, max_size=4, unique=True))
def test_paths_are_refused_iff_one_lies_inside_another_or_is_none(paths: list[str]):
    parts = [path.split(".") for path in paths]
    good = all(all(part) for part in parts) and not any(
        one != other and other[: len(one)] == one for one in parts for other in parts
    )
    try:
        parse_input(dict.fromkeys(paths, 1))
        accepted = True
    except DefinitionError:
        accepted = False
    assert accepted is good


def test_an_input_of_the_journal_is_the_one_that_was_given(program: Program):
    scheduler = program.open()
    value: dict[str, Any] = {
        "float": 1.0,
        "int": 1,
        "true": True,
        "small": 5e-324,
        "minus": -0.0,
        "text": "\x00é\u2028😀",
    }
    scheduler.create("a", QUARTERLY, target="x", input=value)
    run = scheduler.run_now("a", limits={"own": value})
    scheduler.start(run.id)
    scheduler.complete(run.id, result=value)
    scheduler.close()
    again = program.open()
    found = again.run(run.id)
    assert exactly(found.input) == exactly(found.limits["own"]) == exactly(found.result) == exactly(value)
