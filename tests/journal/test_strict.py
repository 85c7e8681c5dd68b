"""Strict JSON, and batches that would not read back equal."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from duly.journal import UnencodableEntry, frozen_json
from duly.journal.codec import KINDS, decode_line, encode_batch, json_fields
from duly.journal.entries import (
    ENTRY_CLASSES,
    ClockJumped,
    CronRule,
    Definition,
    Entry,
    Json,
    OccurrenceAdmitted,
    RunCompleted,
    RunNoted,
    ScheduleCreated,
    kind_of,
)
from tests.journal.samples import NOW, note


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_json_comes_back_as_a_copy_of_its_own():
    original = {"a": [1, 2.5, None, True, "ü"], "b": {"c": (1, 2)}}
    frozen = frozen_json(original, name="input")
    assert frozen == {"a": [1, 2.5, None, True, "ü"], "b": {"c": [1, 2]}}
    original["a"].append(3)  # type: ignore[attr-defined]  # it is a list
    assert frozen["a"] == [1, 2.5, None, True, "ü"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"a": [1, float("nan")]}, r"result\.a\[1\] is nan, which JSON does not have"),
        (float("inf"), "result is inf"),
        ({1: 2}, "result has the key 1, which is not a string"),
        ({"a": {1, 2}}, r"result\.a is a set"),
        (b"bytes", "result is a bytes"),
        (NOW, "result is a datetime"),
        (2**53, "integer of 2\\*\\*53 or more"),
        (-(2**53), "integer of 2\\*\\*53 or more"),
        ("\ud800", "lone surrogate"),
        ({"\udfff": 1}, "a key of result holds a lone surrogate"),
        (nested(33), "nested deeper than 32 levels"),
        ("x" * 300_000, "takes 300,002 bytes as JSON, and 262,144 is the limit"),
    ],
)
def test_what_is_no_strict_json_is_refused_with_its_place(value: object, reason: str):
    with pytest.raises(UnencodableEntry, match=reason):
        frozen_json(value, name="result")


def test_the_bounds_themselves_are_fine():
    assert frozen_json(2**53 - 1, name="n") == 2**53 - 1
    assert frozen_json(nested(32), name="n") == nested(32)
    assert frozen_json("x" * 8, name="n", limit=10) == "x" * 8


def test_an_endless_structure_is_refused():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(UnencodableEntry, match="nested deeper"):
        frozen_json(loop, name="n")


@pytest.mark.parametrize(
    "entry",
    [
        note(1, float("nan")),
        note(1, [float("-inf")]),
        note(1, {1, 2}),
        note(1, (1, 2)),
        note(1, {1: 2}),
        note(1, b"bytes"),
        note(1, "\ud800"),
        note(1, 2**60),
        note(1, nested(40)),
        note(1, nested(5000)),
        RunNoted(at=NOW.replace(tzinfo=None), run_id=1),
        RunNoted(at="soon", run_id=1),  # type: ignore[arg-type]  # that is the point
        RunNoted(at=NOW, run_id="one"),  # type: ignore[arg-type]  # that is the point
        RunCompleted(at=NOW, run_id=1, result=object()),
        ClockJumped(at=NOW, ahead=5),  # type: ignore[arg-type]  # that is the point
        OccurrenceAdmitted(at=NOW, schedule_id="s", scheduled_at=NOW, target="t", input={"a": float("nan")}),
        ScheduleCreated(
            at=NOW,
            schedule_id="s",
            covers_through=NOW,
            definition=Definition(trigger=CronRule("* * * * *", "UTC"), target="t", limits={"n": 2**60}),
        ),
    ],
)
def test_an_entry_that_would_not_read_back_equal_is_refused(entry: Any):
    with pytest.raises(UnencodableEntry):
        encode_batch((note(1), entry))


def test_the_refusal_names_kind_and_field():
    with pytest.raises(UnencodableEntry, match=r"RunNoted\.data would not read back as what it is: nan"):
        encode_batch((note(1, float("nan")),))


def test_an_empty_batch_and_one_over_four_mebibytes_are_refused():
    with pytest.raises(UnencodableEntry, match="empty"):
        encode_batch(())
    with pytest.raises(UnencodableEntry, match="limit of a line"):
        encode_batch((note(1, "x" * (4 * 1024 * 1024)),))


def test_a_batch_reads_back_equal():
    batch = (note(1, {"a": [1.5, "ü", None]}), ClockJumped(at=NOW, ahead=timedelta(seconds=61.5)))
    line = decode_line(b'{"c":"","h":"","s":1,"d":0,"t":0,"e":%b}' % encode_batch(batch))
    assert (line.s, line.d, line.t, line.e) == (1, 0, 0, batch)


def test_a_field_that_a_newer_version_added_is_tolerated():
    line = decode_line(b'{"s":1,"d":0,"t":0,"e":[{"kind":"RunNoted","at":"2026-01-01T09:30:00Z","run_id":1,"new":2}]}')
    assert line.e == (note(1),)


def test_every_kind_is_its_class_s_name_today_and_none_is_used_twice():
    assert len(KINDS) == len(ENTRY_CLASSES)
    assert {each.__name__ for each in ENTRY_CLASSES} == KINDS


def test_every_field_that_can_hold_json_of_a_host_is_checked_by_its_annotation():
    found = {
        kind_of(each): (*fields.plain, *fields.nested) for each in ENTRY_CLASSES if any(fields := json_fields(each))
    }
    assert found == {
        "OccurrenceAdmitted": ("environment", "input", "limits"),
        "RunAdmittedManually": ("environment", "input", "limits"),
        "RunNoted": ("data",),
        "RunCompleted": ("result",),
        "RunInterrupted": ("checkpoint",),
        "ScheduleCreated": ("definition",),
        "ScheduleEdited": ("definition",),
    }


class Inner(msgspec.Struct):
    """As a later version may add one."""

    again: Inner | None
    data: dict[str, Json]


class Added(msgspec.Struct):
    """As a later version may add one."""

    at: datetime
    data: Json
    parts: tuple[Inner, ...]
    texts: dict[str, str]


def test_a_field_that_is_added_is_found_by_its_annotation_however_deep_the_json_lies():
    assert json_fields(Added) == (("data",), ("parts",))


def test_every_refusal_says_what_to_do():
    values: list[object] = [float("nan"), {1: 2}, {1, 2}, b"x", 2**53, "\ud800", nested(33), "x" * 300_000]
    for value in values:
        with pytest.raises(UnencodableEntry) as refused:
            frozen_json(value, name="result")
        assert refused.value.hint, value
    batches: list[tuple[Entry, ...]] = [
        (),
        (note(1, float("nan")),),
        (note(1, "\ud800"),),
        (note(1, 2**53),),
        (note(1, {1, 2}),),
    ]
    for batch in batches:
        with pytest.raises(UnencodableEntry) as refused:
            encode_batch(batch)
        assert refused.value.hint, batch
