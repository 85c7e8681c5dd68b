"""What the demo finds worth telling, on small records written by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from duly.journal.entries import (
    CandidateHeld,
    CronRule,
    Definition,
    Entry,
    IntervalSkipped,
    JournalClosed,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    RunAbandoned,
    RunCompleted,
    RunStarted,
    ScheduleCreated,
)
from duly.tools.demo_moments import moments

AT = datetime(2026, 3, 24, 2, tzinfo=UTC)


def minutes(number: int) -> datetime:
    return AT + timedelta(minutes=number)


def opened(at: datetime, pid: int) -> JournalOpened:
    return JournalOpened(
        at=at,
        host="h",
        pid=pid,
        duly="0",
        croniter="7",
        tzdata="2026",
        python="3",
        task_slots=1,
        batch=1,
        clock_tolerance=timedelta(0),
    )


def admitted(schedule_id: str, due: datetime, at: datetime) -> OccurrenceAdmitted:
    return OccurrenceAdmitted(at=at, schedule_id=schedule_id, scheduled_at=due, target="t")


def told(*entries: Entry) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in moments(list(enumerate(entries, start=1)))]


HELD = CandidateHeld(at=minutes(0), schedule_id="a", scheduled_at=minutes(0))


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ([], "it still waits"),
        ([admitted("b", minutes(0), minutes(1))], "it still waits"),
        ([admitted("a", minutes(0), minutes(5))], "admitted 5m late as run 2"),
        (
            [OccurrenceSuperseded(at=minutes(9), schedule_id="a", scheduled_at=minutes(0), by=minutes(9))],
            "superseded by the one of 02:09Z",
        ),
        (
            [OccurrenceSkipped(at=minutes(9), schedule_id="a", scheduled_at=minutes(0), reason="paused")],
            "then skipped: paused",
        ),
    ],
)
def test_an_occurrence_that_waits_is_told_with_its_end(then: list[Entry], said: str):
    assert told(HELD, *then) == [("capacity", f"a 02:00Z held, all task slots are taken; {said}")]


def test_a_frequent_moment_is_told_once_for_each_schedule():
    skips = [
        OccurrenceSkipped(at=minutes(n), schedule_id=name, scheduled_at=minutes(n), reason="capacity")
        for n in (1, 2)
        for name in ("a", "b")
    ]
    assert [kind for kind, _ in told(*skips)] == ["capacity", "capacity"]


def test_a_downtime_is_told_with_what_had_come_due():
    [*_, (kind, text)] = told(
        opened(minutes(0), 1),
        JournalClosed(at=minutes(1)),
        opened(minutes(61), 2),
        OccurrenceSkipped(at=minutes(61), schedule_id="a", scheduled_at=minutes(5), reason="misfire"),
        IntervalSkipped(
            at=minutes(61), schedule_id="b", after=minutes(1), before=minutes(60), at_least=100, reason="backlog"
        ),
        admitted("b", minutes(60), minutes(61)),
        admitted("b", minutes(62), minutes(62)),
    )
    assert (kind, text) == (
        "down",
        "back after 1h of downtime: 1 skipped (too late), 100 backlog in one interval, 1 run late (b)",
    )


def test_a_downtime_without_anything_due_is_told_too():
    [*_, (_, text)] = told(opened(minutes(0), 1), JournalClosed(at=minutes(1)), opened(minutes(2), 2))
    assert text == "back after 1m of downtime: nothing had come due"


def test_a_death_is_told_with_what_it_left_and_what_became_of_it():
    before: list[Entry] = [
        opened(minutes(0), 41),
        admitted("done", minutes(0), minutes(0)),
        RunStarted(at=minutes(0), run_id=2, schedule_id="done"),
        RunCompleted(at=minutes(0), run_id=2, schedule_id="done"),
        admitted("working", minutes(1), minutes(1)),
        RunStarted(at=minutes(1), run_id=5, schedule_id="working"),
        admitted("pending", minutes(1), minutes(1)),
    ]
    after: list[Entry] = [
        opened(minutes(5), 42),
        RunAbandoned(at=minutes(5), run_id=5, schedule_id="working", cause="crash"),
        RunStarted(at=minutes(5), run_id=7, schedule_id="pending"),
        admitted("fresh", minutes(5), minutes(5)),
        RunStarted(at=minutes(5), run_id=11, schedule_id="fresh"),
        JournalClosed(at=minutes(6)),
    ]
    assert told(*before, *after)[1:] == [
        (
            "killed",
            "kill -9 of process 41: at work: run 5 (working); admitted and not started: run 7 (pending)",
        ),
        (
            "opened",
            "process 42 takes over: run 5 (working) abandoned, never repeated; run 7 (pending) started now, once",
        ),
    ]


def test_a_death_that_left_nothing_is_told_too():
    assert [text for _, text in told(opened(minutes(0), 1), opened(minutes(1), 2))[1:]] == [
        "kill -9 of process 1: at work: nothing; admitted and not started: nothing",
        "process 2 takes over: nothing was left open",
    ]


def test_a_change_of_the_clocks_is_told_only_of_schedules_that_it_touches():
    gap = datetime(2026, 3, 29, 1, tzinfo=UTC)
    definitions = {"skipped": "30 2 * * *", "regular": "0 3 * * *"}
    created: list[Entry] = [
        ScheduleCreated(
            at=AT,
            schedule_id=name,
            covers_through=AT,
            definition=Definition(trigger=CronRule(expression, "Europe/Berlin"), target="t"),
        )
        for name, expression in definitions.items()
    ]
    entries = [*created, *(admitted(name, gap, gap) for name in definitions)]
    assert told(*entries) == [
        (
            "clocks",
            "Europe/Berlin: clocks go forward 02:00 -> 03:00 (CEST); the skipped time of skipped (run 3) became 03:00",
        )
    ]
