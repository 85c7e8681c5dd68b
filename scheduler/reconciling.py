"""Opening: replay, the gathering of evidence, and what recovery reports.

Rules: replay is pure and executes nothing; evidence is asked for before anything is decided, and a host that raises
blocks one schedule and stops nothing; the report says what was found, decided and left pending, as data and as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Protocol, TypeAlias

import msgspec

from duly.journal import JournalError, TornTail
from duly.journal.entries import (
    CalendarChanged,
    Entry,
    JournalOpened,
    OccurrenceAdmitted,
    RunAbandoned,
    RunAdmittedManually,
    ScheduleBlocked,
    TriggerRule,
    kind_of,
)
from duly.projections import Run, State
from duly.scheduler.copies import run_copy
from duly.scheduler.decisions.occurrences import next_instant
from duly.scheduler.decisions.recovery import Evidence, Findings, Unreadable, open_runs
from duly.scheduler.decisions.runs import Completed, Failed, Interrupted, StillRunning
from duly.scheduler.errors import TriggerError
from duly.scheduler.execution import checked_result
from duly.scheduler.sources import OccurrenceSource, SourceFactory, checked_next_after
from duly.scheduler.triggers import trigger_of
from duly.scheduler.wording import describe_error, shortened


class EvidenceSource(Protocol):
    """What the host's own store or workers know about runs."""

    def of(self, run: Run, /) -> Completed | Failed | Interrupted | StillRunning | None:
        """The result of a run that the journal holds as started, or StillRunning, or None if nothing is known."""
        ...

    def runs(self) -> Iterable[tuple[int, str]]:
        """All (run id, schedule id) that the host knows of, to find those that the journal does not."""
        ...


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """What opening found, decided and left.

    `decisions` are the (sequence, entry) that reconciling appended; `pending` the runs that the next polls offer;
    `interrupted` those that can be resumed; `running` those that go on, by the host's word. `warnings` are for people:
    also what evidence could not be had, and runs that only the host knows. `replayed` is the last entry that was there,
    `checkpoint` the one up to which the state came from the checkpoint, 0 if all entries were read.
    """

    created: bool
    replayed: int
    torn: tuple[TornTail, ...]
    decisions: tuple[tuple[int, Entry], ...]
    pending: tuple[Run, ...]
    interrupted: tuple[Run, ...]
    running: tuple[Run, ...]
    warnings: tuple[str, ...]
    checkpoint: int = 0

    def __str__(self) -> str:
        lines = ["a new journal" if self.created else f"{self.replayed:,} entries replayed"]
        if self.checkpoint:
            lines = [f"{self.replayed - self.checkpoint:,} entries replayed on the checkpoint at {self.checkpoint:,}"]
        lines.extend(f"cut off {one.size} torn bytes of {one.segment}, kept in {one.kept}" for one in self.torn)
        lines.extend(_told(sequence, entry) for sequence, entry in self.decisions)
        lines.extend(f"run {run.id} ({run.occurrence_id or run.target}) is pending" for run in self.pending)
        lines.extend(f"run {run.id} ({run.occurrence_id or run.target}) can be resumed" for run in self.interrupted)
        lines.extend(f"run {run.id} ({run.occurrence_id or run.target}) goes on" for run in self.running)
        lines.extend(f"warning: {warning}" for warning in self.warnings)
        return "\n".join(lines)


Journaled: TypeAlias = Callable[[], Iterator[tuple[int, Entry]]]
"""Reads the journal from its beginning."""


def gather(
    state: State,
    record: Journaled,
    evidence: EvidenceSource | None,
    sources: Mapping[str, SourceFactory],
    *,
    block_unevaluable: bool,
) -> Findings:
    """Asks the host and the calendar about everything that recovery may have to decide."""
    gathered: dict[int, Evidence] = {}
    if evidence is not None:
        gathered = {run.id: _evidence_of(evidence, run) for run in open_runs(state)}
    strangers: tuple[tuple[int, str], ...] = ()
    warnings: tuple[str, ...] = ()
    try:
        strangers = () if evidence is None else _strangers(evidence, record)
    except JournalError:
        raise
    except Exception as error:  # whatever the host raises must not keep all schedules from going on
        warnings = (f"evidence.runs() raised {describe_error(error)}: runs that only the host knows are not found",)
    warnings += tuple(
        f"evidence of run {run_id} could not be had ({found.detail}): the run stays as it is"
        for run_id, found in gathered.items()
        if isinstance(found, Unreadable)
    )
    warnings += tuple(
        f"the host knows run {run_id} of schedule {schedule_id!r}, which this journal never admitted"
        for run_id, schedule_id in strangers
    )
    return Findings(
        evidence=gathered,
        strangers=strangers,
        unevaluable=_unevaluable(state, sources) if block_unevaluable else {},
        warnings=warnings,
    )


def calendar_changes(
    state: State, sources: Mapping[str, SourceFactory], now: datetime, opened: JournalOpened
) -> tuple[CalendarChanged, ...]:
    """The schedules whose last decided instant is no occurrence any more, now that versions have changed."""
    before = state.opened
    if before is None or (before.croniter, before.tzdata) == (opened.croniter, opened.tzdata):
        return ()
    changes: list[CalendarChanged] = []
    for schedule_id, schedule in sorted(state.by_id.items()):
        last = schedule.last_decided
        if last is None or not schedule.live:
            continue
        try:
            source = trigger_of(schedule.definition.trigger, sources)
            if _is_occurrence(source, last):
                continue
            following = next_instant(source, schedule.consumed_through, schedule.kept)
        except TriggerError:
            continue
        changes.append(
            CalendarChanged(
                at=now,
                schedule_id=schedule_id,
                was=last,
                next=following,
                croniter=opened.croniter,
                tzdata=opened.tzdata,
            )
        )
    return tuple(changes)


def _is_occurrence(source: OccurrenceSource, instant: datetime) -> bool:
    return checked_next_after(source, instant - datetime.resolution) == instant


def _evidence_of(evidence: EvidenceSource, run: Run) -> Evidence:
    try:
        found = evidence.of(run_copy(run))
        if found is None or isinstance(found, StillRunning):
            return found
        return msgspec.structs.replace(checked_result(found), run_id=run.id)
    except Exception as error:  # whatever the host raises is a fault of this one run's evidence
        return Unreadable(describe_error(error))


def _strangers(evidence: EvidenceSource, record: Journaled) -> tuple[tuple[int, str], ...]:
    """Runs that the host knows and the journal never admitted for that schedule."""
    known = list(evidence.runs())
    if not known:
        return ()
    asked = {run_id for run_id, _ in known}
    admitted: dict[int, str | None] = {}
    first = 0
    for sequence, entry in record():
        first = first or sequence
        if sequence in asked and isinstance(entry, OccurrenceAdmitted | RunAdmittedManually):
            admitted[sequence] = entry.schedule_id
    # What is archived cannot be looked up. It has left memory, and so it has ended.
    return tuple(
        (run_id, one)
        for run_id, one in known
        if not 0 < run_id < first and (run_id not in admitted or admitted[run_id] != one)
    )


def _unevaluable(state: State, sources: Mapping[str, SourceFactory]) -> dict[str, str]:
    faults: dict[str, str] = {}
    known: dict[int, str] = {}  # by rule, which many schedules share
    for schedule_id, schedule in state.by_id.items():
        if schedule.deleted or schedule.block is not None or schedule.exhausted:
            continue
        rule = schedule.definition.trigger
        if id(rule) not in known:
            known[id(rule)] = _fault_of(rule, sources)
        if known[id(rule)]:
            faults[schedule_id] = known[id(rule)]
    return faults


def _fault_of(rule: TriggerRule, sources: Mapping[str, SourceFactory]) -> str:
    try:
        trigger_of(rule, sources)
    except TriggerError as error:
        return shortened(str(error))
    return ""


def _told(sequence: int, entry: Entry) -> str:
    match entry:
        case RunAbandoned():
            return f"#{sequence} run {entry.run_id} is abandoned: {entry.detail}"
        case ScheduleBlocked():
            return f"#{sequence} schedule {entry.schedule_id} is blocked: {entry.reason}"
        case _:
            return f"#{sequence} {kind_of(entry)} {getattr(entry, 'run_id', getattr(entry, 'schedule_id', ''))}"
