"""References: every whole number in an entry is either a name of another entry or a quantity, and names follow."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from duly.journal.entries import (
    ENTRY_CLASSES,
    Entry,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    RunCompleted,
    RunStarted,
    ScheduleRebaselined,
)
from duly.journal.references import REFERENCES, Renumbering

AT = datetime(2026, 3, 1, tzinfo=UTC)
QUANTITIES = {"revision", "at_least", "pid", "task_slots", "batch", "engine", "part", "parts"}


def holds_whole_numbers(info: Any) -> bool:
    kinds: tuple[Any, ...] = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    return any(isinstance(kind, msgspec.inspect.IntType) for kind in kinds)


@pytest.mark.parametrize("kind", ENTRY_CLASSES, ids=lambda kind: kind.__name__)
def test_every_whole_number_is_a_reference_or_a_quantity(kind: type[Entry]):
    info: Any = msgspec.inspect.type_info(kind)
    numbers = {field.name for field in info.fields if holds_whole_numbers(field.type)}
    assert numbers - REFERENCES - QUANTITIES == set()
    assert numbers & REFERENCES & QUANTITIES == set()


def test_references_follow_to_the_new_numbers_and_quantities_stay():
    numbers = Renumbering()
    for was, now in ((5, 1), (6, 2), (9, 3), (10, 4), (20, 7)):
        numbers.note(was, now)
    assert [numbers.of(one) for one in (5, 6, 9, 10, 20, 21)] == [1, 2, 3, 4, 7, 8]
    skipped = OccurrenceSkipped(
        at=AT, schedule_id="a", scheduled_at=AT, revision=9, reason="overlap", blocking_run=9, by=20
    )
    assert numbers.renumbered(skipped) == msgspec.structs.replace(skipped, blocking_run=3, by=7)
    completed = RunCompleted(at=AT, run_id=6, attempt_id=10)
    assert numbers.renumbered(completed) == msgspec.structs.replace(completed, run_id=2, attempt_id=4)


def test_instants_of_the_same_name_are_no_references():
    numbers = Renumbering()
    numbers.note(5, 1)
    for entry in (
        OccurrenceSuperseded(at=AT, schedule_id="a", scheduled_at=AT, by=AT),
        ScheduleRebaselined(at=AT, schedule_id="a", through=AT),
    ):
        assert numbers.renumbered(entry) is entry


def test_where_nothing_moved_an_entry_is_what_it_was():
    numbers = Renumbering()
    for sequence in range(1, 50):
        numbers.note(sequence, sequence)
    entry = RunStarted(at=AT, run_id=7)
    assert numbers.renumbered(entry) is entry
