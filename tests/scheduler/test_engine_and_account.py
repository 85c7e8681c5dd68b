"""The engine check and the account prove something only if they notice: a sound record is spoilt, entry by entry."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from duly.journal import Reader
from duly.journal.entries import (
    CandidateHeld,
    ClockRegressed,
    Entry,
    EntryLost,
    IntervalSkipped,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    SchedulePaused,
    ScheduleUnpaused,
)
from duly.scheduler.accounting import Account, account_of
from duly.scheduler.engine import EngineCheck, check_lines
from tests.scheduler.embedding import MINUTE, NINE, QUARTERLY, Program, at

Line = tuple[int, list[Entry]]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[Line]:
    """The record of an eventful day: every kind of decision is in it."""
    program = Program(tmp_path_factory.mktemp("eventful"))
    scheduler = program.open(task_slots=2)
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.create("b", QUARTERLY, target="x", misfire="skip", lateness=2 * MINUTE)
    scheduler.create("c", QUARTERLY, target="x", overlap="parallel", max_active_runs=3)
    runs = [run.id for run in program.poll_at(scheduler, "09:15", start=True).offered]
    program.poll_at(scheduler, "09:31")
    scheduler.complete(runs[0])
    program.poll_at(scheduler, "09:50")
    scheduler.complete(runs[1])
    program.poll_at(scheduler, "10:05", start=True)
    scheduler.pause("b")
    program.clock.advance(timedelta(days=3))
    scheduler.poll()
    for run in scheduler.runs(state="started"):
        scheduler.fail(run.id, error="no")
    scheduler.unpause("b")
    program.clock.advance(15 * MINUTE)
    scheduler.poll(start=True)
    program.clock.step(-timedelta(hours=2))
    scheduler.poll()
    program.clock.advance(timedelta(hours=1))
    scheduler.poll()
    record = read_lines(program.path)
    program.close()
    return record


def read_lines(path: Path) -> list[Line]:
    return [(line.first, list(line.entries)) for line in Reader(path).lines()]


def checked(lines: list[Line]) -> EngineCheck:
    return check_lines(lines)


def counted(lines: list[Line]) -> Account:
    return account_of((first + n, entry) for first, entries in lines for n, entry in enumerate(entries))


def copied(lines: list[Line]) -> list[Line]:
    return [(first, list(entries)) for first, entries in lines]


def places(lines: list[Line], kind: type[Entry] | tuple[type[Entry], ...]) -> list[tuple[int, int]]:
    return [(n, m) for n, (_, entries) in enumerate(lines) for m, one in enumerate(entries) if isinstance(one, kind)]


DECISIONS = (OccurrenceAdmitted, OccurrenceSkipped, OccurrenceSuperseded, IntervalSkipped, CandidateHeld)


def test_the_sound_record_passes_and_holds_every_kind_of_decision(lines: list[Line]):
    assert checked(lines).divergences == ()
    assert checked(lines).incomparable == 0
    assert checked(lines).polls >= 6
    assert [one for one in counted(lines).schedules if not one.balanced] == []
    kinds = {type(entry) for _, entries in lines for entry in entries}
    assert kinds >= {*DECISIONS, ClockRegressed}


EDITS: dict[str, tuple[type[Entry], dict[str, Any]]] = {
    "another instant": (OccurrenceAdmitted, {"scheduled_at": at("09:16")}),
    "another target": (OccurrenceAdmitted, {"target": "z"}),
    "another input": (OccurrenceAdmitted, {"input": {"a": 1}}),
    "another revision": (OccurrenceAdmitted, {"revision": 9}),
    "another lateness": (OccurrenceAdmitted, {"lateness": 9 * MINUTE}),
    "exhaustion": (OccurrenceAdmitted, {"exhausts": True}),
    "another reason": (OccurrenceSkipped, {"reason": "backlog"}),
    "another newest": (OccurrenceSuperseded, {"by": at("23:00")}),
    "another end": (IntervalSkipped, {"before": at("23:00")}),
    "another count": (IntervalSkipped, {"at_least": 7}),
    "another candidate": (CandidateHeld, {"scheduled_at": at("09:01")}),
    "another highest": (ClockRegressed, {"highest": at("23:00") + timedelta(days=9)}),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_decision_that_was_edited_diverges_wherever_it_stands(lines: list[Line], name: str):
    kind, fields = EDITS[name]
    found = [place for place in places(lines, kind) if by_poll(lines, place)]
    assert found
    for n, m in found:
        spoilt = copied(lines)
        entry: Any = spoilt[n][1][m]
        spoilt[n][1][m] = msgspec.structs.replace(entry, **fields)
        divergences = checked(spoilt).divergences
        assert spoilt[n][0] in {one.sequence for one in divergences}, f"{name} at {spoilt[n][0] + m} passes"


def by_poll(lines: list[Line], place: tuple[int, int]) -> bool:
    """Whether a poll decided this, and not a command: a command's batch holds its own entry."""
    return not any(isinstance(entry, SchedulePaused | ScheduleUnpaused) for entry in lines[place[0]][1])


def test_a_poll_at_another_time_diverges(lines: list[Line]):
    n, _ = places(lines, OccurrenceAdmitted)[0]
    spoilt = copied(lines)
    for m, entry in enumerate(spoilt[n][1]):
        anything: Any = entry
        spoilt[n][1][m] = msgspec.structs.replace(anything, at=NINE)
    assert spoilt[n][0] in {one.sequence for one in checked(spoilt).divergences}


def test_a_decision_that_was_taken_out_or_put_in_diverges(lines: list[Line]):
    for n, m in places(lines, DECISIONS):
        if not by_poll(lines, (n, m)) or len(lines[n][1]) == 1:
            continue
        without, twice = copied(lines), copied(lines)
        del without[n][1][m]
        twice[n][1].insert(m, twice[n][1][m])
        for spoilt in (without, twice):
            assert spoilt[n][0] in {one.sequence for one in checked(spoilt).divergences}


def test_decisions_in_another_order_diverge(lines: list[Line]):
    n = next(n for n, (_, entries) in enumerate(lines) if sum(isinstance(one, DECISIONS) for one in entries) > 1)
    spoilt = copied(lines)
    spoilt[n][1].reverse()
    assert checked(spoilt).divergences


def test_a_divergence_shows_what_is_recorded_and_what_the_engine_gives(lines: list[Line]):
    n, m = places(lines, OccurrenceAdmitted)[0]
    spoilt = copied(lines)
    entry: Any = spoilt[n][1][m]
    spoilt[n][1][m] = msgspec.structs.replace(entry, target="z")
    first = checked(spoilt).divergences[0]
    assert (first.sequence, first.recorded, first.decided) == (spoilt[n][0], tuple(spoilt[n][1]), tuple(lines[n][1]))
    assert not checked(spoilt).ok


def test_other_settings_in_force_diverge(lines: list[Line]):
    spoilt = copied(lines)
    opened: Any = spoilt[0][1][0]
    assert isinstance(opened, JournalOpened)
    spoilt[0][1][0] = msgspec.structs.replace(opened, task_slots=1)
    assert checked(spoilt).divergences


def test_the_record_of_another_engine_is_not_comparable(lines: list[Line]):
    spoilt = copied(lines)
    opened: Any = spoilt[0][1][0]
    spoilt[0][1][0] = msgspec.structs.replace(opened, engine=opened.engine + 1, task_slots=1)
    result = checked(spoilt)
    assert (result.polls, result.divergences) == (0, ())
    assert result.incomparable == checked(lines).polls


def test_a_step_of_the_clock_behind_lost_entries_is_not_comparable(lines: list[Line]):
    spoilt = copied(lines)
    (n, m), *_ = places(spoilt, ClockRegressed)
    regressed: Any = spoilt[n][1][m]
    lost = EntryLost(at=regressed.at)
    for first, entries in spoilt[:n]:
        if entries[0].at == regressed.highest:
            entries[:] = [lost] * len(entries)
            assert first > 1
    assert spoilt != lines
    assert checked(spoilt).divergences == ()


# The account


def test_a_decision_that_was_taken_out_is_missed(lines: list[Line]):
    """Unless what is left still tells of it: the newest of a schedule waits then, a candidate stays held; and what
    was decided ahead of the clock is not due again yet."""
    held = {
        (one.schedule_id, one.scheduled_at) for _, entries in lines for one in entries if isinstance(one, CandidateHeld)
    }
    for n, m in places(lines, (OccurrenceAdmitted, OccurrenceSkipped, OccurrenceSuperseded, IntervalSkipped)):
        spoilt = copied(lines)
        entry: Any = spoilt[n][1].pop(m)
        after = [*spoilt[n][1][m:], *(one for _, entries in spoilt[n + 1 :] for one in entries)]
        later = [one for one in after if getattr(one, "schedule_id", "") == entry.schedule_id]
        is_held = not isinstance(entry, IntervalSkipped) and (entry.schedule_id, entry.scheduled_at) in held
        is_ahead = not isinstance(entry, IntervalSkipped) and entry.scheduled_at > lines[-1][1][-1].at
        if is_held or is_ahead or not any(isinstance(one, DECISIONS) for one in later):
            continue
        account = counted(spoilt)
        assert not account.balanced, f"nobody misses {entry}"


def test_what_was_taken_out_is_named(lines: list[Line]):
    n, m = places(lines, OccurrenceAdmitted)[0]
    spoilt = copied(lines)
    del spoilt[n][1][m]
    account = counted(spoilt)
    assert [(one.schedule_id, one.unaccounted) for one in account.schedules if one.unaccounted] == [
        ("a", [at("09:15")])
    ]
    assert account.unaccounted == 1


@pytest.mark.parametrize("kind", [OccurrenceAdmitted, OccurrenceSkipped, OccurrenceSuperseded])
def test_a_decision_that_stands_twice_is_noticed(lines: list[Line], kind: type[Entry]):
    n, m = next(place for place in places(lines, kind) if by_poll(lines, place))
    spoilt = copied(lines)
    entry: Any = spoilt[n][1][m]
    spoilt.insert(n + 1, (spoilt[-1][0] + 1_000, [entry]))
    (schedule,) = [one for one in counted(spoilt).schedules if one.schedule_id == entry.schedule_id]
    assert schedule.double == [entry.scheduled_at]
    assert not schedule.balanced


def test_a_second_run_of_an_occurrence_is_noticed_however_late(lines: list[Line]):
    n, m = places(lines, OccurrenceAdmitted)[0]
    spoilt = copied(lines)
    entry: Any = spoilt[n][1][m]
    spoilt.append((spoilt[-1][0] + 1_000, [msgspec.structs.replace(entry, at=at("23:00"))]))
    assert not counted(spoilt).balanced


def test_a_decision_about_what_is_no_occurrence_is_foreign(lines: list[Line]):
    n, m = places(lines, OccurrenceAdmitted)[0]
    spoilt = copied(lines)
    entry: Any = spoilt[n][1][m]
    spoilt[n][1].insert(m, msgspec.structs.replace(entry, scheduled_at=at("09:07")))
    (schedule,) = [one for one in counted(spoilt).schedules if one.schedule_id == entry.schedule_id]
    assert schedule.foreign == [at("09:07")]
    assert not schedule.balanced


def test_a_cover_that_was_taken_out_is_missed(lines: list[Line]):
    n, m = places(lines, ScheduleUnpaused)[0]
    spoilt = copied(lines)
    entry: Any = spoilt[n][1][m]
    spoilt[n][1][m] = msgspec.structs.replace(entry, covers_after=entry.covers_through)
    assert counted(spoilt).unaccounted > 0


def test_every_due_occurrence_of_the_sound_record_is_counted_once(lines: list[Line]):
    for one in counted(lines).schedules:
        reasons = {kind for kind in one.counts if ":" in kind and not kind.startswith("interval")}
        assert sum(count for kind, count in one.counts.items() if kind not in reasons) == one.due > 200
