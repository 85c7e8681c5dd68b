"""Generated histories: the Scheduler and the reference model decide the same (SPEC sections 14.5 and 14.9), whatever
the clock, the host, the operator and the machine do."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.scheduler.histories import History
from tests.scheduler.reference_calendar import CADENCES, FIRST, LAST, one_shot

IDS = ("a", "b", "c", "d")
MICROSECOND = timedelta(microseconds=1)
SECONDS, MINUTES, HOURS = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
DAYS = timedelta(days=1)
POLICIES: tuple[dict[str, str], ...] = (
    {},
    {"misfire": "skip"},
    {"misfire": "skip", "lateness": "10m"},
    {"misfire": "latest", "lateness": "20m"},
    {"overlap": "parallel", "limit": "2", "misfire": "skip", "lateness": "1h"},
    {"overlap": "parallel", "limit": "3", "misfire": "latest", "lateness": "1h"},
    {"overlap": "parallel", "limit": "10", "misfire": "latest"},
)
CHANGES = (
    *POLICIES[1:4],
    {"overlap": "skip", "limit": "none"},
    {"overlap": "parallel", "limit": "2"},
    {"lateness": "5m"},
)
ids = st.sampled_from(IDS)
indices = st.integers(0, 30)
cadences = st.sampled_from(range(len(CADENCES)))
policies = st.sampled_from(POLICIES)


class Agreement(RuleBasedStateMachine):
    """Every rule is one or two lines of a timeline."""

    slots: ClassVar[tuple[int, ...]] = (1, 2, 3, 8)
    batches: ClassVar[tuple[int, ...]] = (1000, 1000, 5)

    def __init__(self) -> None:
        super().__init__()
        self.history: History | None = None

    @initialize(position=st.integers(0, 100), cadence=cadences, policy=policies, second=cadences, others=policies)
    def open(self, position: int, cadence: int, policy: dict[str, str], second: int, others: dict[str, str]) -> None:
        slots = self.slots[position % len(self.slots)]
        self.history = History(slots=slots, batch=self.batches[position // len(self.slots) % len(self.batches)])
        self.history.create("a", CADENCES[cadence], policy)
        self.history.create("b", CADENCES[second], others)

    def teardown(self) -> None:
        if self.history is not None:
            self.history.close()

    # Time

    def pass_time(self, delta: timedelta) -> None:
        # The model's calendar has a beginning and an end, and sixty long steps would leave it.
        inside = FIRST.year + 3 <= self.lived.now.year < LAST.year - 5
        self.lived.now += delta if inside else max(-DAYS, min(delta, DAYS))
        self.lived.poll()

    @rule(delta=st.sampled_from((MICROSECOND, SECONDS, 30 * SECONDS, MINUTES, MINUTES + MICROSECOND, 7 * MINUTES)))
    def a_moment_passes(self, delta: timedelta) -> None:
        self.pass_time(delta)

    @rule(delta=st.sampled_from((15 * MINUTES, 45 * MINUTES, HOURS, 3 * HOURS)))
    def some_time_passes(self, delta: timedelta) -> None:
        self.pass_time(delta)

    @rule(delta=st.sampled_from((11 * HOURS, DAYS, 3 * DAYS, 40 * DAYS, 400 * DAYS)))
    def a_long_time_passes(self, delta: timedelta) -> None:
        self.pass_time(delta)

    @rule(start=st.booleans())
    def poll_again(self, start: bool) -> None:
        self.lived.poll(start=start)

    @rule(
        delta=st.sampled_from(
            (MICROSECOND, MINUTES, 5 * MINUTES, 6 * MINUTES, HOURS, 5 * HOURS, DAYS, 9 * DAYS, 400 * DAYS)
        )
    )
    def the_clock_is_stepped_back(self, delta: timedelta) -> None:
        self.pass_time(-delta)

    # The host

    @property
    def lived(self) -> History:
        assert self.history is not None
        return self.history

    def runs_in(self, *states: str) -> list[int]:
        runs = self.lived.model.runs
        return [run_id for run_id in sorted(runs) if runs[run_id].state in states]

    @precondition(lambda self: self.history is not None and self.runs_in("pending"))
    @rule(index=indices)
    def start_one(self, index: int) -> None:
        pending = self.runs_in("pending")
        self.lived.start(pending[index % len(pending)])

    @precondition(lambda self: self.history is not None and self.runs_in("pending"))
    @rule()
    def start_all(self) -> None:
        self.lived.start(*self.runs_in("pending"))

    @precondition(lambda self: self.history is not None and self.runs_in("started"))
    @rule(index=indices, verb=st.sampled_from(("complete", "fail", "interrupt", "complete")), stale=st.integers(0, 9))
    def report(self, index: int, verb: str, stale: int) -> None:
        started = self.runs_in("started")
        self.lived.report(verb, started[index % len(started)], stale=stale == 9)

    @precondition(lambda self: self.history is not None and self.runs_in("started"))
    @rule()
    def complete_all(self) -> None:
        for run_id in self.runs_in("started"):
            self.lived.report("complete", run_id)

    @precondition(lambda self: self.history is not None and self.runs_in("interrupted"))
    @rule(index=indices)
    def resume(self, index: int) -> None:
        interrupted = self.runs_in("interrupted")
        self.lived.resume(interrupted[index % len(interrupted)])

    @precondition(lambda self: self.history is not None and self.lived.model.runs)
    @rule(index=indices, verb=st.sampled_from(("start", "complete", "fail", "interrupt", "resume", "abandon")))
    def do_anything_with_any_run(self, index: int, verb: str) -> None:
        run_id = sorted(self.lived.model.runs)[index % len(self.lived.model.runs)]
        if verb in ("complete", "fail", "interrupt"):
            self.lived.report(verb, run_id)
        else:
            getattr(self.lived, verb)(run_id)

    @rule(option=st.sampled_from(("refuse", "accept", "accept")), schedule_id=ids)
    def change_the_preflight(self, option: str, schedule_id: str) -> None:
        self.lived.host(option, schedule_id)

    # The operator

    def schedule_ids(self) -> list[str]:
        return sorted(self.lived.model.schedules)

    @rule(schedule_id=ids, cadence=cadences, policy=policies)
    def create(self, schedule_id: str, cadence: int, policy: dict[str, str]) -> None:
        self.lived.create(schedule_id, CADENCES[cadence], policy)

    @rule(schedule_id=ids, minutes=st.sampled_from((-200, -5, 0, 1, 10, 180, 3000)), policy=policies)
    def create_a_one_shot(self, schedule_id: str, minutes: int, policy: dict[str, str]) -> None:
        at = self.lived.now.replace(microsecond=0) + minutes * MINUTES
        self.lived.create(schedule_id, one_shot(at), policy)

    @rule(index=indices, cadence=cadences, policy=st.sampled_from(CHANGES), stale=st.integers(0, 9))
    def edit(self, index: int, cadence: int, policy: dict[str, str], stale: int) -> None:
        schedule_id = self.schedule_ids()[index % len(self.schedule_ids())]
        if not self.lived.model.schedules[schedule_id].deleted:
            self.lived.edit(schedule_id, CADENCES[cadence] if index % 2 else None, policy, stale=stale == 9)

    @rule(index=indices, minutes=st.sampled_from((-1, 10, 180, 3000)))
    def edit_to_a_one_shot(self, index: int, minutes: int) -> None:
        schedule_id = self.schedule_ids()[index % len(self.schedule_ids())]
        if not self.lived.model.schedules[schedule_id].deleted:
            at = self.lived.now.replace(microsecond=0) + minutes * MINUTES
            self.lived.edit(schedule_id, one_shot(at), {})

    @rule(index=indices, verb=st.sampled_from(("pause", "unpause", "disable", "enable", "unpause", "enable")))
    def switch(self, index: int, verb: str) -> None:
        self.lived.administer(verb, self.schedule_ids()[index % len(self.schedule_ids())])

    @rule(index=indices, luck=st.integers(0, 3))
    def delete(self, index: int, luck: int) -> None:
        if luck == 0:
            self.lived.administer("delete", self.schedule_ids()[index % len(self.schedule_ids())])

    @rule(index=indices)
    def block_or_unblock(self, index: int) -> None:
        schedule_id = self.schedule_ids()[index % len(self.schedule_ids())]
        blocked = schedule_id in self.lived.model.blocked_schedules
        self.lived.administer("unblock" if blocked else "block", schedule_id)

    @rule(index=indices, back=st.sampled_from((timedelta(), 10 * MINUTES, 50 * MINUTES, 5 * HOURS, 3 * DAYS)))
    def rebaseline(self, index: int, back: timedelta) -> None:
        self.lived.rebaseline(self.schedule_ids()[index % len(self.schedule_ids())], back)

    @rule(index=indices, later=st.sampled_from((timedelta(), -HOURS, -3 * DAYS, DAYS, 9 * DAYS, 3650 * DAYS)))
    def record_an_external_run(self, index: int, later: timedelta) -> None:
        self.lived.external(self.schedule_ids()[index % len(self.schedule_ids())], later)

    @rule(index=indices)
    def run_now(self, index: int) -> None:
        self.lived.administer("run_now", self.schedule_ids()[index % len(self.schedule_ids())])

    # The machine

    @rule(words=st.lists(st.sampled_from(("running", "running", "completed", "failed", "interrupted", "")), max_size=4))
    def crash(self, words: list[str]) -> None:
        known = zip(self.runs_in("started"), words, strict=False)
        self.lived.crash({run_id: word for run_id, word in known if word})

    @rule(luck=st.integers(0, 9))
    def stop_admitting(self, luck: int) -> None:
        if luck == 9:
            self.lived.stop()


class OneSlot(Agreement):
    """Everything waits, is held or superseded."""

    slots = (1,)
    batches = (1000,)


class SmallBatches(Agreement):
    """Every poll is cut somewhere."""

    slots = (2, 8)
    batches = (1, 2, 3)


class ManySlots(Agreement):
    """Nothing waits for a task slot."""

    slots = (8,)
    batches = (1000,)


MACHINES = (Agreement, OneSlot, SmallBatches, ManySlots)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
UNHURRIED = settings(stateful_step_count=60, suppress_health_check=SLOW)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Thousands of warnings about wrong clocks are what these histories are made of."""
    caplog.set_level(logging.ERROR, logger="duly")


@pytest.mark.parametrize("machine", MACHINES)
def test_generated_histories_agree_with_the_model(machine: type[Agreement]) -> None:
    run_state_machine_as_test(machine, settings=settings(UNHURRIED, max_examples=500))


@pytest.mark.torture
@pytest.mark.parametrize("machine", MACHINES)
def test_a_great_many_generated_histories_agree_with_the_model(machine: type[Agreement]) -> None:
    run_state_machine_as_test(machine, settings=settings(UNHURRIED, max_examples=20_000))
