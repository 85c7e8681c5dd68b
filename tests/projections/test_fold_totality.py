"""The fold takes whatever it is given: it never raises, it is deterministic, and what contradicts changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from duly import State
from duly.journal.codec import encode_batch
from duly.journal.entries import (
    ENTRY_CLASSES,
    CandidateHeld,
    Entry,
    EntryLost,
    ScheduleBlocked,
    ScheduleDeleted,
    ScheduleEdited,
    SchedulePaused,
    kind_of,
)
from duly.projections import dump
from duly.projections.runs import TRANSITIONS
from tests.projections.entry_strategies import LAST, POOL, entries, histories
from tests.projections.samples import (
    admitted,
    at,
    created,
    definition,
    fold,
    folded,
    held,
    interval,
    regressed,
    skipped,
    started,
    superseded,
)

BEGINNING: list[Entry] = [created("a"), created("b"), admitted("09:15", "a"), admitted("09:30", "b")]
decode = msgspec.json.Decoder(tuple[Entry, ...]).decode


def everything_else(state: State) -> object:
    """What an anomaly must not touch: all but itself, the block it brings, and how far the record was read."""
    schedules = [{**row, "blocked": None} for row in dump(state, "schedules")["schedules"]]
    others = {name: rows for name, rows in dump(state).items() if name not in {"schedules", "anomalies"}}
    return schedules, others, list(state.requests.items()), list(state.started), state.newest_admission


@settings(max_examples=200)
@given(histories())
@example([regressed("09:00", "09:00", timedelta.max), regressed("09:00", "09:00")])
def test_entries_in_any_order_never_raise_and_are_all_counted(history: list[Entry]):
    state = folded(*BEGINNING, *history)
    state.digest()
    dump(state)
    assert state.sequence == len(BEGINNING) + len(history)


@settings(max_examples=200)
@given(histories())
def test_equal_records_give_equal_states_also_when_read_back_from_bytes(history: list[Entry]):
    record = [*BEGINNING, *history]
    again = decode(encode_batch(tuple(record)))
    assert folded(*record).digest() == folded(*again).digest()


@settings(max_examples=100)
@given(histories(), st.integers(0, 40))
def test_a_prefix_and_the_rest_are_the_whole_and_questions_in_between_change_nothing(history: list[Entry], cut: int):
    record = [*BEGINNING, *history]
    parts = folded(*record[:cut])
    parts.digest()
    dump(parts)
    parts.runs()
    fold(parts, record[cut:])
    whole = folded(*record)
    assert parts.digest() == whole.digest()
    assert dump(parts) == dump(whole)


@settings(max_examples=400)
@given(histories(20), entries())
def test_an_anomaly_changes_nothing_but_the_block_of_its_schedule(history: list[Entry], last: Entry):
    state = folded(*BEGINNING, *history)
    before, anomalies = everything_else(state), state.anomaly_count
    blocked = {one.id: one.blocked for one in state.schedules(deleted=True)}
    fold(state, [last])
    if state.anomaly_count == anomalies:
        return
    assert everything_else(state) == before
    after = {one.id: one.blocked for one in state.schedules(deleted=True)}
    changed = [one for one in after if after[one] != blocked[one]]
    assert len(changed) <= 1
    assert all(blocked[one] is None for one in changed), "the first block stays"


@settings(max_examples=100)
@given(histories(), entries())
def test_different_records_are_told_apart(history: list[Entry], extra: Entry):
    state = folded(*BEGINNING, *history)
    before = state.digest()
    fold(state, [extra])
    assert state.digest() != before


def test_every_kind_of_entry_is_drawn_also_some_that_the_fold_accepts():
    accepted: set[str] = set()
    random = Random(7)  # noqa: S311 - the same draws in every run
    for _ in range(1_500):
        state = folded(*BEGINNING, *random.choices(POOL, k=6))
        entry = random.choice(POOL)
        before = state.anomaly_count
        fold(state, [entry])
        if state.anomaly_count == before:
            accepted.add(kind_of(entry))
    rarely = {kind_of(each) for row in TRANSITIONS.values() for each in row} | {"IntervalSkipped"}
    assert accepted >= {kind_of(each) for each in ENTRY_CLASSES} - rarely
    assert {kind_of(entry) for entry in POOL} == {kind_of(each) for each in ENTRY_CLASSES}


HELD: list[Entry] = [created(), held("09:15")]

CONTRADICTIONS: dict[str, tuple[list[Entry], Callable[[], Entry]]] = {
    "a second admission of an occurrence": ([created(), admitted("09:15")], lambda: admitted("09:15")),
    "an admission at or before the watermark": ([created(when="09:20")], lambda: admitted("09:15")),
    "an admission of a schedule that was never created": ([], lambda: admitted("09:15")),
    "an admission of a deleted schedule": (
        [created(), ScheduleDeleted(at=at("09:01"), schedule_id="report", covers_through=at("09:01"))],
        lambda: admitted("09:15"),
    ),
    "a second creation": ([created()], lambda: created(when="09:30")),
    "a skip of what is admitted": ([created(), admitted("09:15")], lambda: skipped("09:15", "misfire")),
    "a skip inside a kept range": (
        [created(), admitted("09:15"), regressed("09:05", "09:15")],
        lambda: skipped("09:15", "misfire"),
    ),
    "a second hold of the candidate": (HELD, lambda: held("09:15")),
    "a second candidate": (HELD, lambda: held("09:30")),
    "a supersession of what is decided": ([created(), admitted("09:15")], lambda: superseded("09:15", "09:30")),
    "an interval that begins behind the watermark": (
        [created(), admitted("09:15")],
        lambda: interval("09:00", "09:30"),
    ),
    "an interval that begins beyond the watermark": ([created()], lambda: interval("09:10", "09:30")),
    "an interval that ends before it begins": ([created()], lambda: interval("09:00", "09:00")),
    "an edit that skips a revision": (
        [created()],
        lambda: ScheduleEdited(
            at=at("09:10"),
            schedule_id="report",
            revision=3,
            definition=definition(target="other"),
            covers_through=at("09:10"),
            request="key",
        ),
    ),
    "a pause of a schedule that was never created": (
        [],
        lambda: SchedulePaused(at=at("09:10"), schedule_id="report", covers_through=at("09:10"), request="key"),
    ),
    "a block of a deleted schedule": (
        [created(), ScheduleDeleted(at=at("09:01"), schedule_id="report", covers_through=at("09:01"))],
        lambda: ScheduleBlocked(at=at("09:10"), schedule_id="report", cause="operator", reason="no"),
    ),
    "a skip of a deleted schedule": (
        [created(), ScheduleDeleted(at=at("09:01"), schedule_id="report", covers_through=at("09:01"))],
        lambda: skipped("09:15", "misfire"),
    ),
    "the start of an admission's schedule": ([created()], lambda: started(1)),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_what_contradicts_the_record_is_an_anomaly_that_names_its_sequence(name: str):
    history, make = CONTRADICTIONS[name]
    state = folded(*history)
    before = everything_else(state)
    entry = make()
    fold(state, [entry])
    assert [(one.sequence, one.kind) for one in state.anomalies] == [(len(history) + 1, kind_of(entry))]
    assert state.anomalies[0].text
    assert everything_else(state) == before
    found = state.find("report")
    assert found is None or (found.blocked is not None and found.blocked.cause == "anomaly")


def test_a_blocked_schedule_keeps_its_first_block():
    block = ScheduleBlocked(at=at("09:10"), schedule_id="report", cause="operator", reason="wait for the auditor")
    state = folded(created(), block, admitted("08:00"))
    blocked = state.schedule("report").blocked
    assert blocked is not None
    assert (blocked.sequence, blocked.cause, blocked.reason) == (2, "operator", "wait for the auditor")
    assert len(state.anomalies) == 1


def test_what_salvage_lost_is_counted_and_reads_no_clock():
    state = folded(created(), EntryLost(at=LAST), EntryLost(at=LAST))
    assert (state.lost, state.sequence, state.last_at, state.highest_at) == (2, 3, at("09:00"), at("09:00"))


def test_only_readings_from_1972_to_2100_count_for_the_highest():
    def reading(year: int) -> CandidateHeld:
        return CandidateHeld(at=at("09:00").replace(year=year), schedule_id="nobody", scheduled_at=at("09:00"))

    state = folded(created(), reading(1971), reading(2101), reading(9999))
    assert state.highest_at == at("09:00")
    assert folded(created(), reading(2100)).highest_at == at("09:00").replace(year=2100)


def test_after_a_regression_the_highest_reading_begins_anew():
    state = folded(created(when="18:00"), regressed("09:00", "18:00"))
    assert state.highest_at == at("09:00")
