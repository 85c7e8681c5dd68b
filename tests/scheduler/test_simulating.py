"""Simulations: what schedules would do, as a Scheduler lives through the same; and what is refused."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import pytest

from duly import Cron, DefinitionError, Every, ManualClock, OncePer, OneShot, Poll, Scheduler, UnknownSchedule
from duly.journal.entries import Entry, OccurrenceAdmitted, OccurrenceSkipped
from duly.scheduler.definitions import DefinitionFields
from duly.scheduler.simulating import Simulation, simulate
from tests.scheduler.memory_disk import MemoryDisk

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
START = datetime(2026, 3, 28, tzinfo=UTC)
QUARTERLY: DefinitionFields = {"trigger": Cron("*/15 * * * *", zone="UTC"), "target": "x"}
HOURLY: DefinitionFields = {"trigger": Cron("0 * * * *", zone="UTC"), "target": "x"}


def told(found: Simulation) -> list[str]:
    return [describe(entry) for _, entry in found.decisions]


def describe(entry: Entry) -> str:
    what = type(entry).__name__.removeprefix("Occurrence")
    when = getattr(entry, "scheduled_at", None) or getattr(entry, "before", None)
    reason = getattr(entry, "reason", "")
    return f"{entry.at.isoformat()} {what} {getattr(entry, 'schedule_id', '')} {when} {reason}"


def lived(
    definitions: Mapping[str, DefinitionFields], end: datetime, task_slots: int, durations: Mapping[str, timedelta]
) -> list[str]:
    """The decisions of a real Scheduler whose host polls whenever something is due or a run ends."""
    clock = ManualClock(START - timedelta(microseconds=1))
    decisions: list[str] = []
    ends: list[tuple[datetime, int]] = []
    with Scheduler.open(Path("/journal"), clock=clock, task_slots=task_slots, disk=MemoryDisk()) as scheduler:
        for schedule_id, fields in sorted(definitions.items()):
            anything: Any = fields
            scheduler.create(schedule_id, **anything)
        now: datetime | None = START
        while now is not None and now < end:
            clock.advance(now - clock.now())
            while ends and ends[0][0] <= now:
                scheduler.complete(heappop(ends)[1])
            poll = Poll(now=now, more=True)
            while poll.more:
                poll = scheduler.poll(start=True)
                decided = [entry for _, entry in poll.decisions if type(entry).__name__ != "RunStarted"]
                decisions.extend(describe(entry) for entry in decided)
                for run in poll.offered:
                    heappush(ends, (now + durations.get(run.schedule_id or "", timedelta()), run.id))
            coming = [poll.next_due] if poll.next_due is not None and poll.next_due > now else []
            coming += [ends[0][0]] if ends else []
            now = min(coming, default=None)
    return decisions


WORLDS: dict[str, tuple[dict[str, DefinitionFields], int, dict[str, timedelta]]] = {
    "one slot for all": (
        {"a": QUARTERLY, "b": HOURLY, "c": {**HOURLY, "misfire": "skip"}},
        1,
        {"a": 20 * MINUTE, "b": 5 * MINUTE, "c": HOUR},
    ),
    "parallel runs": (
        {"a": {**QUARTERLY, "overlap": "parallel", "max_active_runs": 3}, "b": {**QUARTERLY, "misfire": "skip"}},
        3,
        {"a": 50 * MINUTE, "b": 16 * MINUTE},
    ),
    "runs that end at once": ({"a": QUARTERLY, "b": HOURLY}, 8, {}),
    "days, periods and once": (
        {
            "nightly": {"trigger": Cron("30 2 * * *", zone="Europe/Berlin"), "target": "x"},
            "daily": {"trigger": OncePer("day", zone="America/New_York"), "target": "x"},
            "once": {"trigger": OneShot(START + 90 * MINUTE), "target": "x"},
            "every": {"trigger": Every(7, "hour", anchor=START), "target": "x"},
        },
        2,
        {"nightly": 9 * HOUR, "daily": 2 * HOUR, "every": 8 * HOUR},
    ),
}


@pytest.mark.parametrize("name", WORLDS)
def test_a_simulation_decides_what_a_scheduler_decides(name: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.ERROR, logger="duly")
    definitions, task_slots, durations = WORLDS[name]
    found = simulate(definitions, START, START + 4 * DAY, task_slots=task_slots, durations=durations)
    assert told(found) == lived(definitions, START + 4 * DAY, task_slots, durations)
    assert len(found.decisions) > 10


def test_the_start_is_in_it_and_the_end_is_not():
    found = simulate({"a": HOURLY}, START, START + 2 * HOUR)
    assert [getattr(entry, "scheduled_at", None) for _, entry in found.decisions] == [START, START + HOUR]


def test_a_simulation_adds_up():
    found = simulate({"a": QUARTERLY}, START, START + HOUR, task_slots=2, durations={"a": 20 * MINUTE})
    [a] = found.schedules
    assert a.counts == {"admitted": 2, "skipped": 2, "skipped:overlap": 2}
    assert (a.busy, a.duration, found.busy) == (40 * MINUTE, 20 * MINUTE, 40 * MINUTE)
    assert (found.peak, round(found.utilisation, 6)) == (1, 0.333333)
    assert found.ended == {found.decisions[0][0]: START + 20 * MINUTE, found.decisions[2][0]: START + 50 * MINUTE}


def test_a_run_that_does_not_end_in_time_is_at_work_up_to_the_end():
    found = simulate({"a": HOURLY}, START, START + HOUR, task_slots=1, durations={"a": DAY})
    assert (found.busy, found.utilisation, found.ended) == (HOUR, 1.0, {})


def test_too_few_slots_are_seen_before_they_hurt():
    tight = simulate({"a": QUARTERLY, "b": {**HOURLY, "misfire": "skip"}}, START, START + DAY, task_slots=1)
    assert all(one.counts["skipped"] == 0 for one in tight.schedules)
    busy = simulate(
        {"a": QUARTERLY, "b": {**HOURLY, "misfire": "skip"}},
        START + MINUTE,
        START + DAY,
        task_slots=1,
        durations={"a": 50 * MINUTE},
    )
    reasons = {entry.reason for _, entry in busy.decisions if isinstance(entry, OccurrenceSkipped)}
    assert reasons == {"overlap", "capacity"}


def test_a_change_of_the_clocks_is_in_it():
    berlin: DefinitionFields = {"trigger": Cron("30 2 * * *", zone="Europe/Berlin"), "target": "x"}
    found = simulate({"a": berlin}, START, START + 3 * DAY)
    instants = [entry.scheduled_at for _, entry in found.decisions if isinstance(entry, OccurrenceAdmitted)]
    assert [f"{instant:%d %H:%M}" for instant in instants] == ["28 01:30", "29 01:00", "30 00:30"]


def test_no_schedules_do_nothing():
    found = simulate({}, START, START + DAY)
    assert (found.decisions, found.schedules, found.utilisation) == ((), (), 0.0)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an end before the start": ({"end": START - DAY}, "is not later than the start"),
    "an end that is the start": ({"end": START}, "is not later than the start"),
    "a naive start": ({"start": datetime(2026, 3, 28)}, "is naive"),  # noqa: DTZ001 - that is what is refused
    "a start out of range": ({"start": datetime(1950, 1, 1, tzinfo=UTC)}, "lies outside of 1972"),
    "no slots": ({"task_slots": 0}, "task_slots: 0 is not a count"),
    "no limit": ({"limit": 0}, "limit: 0 is not a count"),
    "too many decisions": ({"limit": 10}, "limit: 10 decisions are made by .*, and there are more"),
    "an id that is none": ({"definitions": {"a b": HOURLY}}, "'a b' is not a schedule id"),
    "a one-shot that is past": (
        {"definitions": {"a": {"trigger": OneShot(START - DAY), "target": "x"}}},
        "is past, beyond the lateness",
    ),
    "a policy that is none": ({"definitions": {"a": {**HOURLY, "misfire": "later"}}}, "is no misfire policy"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused(case: str):
    fields, words = REFUSED[case]
    given: dict[str, Any] = {"definitions": {"a": QUARTERLY}, "start": START, "end": START + DAY, **fields}
    with pytest.raises(DefinitionError, match=words):
        simulate(given.pop("definitions"), given.pop("start"), given.pop("end"), **given)


@pytest.mark.parametrize("given", [5, None, "* * * * *", ["cron"]])
def test_what_is_no_mapping_of_arguments_is_refused(given: Any):
    with pytest.raises(DefinitionError, match="is no mapping"):
        simulate({"a": given}, datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))


def test_a_duration_of_no_schedule_suggests_the_closest():
    with pytest.raises(UnknownSchedule, match="The nearest: nightly"):
        simulate({"nightly": HOURLY}, START, START + DAY, durations={"nihgtly": MINUTE})


def test_just_as_many_decisions_as_the_limit_are_made():
    assert len(simulate({"a": HOURLY}, START, START + DAY, limit=24).decisions) == 24
