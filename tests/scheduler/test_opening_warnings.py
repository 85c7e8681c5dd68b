"""What evidence could not tell at opening is told to people, and never passed off as the host's word."""

from __future__ import annotations

from collections.abc import Iterable

from duly import Run, StillRunning
from duly.journal.entries import RunAbandoned
from tests.scheduler.embedding import QUARTERLY, Program


class Store:
    """A host that knows which runs go on, raises for some, and may know runs of others."""

    def __init__(self, *, running: Iterable[int] = (), lost: Iterable[int] = (), known: Iterable[tuple[int, str]] = ()):
        self.running, self.lost, self.known = set(running), set(lost), tuple(known)

    def of(self, run: Run, /) -> StillRunning | None:
        if run.id in self.lost:
            raise ConnectionError("the store is down")
        return StillRunning(run.id) if run.id in self.running else None

    def runs(self) -> Iterable[tuple[int, str]]:
        return self.known


def with_started_runs(program: Program, *schedule_ids: str | None) -> list[int]:
    """Runs by hand, of these schedules (None: of none), that were at work when their process ended."""
    scheduler = program.open()
    for schedule_id in schedule_ids:
        if schedule_id is not None:
            scheduler.create(schedule_id, QUARTERLY, target="x")
    ids = [scheduler.run_now(schedule_id, target="x").id for schedule_id in schedule_ids]
    scheduler.start(*ids)
    scheduler.close()
    return ids


def test_evidence_that_could_not_be_had_for_a_run_of_no_schedule_is_a_warning_and_not_the_hosts_word(program: Program):
    (run_id,) = with_started_runs(program, None)
    recovery = program.open(evidence=Store(lost=[run_id])).recovery
    assert (recovery.decisions, recovery.running) == ((), ())
    (warning,) = recovery.warnings
    assert f"run {run_id} " in warning
    assert "ConnectionError: the store is down" in warning
    assert "goes on" not in str(recovery)
    assert warning in str(recovery)


def test_the_runs_that_go_on_are_those_that_the_host_says_so_of(program: Program):
    first, second, third = with_started_runs(program, "a", "b", None)
    recovery = program.open(evidence=Store(running=[second], lost=[third])).recovery
    assert [run.id for run in recovery.running] == [second]
    assert f"run {second} (x) goes on" in str(recovery)
    assert len(recovery.warnings) == 1
    assert [entry.run_id for _, entry in recovery.decisions if isinstance(entry, RunAbandoned)] == [first]


def test_a_run_of_a_schedule_that_nobody_knows_is_a_warning(program: Program):
    program.open().close()
    recovery = program.open(evidence=Store(known=[(900, "nobody")])).recovery
    assert recovery.decisions == ()
    (warning,) = recovery.warnings
    assert "900" in warning
    assert "'nobody'" in warning


def test_what_could_not_be_told_of_a_blocked_schedule_is_a_warning_all_the_same(program: Program):
    (run_id,) = with_started_runs(program, "a")
    scheduler = program.open(evidence=Store(running=[run_id]))
    scheduler.block("a", "not now")
    scheduler.close()
    recovery = program.open(evidence=Store(lost=[run_id], known=[(900, "a")])).recovery
    assert recovery.decisions == ()
    lost, stranger = recovery.warnings
    assert f"run {run_id} " in lost
    assert "run 900 of schedule 'a'" in stranger


def test_evidence_that_tells_everything_leaves_no_warning(program: Program):
    (run_id,) = with_started_runs(program, "a")
    recovery = program.open(evidence=Store(running=[run_id], known=[(run_id, "a")])).recovery
    assert (recovery.decisions, recovery.warnings) == ((), ())
