"""History: one row for each occurrence and each span, as the record has it, and nothing that a regression made void."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings

from duly import State
from duly.journal.entries import (
    Entry,
    ErrorInfo,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleRebaselined,
    ScheduleUnpaused,
)
from duly.projections import History, Row
from duly.projections.ranges import range_holding
from tests.projections.entry_strategies import histories
from tests.projections.samples import (
    admitted,
    at,
    created,
    failed,
    fold,
    held,
    interrupted,
    interval,
    regressed,
    skipped,
    started,
    superseded,
)


def history_of(*entries: Entry, schedule_id: str = "report") -> History:
    history = History(schedule_id)
    for sequence, entry in enumerate(entries, 1):
        history.apply(sequence, entry)
    return history


def told(history: History) -> list[str]:
    """Each row as a line, beyond the one about the creation."""
    return [_line(row) for row in history.table() if row.detail != "ScheduleCreated"]


def _line(row: Row) -> str:
    if row.disposition == "interval":
        after = "" if row.after is None else f"{row.after:%H:%M}"
        ended = row.scheduled_at + timedelta(microseconds=row.scheduled_at.microsecond and 1)
        return f"{after}..{ended:%H:%M} {row.reason or row.detail}"
    by = f" by {row.superseded_by:%H:%M}" if row.superseded_by else ""
    return f"{row.scheduled_at:%H:%M} {row.disposition}{f' {row.reason}' if row.reason else ''}{by}"


def paused(after: str, through: str) -> SchedulePaused:
    return SchedulePaused(at=at(through), schedule_id="report", covers_after=at(after), covers_through=at(through))


def test_each_disposition_is_a_row_in_the_order_of_the_instants():
    history = history_of(
        created(),
        admitted("09:15"),
        skipped("09:30", "overlap", blocking_run=2),
        superseded("09:45", "10:00"),
        held("10:00"),
        interval("10:00", "12:00"),
        skipped("12:00", "spent", by=4),
        skipped("12:15", "preflight", detail="the month is closed"),
    )
    assert told(history) == [
        "09:15 admitted",
        "09:30 skipped overlap",
        "09:45 superseded by 10:00",
        "10:00 held",
        "10:00..12:00 superseded",
        "12:00 skipped spent",
        "12:15 skipped preflight",
    ]
    details = [row.detail for row in history.table() if row.disposition == "skipped"]
    assert details == ["run 2 was active", "its period was spent by entry 4", "the month is closed"]


def test_a_row_tells_the_life_of_its_run():
    history = history_of(
        created(),
        admitted("09:15"),
        started(2, at=at("09:16")),
        failed(2, at=at("09:20")),
        admitted("09:30"),
        started(5),
        interrupted(5),
        admitted("09:45"),
    )
    rows = [row for row in history.table() if row.disposition == "admitted"]
    assert [(row.run_id, row.run_state) for row in rows] == [(2, "failed"), (5, "interrupted"), (8, "pending")]
    first = rows[0]
    assert (first.admitted_at, first.started_at, first.ended_at) == (at("09:15"), at("09:16"), at("09:20"))
    assert (first.error, first.sequence, first.revision) == (ErrorInfo("OSError", "the disk is full"), 2, 1)
    assert first.occurrence_id == "report@2026-03-02T09:15:00Z"


def test_a_candidates_row_becomes_what_it_was_decided_to_be():
    assert told(history_of(created(), held("09:15"), admitted("09:15"))) == ["09:15 admitted"]
    assert told(history_of(created(), held("09:15"), superseded("09:15", "09:30"))) == ["09:15 superseded by 09:30"]
    assert told(history_of(created(), held("09:15"), skipped("09:15", "paused"))) == ["09:15 skipped paused"]
    assert history_of(created(), held("09:15"), admitted("09:15")).doubles == []


def test_what_a_baseline_covers_is_a_row_and_an_empty_cover_is_none():
    history = history_of(created(), paused("09:00", "09:40"), paused("09:40", "09:40"))
    assert told(history) == ["09:00..09:40 SchedulePaused"]
    beginning = history.table()[0]
    assert (beginning.detail, beginning.after, beginning.scheduled_at) == ("ScheduleCreated", None, at("09:00"))


def test_a_rebaseline_forward_covers_with_the_operators_reason():
    moved = ScheduleRebaselined(at=at("10:00"), schedule_id="report", through=at("09:50"), covers_after=at("09:00"))
    assert told(history_of(created(), moved)) == ["09:00..09:50 operator"]


WORKED: list[Entry] = [
    created(),
    admitted("09:15"),
    skipped("09:30", "misfire"),
    skipped("09:45", "overlap", blocking_run=2),
    superseded("10:00", "10:15"),
    held("10:15"),
    interval("10:15", "11:00"),
    skipped("11:00", "capacity"),
]


def rebaselined(through: str) -> ScheduleRebaselined:
    return ScheduleRebaselined(at=at("12:00"), schedule_id="report", through=at(through), regressed=True)


@pytest.mark.parametrize("step", ["regression", "rebaseline"])
def test_a_step_back_voids_what_is_not_kept_and_clips_what_straddles_it(step: str):
    def stepped(now: str) -> list[str]:
        back = regressed(now, "12:00") if step == "regression" else rebaselined(now)
        return told(history_of(*WORKED, back))

    assert stepped("09:05") == ["09:15 admitted", "09:45 skipped overlap"]
    assert stepped("09:40") == ["09:15 admitted", "09:30 skipped misfire", "09:45 skipped overlap"]
    assert stepped("10:40")[-2:] == ["10:15 held", "10:15..10:40 superseded"]
    assert stepped("10:15")[-1] == "10:15 held"
    assert stepped("10:10")[-1] == "10:00 superseded by 10:15"


def test_a_regression_within_the_tolerance_voids_nothing():
    assert told(history_of(*WORKED, regressed("10:58", "11:00"))) == told(history_of(*WORKED))
    assert told(history_of(*WORKED, regressed("10:54", "11:00"))) != told(history_of(*WORKED))


def test_a_baselines_cover_above_the_step_is_void_and_one_that_straddles_it_is_clipped():
    resumed = ScheduleUnpaused(
        at=at("10:00"), schedule_id="report", covers_after=at("09:40"), covers_through=at("10:00")
    )
    history = history_of(created(), paused("09:00", "09:40"), resumed, regressed("09:20", "10:00"))
    assert told(history) == ["09:00..09:20 SchedulePaused"]


def test_what_is_decided_anew_after_a_step_back_is_told_once():
    again = history_of(*WORKED, regressed("09:20", "12:00"), skipped("09:30", "spent", by=1))
    assert told(again) == ["09:15 admitted", "09:30 skipped spent", "09:45 skipped overlap"]
    assert again.doubles == []


def test_an_entry_about_another_schedule_changes_nothing():
    others: list[Entry] = [
        created("other"),
        admitted("09:20", "other"),
        held("09:35", "other"),
        started(9, schedule_id="other"),
    ]
    mixed = history_of(*WORKED, *others)
    assert told(mixed) == told(history_of(*WORKED))
    assert mixed.schedule == history_of(*WORKED).schedule


def test_an_anomaly_is_no_row():
    assert told(history_of(*WORKED, admitted("09:15"), superseded("09:30", "09:45"))) == told(history_of(*WORKED))


def test_a_deleted_schedule_keeps_its_history():
    deleted = ScheduleDeleted(
        at=at("12:00"), schedule_id="report", covers_after=at("11:00"), covers_through=at("12:00")
    )
    assert told(history_of(*WORKED, deleted)) == [*told(history_of(*WORKED)), "11:00..12:00 ScheduleDeleted"]


def test_a_history_knows_the_newest_of_the_runs_that_ended_and_every_row():
    record: list[Entry] = [created()]
    for minute in range(15, 55):
        record += [admitted(f"09:{minute}"), started(len(record) + 1), failed(len(record) + 1)]
    history = history_of(*record)
    known = [sequence for sequence in range(1, len(record) + 1) if history.run(sequence) is not None]
    assert known == list(range(2, len(record) + 1, 3))[-16:]
    assert [row.run_state for row in history.table() if row.disposition == "admitted"] == ["failed"] * 40


def test_a_schedule_that_was_never_created_has_no_history():
    history = history_of(admitted("09:15"), schedule_id="nobody")
    assert (history.table(), history.schedule) == ([], None)


@settings(max_examples=200)
@given(histories(60))
def test_rows_are_sorted_each_instant_stands_once_and_all_agree_with_the_state(entries: list[Entry]):
    record: list[Entry] = [created("a", "09:00"), *entries]
    history = history_of(*record, schedule_id="a")
    state = fold(State(), record)
    rows = history.table()
    assert [row.key for row in rows] == sorted(row.key for row in rows)
    decided = [row for row in rows if row.disposition != "interval"]
    assert len({row.scheduled_at for row in decided}) == len(decided)
    schedule = state.by_id["a"]
    assert [row.scheduled_at for row in decided if row.disposition == "held"] == (
        [] if schedule.candidate is None else [schedule.candidate]
    )
    for row in decided:
        if row.disposition == "admitted" or row.reason in {"overlap", "preflight", "spent", "operator"}:
            assert range_holding(schedule.kept, row.scheduled_at) is not None
