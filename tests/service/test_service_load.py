"""A service under load, and a host that polls on time beside it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duly import Every, OneShot
from duly.journal import verify
from duly.journal.entries import OccurrenceAdmitted
from duly.scheduler.accounting import account
from duly.service import Client, Host, Polled
from tests.service.hosting import running
from tests.service.serving import serving

RATE = 200
"""Calls a second."""
THREADS = 8
LATEST = 1.5
"""Seconds after which an occurrence is admitted late, on a machine that does other things as well."""


@pytest.mark.parametrize(
    "seconds", [pytest.param(3, id="short"), pytest.param(62, id="long", marks=pytest.mark.torture)]
)
def test_two_hundred_calls_a_second_delay_no_poll(seconds: int, tmp_path: Path):
    late: list[float] = []

    def watch(event: object) -> None:
        if isinstance(event, Polled):
            for _, entry in event.poll.decisions:
                if isinstance(entry, OccurrenceAdmitted):
                    late.append((entry.at - entry.scheduled_at).total_seconds())

    with Host.open(tmp_path / "j", {"t": lambda _work: None}, task_slots=50, observers=[watch]) as host:
        for number in range(50):
            host.scheduler.create(f"s{number}", Every(1, "hour", anchor=datetime(2026, 1, 1, tzinfo=UTC)), target="t")
        due_each_second(host, seconds)
        with serving(host, tmp_path) as served, running(host), served.client() as client:
            answered, took = load(client, seconds)
    assert answered == RATE * seconds
    assert took < seconds * 1.2
    assert len(late) == seconds
    assert max(late) < LATEST
    assert verify(tmp_path / "j").intact
    assert account(tmp_path / "j").balanced


def due_each_second(host: Host, seconds: int) -> None:
    begin = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    for number in range(seconds):
        host.scheduler.create(f"at{number}", OneShot(begin + timedelta(seconds=number)), target="t")


def load(client: Client, seconds: int) -> tuple[int, float]:
    """Makes mixed calls at the rate; how many were answered, and how long it took."""
    began = time.monotonic()

    def worker(mine: int) -> int:
        answered = 0
        for turn in range(mine, RATE * seconds, THREADS):
            time.sleep(max(began + turn / RATE - time.monotonic(), 0.0))
            mixed(client, turn)
            answered += 1
        return answered

    with ThreadPoolExecutor(THREADS) as pool:
        answered = sum(pool.map(worker, range(THREADS)))
    return answered, time.monotonic() - began


def mixed(client: Client, turn: int) -> None:
    name = f"s{turn % 50}"
    match turn % 10:
        case 0:
            client.pause(name, note="load")
        case 1:
            client.unpause(name)
        case 2:
            client.run_now(name)
        case 3:
            client.schedules(limit=20)
        case 4:
            client.runs(limit=20)
        case 5:
            client.upcoming(10)
        case 6:
            client.next_due(name)
        case 7:
            client.status()
        case 8:
            client.explain(name, datetime(2026, 1, 1, tzinfo=UTC))
        case _:
            client.schedule(name)
