"""Metrics, for Prometheus.

Rules: decisions are counted from the record, from the moment when the service began; what stands now is asked at each
scrape. There is no label for the schedule unless it is asked for, and then for so many schedules; all others are one.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from duly.journal import RealDisk
from duly.journal.entries import (
    ClockRegressed,
    IntervalSkipped,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    RunAbandoned,
    RunCompleted,
    RunFailed,
)
from duly.journal.errors import JournalError
from duly.journal.reader import Record
from duly.scheduler.embedded import Scheduler
from duly.scheduler.errors import SchedulerClosed, TriggerError, UnknownSchedule
from duly.service.watching.watched import Watched, health_of

OTHERS: Final = "(others)"
"""What all schedules over the cap are called; no schedule can have this id."""
OPEN_STATES: Final = ("pending", "started", "interrupted")
LATENESS: Final = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400)
FSYNC: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)


class TimedDisk(RealDisk):
    """A disk that takes the time of each fsync of a file: open a scheduler or a host with it, and a server."""

    def __init__(self) -> None:
        super().__init__()
        self.histogram = Histogram(
            "duly_journal_fsync_seconds", "How long an fsync of the journal took.", buckets=FSYNC, registry=None
        )

    def sync(self, file: int) -> None:
        """Makes the file's contents and size durable, and takes the time."""
        began = monotonic()
        super().sync(file)
        self.histogram.observe(monotonic() - began)


class Metrics:
    """The metrics of what is watched. `schedules` is how many schedules get a label of their own; 0: there is none."""

    def __init__(self, watched: Watched, *, schedules: int = 0, disk: TimedDisk | None = None) -> None:
        self._watched = watched
        self._most = schedules
        self._labelled: set[str] = set()
        self._lock = Lock()
        self.registry = CollectorRegistry()
        own = ("schedule",) if schedules else ()
        self._occurrences = Counter(
            "duly_occurrences", "Occurrences decided.", ("disposition", "reason", *own), registry=self.registry
        )
        self._ended = Counter("duly_runs_ended", "Runs that have ended.", ("state", *own), registry=self.registry)
        self._lateness = Histogram(
            "duly_lateness_seconds",
            "How long after its instant an occurrence was admitted.",
            own,
            buckets=LATENESS,
            registry=self.registry,
        )
        self._regressions = Counter(
            "duly_clock_regressions", "Steps of the clock back that were decided on.", registry=self.registry
        )
        self._runs = Gauge("duly_runs", "Runs that have not ended.", ("state",), registry=self.registry)
        self._next_due = Gauge(
            "duly_next_due_timestamp_seconds", "When the next occurrence is due.", own, registry=self.registry
        )
        self._success = Gauge(
            "duly_last_success_timestamp_seconds", "When a run succeeded last.", own, registry=self.registry
        )
        self._age = Gauge("duly_poll_age_seconds", "How long ago the last poll was.", registry=self.registry)
        self._bytes = Gauge("duly_journal_bytes", "The size of the journal's segments.", registry=self.registry)
        self._ready = Gauge("duly_ready", "Whether runs are admitted: 1 or 0.", registry=self.registry)
        if disk is not None:
            self.registry.register(disk.histogram)
        with suppress(JournalError, SchedulerClosed, OSError):
            for run in watched.ask(lambda scheduler: scheduler.runs(state="completed")):
                if run.ended_at is not None:
                    self._succeeded(run.schedule_id, run.ended_at)

    def count(self, record: Record) -> None:
        """Counts an entry of the record."""
        match record.entry:
            case OccurrenceAdmitted(at=at, schedule_id=schedule_id, scheduled_at=scheduled_at):
                self._decided("admitted", "", schedule_id)
                lateness = self._lateness.labels(*self._label(schedule_id)) if self._most else self._lateness
                lateness.observe(max((at - scheduled_at).total_seconds(), 0.0))
            case OccurrenceSkipped(schedule_id=schedule_id, reason=reason):
                self._decided("skipped", reason, schedule_id)
            case OccurrenceSuperseded(schedule_id=schedule_id):
                self._decided("superseded", "", schedule_id)
            case IntervalSkipped(schedule_id=schedule_id, reason="superseded", at_least=count):
                self._decided("superseded", "", schedule_id, count)
            case IntervalSkipped(schedule_id=schedule_id, reason=reason, at_least=count):
                self._decided("skipped", reason, schedule_id, count)
            case RunCompleted(at=at, schedule_id=schedule_id):
                self._ended.labels("completed", *self._label(schedule_id)).inc()
                self._succeeded(schedule_id, at)
            case RunFailed(schedule_id=schedule_id):
                self._ended.labels("failed", *self._label(schedule_id)).inc()
            case RunAbandoned(schedule_id=schedule_id):
                self._ended.labels("abandoned", *self._label(schedule_id)).inc()
            case ClockRegressed():
                self._regressions.inc()
            case _:
                pass

    def text(self) -> bytes:
        """All metrics, as they stand now, in Prometheus' text format."""
        with self._lock:
            health = health_of(self._watched)
            self._ready.set(health.ready)
            self._age.set(float("nan") if health.poll_age is None else health.poll_age)
            with suppress(OSError):
                self._bytes.set(_size_of(self._watched.scheduler.path))
            with suppress(JournalError, SchedulerClosed, OSError):  # the journal is out of reach: what was, stands
                self._watched.ask(self._look)
            return generate_latest(self.registry)

    def _look(self, scheduler: Scheduler) -> None:
        runs = scheduler.runs()
        for state in OPEN_STATES:
            self._runs.labels(state).set(sum(run.state == state for run in runs))
        if not self._most:
            coming = scheduler.upcoming(1)
            self._next_due.set(coming[0].scheduled_at.timestamp() if coming else float("nan"))
            return
        self._next_due.clear()
        for schedule in scheduler.schedules(limit=self._most):
            with suppress(TriggerError, UnknownSchedule):
                due = scheduler.next_due(schedule.id)
                if due is not None and self._label(schedule.id) != (OTHERS,):
                    self._next_due.labels(schedule.id).set(due.timestamp())

    def _decided(self, disposition: str, reason: str, schedule_id: str, count: int = 1) -> None:
        self._occurrences.labels(disposition, reason, *self._label(schedule_id)).inc(count)

    def _succeeded(self, schedule_id: str | None, at: datetime) -> None:
        (self._success.labels(*self._label(schedule_id)) if self._most else self._success).set(at.timestamp())

    def _label(self, schedule_id: str | None) -> tuple[str, ...]:
        """The label of a schedule, if there are any; a run that belongs to none counts among the others."""
        if not self._most:
            return ()
        if schedule_id is not None and len(self._labelled) < self._most:
            self._labelled.add(schedule_id)
        return (schedule_id if schedule_id is not None and schedule_id in self._labelled else OTHERS,)


def _size_of(journal: Path) -> int:
    return sum(segment.stat().st_size for segment in journal.glob("*.jsonl"))
