"""APScheduler as it is installed, under a clock that tests set: its triggers, and one pass of its loop at a time.

Rules kept here: nothing of APScheduler is replaced but what it reads as the current time; it gets the same time zone
data as duly; it is imported by name, as type checkers run without this extra.
"""

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, tzinfo
from importlib import import_module
from itertools import takewhile
from typing import Any

import pytest

from tests.scheduler.calendar.oracle import zone


def trigger_class(kind: str) -> Any:
    """A class of its triggers: "cron", "interval", "calendarinterval"."""
    names = {"cron": "CronTrigger", "interval": "IntervalTrigger", "calendarinterval": "CalendarIntervalTrigger"}
    return getattr(import_module(f"apscheduler.triggers.{kind}"), names[kind])


def cron(expression: str, zone_name: str) -> Any:
    return trigger_class("cron").from_crontab(expression, timezone=zone(zone_name))


def fire_times(trigger: Any, after: datetime) -> Iterator[datetime]:
    """What its scheduler would compute, one from the other, as it stands on the wall."""
    before, now = None, after
    while (found := trigger.get_next_fire_time(before, now)) is not None:
        before = now = found
        yield found


def instants(trigger: Any, after: datetime, until: datetime) -> list[datetime]:
    times = (found.astimezone(UTC) for found in fire_times(trigger, after))
    return list(takewhile(lambda found: found <= until, times))


def nothing(_: object) -> None:
    """The loop's wake-up and end, of which there is no loop here."""


class Peer:
    """A scheduler of APScheduler, started with its in-memory store; `tick` is one pass of its loop at that time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, now: datetime, store: Any = None) -> None:
        self.now = now
        self.ran: list[str] = []
        self.events: list[tuple[str, list[datetime]]] = []
        peer = self

        class Stepped(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Any:
                return peer.now.astimezone(tz)

        for module in ("schedulers.base", "executors.base"):
            monkeypatch.setattr(import_module(f"apscheduler.{module}"), "datetime", Stepped)
        base: Any = import_module("apscheduler.schedulers.base").BaseScheduler
        # Its loop is what a subclass brings: here, the test calls each pass.
        bare: Any = type("Bare", (base,), {"wakeup": nothing, "shutdown": nothing})
        self.scheduler = bare(timezone=UTC)
        self.scheduler.add_executor(import_module("apscheduler.executors.debug").DebugExecutor())
        if store is not None:
            self.scheduler.add_jobstore(store)
        self.scheduler.add_listener(self._note)
        self.scheduler.start()
        self.events.clear()

    def add(self, name: str, trigger: Any, work: Callable[[], None] | None = None, **options: Any) -> Any:
        def run() -> None:
            self.ran.append(name)
            if work is not None:
                work()

        return self.scheduler.add_job(run, trigger, id=name, **options)

    def tick(self, now: datetime) -> None:
        self.now = now
        self.scheduler._process_jobs()

    def _note(self, event: Any) -> None:
        events = import_module("apscheduler.events")
        names = {getattr(events, name): name for name in events.__all__ if name.startswith("EVENT_")}
        times: list[datetime] = getattr(event, "scheduled_run_times", [])
        with contextlib.suppress(AttributeError):
            times = [event.scheduled_run_time]
        self.events.append((names[event.code], [time.astimezone(UTC) for time in times]))
