"""The end of a history: everybody gets a turn, and the whole record is checked."""

from __future__ import annotations

from datetime import timedelta
from math import ceil

from duly import Scheduler
from duly.journal import Reader
from duly.journal.entries import OccurrenceAdmitted, OccurrenceSkipped
from duly.scheduler.accounting import account_of
from duly.scheduler.engine import check_lines
from tests.simulation.operations import Operation
from tests.simulation.world import JOURNAL, World

TOO_MANY_POLLS = 10_000


def conclude(world: World) -> None:
    """Ends what runs, gives every schedule its turn, and has the record checked."""
    world.calendar.broken = False
    sources = {"own": world.calendar.source}
    now = world.clock.now()
    if not 1972 <= now.year <= 2100:
        world.clock.step(world.workload.start - now)
    if world.operations.stopped:
        world.scheduler.close()
        world.reopen("reopen", dies=False)
    _end_all_runs(world)
    _wake_everybody(world)
    _give_everybody_a_turn(world)
    world.compare_digests(world.scheduler)
    world.scheduler.close()
    lines = list(Reader(JOURNAL, disk=world.disk).lines())
    checked = check_lines(((line.first, line.entries) for line in lines), sources=sources)
    assert checked.ok, f"the engine decides otherwise: {checked.divergences[0]}"
    assert checked.incomparable == 0
    if world.clock.now() - world.workload.start < timedelta(days=12):
        counted = account_of(
            ((record.sequence, record.entry) for record in Reader(JOURNAL, disk=world.disk).records()), sources=sources
        )
        wrong = [one for one in counted.schedules if not one.balanced]
        assert not wrong, f"the account does not balance: {wrong}"


def _end_all_runs(world: World) -> None:
    for run in list(world.chronicle.runs.values()):
        if not run.ended:
            world.scheduler.abandon(run.id)
            _tell(world, Operation(f"abandon <{run.id}>", _call))
    assert not world.chronicle.started
    assert not world.chronicle.pending


def _wake_everybody(world: World) -> None:
    """No schedule is held back by a word of the past, and time passes, so that many are due at once."""
    for schedule in world.scheduler.schedules():
        for verb, on in (("unblock", schedule.blocked), ("unpause", schedule.paused), ("enable", schedule.disabled)):
            if on:
                getattr(world.scheduler, verb)(schedule.id)
                _tell(world, Operation(f"{verb} {schedule.id}", _call))
    world.clock.advance(world.workload.profile.steps[-1 if world.random.random() < 0.3 else -4])


def _give_everybody_a_turn(world: World) -> None:
    """Section 14.9: within ceil(due / slots) polls every due schedule has had a turn that met a free slot."""
    scheduler = world.scheduler
    due = {one.id for one in scheduler.schedules() if _has_something_due(world, one.id)}
    slots = world.chronicle.slots
    waiting = set(due)
    for _ in range(ceil(len(due) / slots)):
        for schedule_id in _poll_once(world):
            waiting.discard(schedule_id)
    waiting = {one for one in waiting if _has_something_due(world, one)}
    assert not waiting, f"{waiting} of {due} had no turn in {ceil(len(due) / slots)} polls with {slots} slots"


def _poll_once(world: World) -> set[str]:
    """One poll, repeated while there is more; what it offers ends before the next. Returns who had a turn."""
    served: set[str] = set()
    for _ in range(TOO_MANY_POLLS):
        poll = world.scheduler.poll()
        world.claims.heard(poll)
        _tell(world, Operation("poll", _call, outcome=poll))
        if poll.offered:
            _finish(world, [run.id for run in poll.offered])
        for _, entry in poll.decisions:
            if isinstance(entry, OccurrenceAdmitted) or (
                isinstance(entry, OccurrenceSkipped) and entry.reason != "capacity"
            ):
                served.add(entry.schedule_id)
        if not poll.more:
            return served
    raise AssertionError("there is always more")


def _finish(world: World, run_ids: list[int]) -> None:
    world.scheduler.start(*run_ids)
    _tell(world, Operation(f"start {' '.join(f'<{run_id}>' for run_id in run_ids)}", _call))
    for run_id in run_ids:
        world.scheduler.complete(run_id)
        _tell(world, Operation(f"complete <{run_id}>", _call))


def _call(scheduler: Scheduler) -> None:
    """The call was made already, and is only told."""


def _tell(world: World, work: Operation) -> None:
    fresh = world.read_on()
    world.story.performed([work], fresh, len(world.record) - len(fresh) + 1)


def _has_something_due(world: World, schedule_id: str) -> bool:
    schedule = world.scheduler.schedule(schedule_id)
    if schedule.blocked or schedule.paused or schedule.disabled:
        return False
    now = world.clock.now()
    coming = world.scheduler.next_due(schedule_id)
    held = schedule.candidate is not None and schedule.candidate <= now
    return held or (coming is not None and coming <= now)
