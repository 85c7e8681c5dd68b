"""Fairness: while polls are repeated on `more` and every offered run ends before the next poll, every due schedule has
had a turn that met a free slot within ceil(due / slots) polls (SPEC section 14.9)."""

from __future__ import annotations

from datetime import timedelta
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly import Cron, ManualClock, Scheduler
from duly.journal.entries import Misfire
from tests.scheduler.memory_disk import MemoryDisk
from tests.scheduler.watch import utc


def polls_until_all_ran(scheduler: Scheduler, schedules: int) -> int:
    """Polls and ends every offered run at once, until every schedule has run; how many polls that took."""
    ran: set[str | None] = set()
    for polls in range(1, schedules + 2):
        more = True
        offered: list[int] = []
        while more:
            poll = scheduler.poll(start=True)
            offered += [run.id for run in poll.offered]
            ran |= {run.schedule_id for run in poll.offered}
            more = poll.more
        for run_id in offered:
            scheduler.complete(run_id)
        if len(ran) == schedules:
            return polls
    raise AssertionError(f"only {len(ran)} of {schedules} schedules ran")


@given(
    schedules=st.integers(1, 40),
    slots=st.integers(1, 9),
    batch=st.sampled_from((3, 7, 1000)),
    misfire=st.sampled_from(("latest", "skip")),
    minutes=st.integers(1, 150),
)
def test_every_due_schedule_runs_within_its_share_of_polls(
    schedules: int, slots: int, batch: int, misfire: Misfire, minutes: int
) -> None:
    clock = ManualClock(utc("2026-03-02T09:00Z"))
    with Scheduler.open(Path("/journal"), clock=clock, disk=MemoryDisk(), task_slots=slots, batch=batch) as scheduler:
        for number in range(schedules):
            scheduler.create(f"s{number}", Cron("* * * * *", zone="UTC"), target="work", misfire=misfire)
        clock.advance(timedelta(minutes=minutes))
        assert polls_until_all_ran(scheduler, schedules) <= ceil(schedules / slots)


@pytest.mark.parametrize("slots", [1, 3])
def test_a_schedule_that_is_due_all_the_time_starves_no_other(slots: int) -> None:
    clock = ManualClock(utc("2026-03-02T09:00Z"))
    with Scheduler.open(Path("/journal"), clock=clock, disk=MemoryDisk(), task_slots=slots) as scheduler:
        for schedule_id in ("a-greedy", "b", "c", "d"):
            scheduler.create(
                schedule_id,
                Cron("* * * * *", zone="UTC"),
                target="work",
                overlap="parallel",
                max_active_runs=50,
                lateness=timedelta(hours=1),
            )
        counts: dict[str | None, int] = {}
        for _ in range(24):
            clock.advance(timedelta(minutes=1))
            poll = scheduler.poll(start=True)
            for run in poll.offered:
                counts[run.schedule_id] = counts.get(run.schedule_id, 0) + 1
                scheduler.complete(run.id)
        assert max(counts.values()) - min(counts.values()) <= 1
        assert sum(counts.values()) == 24 * slots
