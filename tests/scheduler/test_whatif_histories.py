"""What-if over generated histories: without a change the record itself comes out, and with one a sound record."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from duly import Cron, NoTaskSlot
from duly.journal import Reader
from duly.journal.entries import Entry
from duly.projections import State
from duly.scheduler import commands, replaying, worlds
from duly.scheduler.accounting import account_of
from duly.scheduler.changes import Changes
from duly.scheduler.decisions import admission
from duly.scheduler.durations import Durations
from duly.scheduler.engine import EngineChecker
from duly.scheduler.recorded import Line, Record
from duly.scheduler.replaying import Replaying
from duly.scheduler.whatif import whatif
from tests.scheduler.embedding import Program
from tests.scheduler.test_explained_histories import live

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
CHANGES: tuple[dict[str, object], ...] = (
    {"task_slots": 1},
    {"task_slots": 8},
    {"batch": 1},
    {"batch": 3, "task_slots": 2},
    {"*.misfire": "skip"},
    {"*.misfire": "latest"},
    {"*.lateness": timedelta()},
    {"*.lateness": 2 * HOUR, "*.misfire": "skip"},
    {"a.overlap": "parallel", "a.max_active_runs": 3},
    {"*.overlap": "skip"},
    {"clock_tolerance": timedelta()},
    {"clock_tolerance": timedelta(days=20)},
    {"a.cron": "*/7 * * * *", "a.zone": "UTC"},
)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Warnings about the clocks of histories are no news."""
    caplog.set_level(logging.ERROR, logger="duly")


def lines_of(seed: int) -> list[Line]:
    """The batches of a generated history."""
    history, _ = live(seed)
    lines = [(line.first, line.entries) for line in Reader(history.world.path, disk=history.world.memory).lines()]
    history.close()
    return list(lines)


def check_nothing_changes(lines: list[Line], seed: int) -> None:
    found = whatif(lines, {})
    told = (found.identical, found.differences, found.assumed_polls, found.shifted_runs, found.estimated_runs)
    assert told == (True, (), 0, 0, 0), f"seed {seed}"
    assert (found.refused, found.check.divergences, found.lost) == ((), (), 0), f"seed {seed}"
    assert all(total.recorded == total.now for total in found.totals), f"seed {seed}"


@pytest.mark.parametrize("seed", range(24))
def test_without_a_change_the_record_comes_out(seed: int):
    check_nothing_changes(lines_of(seed), seed)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(0, 500, 50))
def test_without_a_change_five_hundred_records_come_out(first: int):
    for seed in range(first, first + 50):
        check_nothing_changes(lines_of(seed), seed)


def test_the_generated_histories_are_worth_replaying():
    polls = decided = 0
    for seed in range(24):
        found = whatif(lines_of(seed), {})
        polls += found.polls
        decided += sum(sum(total.recorded.values()) for total in found.totals)
    assert polls > 200
    assert decided > 5_000


def relived(lines: list[Line], changes: dict[str, object]) -> tuple[Replaying, list[tuple[int, Entry]]]:
    """The replay under these changes, and all that the other world recorded."""
    record = Record(lines)
    relive = Replaying(record, Changes(changes), Durations({"*": 20 * MINUTE}, record.durations), {})
    made: list[tuple[int, Entry]] = []
    for first, entries in lines:
        made.extend(relive.follow(first, tuple(entries)))
    return relive, made


@pytest.mark.parametrize("changes", CHANGES, ids=lambda one: " ".join(f"{name}={value}" for name, value in one.items()))
def test_another_policy_gives_a_record_that_could_have_been(changes: dict[str, object]):
    seen: Counter[str] = Counter()
    for seed in range(6):
        lines = lines_of(seed)
        relive, made = relived(lines, changes)
        state = State()
        slots = 0
        for sequence, entry in made:
            assert sequence == state.sequence + 1
            state.apply(sequence, entry)
            slots = state.opened.task_slots if state.opened is not None else slots
        assert state.anomalies == [], f"seed {seed}"
        unbalanced = [one for one in account_of(made).schedules if not one.balanced]
        assert unbalanced == [], f"seed {seed}"
        found = whatif(lines, changes, durations={"*": 20 * MINUTE})
        assert found.identical == relive.identical == (made == numbered(lines))
        seen["differences"] += len(found.differences)
        seen["estimates"] += sum(one.estimate for one in found.differences)
    assert seen["differences"] > 0 or "batch" in changes
    assert seen["estimates"] <= seen["differences"]


def numbered(lines: list[Line]) -> list[tuple[int, Entry]]:
    return [(first + n, entry) for first, entries in lines for n, entry in enumerate(entries)]


def test_what_differs_between_two_policies_differs_the_same_way_however_it_is_asked():
    """The differences of a change are those between the records of both worlds, so none is made up and none is left
    out: each occurrence that is decided in both is decided as the differences say."""
    for seed in range(6):
        lines = lines_of(seed)
        _, made = relived(lines, {"*.misfire": "skip"})
        found = whatif(lines, {"*.misfire": "skip"}, durations={"*": 20 * MINUTE})
        recorded, now = dispositions(numbered(lines)), dispositions(made)
        told = {(one.schedule_id, one.scheduled_at): one for one in found.differences if not one.moved}
        for key in recorded.keys() & now.keys():
            if recorded[key] != now[key]:
                assert (told[key].recorded.disposition, told[key].now.disposition) == (recorded[key][0], now[key][0])
            else:
                assert key not in told


def dispositions(entries: list[tuple[int, Entry]]) -> dict[tuple[str, Any], tuple[str, str | None]]:
    """The last disposition of every occurrence that has one of its own, of histories whose clock never went back."""
    found: dict[tuple[str, Any], tuple[str, str | None]] = {}
    words = {"OccurrenceAdmitted": "admitted", "OccurrenceSkipped": "skipped", "OccurrenceSuperseded": "superseded"}
    for _, entry in entries:
        word = words.get(type(entry).__name__)
        if type(entry).__name__ == "ClockRegressed":
            return {}
        if word is not None:
            key = getattr(entry, "schedule_id", ""), getattr(entry, "scheduled_at", None)
            found[key] = word, getattr(entry, "reason", None)
    return found


TAKEN = (timedelta(), 20 * MINUTE, 5 * HOUR, timedelta(days=30))


def check_estimates(seed: int, lines: list[Line], changes: dict[str, object]) -> int:
    """What is no estimate stays as it is, whatever duration is given; returns how much of that there is."""
    told = [
        {(one.schedule_id, one.scheduled_at): one for one in whatif(lines, changes, durations={"*": taken}).differences}
        for taken in TAKEN
    ]
    firm = 0
    for one in told:
        for key, difference in one.items():
            if not difference.estimate:
                firm += 1
                fates = [(other[key].now.is_like(difference.now), other[key].now.at) for other in told if key in other]
                assert fates == [(True, difference.now.at)] * len(TAKEN), f"seed {seed}, {changes}: {key}"
    return firm


@pytest.mark.parametrize("seed", [0, 1, 2, 6, 9])
def test_what_is_no_estimate_rests_on_no_duration(seed: int):
    assert (
        sum(check_estimates(seed, lines_of(seed), changes) for changes in (*CHANGES[:2], *CHANGES[4:6], CHANGES[8])) > 0
    )


@pytest.mark.torture
@pytest.mark.parametrize("first", range(0, 40, 8))
def test_what_is_no_estimate_rests_on_no_duration_under_any_change(first: int):
    """Not every history has a firm difference; eight of them have some."""
    seeds = range(first, first + 8)
    assert sum(check_estimates(seed, lines_of(seed), changes) for seed in seeds for changes in CHANGES) > 0


def crowded_by_hand(seed: int, folder: Path) -> list[Line]:
    """Two schedules among runs by hand, some of which are of no schedule, and some of which never end."""
    choose = Random(seed)  # noqa: S311 - a seed that can be repeated is the point
    program = Program(folder)
    scheduler = program.open(task_slots=4)
    for schedule_id in ("a", "b"):
        cron = Cron(choose.choice(("0 * * * *", "*/20 * * * *")), zone="UTC")
        scheduler.create(schedule_id, cron, target="t", misfire="skip", lateness=choose.choice((MINUTE, HOUR)))
    never_ending = 0
    for _ in range(40):
        program.clock.advance(choose.choice((MINUTE, 20 * MINUTE, HOUR)))
        scheduler.poll(start=True)
        for run in list(scheduler.runs(state="started")):
            if choose.random() < 0.6 and (run.schedule_id is not None or choose.random() < 0.5):
                scheduler.complete(run.id)
        if choose.random() < 0.4 and never_ending < 3:
            run = scheduler.run_now(choose.choice((None, None, "a")), target="t")
            with suppress(NoTaskSlot):
                scheduler.start(run.id)
            never_ending += choose.random() < 0.4
    program.close()
    return [(line.first, line.entries) for line in Reader(program.path).lines()]


@pytest.mark.parametrize("seed", range(12))
def test_what_rests_on_a_run_by_hand_that_never_ends_is_an_estimate(seed: int, tmp_path: Path):
    lines = crowded_by_hand(seed, tmp_path)
    firm = sum(check_estimates(seed, lines, {"task_slots": slots}) for slots in (1, 2, 3))
    assert firm > 0, f"nothing is firm in {seed}"


# The comparison is shown what it must not let pass.


Shipped = Callable[..., Any]


def exchange(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, instead: Callable[[Shipped, tuple[Any, ...]], Any]
) -> None:
    """Puts something in the place of a shipped function; it gets that function and what it was given."""
    shipped: Shipped = getattr(where, name)

    def faulty(*given: Any) -> Any:
        return instead(shipped, given)

    monkeypatch.setattr(where, name, faulty)


def later_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange(monkeypatch, admission, "deadline", lambda shipped, given: shipped(*given) + HOUR)


def other_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange(monkeypatch, admission, "turn_order", lambda shipped, given: reversed(list(shipped(*given))))


def candidates_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange(monkeypatch, commands, "decide_edit", lambda shipped, given: shipped(*given)[-1:])


def edits_that_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange(monkeypatch, commands, "decide_edit", lambda _, __: ())


def polls_whenever_something_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange(monkeypatch, EngineChecker, "leaves_undecided", lambda _, __: False)


def regressions_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange(monkeypatch, worlds, "decide_regression", lambda _, __: None)


def results_a_minute_late(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange(monkeypatch, replaying, "step_taken", lambda shipped, given: shipped(*given[:-1], given[-1] + MINUTE))


def a_slot_more_than_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def more(shipped: Shipped, given: tuple[Any, ...]) -> Any:
        opened = shipped(*given)
        return msgspec.structs.replace(opened, task_slots=opened.task_slots + 1)

    exchange(monkeypatch, Changes, "opened", more)


FAULTS = (
    later_deadline,
    other_turns,
    candidates_forgotten,
    edits_that_change_nothing,
    polls_whenever_something_is_due,
    regressions_unseen,
    results_a_minute_late,
    a_slot_more_than_recorded,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_of_the_replay_is_noticed(fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch):
    records = [lines_of(seed) for seed in (4, 5, 6, 20, 22)]  # in 20 an edit skips a candidate
    fault(monkeypatch)
    assert [seed for seed, lines in enumerate(records) if not whatif(lines, {}).identical]


def test_a_record_that_was_tampered_with_does_not_come_out():
    noticed = tampered = 0
    for seed in range(6):
        lines = lines_of(seed)
        choose = Random(seed)  # noqa: S311 - a seed that can be repeated is the point
        places = [n for n, (_, entries) in enumerate(lines) if len(entries) > 2 and "Occurrence" in str(entries)]
        for place in choose.sample(places, min(3, len(places))):
            first, entries = lines[place]
            spoilt = [*lines[:place], (first, [*entries[:-2], entries[-1], entries[-2]]), *lines[place + 1 :]]
            if entries[-1] != entries[-2]:
                tampered += 1
                noticed += not whatif(spoilt, {}).identical
    assert noticed == tampered > 0
