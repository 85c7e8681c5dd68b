"""The rows of docs/how-to/migrate-from-apscheduler.md that say "the same": both schedulers through the same hours."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from duly import Cron, DuplicateSchedule, ManualClock, Run, Scheduler
from tests.evidence.peer import Peer, cron

pytestmark = pytest.mark.evidence

HALF_PAST = datetime(2026, 3, 2, 12, 30, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
HOURLY = "0 * * * *"


def peer_runs(monkeypatch: pytest.MonkeyPatch, late: timedelta, hours: int = 1, **options: Any) -> int:
    """How often a job of every hour runs when the first look comes so late after the last of so many hours."""
    peer = Peer(monkeypatch, HALF_PAST)
    peer.add("job", cron(HOURLY, "UTC"), **options)
    peer.tick(HALF_PAST + 30 * MINUTE + (hours - 1) * HOUR + late)
    return len(peer.ran)


def our_runs(path: Path, late: timedelta, hours: int = 1, **policy: Any) -> list[Run]:
    clock = ManualClock(HALF_PAST)
    with Scheduler.open(path, clock=clock) as scheduler:
        scheduler.create("job", Cron(HOURLY, "UTC"), target="t", **policy)
        clock.advance(30 * MINUTE + (hours - 1) * HOUR + late)
        return list(scheduler.poll().admitted)


@pytest.mark.parametrize(("late", "runs"), [(14, 1), (16, 0)])
def test_a_grace_of_a_quarter_of_an_hour_is_skip_with_that_lateness(
    late: int, runs: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    assert peer_runs(monkeypatch, late * MINUTE, misfire_grace_time=900) == runs
    assert len(our_runs(tmp_path / "j", late * MINUTE, misfire="skip", lateness=timedelta(minutes=15))) == runs


def test_no_grace_and_coalesce_is_latest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert peer_runs(monkeypatch, 20 * MINUTE, hours=5, misfire_grace_time=None, coalesce=True) == 1
    [run] = our_runs(tmp_path / "j", 20 * MINUTE, hours=5)
    assert run.scheduled_at == HALF_PAST + 30 * MINUTE + 4 * HOUR


def test_without_coalesce_everything_missed_is_replayed_which_duly_never_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    assert peer_runs(monkeypatch, 20 * MINUTE, hours=5, misfire_grace_time=None, coalesce=False) == 5
    assert len(our_runs(tmp_path / "j", 20 * MINUTE, hours=5)) == 1


@pytest.mark.parametrize(("active", "runs"), [(2, 1), (3, 0)])
def test_three_instances_are_three_active_runs(active: int, runs: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    peer = Peer(monkeypatch, HALF_PAST)
    peer.add("job", cron(HOURLY, "UTC"), max_instances=3)
    peer.scheduler._lookup_executor("default")._instances["job"] = active
    peer.tick(HALF_PAST + 30 * MINUTE)
    assert len(peer.ran) == runs

    clock = ManualClock(HALF_PAST)
    with Scheduler.open(tmp_path / "j", clock=clock) as scheduler:
        scheduler.create("job", Cron(HOURLY, "UTC"), target="t", overlap="parallel", max_active_runs=3)
        clock.advance(30 * MINUTE)
        for _ in range(active):
            assert len(scheduler.poll(start=True).admitted) == 1  # and stays active
            clock.advance(HOUR)
        assert len(scheduler.poll().admitted) == runs


def test_what_came_due_in_a_pause_does_not_run_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    peer = Peer(monkeypatch, HALF_PAST)
    peer.add("job", cron(HOURLY, "UTC"), misfire_grace_time=None)
    peer.scheduler.pause_job("job")
    peer.now = HALF_PAST + 5 * HOUR
    peer.scheduler.resume_job("job")
    peer.tick(peer.now)
    assert peer.ran == []

    clock = ManualClock(HALF_PAST)
    with Scheduler.open(tmp_path / "j", clock=clock) as scheduler:
        scheduler.create("job", Cron(HOURLY, "UTC"), target="t")
        scheduler.pause("job")
        clock.advance(5 * HOUR)
        scheduler.unpause("job")
        assert scheduler.poll().admitted == ()


def test_an_id_that_is_taken_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    peer = Peer(monkeypatch, HALF_PAST)
    peer.add("job", cron(HOURLY, "UTC"))
    with pytest.raises(KeyError, match="conflicts with an existing job"):
        peer.add("job", cron(HOURLY, "UTC"))
    with Scheduler.open(tmp_path / "j", clock=ManualClock(HALF_PAST)) as scheduler:
        scheduler.create("job", Cron(HOURLY, "UTC"), target="t")
        with pytest.raises(DuplicateSchedule):
            scheduler.create("job", Cron(HOURLY, "UTC"), target="t")
