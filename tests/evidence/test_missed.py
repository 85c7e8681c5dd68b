"""What APScheduler does after a gap, and what is left of it, beside duly: facts of docs/explanation/apscheduler.md."""

from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from duly import Cron, ManualClock, Scheduler
from duly.journal.entries import SourceRule
from tests.evidence.peer import Peer, cron, trigger_class

pytestmark = pytest.mark.evidence

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class CountedSource:
    """Every minute, as a source of duly, with how often it was asked."""

    def __init__(self) -> None:
        self.rule = SourceRule("counted", {})
        self.calls = 0
        self.every_minute = Cron("* * * * *", "UTC")

    def next_after(self, instant: datetime) -> datetime | None:
        self.calls += 1
        return self.every_minute.next_after(instant)

    def prev_before(self, instant: datetime) -> datetime | None:
        self.calls += 1
        return self.every_minute.prev_before(instant)


def calls_of_the_peer(monkeypatch: pytest.MonkeyPatch, gap: timedelta) -> int:
    asked: list[datetime] = []
    plain: Any = trigger_class("cron")

    def counted(trigger: Any, previous: datetime | None, now: datetime) -> Any:
        asked.append(now)
        return plain.get_next_fire_time(trigger, previous, now)

    counting: Any = type("Counted", (plain,), {"get_next_fire_time": counted})
    peer = Peer(monkeypatch, NOON)
    peer.add("minutely", counting(minute="*", timezone=UTC), coalesce=True, misfire_grace_time=None)
    asked.clear()
    peer.tick(NOON + gap)
    assert peer.ran == ["minutely"]  # coalesced: one run, for the latest
    return len(asked)


def calls_of_duly(path: Path, gap: timedelta) -> int:
    source, clock = CountedSource(), ManualClock(NOON)
    with Scheduler.open(path, clock=clock, sources={"counted": lambda _: source}) as scheduler:
        scheduler.create("minutely", source, target="t")
        clock.advance(gap)
        source.calls = 0
        [run] = scheduler.poll().admitted
        assert run.scheduled_at == NOON + gap
        return source.calls


def test_finding_the_latest_missed_time_costs_every_missed_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert calls_of_the_peer(monkeypatch, DAY) == 24 * 60 + 2  # each, and the next
    assert calls_of_the_peer(monkeypatch, 7 * DAY) == 7 * 24 * 60 + 2
    week, years = calls_of_duly(tmp_path / "week", 7 * DAY), calls_of_duly(tmp_path / "years", 3 * 365 * DAY)
    assert week == years <= 105


def test_by_default_what_was_missed_for_more_than_a_second_does_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    peer = Peer(monkeypatch, NOON)
    peer.add("hourly", cron("0 * * * *", "UTC"))
    peer.add("patient", cron("0 * * * *", "UTC"), misfire_grace_time=None)
    peer.events.clear()
    peer.tick(NOON + 3 * HOUR + 2 * MINUTE)
    assert peer.ran == ["patient"]
    missed = [times for name, times in peer.events if name == "EVENT_JOB_MISSED"]
    assert missed == [[NOON + 3 * HOUR]]  # the two before it are not named anywhere

    clock = ManualClock(NOON)
    with Scheduler.open(tmp_path / "j", clock=clock) as scheduler:
        scheduler.create("hourly", Cron("0 * * * *", "UTC"), target="t")
        clock.advance(3 * HOUR + 2 * MINUTE)
        scheduler.poll()
        rows = [(row.scheduled_at, row.disposition) for row in scheduler.occurrences("hourly").items[1:]]
    assert rows == [
        (NOON + HOUR, "superseded"),
        (NOON + 2 * HOUR, "superseded"),
        (NOON + 3 * HOUR, "admitted"),
    ]


def test_a_second_instance_is_refused_with_an_event_and_a_warning_and_nothing_is_kept(monkeypatch: pytest.MonkeyPatch):
    peer = Peer(monkeypatch, NOON)
    job = peer.add("hourly", cron("0 * * * *", "UTC"))
    peer.events.clear()
    peer.scheduler._lookup_executor("default")._instances["hourly"] = 1  # one that is still running
    peer.tick(NOON + HOUR)
    assert peer.ran == []
    assert peer.events == [("EVENT_JOB_MAX_INSTANCES", [NOON + HOUR])]
    assert job.next_run_time == NOON + 2 * HOUR


def test_all_that_a_store_remembers_of_the_past_is_the_next_time(monkeypatch: pytest.MonkeyPatch):
    peer = Peer(monkeypatch, NOON)
    peer.scheduler.add_job(print, cron("0 * * * *", "UTC"), id="hourly", misfire_grace_time=None, args=[])
    before = peer.scheduler.get_job("hourly").__getstate__()
    peer.tick(NOON + 3 * HOUR + 2 * MINUTE)
    after = peer.scheduler.get_job("hourly").__getstate__()
    assert {name for name in after if after[name] != before[name]} == {"next_run_time"}
    assert after["next_run_time"] == NOON + 4 * HOUR


def test_work_is_handed_out_before_the_store_knows(monkeypatch: pytest.MonkeyPatch):
    order: list[str] = []
    memory: Any = import_module("apscheduler.jobstores.memory").MemoryJobStore

    def told(store: Any, job: Any) -> None:
        order.append("stored")
        memory.update_job(store, job)

    telling: Any = type("Telling", (memory,), {"update_job": told})
    peer = Peer(monkeypatch, NOON, telling())
    peer.add("hourly", cron("0 * * * *", "UTC"), lambda: order.append("worked"))
    order.clear()
    peer.tick(NOON + HOUR)
    assert order == ["worked", "stored"]


def test_one_reading_of_a_wrong_clock_silences_a_job_for_as_long(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    peer = Peer(monkeypatch, NOON)
    peer.add("daily", cron("0 13 * * *", "UTC"), misfire_grace_time=None)
    peer.tick(NOON + 3650 * DAY)
    peer.ran.clear()
    for day in range(30):
        peer.tick(NOON + day * DAY + 2 * HOUR)
    assert peer.ran == []
    assert peer.scheduler.get_job("daily").next_run_time > NOON + 3649 * DAY

    clock = ManualClock(NOON)
    with Scheduler.open(tmp_path / "j", clock=clock) as scheduler:
        scheduler.create("daily", Cron("0 13 * * *", "UTC"), target="t")
        clock.step(3650 * DAY)
        scheduler.complete(scheduler.poll(start=True).offered[0].id)
        clock.step(-3650 * DAY)
        scheduler.poll()  # journals that the clock went back
        ran = 0
        for _ in range(30):
            clock.advance(DAY)
            for run in scheduler.poll(start=True).offered:
                scheduler.complete(run.id)
                ran += 1
    assert ran == 30


def test_replacing_a_job_at_the_start_forgets_what_was_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    back = NOON + 3 * HOUR + 2 * MINUTE  # after three hours without a pass, in which the store kept the jobs
    peer = Peer(monkeypatch, NOON)
    for name in ("kept", "replaced"):
        peer.add(name, cron("0 * * * *", "UTC"), misfire_grace_time=None)
    peer.now = back
    replaced = peer.add("replaced", cron("0 * * * *", "UTC"), misfire_grace_time=None, replace_existing=True)
    assert replaced.next_run_time == NOON + 4 * HOUR
    peer.tick(back)
    assert peer.ran == ["kept"]

    clock = ManualClock(NOON)
    ran: list[datetime | None] = []
    for pause in (timedelta(), back - NOON):
        clock.advance(pause)
        with Scheduler.open(tmp_path / "j", clock=clock) as scheduler:
            scheduler.declare("declared", Cron("0 * * * *", "UTC"), target="t")
            ran += [run.scheduled_at for run in scheduler.poll().admitted]
    assert ran == [NOON + 3 * HOUR]
