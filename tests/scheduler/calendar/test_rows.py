"""The shared rows: expressions, zones and instants whose answers were computed without croniter."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from duly.journal.entries import Fold
from duly.scheduler.triggers import Cron

CASES = Path(__file__).parents[2] / "cases"


def rows(name: str) -> list[dict[str, Any]]:
    lines = (CASES / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def answers(found: list[dict[str, Any]], fold: Fold = "both") -> dict[str, datetime | None]:
    triggers = {row["id"]: (row, Cron(row["expr"], row["zone"], fold=fold)) for row in found}
    return {
        name: (trigger.next_after if row["direction"] == "next" else trigger.prev_before)(
            datetime.fromisoformat(row["after"])
        )
        for name, (row, trigger) in triggers.items()
    }


def expected(found: list[dict[str, Any]], column: str = "expected") -> dict[str, datetime | None]:
    return {row["id"]: datetime.fromisoformat(row[column]) for row in found}


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("calendar.jsonl", 200),
        ("calendar_gap.jsonl", 75),
        ("calendar_fold.jsonl", 75),
        ("calendar_croniter_wrong.jsonl", 12),
    ],
)
def test_every_row_holds(name: str, count: int):
    found = rows(name)
    assert len(found) == count
    assert answers(found) == expected(found)


def test_every_fold_row_holds_with_the_first_pass_alone():
    found = [row for name in ("calendar_fold.jsonl", "calendar_croniter_wrong.jsonl") for row in rows(name)]
    found = [row for row in found if "fire_first_only" in row]
    assert len(found) > 75
    assert answers(found, "first") == expected(found, "fire_first_only")
    assert expected(found, "fire_first_only") != expected(found)


def test_the_answers_are_in_utc():
    assert {answer.tzinfo for answer in answers(rows("calendar.jsonl")).values() if answer} == {UTC}
