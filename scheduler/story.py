"""The story of one schedule's instants: a record, folded as far as their explanations need it.

Rules: which decisions hold and which are void is taken from the history; beside it stand the entries that name an
instant, the revisions, the runs that are spoken of, and which runs held task slots meanwhile. Nothing is asked of a
calendar, and what is kept follows the asked instants and the open runs, not the length of the record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from duly.journal.entries import (
    ClockRegressed,
    Entry,
    EntryLost,
    ExternalRunRecorded,
    IntervalSkipped,
    JournalOpened,
    OccurrenceSkipped,
    ResumeMarked,
    RunAbandoned,
    RunAdmittedManually,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    ScheduleCreated,
    ScheduleRebaselined,
)
from duly.projections.fold import FIRST_INSTANT, LAST_INSTANT
from duly.projections.history import History, Row
from duly.projections.runs import RunEntry
from duly.scheduler.explanations import Became, Revision, RunFacts, SlotTaken, Step, Voided, facts_of

MOST_SLOTS: Final = 100
"""How many runs that held a task slot are told of one occurrence: the newest."""
_FREEING: Final = (RunCompleted, RunFailed, RunInterrupted, RunAbandoned)


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
        self.freed: deque[SlotTaken] = deque(maxlen=MOST_SLOTS)


class Story:
    """The fold of a record as far as some instants of one schedule need it."""

    def __init__(self, schedule_id: str, instants: Iterable[datetime]) -> None:
        self.history = History(schedule_id)
        self.threads = {instant: Thread(instant) for instant in instants}
        self.revisions: dict[int, Revision] = {}
        self.ids: set[str] = set()
        self.last_at = FIRST_INSTANT
        self.opened: JournalOpened | None = None
        self.lost = 0
        self.spenders: dict[int, Entry] = {}
        self.holding: dict[int, SlotTaken] = {}
        self.runs: dict[int, RunFacts] = {}

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
        self._note_slot(entry)
        if not self.history.concerns(entry):
            return
        spans = len(self.history.spans)
        self.history.apply(sequence, entry)
        self._note_revision(sequence, entry)
        if isinstance(entry, RunAdmittedManually | ExternalRunRecorded):
            self.spenders[sequence] = entry
        elif isinstance(entry, RunEntry) and entry.run_id in self.runs:
            self._follow(entry.run_id)
        grown = len(self.history.spans) > spans
        for thread in self.threads.values():
            self._spin(thread, sequence, entry, grown=grown)

    def span_of(self, instant: datetime) -> Row | None:
        """The newest span that holds the instant, or None."""
        for span in reversed(self.history.spans):
            if instant <= span.scheduled_at and (span.after is None or span.after < instant):
                return span
        return None

    def _spin(self, thread: Thread, sequence: int, entry: Entry, *, grown: bool) -> None:
        if _names(entry, thread):
            thread.steps.append(Step(sequence=sequence, entry=entry))
        stepped_back = isinstance(entry, ClockRegressed | ScheduleRebaselined)
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
        thread.slots = self.slots_of(thread, entry.at)
        thread.task_slots = None if self.opened is None else self.opened.task_slots
        if row.run_id is not None:
            thread.run_id = sequence
            self._follow(sequence)
        if isinstance(entry, OccurrenceSkipped) and entry.blocking_run is not None:
            self._follow(entry.blocking_run)

    def slots_of(self, thread: Thread, until: datetime) -> list[SlotTaken]:
        """The task slots that were taken at any time from the occurrence's instant to `until`, the newest of them."""
        taken = [one for one in self.holding.values() if one.since <= until]
        return [*thread.freed, *taken][-MOST_SLOTS:]

    def _note_slot(self, entry: Entry) -> None:
        if isinstance(entry, RunStarted | ResumeMarked):
            taken = SlotTaken(run_id=entry.run_id, schedule_id=entry.schedule_id, since=entry.at)
            self.holding[entry.run_id] = taken
        elif isinstance(entry, _FREEING):
            held = self.holding.pop(entry.run_id, None)
            if held is None:
                return
            freed = msgspec.structs.replace(held, until=entry.at)
            for thread in self.threads.values():
                if entry.at >= thread.instant:
                    thread.freed.append(freed)

    def _note_revision(self, sequence: int, entry: Entry) -> None:
        schedule = self.history.schedule
        if schedule is None or schedule.revision in self.revisions:
            return
        self.revisions[schedule.revision] = Revision(
            revision=schedule.revision,
            sequence=sequence,
            at=entry.at,
            actor=getattr(entry, "actor", ""),
            note=getattr(entry, "note", ""),
            definition=schedule.definition,
        )

    def _follow(self, run_id: int) -> None:
        run = self.history.run(run_id)
        if run is not None:
            self.runs[run_id] = facts_of(run)


def _names(entry: Entry, thread: Thread) -> bool:
    """Whether the entry is about the occurrence, or about the run it became."""
    if thread.run_id is not None and getattr(entry, "run_id", None) == thread.run_id:
        return True
    return getattr(entry, "scheduled_at", None) == thread.instant
