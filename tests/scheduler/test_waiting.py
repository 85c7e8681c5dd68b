"""Waiting, waking and stopping: nothing is slept through, and a signal handler may do all three at any moment."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import FrameType

import pytest

from duly import Cron, Poll, Scheduler, SchedulerError, SystemClock
from duly.scheduler.polls import LONGEST_WAIT
from tests.scheduler.embedding import MINUTE, QUARTERLY, Program, Task, at, sleepers_of

SOON = 5.0
"""Seconds within which a wait that was woken must be over; without a wake-up it would take a minute."""


def waiting(scheduler: Scheduler, poll: Poll) -> Task[None]:
    """A thread that waits, and is asleep by now."""
    task = Task(lambda: scheduler.wait(poll))
    deadline = time.monotonic() + SOON
    while not sleepers_of(scheduler) and time.monotonic() < deadline:
        time.sleep(0.001)
    return task


@pytest.fixture
def ticking(program: Program) -> Scheduler:
    """A scheduler on the machine's own clock, with nothing due for years."""
    scheduler = program.open(clock=SystemClock(), task_slots=2)
    scheduler.create("leap", Cron("0 0 29 2 *", zone="UTC"), target="x")
    return scheduler


CHANGES: dict[str, Callable[[Scheduler], object]] = {
    "create": lambda scheduler: scheduler.create("new", QUARTERLY, target="x"),
    "create_many": lambda scheduler: scheduler.create_many(
        [{"schedule_id": "new", "trigger": QUARTERLY, "target": "x"}]
    ),
    "declare": lambda scheduler: scheduler.declare("new", QUARTERLY, target="x"),
    "edit": lambda scheduler: scheduler.edit("leap", expected_revision=1, trigger=QUARTERLY),
    "pause": lambda scheduler: scheduler.pause("leap"),
    "delete": lambda scheduler: scheduler.delete("leap"),
    "block": lambda scheduler: scheduler.block("leap", "wait"),
    "rebaseline": lambda scheduler: scheduler.rebaseline("leap", at("09:00")),
    "external": lambda scheduler: scheduler.record_external_run("leap", at("09:00")),
    "run_now": lambda scheduler: scheduler.run_now(target="x"),
    "complete": lambda scheduler: scheduler.complete(scheduler.runs(state="started")[0].id),
    "fail": lambda scheduler: scheduler.fail(scheduler.runs(state="started")[0].id, error="no"),
    "interrupt": lambda scheduler: scheduler.interrupt(scheduler.runs(state="started")[0].id),
    "abandon": lambda scheduler: scheduler.abandon(scheduler.runs(state="started")[0].id),
    "wake": lambda scheduler: scheduler.wake(),
    "stop_admitting": lambda scheduler: scheduler.stop_admitting(),
    "close": lambda scheduler: scheduler.close(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_by_another_thread_ends_the_wait(ticking: Scheduler, change: str):
    ticking.start(ticking.run_now(target="x").id)
    task = waiting(ticking, ticking.poll())
    assert task.running
    CHANGES[change](ticking)
    task.outcome(SOON)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_the_poll_and_the_wait_is_not_slept_through(ticking: Scheduler, change: str):
    ticking.start(ticking.run_now(target="x").id)
    poll = ticking.poll()
    CHANGES[change](ticking)
    Task(lambda: ticking.wait(poll)).outcome(SOON)


@pytest.mark.parametrize("question", ["schedules", "runs", "upcoming", "digest"])
def test_a_question_ends_no_wait(ticking: Scheduler, question: str):
    task = waiting(ticking, ticking.poll())
    getattr(ticking, question)()
    task.thread.join(0.05)
    assert task.running
    ticking.wake()
    task.outcome(SOON)


def test_every_waiting_thread_is_woken(ticking: Scheduler):
    poll = ticking.poll()
    tasks = [Task(lambda: ticking.wait(poll)) for _ in range(8)]
    while sleepers_of(ticking) < 8:
        time.sleep(0.001)
    ticking.wake()
    for task in tasks:
        task.outcome(SOON)
    assert sleepers_of(ticking) == 0


def test_no_wait_is_longer_than_was_asked(ticking: Scheduler):
    poll = ticking.poll()
    before = time.monotonic()
    ticking.wait(poll, timeout=0.05)
    ticking.wait(poll, timeout=0)
    ticking.wait(poll, timeout=-1)
    assert 0.04 < time.monotonic() - before < SOON


def test_a_wait_on_more_or_on_a_stopped_scheduler_returns_at_once(program: Program):
    scheduler = program.open(batch=1)
    for schedule_id in ("a", "b"):
        scheduler.create(schedule_id, QUARTERLY, target="x")
    poll = program.poll_at(scheduler, "09:15")
    assert poll.more
    scheduler.wait(poll)
    assert program.clock.now() == at("09:15")
    last = scheduler.poll()
    assert not last.more
    scheduler.stop_admitting()
    scheduler.wait(last)
    assert program.clock.now() == at("09:15")


def test_a_wait_on_more_runs_that_are_pending_returns_at_once_though_nothing_is_due(program: Program):
    scheduler = program.open(batch=1)
    for _ in range(2):
        scheduler.run_now(target="x")
    poll = scheduler.poll(start=True)
    assert (len(poll.offered), poll.more, poll.next_due) == (1, True, None)
    scheduler.wait(poll)
    assert program.clock.now() == at("09:00")
    assert len(scheduler.poll(start=True).offered) == 1


def test_a_manual_clock_is_advanced_to_the_next_due_instant_and_no_further_than_a_minute(program: Program):
    scheduler = program.open()
    scheduler.create("a", Cron("2 * * * *", zone="UTC"), target="x")
    seen: list[datetime] = []
    for _ in range(3):
        scheduler.wait(scheduler.poll())
        seen.append(program.clock.now())
    assert seen == [at("09:01"), at("09:02"), at("09:03")]
    assert timedelta(seconds=LONGEST_WAIT) == MINUTE


def test_a_manual_clock_stands_still_if_something_has_changed_since_the_poll(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    poll = scheduler.poll()
    scheduler.create("b", QUARTERLY, target="x")
    scheduler.wait(poll)
    assert program.clock.now() == at("09:00")
    scheduler.wait(scheduler.poll())
    assert program.clock.now() == at("09:01")


def test_the_loop_polls_at_each_due_instant_and_ends_on_stop(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    admitted: list[datetime | None] = []
    for poll in scheduler.polls(start=True):
        for run in poll.offered:
            admitted.append(run.scheduled_at)
            scheduler.complete(run.id)
        if len(admitted) == 3:
            scheduler.stop_admitting()
    assert admitted == [at("09:15"), at("09:30"), at("09:45")]
    assert scheduler.poll().offered == ()


def test_the_loop_ends_when_another_thread_stops_the_scheduler(program: Program):
    scheduler = program.open(clock=SystemClock())
    began = threading.Event()

    def loop() -> int:
        polls = 0
        for _ in scheduler.polls():
            polls += 1
            began.set()
            scheduler.wake()
        return polls

    task = Task(loop)
    assert began.wait(SOON)
    scheduler.stop_admitting()
    assert task.outcome(SOON) >= 1


def test_no_wake_up_is_lost_between_two_threads_that_hand_work_to_each_other(program: Program):
    """The worker reports only what it was offered, and the loop offers only what is new: one lost wake-up, and both
    would sleep for a minute."""
    scheduler = program.open(clock=SystemClock(), task_slots=1)
    rounds = 200
    finished = threading.Event()
    offers: list[int] = []
    offered = threading.Semaphore(0)

    def worker() -> None:
        for _ in range(rounds):
            assert offered.acquire(timeout=SOON)
            scheduler.complete(offers[-1])
            scheduler.run_now(target="x")
        finished.set()
        scheduler.stop_admitting()

    def loop() -> int:
        for poll in scheduler.polls(start=True):
            for run in poll.offered:
                offers.append(run.id)
                offered.release()
        return len(offers)

    scheduler.run_now(target="x")
    working, looping = Task(worker), Task(loop)
    working.outcome(30)
    assert looping.outcome(SOON) >= rounds


# Signals


@contextmanager
def handler(work: Callable[[], object]) -> Generator[None]:
    """Does the work at each SIGALRM, in the main thread, wherever it is."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        work()

    former = signal.signal(signal.SIGALRM, on_signal)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


@contextmanager
def unless_it_hangs() -> Generator[None]:
    """Fails instead of hanging, also where the main thread waits for a lock that it holds itself."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise AssertionError("it hangs")

    def alarm() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    former = signal.signal(signal.SIGUSR1, give_up)
    watchdog = threading.Timer(SOON, alarm)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()
        watchdog.join()
        signal.signal(signal.SIGUSR1, former)


needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGALRM on Windows")


@needs_signals
@pytest.mark.parametrize("ending", ["wake", "stop_admitting", "close"])
def test_a_signal_handler_ends_the_wait_of_the_very_thread_it_interrupts(ticking: Scheduler, ending: str):
    poll = ticking.poll()
    before = time.monotonic()
    with handler(getattr(ticking, ending)):
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        ticking.wait(poll)
    assert time.monotonic() - before < SOON
    assert ticking.stopping is (ending != "wake")


@needs_signals
@pytest.mark.parametrize("ending", ["wake", "stop_admitting"])
def test_a_signal_handler_inside_a_poll_neither_hangs_nor_breaks_it(program: Program, ending: str):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    program.disk.before_sync = lambda: signal.raise_signal(signal.SIGALRM)
    with handler(getattr(scheduler, ending)):
        assert len(program.poll_at(scheduler, "09:15").admitted) == 1
    program.disk.before_sync = lambda: None
    assert scheduler.stopping is (ending == "stop_admitting")
    assert program.consistent(scheduler)


INTERRUPTED_IN = ["deciding", "syncing"]


@needs_signals
@pytest.mark.parametrize("place", INTERRUPTED_IN)
def test_a_signal_handler_that_closes_inside_a_poll_does_not_hang(program: Program, place: str):
    def interrupt() -> None:
        signal.raise_signal(signal.SIGALRM)

    armed = threading.Event()
    scheduler = program.open(preflight=lambda _: interrupt() if place == "deciding" and armed.is_set() else None)
    scheduler.create("a", QUARTERLY, target="x")
    armed.set()
    if place == "syncing":
        program.disk.before_sync = lambda: interrupt() if armed.is_set() else None

    def close() -> None:
        armed.clear()
        scheduler.close()

    with handler(close), unless_it_hangs():
        program.poll_at(scheduler, "09:15")
    assert scheduler.stopping
    scheduler.close()
    assert program.kinds() == ["ScheduleCreated", "OccurrenceAdmitted"]


@needs_signals
def test_a_signal_handler_that_asks_or_commands_inside_a_poll_gets_an_error_and_no_deadlock(program: Program):
    caught: list[str] = []

    def ask() -> None:
        try:
            scheduler.schedules()
        except SchedulerError as error:
            caught.append(str(error))

    scheduler = program.open(preflight=lambda _: signal.raise_signal(signal.SIGALRM))
    scheduler.create("a", QUARTERLY, target="x")
    with handler(ask):
        assert len(program.poll_at(scheduler, "09:15").admitted) == 1
    assert len(caught) == 1
    assert "called from inside" in caught[0]


@needs_signals
def test_a_storm_of_signals_that_wake_disturbs_nothing(program: Program):
    scheduler = program.open(task_slots=1)
    scheduler.create("a", Cron("* * * * *", zone="UTC"), target="x")
    with handler(scheduler.wake):
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        for _ in range(150):
            program.clock.advance(MINUTE)
            for run in scheduler.poll(start=True).offered:
                scheduler.complete(run.id)
    assert program.kinds().count("RunCompleted") == 150
    assert program.consistent(scheduler)
