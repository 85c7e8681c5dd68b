"""Recovery at each fault boundary: one run's whole life, cut after every entry, opened with every kind of evidence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duly import Blocked, Completed, Cron, Failed, Interrupted, ManualClock, Scheduler, StillRunning
from duly.journal import Journal, verify
from duly.journal.entries import (
    AttemptCleared,
    Entry,
    ErrorInfo,
    OccurrenceAdmitted,
    ResumeMarked,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    kind_of,
)
from duly.projections import replay
from tests.scheduler.cut_journals import PATH, entries_of, journal_of, opened, prefixes, replayed
from tests.scheduler.memory_disk import MemoryDisk
from tests.simulation.chronicle import Chronicle
from tests.simulation.evidence import Answer, BrokenStore, Memory, expected_verdicts, verdict_of
from tests.simulation.machine import Calendar

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)


def a_life(last: str) -> list[Entry]:
    """Admitted, started, interrupted, resumed, interrupted again, resumed again, and its end."""
    disk, clock = MemoryDisk(), ManualClock(NINE)
    with Scheduler.open(PATH, clock=clock, disk=disk, task_slots=3) as scheduler:
        scheduler.create("report", Cron("15 9 * * *", zone="UTC"), target="report")
        clock.advance(timedelta(minutes=15))
        (run,) = scheduler.poll().offered
        scheduler.start(run.id)
        scheduler.interrupt(run.id, checkpoint=1)
        first = scheduler.resume(run.id)
        scheduler.interrupt(run.id, attempt_id=first.attempt_id, checkpoint=2)
        second = scheduler.resume(run.id)
        if last == "complete":
            scheduler.complete(run.id, attempt_id=second.attempt_id, result="done")
        elif last == "fail":
            scheduler.fail(run.id, attempt_id=second.attempt_id, error="broken")
        else:
            scheduler.abandon(run.id)
        return entries_of(disk)


EVIDENCE: dict[str, Callable[[int, int | None], Answer]] = {
    "nothing": lambda _, __: None,
    "still running": lambda run_id, _: StillRunning(run_id),
    "completed": lambda run_id, attempt_id: Completed(run_id, attempt_id, "by evidence"),
    "failed": lambda run_id, attempt_id: Failed(run_id, attempt_id, "by evidence"),
    "interrupted": lambda run_id, attempt_id: Interrupted(run_id, attempt_id, "by evidence"),
    "completed, no attempt": lambda run_id, _: Completed(run_id, None, "by evidence"),
    "completed, another attempt": lambda run_id, attempt_id: Completed(run_id, (attempt_id or 0) + 1, "by evidence"),
    "broken": lambda run_id, _: _broken(run_id),
}


def _broken(run_id: int) -> Answer:
    raise BrokenStore(run_id)


@pytest.mark.parametrize("last", ["complete", "fail", "abandon"])
@pytest.mark.parametrize("known", EVIDENCE)
def test_every_boundary_of_a_life_is_decided_by_the_table_and_only_once(known: str, last: str) -> None:
    entries = a_life(last)
    clock = ManualClock(entries[-1].at + timedelta(seconds=1))
    for count, disk in prefixes(entries):
        memory = Memory(EVIDENCE[known])
        scheduler = opened(disk, clock, memory)
        appended = entries_of(disk, count)
        assert kind_of(appended[0]) == "JournalOpened"
        expected = expected_verdicts(Chronicle(enumerate(entries[:count], 1)), memory)
        assert [verdict_of(entry) for entry in appended[1:]] == expected, f"cut after {count}"
        assert scheduler.digest() == replayed([*entries[:count], *appended]).digest()
        again = disk.crashed()
        opened(again, clock, Memory(EVIDENCE[known])).close()
        assert [kind_of(entry) for entry in entries_of(again, count + len(appended))] == [
            "JournalOpened",
            "JournalClosed",
        ], f"cut after {count}: a second reconcile decides something"
        scheduler.close()


LEFT: dict[str, tuple[type[Entry], int, list[str], str]] = {
    "admission": (OccurrenceAdmitted, 1, [], "pending"),
    "start": (RunStarted, 1, ["RunAbandoned"], "abandoned"),
    "result": (RunInterrupted, 1, [], "interrupted"),
    "resume-mark": (ResumeMarked, 1, ["RunAbandoned", "AttemptCleared"], "abandoned"),
    "re-interruption": (RunInterrupted, 2, ["AttemptCleared"], "interrupted"),
    "attempt-clear": (AttemptCleared, 1, [], "interrupted"),
    "second resume-mark": (ResumeMarked, 2, ["RunAbandoned", "AttemptCleared"], "abandoned"),
    "result of the attempt": (RunCompleted, 1, ["AttemptCleared"], "completed"),
    "last attempt-clear": (AttemptCleared, 2, [], "completed"),
}


@pytest.mark.parametrize("boundary", LEFT)
def test_what_a_crash_right_after_each_boundary_leaves(boundary: str) -> None:
    kind, which, verdicts, state = LEFT[boundary]
    entries = a_life("complete")
    cut = [place for place, entry in enumerate(entries, 1) if isinstance(entry, kind)][which - 1]
    disk = journal_of(entries[:cut])
    with opened(disk, ManualClock(entries[-1].at)) as scheduler:
        assert [kind_of(entry) for entry in entries_of(disk, cut)[1:]] == verdicts
        (run,) = scheduler.runs()
        assert (run.state, run.attempt_id) == (state, None)
        assert [one.id for one in scheduler.poll().offered] == ([run.id] if state == "pending" else [])
        assert scheduler.recovery.decisions == tuple(enumerate(entries_of(disk, cut)[1 : 1 + len(verdicts)], cut + 2))


@pytest.mark.parametrize("boundary", [one for one in LEFT if LEFT[one][3] == "interrupted"])
def test_what_was_left_interrupted_can_be_resumed_and_ends_once(boundary: str) -> None:
    kind, which, _, _ = LEFT[boundary]
    entries = a_life("complete")
    cut = [place for place, entry in enumerate(entries, 1) if isinstance(entry, kind)][which - 1]
    with opened(journal_of(entries[:cut]), ManualClock(entries[-1].at)) as scheduler:
        (run,) = scheduler.runs()
        attempt = scheduler.resume(run.id)
        stops = sum(isinstance(entry, RunInterrupted) for entry in entries[:cut])
        assert attempt.checkpoint == run.checkpoint == stops
        assert scheduler.complete(run.id, attempt_id=attempt.attempt_id).state == "completed"


def test_an_attempt_that_ended_and_was_not_cleared_is_never_executed_again() -> None:
    entries = a_life("complete")
    cut = next(place for place, entry in enumerate(entries, 1) if isinstance(entry, RunCompleted))
    clock = ManualClock(entries[-1].at)
    with opened(journal_of(entries[:cut]), clock, Memory(EVIDENCE["still running"])) as scheduler:
        (run,) = scheduler.runs()
        assert (run.state, run.attempt_id, run.result) == ("completed", None, "done")
        assert scheduler.poll().offered == ()


CONTRADICTIONS: dict[str, Callable[[int, OccurrenceAdmitted, datetime], Entry]] = {
    "a second admission of one occurrence": lambda _, admitted, __: admitted,
    "a completion of a run that was never admitted": lambda _, __, at: RunCompleted(
        at=at, run_id=900, schedule_id="report"
    ),
    "a second start": lambda run_id, _, at: RunStarted(at=at, run_id=run_id, schedule_id="report"),
    "a failure of an attempt that never was": lambda run_id, _, at: RunFailed(
        at=at, run_id=run_id, schedule_id="report", attempt_id=900, error=ErrorInfo("", "no")
    ),
    "a resume of a run that was not interrupted": lambda run_id, _, at: ResumeMarked(
        at=at, run_id=run_id, schedule_id="report"
    ),
}


@pytest.mark.parametrize("contradiction", CONTRADICTIONS)
def test_a_contradiction_blocks_its_schedule_and_no_other(contradiction: str, tmp_path: Path) -> None:
    clock = ManualClock(NINE)
    with Scheduler.open(tmp_path / "journal", clock=clock) as scheduler:
        for name in ("other", "report"):
            scheduler.create(name, Cron("*/15 * * * *", zone="UTC"), target=name, overlap="parallel", max_active_runs=2)
        clock.advance(timedelta(minutes=15))
        scheduler.start(*[run.id for run in scheduler.poll().offered])
    with Journal.open(tmp_path / "journal", now=clock.now()) as journal:
        admitted = {
            entry.schedule_id: (sequence, entry)
            for sequence, entry in journal.entries()
            if isinstance(entry, OccurrenceAdmitted)
        }
        journal.append([CONTRADICTIONS[contradiction](*admitted["report"], clock.now())], clock.now())
    clock.advance(timedelta(minutes=15))
    with Scheduler.open(tmp_path / "journal", clock=clock, evidence=Memory(EVIDENCE["still running"])) as scheduler:
        blocked = scheduler.schedule("report").blocked
        assert blocked is not None
        assert blocked.cause == "anomaly"
        assert [run.schedule_id for run in scheduler.poll().admitted] == ["other"]
        with pytest.raises(Blocked):
            scheduler.run_now("report")
        assert scheduler.complete(admitted["report"][0]).state == "completed", "results are accepted"
    found = verify(tmp_path / "journal")
    assert found.intact, "the bytes are sound; what they say is not"
    assert [anomaly.schedule_id for anomaly in replay(tmp_path / "journal").anomalies] == ["report"]


def started_runs(*names: str | None) -> tuple[MemoryDisk, ManualClock, list[int]]:
    """A journal whose owner died while a run by hand of each schedule (None: of none) was started."""
    disk, clock = MemoryDisk(), ManualClock(NINE)
    with Scheduler.open(PATH, clock=clock, disk=disk) as scheduler:
        for name in dict.fromkeys(one for one in names if one is not None):
            scheduler.create(name, Cron("0 0 * * *", zone="UTC"), target=name)
        runs = [scheduler.run_now(name, target="work") for name in names]
        scheduler.start(*[run.id for run in runs])
        return disk.crashed(), clock, [run.id for run in runs]


def test_evidence_that_breaks_for_a_run_of_no_schedule_leaves_the_run_and_blocks_nothing() -> None:
    disk, clock, (loose, bound) = started_runs(None, "report")
    with opened(disk, clock, Memory(lambda run_id, _: _broken(run_id) if run_id == loose else None)) as scheduler:
        assert [kind_of(entry) for _, entry in scheduler.recovery.decisions] == ["RunAbandoned"]
        assert (scheduler.run(loose).state, scheduler.run(bound).state) == ("started", "abandoned")
        assert scheduler.complete(loose).state == "completed"


def test_evidence_that_cannot_be_recorded_counts_as_broken() -> None:
    disk, clock, (run_id,) = started_runs("report")
    unspeakable = Completed(run_id, None, float("nan"))
    with opened(disk, clock, Memory(lambda _, __: unspeakable)) as scheduler:
        assert [kind_of(entry) for _, entry in scheduler.recovery.decisions] == ["ScheduleBlocked"]
        assert scheduler.run(run_id).state == "started"


@pytest.mark.parametrize("verb", ["pause", "disable", "delete"])
def test_runs_of_schedules_that_are_off_are_decided_like_any_other(verb: str) -> None:
    disk, clock, (first, second) = started_runs("report", "other")
    with opened(disk, clock, Memory(EVIDENCE["still running"])) as scheduler:
        getattr(scheduler, verb)("report")
        disk = disk.crashed()
    with opened(disk, clock, Memory(lambda run_id, _: None if run_id == second else Completed(run_id))) as scheduler:
        assert (scheduler.run(first).state, scheduler.run(second).state) == ("completed", "abandoned")


def test_a_stranger_of_a_deleted_or_unknown_schedule_blocks_nothing() -> None:
    disk, clock, _ = started_runs("report", "other")
    with opened(disk, clock) as scheduler:
        scheduler.delete("report")
    strangers = ((900, "report"), (901, "nobody"))
    with opened(disk, clock, Memory(EVIDENCE["nothing"], strangers)) as scheduler:
        assert scheduler.recovery.decisions == ()


def test_a_run_that_the_host_files_under_another_schedule_is_a_stranger_there() -> None:
    disk, clock, (run_id, _) = started_runs("report", "other")
    with opened(disk, clock, Memory(EVIDENCE["still running"], ((run_id, "other"),))) as scheduler:
        verdicts = [verdict_of(entry) for _, entry in scheduler.recovery.decisions]
        assert verdicts == [("ScheduleBlocked", "other", None, "evidence")]


def test_a_run_that_ended_long_ago_is_no_stranger() -> None:
    disk, clock, (run_id,) = started_runs("report")
    for _ in range(2):
        with opened(disk, clock, Memory(EVIDENCE["nothing"], ((run_id, "report"),))) as scheduler:
            assert scheduler.schedule("report").blocked is None


def test_a_schedule_that_this_machine_cannot_evaluate_is_blocked_and_the_others_go_on() -> None:
    disk, clock = MemoryDisk(), ManualClock(NINE)
    calendar = Calendar()
    with Scheduler.open(PATH, clock=clock, disk=disk, sources={"own": calendar.source}) as scheduler:
        scheduler.create("own", calendar.source(15), target="own")
        scheduler.create("other", Cron("*/15 * * * *", zone="UTC"), target="other")
    clock.advance(timedelta(minutes=15))
    with Scheduler.open(PATH, clock=clock, disk=disk) as scheduler:
        (decision,) = scheduler.recovery.decisions
        assert verdict_of(decision[1]) == ("ScheduleBlocked", "own", None, "trigger")
        assert [run.schedule_id for run in scheduler.poll().admitted] == ["other"]
    with Scheduler.open(PATH, clock=clock, disk=disk) as scheduler:
        assert scheduler.recovery.decisions == ()
        scheduler.edit("own", expected_revision=1, trigger=Cron("*/15 * * * *", zone="UTC"))
        clock.advance(timedelta(minutes=15))
        assert "own" in [run.schedule_id for run in scheduler.poll().admitted]
