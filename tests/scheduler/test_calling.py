"""A call that cannot be meant is told as any other wrong argument: what was given, and what to write instead."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import duly
from duly import Cron, DefinitionError, Every, OncePer, OneShot, Scheduler
from duly.scheduler.calling import explained

ANY: Any = duly  # the calls are wrong, and no type checker lets them pass


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ANY.Every(timedelta(minutes=5)), "Every: (datetime.timedelta(seconds=300)) cannot be meant: missing"),
        (lambda: ANY.Every(minutes=5), 'Every(5, "minute", anchor='),
        (lambda: ANY.Every(1, "day"), "missing a required argument: 'anchor'"),
        (lambda: ANY.Cron("* * * * *"), "missing a required argument: 'zone'"),
        (lambda: ANY.Cron("* * * * *", "UTC", tz="UTC"), "got an unexpected keyword argument 'tz'"),
        (ANY.OneShot, "OneShot(datetime(2026, 3, 1, 2, 30, tzinfo=UTC))"),
        (lambda: ANY.OncePer("day"), 'OncePer("day", zone="UTC")'),
        (lambda: ANY.Scheduler("state"), 'Scheduler.open("state/")'),
    ],
)
def test_a_call_that_does_not_fit_says_what_to_write(call: Callable[[], object], said: str):
    with pytest.raises(DefinitionError) as caught:
        call()
    assert said in str(caught.value)
    assert "object at 0x" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("path", 5),
        ("clock", 5),
        ("clock", object()),
        ("targets", "backup"),
        ("preflight", 7),
        ("sources", ["a"]),
        ("lock_timeout", "soon"),
        ("lock_timeout", -1),
        ("lock_timeout", timedelta(seconds=-1)),
        ("lock_timeout", True),
        ("lock_timeout", float("nan")),
    ],
)
def test_what_a_host_brings_is_checked_before_anything_is_touched(argument: str, value: object, tmp_path: Path):
    given: dict[str, Any] = {"path": tmp_path / "state", argument: value}
    with pytest.raises(DefinitionError) as caught:
        Scheduler.open(**given)
    assert caught.value.field == argument
    assert list(tmp_path.iterdir()) == []


def test_a_type_error_inside_of_a_call_passes_through():
    @explained("call", "do not")
    def call(number: int) -> int:
        return number + len(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - that is the fault

    with pytest.raises(TypeError, match="has no len"):
        call(1)


def test_the_signature_that_people_read_stays():
    assert list(inspect.signature(Cron).parameters) == ["expression", "zone", "fold"]
    assert list(inspect.signature(Every).parameters) == ["count", "unit", "anchor", "at", "zone", "fold"]
    assert Cron("@daily", "UTC") == Cron("@daily", zone="UTC")
    assert OncePer("day", "UTC").rule.period == "day"
    assert OneShot(datetime(2026, 3, 1, tzinfo=UTC)).rule.at.year == 2026
