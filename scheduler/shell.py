"""The shell: where decisions meet the clock, the journal and the state.

Rules: one decision lock; under it a command reads the clock once, decides, queues its entries and applies them to the
state, all or nothing; no call returns and no question is answered before everything it saw is durable; a journal that
failed, or a state that an interrupt left behind the queue, answers nothing any more. Host callbacks run under the
lock, and calling the scheduler from one raises.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from queue import Empty, SimpleQueue

# It is inspect.currentframe, without importing inspect, which would be a twentieth of an import of duly.
from sys import _getframe as currentframe  # pyright: ignore[reportPrivateUsage]
from threading import Lock, get_ident
from types import FrameType
from typing import Final, NamedTuple, TypeVar

import msgspec

from duly.journal import Journal, UnencodableEntry
from duly.journal.entries import AttemptCleared, ClockRegressed, Entry, JournalClosed, JournalOpened, TriggerRule
from duly.projections import Run, State
from duly.projections.ranges import range_holding
from duly.projections.runs import RUN_ENTRIES, recorded_run
from duly.projections.schedules import ScheduleState, rule_copy
from duly.scheduler.agenda import Agenda
from duly.scheduler.answers import HostAnswers
from duly.scheduler.calling import explained
from duly.scheduler.checkpoints import Checkpoints
from duly.scheduler.clock import Clock, take
from duly.scheduler.decisions.administration import Command
from duly.scheduler.definitions import check_words
from duly.scheduler.errors import (
    ClockUnusable,
    DefinitionError,
    SchedulerClosed,
    SchedulerError,
    TriggerError,
    UnknownSchedule,
)
from duly.scheduler.instants import in_range
from duly.scheduler.own_indexes import OwnIndexes
from duly.scheduler.roster import Ordering
from duly.scheduler.sources import OccurrenceSource, SourceFactory, Unevaluable
from duly.scheduler.triggers import INTERNED, trigger_of
from duly.scheduler.wording import describe_value

T = TypeVar("T")

CHUNK_ENTRIES: Final = 1_000
CHUNK_BYTES: Final = 1 << 20


class Shell:
    """What all parts of the Scheduler share."""

    @explained("Scheduler", 'Open a journal: Scheduler.open("state/").')
    def __init__(  # noqa: PLR0913 - what an owner brings
        self,
        journal: Journal,
        state: State,
        clock: Clock,
        *,
        answers: HostAnswers,
        sources: Mapping[str, SourceFactory],
        actor: str,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self._journal = journal
        self._checkpoints = checkpoints
        self._indexes = OwnIndexes(journal.path)
        self._state = state
        self._clock = clock
        self._answers = answers
        self._sources = dict(sources)
        self._actor = actor
        self._known_sources: dict[int, tuple[TriggerRule, OccurrenceSource]] = {}
        self._agenda = Agenda(self._source_of)
        self._ordering = Ordering()
        self._lock = Lock()
        self._inside: dict[int, FrameType | None] = {}
        self._stale: set[str] = set()
        self._closing = False
        self._closed = False
        self._admitting = True
        self._count: Final = itertools.count(1)
        self._changes = 0
        self._sleepers: set[SimpleQueue[None]] = set()

    # The decision lock

    def _exclusively(self, work: Callable[[], T]) -> T:
        """Does the work under the decision lock, and returns once all that it saw is durable."""
        thread = get_ident()
        if thread in self._inside and self._is_inside():
            raise SchedulerError(
                "the scheduler was called from inside one of its own calls",
                hint="A targets, preflight or evidence callback must not call it. A signal handler may call wake(), "
                "stop_admitting() and close(), and nothing else",
            )
        try:
            self._inside[thread] = currentframe()
            with self._lock:
                self._check_usable()
                outcome = _outcome_of(work)
                through = self._state.sequence
            # A refusal, too, tells of what it saw, and that must be durable first.
            self._journal.sync(through)
            if self._checkpoints is not None:
                self._checkpoints.note(self._state)
            if isinstance(outcome, _Refused):
                raise outcome.error
            return outcome
        finally:
            self._inside.pop(thread, None)
            if self._closing:
                self.close()

    def _is_inside(self) -> bool:
        """Whether this thread is in the middle of a call already, in a callback or a signal handler.

        An interrupt may have left a call without its last word: so the frame must still be on the stack.
        """
        entered = self._inside.get(get_ident())
        frame: FrameType | None = currentframe()
        while entered is not None and frame is not None:
            if frame is entered:
                return True
            frame = frame.f_back
        return False

    def close(self) -> None:
        """Records a closing mark and gives the journal up. Never raises; closing again does nothing.

        A signal handler may call it: if it comes in the middle of a call of the same thread, that call ends first.
        """
        self._admitting = False
        self._closing = True
        self.wake()
        if self._is_inside():
            return
        try:
            self._inside[get_ident()] = currentframe()
            with self._lock:
                self._close()
        finally:
            self._inside.pop(get_ident(), None)

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            if self._checkpoints is not None:
                self._checkpoints.leave()
            if not self._journal.poisoned:
                now = self._clock.now()
                closed = JournalClosed(at=now, actor=self._actor)
                sequence = self._journal.append([closed], now)
                if self._checkpoints is not None:
                    self._checkpoints.close(self._state, sequence, closed)
        except Exception as error:  # a close never raises; what is durable the next opening finds out
            self._journal.poison(error)
        finally:
            self._journal.close()

    def _check_usable(self) -> None:
        if self._closed:
            raise SchedulerClosed(
                "the scheduler is closed",
                hint="Open it again; a result that is still to be reported goes in as evidence: open(…, evidence=…)",
            )
        self._journal.check()
        if self._journal.last_sequence != self._state.sequence:
            self._journal.poison("an interrupt left the state behind the journal")
            self._journal.check()
        if self._stale:  # it was large, perhaps, and walking over an emptied large set takes its time
            for schedule_id in tuple(self._stale):
                self._refresh(schedule_id)

    def _record(
        self, entries: Sequence[Entry], now: datetime, upcoming: Mapping[str, datetime | None] | None = None
    ) -> int:
        """Queues one atomic batch and applies it; returns the first sequence. Call under the lock, and sync after.

        `upcoming` holds the next instants of schedules where they are known already.
        """
        if not entries:
            return self._state.sequence + 1
        for entry in entries:
            if isinstance(entry, ClockRegressed):
                self._stale.update(self._state.by_id)
            elif type(entry) not in RUN_ENTRIES:  # what becomes of a run changes nothing about what comes next
                schedule_id = getattr(entry, "schedule_id", None)
                if schedule_id is not None:
                    self._stale.add(schedule_id)
        try:
            first = self._journal.enqueue(entries, now)
        except UnencodableEntry as error:
            remedy = "Hand over less, or fewer at once."
            problem = f"cannot be recorded: {error}"
            raise DefinitionError("entries", f"{len(entries)} entries", problem, remedy) from error
        self._state.apply_all(first, entries)
        for schedule_id in tuple(self._stale):
            self._refresh(schedule_id, upcoming)
        return first

    def _record_in_chunks(self, entries: Iterable[Entry], now: datetime) -> None:
        """Queues many entries as batches, each atomic and no longer than a line may be; a result and the end of its
        attempt stay together."""
        for chunk in _chunks(entries):
            self._record(chunk, now)

    def _refresh(self, schedule_id: str, upcoming: Mapping[str, datetime | None] | None = None) -> None:
        schedule = self._state.by_id.get(schedule_id)
        if schedule is not None and upcoming is not None and schedule_id in upcoming:
            instant = upcoming[schedule_id]
            # What was just decided may make it count as decided, too.
            if instant is None or range_holding(schedule.kept, instant) is None:
                self._agenda.changed(schedule, instant)
            else:
                self._agenda.refresh(schedule)
        elif schedule is not None:
            self._agenda.refresh(schedule)
        self._stale.discard(schedule_id)

    # Changes that a waiting thread should look at

    def wake(self) -> None:
        """Ends every `wait` at once. Takes no lock, so that a signal handler may call it."""
        self._changes = next(self._count)
        for sleeper in tuple(self._sleepers):
            sleeper.put(None)

    def _sleep(self, seconds: float, seen: int) -> None:
        sleeper: SimpleQueue[None] = SimpleQueue()
        self._sleepers.add(sleeper)
        try:
            if self._changes == seen:
                self._clock.wait(seconds, lambda timeout: _woken(sleeper, timeout))
        finally:
            self._sleepers.discard(sleeper)

    # What decisions need

    def _source_of(self, rule: TriggerRule) -> OccurrenceSource:
        # By identity first: equal definitions share one rule, and hashing it would cost more than asking the calendar.
        known = self._known_sources.get(id(rule))
        if known is not None and known[0] is rule:
            return known[1]
        source = trigger_of(rule, self._sources)
        if len(self._known_sources) >= INTERNED:
            self._known_sources = {}
        self._known_sources[id(rule)] = (rule, source)
        return source

    def _source_for(self, schedule: ScheduleState) -> OccurrenceSource:
        return self._source_of(schedule.definition.trigger)

    def _shown_trigger(self, schedule: ScheduleState) -> OccurrenceSource:
        try:
            return self._source_of(schedule.definition.trigger)
        except TriggerError as error:
            return Unevaluable(rule_copy(schedule.definition.trigger), error)

    def _settings(self) -> JournalOpened:
        opened = self._state.opened
        if opened is None:
            raise SchedulerError("the scheduler is not open yet", hint="Use Scheduler.open()")
        return opened

    def _usable_now(self) -> datetime:
        now = self._clock.now()
        if not in_range(now):
            raise ClockUnusable(
                f"the clock reads {now.isoformat()}, outside of what is supported (1972 to 2100)",
                reading=now,
                hint="Set the clock, then try again; results and starts are recorded meanwhile",
            )
        return now

    def _command(self, actor: str, note: str, request: str = "", *, now: datetime | None = None) -> Command:
        return Command(
            at=now if now is not None else self._clock.now(),
            actor=check_words("actor", actor or self._actor),
            note=check_words("note", note),
            request=check_words("request", request),
        )

    def _living(self, schedule_id: str) -> ScheduleState:
        schedule = self._state.by_id.get(schedule_id)
        if schedule is None or schedule.deleted:
            what = "is unknown" if schedule is None else "is deleted"
            hint = "See schedules() for what there is" if schedule is None else "An id is never used again"
            raise UnknownSchedule(f"schedule {describe_value(schedule_id)} {what}", schedule_id=schedule_id, hint=hint)
        return schedule

    def _recorded_run(self, run_id: int) -> Run | None:
        """A run that has left memory, read from the journal; None if there never was one. Call without the lock."""
        if type(run_id) is not int or not 0 < run_id <= self._journal.durable_sequence:
            return None
        from duly.projections.indexed import entries_of_run

        with self._indexes.lent() as journal:
            return recorded_run(entries_of_run(journal, run_id), run_id)


class _Refused(NamedTuple):
    error: Exception


def _chunks(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    chunk: list[Entry] = []
    size = 0
    for entry in entries:
        length = len(msgspec.json.encode(entry))
        full = len(chunk) >= CHUNK_ENTRIES or size + length > CHUNK_BYTES
        if chunk and full and not isinstance(entry, AttemptCleared):
            yield chunk
            chunk, size = [], 0
        chunk.append(entry)
        size += length
    if chunk:
        yield chunk


def _outcome_of(work: Callable[[], T]) -> T | _Refused:
    try:
        return work()
    except Exception as error:  # raised again once what it tells of is durable
        return _Refused(error)


def _woken(sleeper: SimpleQueue[None], timeout: float) -> bool:
    try:
        take(sleeper, timeout)
    except Empty:
        return False
    return True
