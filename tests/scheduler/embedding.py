"""A program that embeds the scheduler, as small as it gets: one journal, a clock that stands still, a disk that counts.

Here is what is not a matter of decisions and their order: that is told as timelines.
"""

# A proof may look inside, and it looks through this module.
# pyright: reportPrivateUsage=false
from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar, Unpack

import pytest

from duly import Clock, Cron, EvidenceSource, ManualClock, Poll, Run, Scheduler, State
from duly.journal import Record, read
from duly.journal.disk import Disk
from duly.journal.entries import Entry, SourceRule, kind_of
from duly.journal.real_disk import RealDisk
from duly.projections import replay
from duly.scheduler.agenda import Agenda, Queue
from duly.scheduler.answers import Preflight, Targets
from duly.scheduler.roster import Roster
from duly.scheduler.sources import SourceFactory

T = TypeVar("T")

DAY = datetime(2026, 3, 2, tzinfo=UTC)
NINE = DAY + timedelta(hours=9)
MINUTE = timedelta(minutes=1)
QUARTERLY = Cron("*/15 * * * *", zone="UTC")


def at(text: str) -> datetime:
    """An instant of the day: "09:15", or "09:15:30"."""
    return datetime.fromisoformat(f"{DAY:%Y-%m-%d}T{text}").replace(tzinfo=UTC)


class WatchedDisk(RealDisk):
    """Real files, whose syncs are counted and not done: nothing here loses its power."""

    def __init__(self) -> None:
        super().__init__()
        self.syncs = 0
        self.before_sync: Callable[[], None] = lambda: None

    def sync(self, file: int) -> None:
        self.before_sync()
        self.syncs += 1

    def sync_folder(self, folder: Path) -> None:
        pass


class Task(Generic[T]):
    """Work in a thread of its own, so that a test which hangs fails instead."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._outcome: list[T] = []
        self._error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def running(self) -> bool:
        return self.thread.is_alive()

    def outcome(self, timeout: float = 10) -> T:
        """What the work returned; raises what it raised, and AssertionError if it does not end."""
        self.thread.join(timeout)
        assert not self.running, "it hangs"
        if self._error is not None:
            raise self._error
        return self._outcome[0]

    def _run(self) -> None:
        try:
            self._outcome.append(self._work())
        except BaseException as error:
            self._error = error


class Settings(TypedDict, total=False):
    """What a program may settle when it opens its scheduler."""

    task_slots: int
    batch: int
    clock: Clock
    clock_tolerance: timedelta
    targets: Targets
    preflight: Preflight
    evidence: EvidenceSource
    sources: Mapping[str, SourceFactory]
    create: bool
    lock_timeout: float
    actor: str
    block_unevaluable: bool
    disk: Disk


class Program:
    """Opens schedulers over one journal, and closes them all in the end."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal"
        self.clock = ManualClock(NINE)
        self.disk = WatchedDisk()
        self._opened: list[Scheduler] = []

    def open(self, **settings: Unpack[Settings]) -> Scheduler:
        """Opens the journal, after whoever held it has left."""
        chosen: Settings = {"clock": self.clock, "disk": self.disk, **settings}
        scheduler = Scheduler.open(self.path, **chosen)
        self._opened.append(scheduler)
        return scheduler

    def close(self) -> None:
        """Ends everything, whatever a test has broken."""
        self.disk.before_sync = lambda: None
        for scheduler in self._opened:
            Task(scheduler.close).thread.join(5)

    def poll_at(self, scheduler: Scheduler, when: str, *, start: bool = False) -> Poll:
        """Lets time pass until then, and polls."""
        self.clock.advance(at(when) - self.clock.now())
        return scheduler.poll(start=start)

    def records(self) -> list[Record]:
        return list(read(self.path))

    def kinds(self, after: int = 0) -> list[str]:
        """The kinds of the entries beyond `after`, without the marks of opening and closing."""
        kinds = [kind_of(record.entry) for record in read(self.path, after=after)]
        return [kind for kind in kinds if kind not in {"JournalOpened", "JournalClosed"}]

    def last(self) -> Entry:
        return self.records()[-1].entry

    def bytes(self) -> bytes:
        """All segments, as they are on the disk."""
        return b"".join(path.read_bytes() for path in sorted(self.path.glob("*.jsonl")))

    def consistent(self, scheduler: Scheduler) -> bool:
        """Whether the live state is the replayed one."""
        return scheduler.digest() == replay(self.path).digest()


class Detached:
    """As a row of a database is, once its session is gone."""

    def __repr__(self) -> str:
        raise LookupError("no session")

    def __eq__(self, other: object) -> bool:
        raise LookupError("no session")

    __hash__ = object.__hash__


def refused(program: Program, work: Callable[[], object], kind: type[Exception]) -> Any:
    """The error that the work raises; and not a byte was written."""
    before = program.bytes()
    with pytest.raises(kind) as caught:
        work()
    assert program.bytes() == before
    return caught.value


def begun(scheduler: Scheduler) -> Run:
    """A run by hand that is started."""
    return scheduler.start(scheduler.run_now(target="x").id)[0]


# What no user sees, for proofs that look inside.


def state_of(scheduler: Scheduler) -> State:
    return scheduler._state


def agenda_of(scheduler: Scheduler) -> Agenda:
    return scheduler._agenda


def hold(agenda: Agenda, held: Roster) -> Roster:
    """Exchanges what the agenda holds for want of a slot."""
    before, agenda._queued = agenda._queued, held
    return before


def sleepers_of(scheduler: Scheduler) -> int:
    """How many threads wait right now."""
    return len(scheduler._sleepers)


def lines_of(queue: Queue) -> int:
    """How many places and ids the queue holds, stale ones among them."""
    return len(queue._heap) + sum(len(line) for line in queue._lines.values())


class EveryMinutes:
    """A host's own source: every so many minutes of the day, with its calls counted."""

    def __init__(self, minutes: int = 1, calls: list[str] | None = None, name: str = "minutes") -> None:
        self.rule = SourceRule(name, {"minutes": minutes})
        self.calls: list[str] = [] if calls is None else calls
        self._step = timedelta(minutes=minutes)

    def next_after(self, instant: datetime, /) -> datetime | None:
        self.calls.append("next")
        return DAY + ((instant - DAY) // self._step + 1) * self._step

    def prev_before(self, instant: datetime, /) -> datetime | None:
        self.calls.append("prev")
        return DAY + -(-(instant - DAY) // self._step) * self._step - self._step

    def factory(self) -> Mapping[str, Callable[[Any], EveryMinutes]]:
        """To be given as `sources=`: what is made from the journal counts into the same list."""
        return {self.rule.source: lambda parameters: EveryMinutes(parameters["minutes"], self.calls, self.rule.source)}
