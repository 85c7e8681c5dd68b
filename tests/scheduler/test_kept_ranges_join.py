"""A kept decision that makes two ranges join: what lies between them counts as decided from that moment on, for the
poll that is under way and for whoever waits for the next one."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

import pytest

from duly import Cron, Scheduler
from duly.journal.entries import OccurrenceAdmitted, OccurrenceSkipped
from duly.projections import replay
from duly.projections.ranges import MOST
from duly.scheduler.accounting import account
from duly.scheduler.engine import engine_check
from tests.scheduler.embedding import MINUTE, EveryMinutes, Program, at
from tests.scheduler.histories import History
from tests.scheduler.reference_calendar import CADENCES

MINUTELY = Cron("* * * * *", zone="UTC")
POLICY = {"overlap": "parallel", "limit": "1000", "misfire": "skip", "lateness": "30s"}
ALLOWANCES = ["30s", "4m", "1h"]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="duly")


@pytest.mark.parametrize("lateness", ALLOWANCES)
@pytest.mark.parametrize("start", [False, True])
def test_a_poll_decides_nothing_that_its_own_decisions_made_count_as_decided(lateness: str, start: bool):
    """The model looks anew after each decision, and must agree at every step."""
    history = History(slots=1000, batch=1000)
    history.create("a", CADENCES[0], POLICY)
    for _ in range(MOST + 2):
        history.now += 10 * MINUTE
        history.poll()
    history.edit("a", None, {"lateness": lateness})
    history.now -= 175 * MINUTE
    history.poll()
    for passed in (3, 1, 2, 20, 1, 50, 5, 120):
        history.now += passed * MINUTE
        history.poll(start=start)
    history.close()


def stepped_back(program: Program) -> Scheduler:
    """A schedule with as many ranges as there may be, and a clock that stands before them all."""
    scheduler = program.open(task_slots=1000)
    scheduler.create(
        "a",
        MINUTELY,
        target="x",
        misfire="skip",
        lateness=timedelta(seconds=30),
        overlap="parallel",
        max_active_runs=1000,
    )
    for _ in range(MOST + 2):
        program.clock.advance(10 * MINUTE)
        scheduler.poll()
    program.clock.step(-175 * MINUTE)
    scheduler.poll()
    assert len(replay(program.path).by_id["a"].kept) == MOST
    return scheduler


def test_a_late_poll_after_a_regression_admits_starts_and_skips_without_contradicting_itself(program: Program):
    scheduler = stepped_back(program)
    scheduler.edit("a", expected_revision=1, lateness=timedelta(hours=1))
    program.clock.advance(3 * MINUTE)
    poll = scheduler.poll(start=True)
    admitted = [one.scheduled_at for _, one in poll.decisions if isinstance(one, OccurrenceAdmitted)]
    assert admitted == [run.scheduled_at for run in poll.admitted]
    assert {run.id for run in poll.admitted} <= {run.id for run in poll.offered}
    assert len(admitted) > 0
    assert scheduler.schedule("a").blocked is None
    assert replay(program.path).anomalies == []
    assert engine_check(program.path).ok
    assert account(program.path).balanced


def test_skips_that_stay_join_ranges_as_admissions_do(program: Program):
    scheduler = stepped_back(program)
    scheduler.edit("a", expected_revision=1, lateness=timedelta(hours=1), target_revision="none such")
    program.clock.advance(3 * MINUTE)
    poll = scheduler.poll()
    assert {type(one) for _, one in poll.decisions} == {OccurrenceSkipped}
    assert replay(program.path).anomalies == []
    assert account(program.path).balanced


def test_after_a_join_the_next_due_is_what_a_new_process_says_and_nobody_spins(program: Program):
    scheduler = stepped_back(program)
    for _ in range(60):
        before = program.clock.now()
        poll = scheduler.poll(start=True)
        assert poll.next_due == scheduler.next_due("a")
        assert poll.next_due is not None
        assert poll.next_due > before
        scheduler.wait(poll)
        assert program.clock.now() > before
    expected = scheduler.next_due("a")
    scheduler.close()
    assert program.open().next_due("a") == expected


class Hesitant(EveryMinutes):
    """A source that raises once when it is told to."""

    failing = False

    def next_after(self, instant: datetime, /) -> datetime | None:
        if self.failing:
            self.failing = False
            raise ConnectionError("not now")
        return super().next_after(instant)


def test_a_source_that_raised_once_outside_of_a_poll_makes_nobody_spin(program: Program):
    source = Hesitant(60)
    scheduler = program.open(sources={"minutes": lambda _: source})
    scheduler.create("a", source, target="x")
    assert scheduler.poll().next_due == at("10:00")
    source.failing = True
    scheduler.record_external_run("a", at("08:00"))
    assert not source.failing
    poll = scheduler.poll()
    assert (poll.decisions, poll.next_due) == ((), at("10:00"))
    assert [one.scheduled_at for one in scheduler.upcoming(2)] == [at("10:00"), at("11:00")]
    before = program.clock.now()
    scheduler.wait(poll)
    assert program.clock.now() > before
