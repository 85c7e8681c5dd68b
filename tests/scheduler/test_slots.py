"""Who holds the task slots is one answer, by the state, by a story and by an index, whatever contradicts the record."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import pytest

from duly import State
from duly.journal.entries import Entry, OccurrenceAdmitted, ScheduleUnblocked
from duly.projections.index import Course, Facts, Moment
from duly.scheduler.explaining import explain_all
from duly.scheduler.story import Setting
from tests.projections.samples import admitted, at, completed, created, opened, skipped, started

MINUTE = timedelta(minutes=1)


def contradicting(seed: int) -> Iterator[Entry]:
    """Admissions, and entries about their runs and about runs that never were, whether or not they fit."""
    choose = Random(seed)  # noqa: S311 - a seed that can be repeated is the point
    yield created()
    now, admissions, attempts = at("09:00"), [2], list[int]()
    yield admitted("09:00:01", scheduled_at=now + MINUTE)
    for sequence in range(3, 120):
        now += MINUTE
        run_id, attempt = choose.choice([*admissions[-3:], 1]), choose.choice([None, None, *attempts[-2:]])
        about = {"at": now.isoformat(), "run_id": run_id, "schedule_id": choose.choice(["report"] * 9 + [None])}
        if choose.random() < 0.2:
            admissions.append(sequence)
            yield OccurrenceAdmitted(at=now, schedule_id="report", scheduled_at=now + MINUTE, target="report")
            continue
        kind = choose.choice(["RunStarted"] * 4 + [*MORE])
        if kind == "ResumeMarked":
            attempts.append(sequence)
        with_attempt = (
            {"attempt_id": attempt or (0 if kind == "AttemptCleared" else None)} if kind in OF_AN_ATTEMPT else {}
        )
        yield msgspec.convert({"kind": kind, **about, **with_attempt, **MORE.get(kind, {})}, Entry)


MORE: dict[str, dict[str, Any]] = {
    "ResumeMarked": {},
    "AttemptCleared": {},
    "RunInterrupted": {},
    "RunCompleted": {},
    "RunFailed": {"error": {"type": "E", "message": ""}},
    "RunAbandoned": {"cause": "operator"},
    "RunNoted": {"data": 1},
}
OF_AN_ATTEMPT = {"AttemptCleared", "RunInterrupted", "RunCompleted", "RunFailed"}


@pytest.mark.parametrize("seed", range(40))
def test_a_state_a_story_and_an_index_have_the_same_runs_in_the_task_slots(seed: int):
    state, setting, course = State(), Setting(), Course(Moment())
    held = 0
    for sequence, entry in enumerate(contradicting(seed), 1):
        state.apply(sequence, entry)
        setting.apply(sequence, entry)
        course.apply(sequence, msgspec.json.decode(msgspec.json.encode(entry), type=Facts))
        after = Course(course.moment)
        assert (
            list(state.started)
            == list(setting.open_runs.holding)
            == list(course.slots.holding)
            == list(after.slots.holding)
        ), (seed, sequence)
        held += bool(state.started)
    assert held > 0
    assert state.anomaly_count > 10


def test_an_ended_run_that_is_started_again_takes_no_slot_from_an_explanation():
    record: list[Entry] = [
        opened(task_slots=1),
        created(),
        admitted("09:15"),
        started(3, at=at("09:15")),
        completed(3, at=at("09:16")),
        started(3, at=at("09:17")),
        ScheduleUnblocked(at=at("09:20"), schedule_id="report"),
        skipped("09:30", "capacity"),
    ]
    [told] = explain_all(list(enumerate(record, 1)), "report", [at("09:30")], now=at("10:00"))
    assert (told.disposition, told.slots) == ("skipped", ())
