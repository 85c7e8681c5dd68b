"""The story of one schedule's instants: a record, folded as far as their explanations need it.

Rules: which decisions hold and which are void is taken from the history; beside it stand the entries that name an
instant, the revisions, the runs that are spoken of, and which runs held task slots meanwhile. Nothing is asked of a
calendar. What is kept is a row for each occurrence of the one schedule, and otherwise follows the asked instants and
the open runs; nothing of other schedules. An entry costs what it concerns: an instant, a run's instant, or, where a
span or a step back of the clock may hold any, all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final, Protocol, TypeAlias, cast, get_args

from duly.journal.entries import (
    CandidateHeld,
    Entry,
    EntryLost,
    ExternalRunRecorded,
    IntervalSkipped,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    RunAdmittedManually,
    ScheduleCreated,
    ScheduleEdited,
)
from duly.projections.history import STEPS_BACK, History, Row
from duly.projections.ranges import FIRST_INSTANT, LAST_INSTANT
from duly.projections.runs import RUN_ENTRIES, RunEntry
from duly.projections.slots import OpenRun, Slots
from duly.scheduler.explanations import Became, Revision, RunFacts, SlotTaken, Step, Voided, facts_of

MOST_SLOTS: Final = 100
"""How many runs that held a task slot are told of one occurrence: the newest."""
_OfInstant: TypeAlias = OccurrenceAdmitted | OccurrenceSkipped | OccurrenceSuperseded | CandidateHeld
_OF_INSTANTS: Final[frozenset[type[Entry]]] = frozenset(get_args(_OfInstant))


class Thread:
    """What the record says about one instant, as it is folded."""

    def __init__(self, instant: datetime) -> None:
        self.instant = instant
        self.standing: Row | None = None
        self.entry: Entry | None = None
        self.steps: list[Step] = []
        self.voided: list[Voided] = []
        self.slots: list[SlotTaken] = []
        self.task_slots: int | None = None
        self.run_id: int | None = None


class Surroundings(Protocol):
    """What the stories of a record ask of everything that is not their schedule's own."""

    @property
    def ids(self) -> Collection[str]:
        """The schedules that were ever created."""
        ...

    @property
    def last_at(self) -> datetime:
        """The last clock reading in the supported range."""
        ...

    @property
    def lost(self) -> int:
        """How many entries were lost."""
        ...

    @property
    def task_slots(self) -> int | None:
        """How many task slots the owner has; None before there was one."""
        ...

    @property
    def taken(self) -> int:
        """How many of them are taken."""
        ...

    def slots(self, since: datetime, until: datetime) -> list[SlotTaken]:
        """The task slots that were taken at any time from `since` to `until`, the newest of them."""
        ...

    def apply(self, sequence: int, entry: Entry) -> None:
        """Folds one entry in."""
        ...


class Setting:
    """What all stories of one record share: its schedules, its clock, its owner, and who held the task slots."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.last_at = FIRST_INSTANT
        self.opened: JournalOpened | None = None
        self.lost = 0
        self.open_runs = Slots()
        self._freed: deque[SlotTaken] = deque(maxlen=MOST_SLOTS)

    @property
    def task_slots(self) -> int | None:
        """How many task slots the owner has; None before there was one."""
        return None if self.opened is None else self.opened.task_slots

    @property
    def taken(self) -> int:
        """How many of them are taken."""
        return len(self.open_runs.holding)

    def apply(self, sequence: int, entry: Entry) -> None:
        """Folds one entry in."""
        if isinstance(entry, EntryLost):
            self.lost += 1
            return
        if FIRST_INSTANT <= entry.at < LAST_INSTANT:
            self.last_at = entry.at
        if isinstance(entry, JournalOpened):
            self.opened = entry
        elif isinstance(entry, ScheduleCreated):
            self.ids.add(entry.schedule_id)
        elif isinstance(entry, OccurrenceAdmitted | RunAdmittedManually | RunEntry):
            run_id, attempt_id = getattr(entry, "run_id", None), getattr(entry, "attempt_id", None)
            freed = self.open_runs.apply(sequence, type(entry), entry.at, entry.schedule_id, run_id, attempt_id)
            if freed is not None:
                self._freed.append(_slot(freed, entry.at))

    def slots(self, since: datetime, until: datetime) -> list[SlotTaken]:
        """The task slots that were taken at any time from `since` to `until`, the newest of them."""
        freed = [one for one in self._freed if one.until is not None and one.until >= since]
        taken = [_slot(one) for one in self.open_runs.holding.values() if one.since <= until]
        return [*freed, *taken][-MOST_SLOTS:]


def _slot(run: OpenRun, until: datetime | None = None) -> SlotTaken:
    return SlotTaken(run_id=run.run_id, schedule_id=run.schedule_id, since=run.since, until=until)


class Story:
    """The fold of a record as far as some instants of one schedule need it.

    With a `setting` of its own it is fed by `apply`; where several stories share one, the setting is fed before them,
    and each of them by `follow`.
    """

    def __init__(self, schedule_id: str, instants: Iterable[datetime], setting: Surroundings | None = None) -> None:
        self.history = History(schedule_id)
        self.setting: Surroundings = Setting() if setting is None else setting
        self.threads = {instant: Thread(instant) for instant in instants}
        self.revisions: dict[int, Revision] = {}
        self.spenders: dict[int, Entry] = {}
        self.runs: dict[int, RunFacts] = {}
        self._by_run: dict[int, Thread] = {}

    def apply(self, sequence: int, entry: Entry) -> None:
        """Folds one entry in, also into the setting."""
        self.setting.apply(sequence, entry)
        self.follow(sequence, entry)

    def follow(self, sequence: int, entry: Entry) -> None:
        """Folds one entry in that the setting knows already; those that do not concern the schedule change nothing."""
        spans = len(self.history.spans)
        if not self.history.apply(sequence, entry):
            return
        kind = type(entry)
        if kind in RUN_ENTRIES:
            self._follow_run(sequence, cast("RunEntry", entry))
        elif kind in _OF_INSTANTS:
            thread = self.threads.get(cast("_OfInstant", entry).scheduled_at)
            if thread is not None:
                self._spin(thread, sequence, entry, grown=False)
        else:
            self._follow_rest(sequence, entry, grown=len(self.history.spans) > spans)

    def span_of(self, instant: datetime) -> Row | None:
        """The newest span that holds the instant, or None."""
        for span in reversed(self.history.spans):
            if instant <= span.scheduled_at and (span.after is None or span.after < instant):
                return span
        return None

    def _follow_run(self, sequence: int, entry: RunEntry) -> None:
        if entry.run_id in self.runs:
            self._note_facts(entry.run_id)
        thread = self._by_run.get(entry.run_id)
        if thread is not None:
            self._spin(thread, sequence, entry, grown=False)

    def _follow_rest(self, sequence: int, entry: Entry, *, grown: bool) -> None:
        if isinstance(entry, ScheduleCreated | ScheduleEdited):
            self._note_revision(sequence, entry)
        elif isinstance(entry, RunAdmittedManually | ExternalRunRecorded):
            self.spenders[sequence] = entry
        if grown or type(entry) in STEPS_BACK:
            for thread in self.threads.values():
                self._spin(thread, sequence, entry, grown=grown)

    def _spin(self, thread: Thread, sequence: int, entry: Entry, *, grown: bool) -> None:
        if _names(entry, thread):
            thread.steps.append(Step(sequence=sequence, entry=entry))
        stepped_back = type(entry) in STEPS_BACK
        if not (stepped_back or grown or getattr(entry, "scheduled_at", None) == thread.instant):
            return
        before = thread.standing
        after = self.history.rows.get(thread.instant) or self.span_of(thread.instant)
        thread.standing = after
        if before is not None and (after is None or after.sequence != before.sequence) and stepped_back:
            self._void(thread, before, sequence, entry)
        if after is not None and after.sequence == sequence:
            self._decide(thread, after, sequence, entry)

    def _void(self, thread: Thread, before: Row, sequence: int, entry: Entry) -> None:
        became: Became
        if before.disposition != "interval":
            became = before.disposition
        elif isinstance(thread.entry, IntervalSkipped):
            became = "superseded" if before.reason == "superseded" else "skipped"
        else:
            became = "covered"
        thread.voided.append(
            Voided(
                disposition=became,
                reason=before.detail if became == "covered" else before.reason,
                sequence=before.sequence or 0,
                by=sequence,
                at=entry.at,
            )
        )
        thread.entry = None
        thread.slots = []

    def _decide(self, thread: Thread, row: Row, sequence: int, entry: Entry) -> None:
        thread.entry = entry
        thread.slots = self.setting.slots(thread.instant, entry.at) if _lacked_a_slot(thread, row) else []
        thread.task_slots = self.setting.task_slots
        if row.run_id is not None:
            thread.run_id = sequence
            self._by_run[sequence] = thread
            self._note_facts(sequence)
        if isinstance(entry, OccurrenceSkipped) and entry.blocking_run is not None:
            self._note_facts(entry.blocking_run)

    def _note_revision(self, sequence: int, entry: ScheduleCreated | ScheduleEdited) -> None:
        schedule = self.history.schedule
        if schedule is None or schedule.revision in self.revisions:
            return
        self.revisions[schedule.revision] = Revision(
            revision=schedule.revision,
            sequence=sequence,
            at=entry.at,
            actor=entry.actor,
            note=entry.note,
            definition=schedule.definition,
        )

    def _note_facts(self, run_id: int) -> None:
        run = self.history.run(run_id)
        if run is not None:
            self.runs[run_id] = facts_of(run)


def _lacked_a_slot(thread: Thread, row: Row) -> bool:
    """Whether it is told who held the task slots: where that decided, or had the occurrence held."""
    return row.reason == "capacity" or any(isinstance(step.entry, CandidateHeld) for step in thread.steps)


def _names(entry: Entry, thread: Thread) -> bool:
    """Whether the entry is about the occurrence, or about the run it became."""
    if thread.run_id is not None and getattr(entry, "run_id", None) == thread.run_id:
        return True
    return getattr(entry, "scheduled_at", None) == thread.instant
