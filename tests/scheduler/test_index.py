"""What a poll costs, in operations: it finds what is due through an index, and looks at nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly import Completed, Cron, OncePer, Run, Scheduler, Target
from duly.projections.schedules import ScheduleState
from duly.scheduler.agenda import Queue
from duly.scheduler.decisions.occurrences import SCAN_CAP
from tests.scheduler.embedding import DAY, EveryMinutes, Program, agenda_of, at, lines_of, state_of

MANY = 10_000
HOUR = timedelta(hours=1)


class CountedSchedules(dict[str, ScheduleState]):
    """The state's schedules, with every look counted; a walk over all of them counts each."""

    def __init__(self, schedules: dict[str, ScheduleState]) -> None:
        super().__init__(schedules)
        self.looks: list[str] = []

    def __getitem__(self, schedule_id: str) -> ScheduleState:
        self.looks.append(schedule_id)
        return super().__getitem__(schedule_id)

    def get(self, schedule_id: str, default: Any = None) -> Any:
        self.looks.append(schedule_id)
        return super().get(schedule_id, default)

    def __iter__(self) -> Iterator[str]:
        for schedule_id in super().__iter__():
            self.looks.append(schedule_id)
            yield schedule_id

    def values(self) -> Any:
        self.looks.extend(super().__iter__())
        return super().values()

    def items(self) -> Any:
        self.looks.extend(super().__iter__())
        return super().items()


class Crowd:
    """A scheduler with many schedules, and everything that it looks at counted."""

    def __init__(self, program: Program, many: int) -> None:
        self.program = program
        self.source = EveryMinutes(60)
        self.often = EveryMinutes(5, self.source.calls, "often")
        sources = {**self.source.factory(), **self.often.factory()}
        self.scheduler = program.open(sources=sources, task_slots=many)
        self.scheduler.create_many(
            [{"schedule_id": f"s{n:05}", "trigger": self.source, "target": "x"} for n in range(many)]
        )
        self.scheduler.create("often", self.often, target="x")
        self.looks = CountedSchedules(state_of(self.scheduler).by_id)
        state_of(self.scheduler).by_id = self.looks
        self.source.calls.clear()

    def cost(self, when: str) -> tuple[int, int, set[str]]:
        """Decisions, calendar calls and the schedules looked at by a poll at that time."""
        self.looks.looks.clear()
        self.source.calls.clear()
        poll = self.program.poll_at(self.scheduler, when)
        for run in poll.offered:
            self.scheduler.fail(run.id, error="no")
        return len(poll.decisions), len(self.source.calls), set(self.looks.looks)


@pytest.fixture
def crowd(program: Program) -> Crowd:
    return Crowd(program, MANY)


def test_an_idle_poll_looks_at_no_schedule_and_asks_no_calendar(crowd: Crowd):
    assert crowd.cost("09:00") == (0, 0, set())
    assert crowd.cost("09:04:59") == (0, 0, set())


def test_one_due_among_ten_thousand_costs_what_it_costs_alone(crowd: Crowd, program: Program):
    decisions, calls, looks = crowd.cost("09:05")
    assert (decisions, looks) == (1, {"often"})
    assert calls <= 4
    assert crowd.cost("09:09") == (0, 0, set())
    assert crowd.cost("09:10") == (1, calls, {"often"})


def test_ten_due_among_ten_thousand_cost_ten_times_as_much_as_one(crowd: Crowd):
    """Hour by hour for a tenth of a promille of them: the other schedules are paused and are not looked at either."""
    for number in range(10, MANY):
        state_of(crowd.scheduler).by_id[f"s{number:05}"].paused = 1
        agenda_of(crowd.scheduler).refresh(state_of(crowd.scheduler).by_id[f"s{number:05}"])
    decisions, calls, looks = crowd.cost("10:00")
    assert (decisions >= 11, calls <= 11 * 4 + 100) == (True, True)
    assert looks == {"often", *(f"s{number:05}" for number in range(10))}


def test_of_schedules_that_are_alike_the_calendar_is_asked_once(program: Program):
    source = EveryMinutes(15)
    scheduler = program.open(sources=source.factory(), task_slots=100)
    scheduler.create_many([{"schedule_id": f"s{n:02}", "trigger": source, "target": "x"} for n in range(100)])
    source.calls.clear()
    assert len(program.poll_at(scheduler, "09:15").admitted) == 100
    assert source.calls == ["next", "next"], "for what is due, and for what is next"


def test_of_schedules_of_one_rule_each_is_decided_from_where_it_was(program: Program):
    program.clock.advance(at("09:30") - program.clock.now())
    scheduler = program.open()
    hourly = Cron("0 * * * *", zone="UTC")
    scheduler.create("ahead", hourly, target="x")
    assert len(program.poll_at(scheduler, "10:30", start=True).admitted) == 1
    program.clock.step(-timedelta(hours=1))
    scheduler.poll()  # what was admitted ahead stays admitted
    scheduler.complete(scheduler.runs()[0].id)
    for name in ("alike", "alike-too"):
        scheduler.create(name, hourly, target="x")
    program.clock.advance(timedelta(hours=1))
    scheduler.create("later", hourly, target="x")
    decided = [
        (getattr(entry, "schedule_id", ""), type(entry).__name__, f"{getattr(entry, 'scheduled_at', None):%H}")
        for _, entry in program.poll_at(scheduler, "11:00").decisions
    ]
    assert decided == [
        ("alike", "OccurrenceSuperseded", "10"),
        ("alike", "OccurrenceAdmitted", "11"),
        ("alike-too", "OccurrenceSuperseded", "10"),
        ("alike-too", "OccurrenceAdmitted", "11"),
        ("later", "OccurrenceAdmitted", "11"),
        ("ahead", "OccurrenceAdmitted", "11"),
    ]


def test_the_next_due_instant_is_found_without_looking_at_schedules(crowd: Crowd):
    crowd.looks.looks.clear()
    assert crowd.scheduler.poll().next_due == at("09:05")
    assert crowd.looks.looks == []


def test_upcoming_looks_at_as_many_schedules_as_it_shows(crowd: Crowd):
    crowd.looks.looks.clear()
    crowd.source.calls.clear()
    assert [one.scheduled_at for one in crowd.scheduler.upcoming(11)] == [
        at("09:05") + timedelta(minutes=5 * n) for n in range(11)
    ]
    assert len(crowd.source.calls) <= 30
    assert len(crowd.looks.looks) <= 30


def test_a_result_looks_at_the_runs_own_schedule_alone(crowd: Crowd):
    (run,) = crowd.program.poll_at(crowd.scheduler, "09:05", start=True).offered
    crowd.looks.looks.clear()
    crowd.source.calls.clear()
    crowd.scheduler.complete(run.id)
    assert set(crowd.looks.looks) == {"often"}
    assert len(crowd.source.calls) <= 1


class CountedStamps(list[Any]):
    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Any]:
        self.looks += len(self)
        return super().__iter__()


def daily(program: Program, stamps: int) -> tuple[Scheduler, CountedStamps]:
    scheduler = program.open()
    scheduler.create("daily", OncePer("day", zone="UTC"), target="x")
    scheduler.record_external_run("daily", DAY - timedelta(days=1))
    past = [(DAY - timedelta(days=2, minutes=n), 1) for n in range(stamps)]
    counted = CountedStamps(sorted([*past, *(state_of(scheduler).by_id["daily"].spent or [])]))
    state_of(scheduler).by_id["daily"].spent = counted
    return scheduler, counted


@pytest.mark.parametrize("stamps", [0, 100_000])
def test_a_period_costs_the_same_however_many_runs_lie_outside_of_it(program: Program, stamps: int):
    scheduler, counted = daily(program, stamps)
    poll = program.poll_at(scheduler, "09:01")
    assert [run.scheduled_at for run in poll.admitted] == [DAY]
    assert counted.looks <= 2 * 18 + 2, "two searches by halving, and one slice of nothing"


# What waits for a slot


def held_back(program: Program, many: int, misfire: str) -> tuple[Scheduler, CountedSchedules, Run]:
    """A crowd that is due, with one task slot, which a run by hand has taken."""
    source = EveryMinutes(60)
    scheduler = program.open(sources=source.factory(), task_slots=1)
    busy = scheduler.run_now(target="x")
    scheduler.start(busy.id)
    scheduler.create_many(
        [
            {"schedule_id": f"s{n:05}", "trigger": source, "target": "x", "misfire": misfire, "lateness": HOUR}
            for n in range(many)
        ]
    )
    while program.poll_at(scheduler, "10:00").more:
        pass
    looks = CountedSchedules(state_of(scheduler).by_id)
    state_of(scheduler).by_id = looks
    return scheduler, looks, busy


@pytest.mark.parametrize("misfire", ["latest", "skip"])
def test_a_thousand_that_wait_for_a_slot_are_not_looked_at_until_there_is_one(program: Program, misfire: str):
    scheduler, looks, busy = held_back(program, 1_000, misfire)
    assert program.poll_at(scheduler, "10:01").decisions == ()
    assert looks.looks == []
    scheduler.complete(busy.id)
    looks.looks.clear()
    poll = program.poll_at(scheduler, "10:02", start=True)
    assert [run.schedule_id for run in poll.offered] == ["s00000"]
    assert len(set(looks.looks)) <= 2, "the one that is served, and the next in turn"
    scheduler.complete(poll.offered[0].id)
    looks.looks.clear()
    assert [run.schedule_id for run in scheduler.poll().offered] == ["s00001"]
    assert len(set(looks.looks)) <= 3


def test_what_waits_is_looked_at_when_its_time_is_up(program: Program):
    scheduler, looks, _ = held_back(program, 100, "skip")
    poll = program.poll_at(scheduler, "11:00:00.000001")
    assert {getattr(entry, "reason", None) for _, entry in poll.decisions} == {"capacity"}
    assert (len(poll.decisions), len(set(looks.looks))) == (100, 100)


def test_where_the_host_answers_for_targets_what_waits_is_asked_about_again(program: Program):
    """The recheck comes before the capacity: a target that is gone is skipped for at once, slot or no slot."""
    known = {"x"}
    source = EveryMinutes(60)
    scheduler = program.open(
        sources=source.factory(), task_slots=1, targets=lambda name: Target(name) if name in known else None
    )
    scheduler.start(scheduler.run_now(target="x").id)
    scheduler.create("a", source, target="x", misfire="skip", lateness=HOUR)
    assert program.poll_at(scheduler, "10:00").decisions == ()
    known.clear()
    assert [getattr(entry, "reason", None) for _, entry in program.poll_at(scheduler, "10:01").decisions] == [
        "preflight"
    ]


def test_a_candidate_whose_period_was_spent_is_skipped_by_the_next_poll_where_this_one_was_cut(program: Program):
    source = EveryMinutes(5)
    scheduler = program.open(sources=source.factory(), task_slots=1, batch=1)
    scheduler.start(scheduler.run_now(target="x").id)
    scheduler.create("daily", OncePer("day", zone="UTC"), target="x")
    scheduler.create("a", source, target="x")
    assert program.poll_at(scheduler, "09:01").decisions != ()
    scheduler.record_external_run("daily", at("07:00"))
    cut = program.poll_at(scheduler, "09:05")
    assert ([type(entry).__name__ for _, entry in cut.decisions], cut.more) == (["CandidateHeld"], True)
    assert [getattr(entry, "reason", None) for _, entry in scheduler.poll().decisions] == ["spent"]


def test_after_a_long_downtime_every_poll_is_bounded_and_every_schedule_has_its_turn(program: Program):
    source = EveryMinutes(1)
    scheduler = program.open(sources=source.factory(), task_slots=3, batch=50)
    scheduler.create_many([{"schedule_id": f"s{n:03}", "trigger": source, "target": "x"} for n in range(200)])
    program.clock.advance(timedelta(days=3 * 365))
    source.calls.clear()
    sizes: list[int] = []
    served: list[str] = []
    while True:
        poll = scheduler.poll(start=True)
        sizes.append(len(poll.decisions))
        served += [run.schedule_id or "" for run in poll.offered]
        scheduler.report([Completed(run.id) for run in poll.offered])
        if not (poll.more or poll.offered):
            break
    assert served[:1] == ["s000"], "the first decisions come at once"
    assert (max(sizes), sorted(served)) == (50, [f"s{n:03}" for n in range(200)])
    assert len(source.calls) <= 200 * (SCAN_CAP + 6)


# The queue behind the index


def anything(_: str, __: datetime) -> bool:
    return True


def moved(queue: Queue, now: str) -> dict[str, datetime]:
    return dict(queue.due(at(now)))


def test_a_queue_gives_instants_in_order_and_forgets_what_was_replaced():
    queue = Queue()
    queue.place("a", at("09:30"))
    queue.place("b", at("09:15"))
    queue.place("a", at("09:10"))
    queue.place("c", at("09:20"))
    queue.drop("b")
    assert (len(queue), "b" in queue, "a" in queue) == (2, False, True)
    assert queue.first() == at("09:10")
    assert queue.soonest(9, anything) == [(at("09:10"), "a"), (at("09:20"), "c")]
    assert queue.soonest(1, anything) == [(at("09:10"), "a")]
    assert queue.soonest(1, lambda schedule_id, _: schedule_id != "a") == [(at("09:20"), "c")]
    assert moved(queue, "09:09:59") == {}
    assert moved(queue, "09:20") == {"a": at("09:10"), "c": at("09:20")}
    assert (queue.first(), len(queue), moved(queue, "23:59")) == (None, 0, {})


def test_a_schedule_that_returns_to_an_instant_it_had_stands_once_in_the_queue():
    queue = Queue()
    for instant in ("09:15", "09:30", "09:15", "09:30", "09:15"):
        queue.place("a", at(instant))
    assert queue.soonest(9, anything) == [(at("09:15"), "a")]
    assert moved(queue, "23:59") == {"a": at("09:15")}
    assert moved(queue, "23:59") == {}


def test_of_many_at_one_instant_those_that_are_first_by_id_come_first():
    queue = Queue()
    queue.fill({"b": at("09:15"), "d": at("09:15"), "a": at("09:30")})
    assert queue.soonest(9, anything) == [(at("09:15"), "b"), (at("09:15"), "d"), (at("09:30"), "a")]
    queue.place("c", at("09:15"))
    queue.place("a", at("09:15"))
    queue.drop("d")
    assert queue.soonest(2, anything) == [(at("09:15"), "a"), (at("09:15"), "b")]
    assert queue.soonest(9, anything) == [(at("09:15"), one) for one in "abc"]


def test_an_instant_stays_while_any_schedule_has_it():
    queue = Queue()
    queue.fill({"a": at("09:15"), "b": at("09:15"), "c": at("09:30")})
    queue.drop("b")
    assert queue.first() == at("09:15")
    assert moved(queue, "09:15") == {"a": at("09:15")}


def test_whoever_is_interrupted_finds_in_the_queue_what_he_did_not_come_to():
    queue = Queue()
    queue.fill({"a": at("09:15"), "b": at("09:15"), "c": at("09:30")})
    due = queue.due(at("10:00"))
    assert next(due) == ("a", at("09:15"))
    del due
    assert queue.first() == at("09:15")
    assert moved(queue, "10:00") == {"a": at("09:15"), "b": at("09:15"), "c": at("09:30")}


_CHANGES = st.tuples(st.sampled_from(["place", "drop", "due", "look"]), st.sampled_from("abcdef"), st.integers(0, 5))


@given(st.lists(_CHANGES, max_size=120))
def test_a_queue_says_what_a_dict_of_the_instants_says(changes: list[tuple[str, str, int]]):
    queue, instants = Queue(), dict[str, datetime]()
    for change, schedule_id, number in changes:
        instant = at("09:00") + timedelta(minutes=number)
        match change:
            case "place":
                queue.place(schedule_id, instant)
                instants[schedule_id] = instant
            case "drop":
                queue.drop(schedule_id)
                instants.pop(schedule_id, None)
            case "due":
                due = {one: each for one, each in instants.items() if each <= instant}
                assert queue.is_due(instant) or not due
                assert dict(queue.due(instant)) == due
                instants = {one: each for one, each in instants.items() if each > instant}
            case _:
                rows = sorted((each, one) for one, each in instants.items())
                assert queue.first() == (rows[0][0] if rows else None)
                assert queue.soonest(number + 1, anything) == rows[: number + 1]
        assert {one for one in "abcdef" if one in queue} == set(instants)
    assert lines_of(queue) <= 2 * (2 * 6 + 64) + 6


def test_a_queue_does_not_grow_with_the_changes_of_a_schedule():
    """Each change leaves a stale line behind; a scheduler that lives for years must not drown in them."""
    queue = Queue()
    for n in range(10_000):
        queue.place("a", at("09:15") + timedelta(minutes=n % 7))
    assert lines_of(queue) <= 2_000
