"""The projections as plain data: every one of them, JSON-able, in an order that never changes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from duly import Run, Schedule
from duly.journal.entries import Entry, JournalOpened
from duly.projections import PROJECTIONS, dump
from duly.projections.dump import UnknownProjection
from tests.projections.entry_strategies import histories
from tests.projections.samples import (
    admitted,
    completed,
    created,
    folded,
    held,
    interrupted,
    opened,
    regressed,
    resumed,
    started,
)

DAY_OF_WORK: list[Entry] = [
    opened("09:00"),
    created("report", "09:00"),
    created("backup", "09:00"),
    admitted("09:15", environment={"image": "sha256:1"}, input={"day": "2026-03-02"}),
    started(4),
    interrupted(4, checkpoint={"page": 3}),
    resumed(4),
    admitted("09:30"),
    started(8),
    completed(8, result={"rows": 12}),
    admitted("09:45"),
    held("09:15", "backup"),
    regressed("09:50", "10:00"),
    started(99),
]

NAMES = ["schedules", "consumed", "candidates", "runs", "attempts", "pending", "history", "anomalies"]


def test_every_projection_has_its_rows():
    rows = dump(folded(*DAY_OF_WORK))
    assert list(rows) == NAMES == list(PROJECTIONS)
    assert [row["id"] for row in rows["schedules"]] == ["backup", "report"]
    assert rows["consumed"] == [
        {"schedule_id": "backup", "consumed_through": "2026-03-02T09:15:00Z", "kept": [], "exhausted": False},
        {
            "schedule_id": "report",
            "consumed_through": "2026-03-02T09:45:00Z",
            "kept": [["2026-03-02T09:15:00Z", "2026-03-02T09:45:00Z"]],
            "exhausted": False,
        },
    ]
    assert rows["candidates"] == [{"schedule_id": "backup", "candidate": "2026-03-02T09:15:00Z"}]
    assert [(row["id"], row["occurrence_id"], row["state"]) for row in rows["runs"]] == [
        (4, "report@2026-03-02T09:15:00Z", "started"),
        (11, "report@2026-03-02T09:45:00Z", "pending"),
    ]
    assert rows["attempts"] == [{"run_id": 4, "attempt_id": 7, "state": "started"}]
    assert [row["id"] for row in rows["pending"]] == [11]
    assert [(row["id"], row["result"]) for row in rows["history"]] == [(8, {"rows": 12})]
    assert [(row["sequence"], row["kind"], row["schedule_id"]) for row in rows["anomalies"]] == [
        (14, "RunStarted", "report")
    ]


def test_a_run_is_dumped_with_what_was_frozen_at_its_admission():
    row = dump(folded(*DAY_OF_WORK), "runs")["runs"][0]
    assert row["environment"] == {"image": "sha256:1"}
    assert row["input"] == {"day": "2026-03-02"}
    assert row["checkpoint"] == {"page": 3}
    assert row["admitted_at"] == "2026-03-02T09:15:00Z"


def test_the_keys_of_a_row_come_in_the_order_of_the_fields():
    rows = dump(folded(*DAY_OF_WORK))
    assert [list(row) for row in rows["schedules"]] == [list(Schedule.__struct_fields__)] * 2
    fields = ["id", "occurrence_id", *(name for name in Run.__struct_fields__ if name != "id")]
    assert [list(row) for row in (*rows["runs"], *rows["pending"], *rows["history"])] == [fields] * 4


@settings(max_examples=60)
@given(histories())
def test_whatever_was_folded_can_be_written_as_json_and_always_in_the_same_words(history: list[Entry]):
    state = folded(*DAY_OF_WORK, *history)
    rows = dump(state)
    text = json.dumps(rows, allow_nan=False)
    assert list(json.loads(text)) == NAMES
    assert json.dumps(dump(folded(*DAY_OF_WORK, *history)), allow_nan=False) == text


@pytest.mark.parametrize("name", NAMES)
def test_one_projection_is_the_same_as_among_all(name: str):
    state = folded(*DAY_OF_WORK)
    assert dump(state, name) == {name: dump(state)[name]}


def test_an_unknown_projection_is_refused_with_the_names_that_there_are():
    with pytest.raises(UnknownProjection) as caught:
        dump(folded(), "watermarks")
    assert "'watermarks'" in str(caught.value)
    assert all(name in str(caught.value) for name in NAMES)


def test_a_dump_changes_nothing_and_shares_nothing_with_the_state():
    state = folded(*DAY_OF_WORK)
    before = state.digest()
    for rows in dump(state).values():
        for row in rows:
            row.clear()
    assert state.digest() == before


def test_what_a_dumped_run_holds_is_a_copy():
    state = folded(*DAY_OF_WORK)
    before = state.digest()
    row = dump(state, "runs")["runs"][0]
    row["input"]["day"] = "another"
    row["checkpoint"]["page"] = 99
    assert state.digest() == before


def test_an_empty_record_has_every_projection_empty():
    assert dump(folded()) == {name: [] for name in NAMES}
    assert dump(folded(opened())) == {name: [] for name in NAMES}
    assert isinstance(folded(opened()).opened, JournalOpened)
