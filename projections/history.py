"""History: what became of every occurrence of one schedule, as the record has it.

Rules: one row for each occurrence that was decided, and one for each span that one entry decided or covered; what a
clock regression made void is gone, and a span that straddles it is clipped; nothing is asked of a calendar. Which
entries hold and which are void is taken from the one fold.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from datetime import datetime
from operator import attrgetter
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

import msgspec

from duly.journal.entries import (
    CalendarChanged,
    CandidateHeld,
    ClockRegressed,
    Entry,
    ErrorInfo,
    IntervalSkipped,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    ScheduleCreated,
    ScheduleDeleted,
    ScheduleDisabled,
    ScheduleEdited,
    ScheduleEnabled,
    SchedulePaused,
    ScheduleRebaselined,
    ScheduleUnpaused,
    TriggerRule,
    kind_of,
)
from duly.journal.errors import Error
from duly.projections.fold import KEPT_REASONS, is_kept
from duly.projections.ranges import MOST, Range, joined_gap, range_holding
from duly.projections.runs import ENDED, RUN_ENTRIES, Run, RunEntry, RunState, occurrence_id
from duly.projections.schedules import ScheduleState
from duly.projections.state import State

Disposition: TypeAlias = Literal["admitted", "skipped", "superseded", "held", "waiting", "interval"]

_Covering: TypeAlias = (
    ScheduleCreated
    | ScheduleEdited
    | SchedulePaused
    | ScheduleUnpaused
    | ScheduleDisabled
    | ScheduleEnabled
    | ScheduleDeleted
)

_DECISIONS: Final = (OccurrenceAdmitted, OccurrenceSkipped, OccurrenceSuperseded)

STEPS_BACK: Final[frozenset[type[Entry]]] = frozenset({ClockRegressed, ScheduleRebaselined})
"""What may make void what was decided."""

_INSTANT: Final = attrgetter("scheduled_at")

UNNAMED: Final = ""
"""The `occurrence_id` of a row that nobody was shown yet: to format one takes as long as to fold an entry."""


class Row(msgspec.Struct, kw_only=True):
    """One occurrence, or one span of them (`interval`), and what became of it. All instants are UTC.

    For a span, `scheduled_at` is its last instant, `after` its beginning (excluded; None: from the beginning of time),
    `at_least` how many occurrences were seen in it, and `detail` the kind of its entry.
    """

    scheduled_at: datetime
    occurrence_id: str
    disposition: Disposition
    reason: str | None = None
    detail: str = ""
    superseded_by: datetime | None = None
    run_id: int | None = None
    run_state: RunState | None = None
    error: ErrorInfo | None = None
    revision: int | None = None
    admitted_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    sequence: int | None = None
    after: datetime | None = None
    at_least: int | None = None

    @property
    def key(self) -> tuple[datetime, str, int]:
        """What rows are sorted by, and what a cursor names: spans that end at an instant come after its own row."""
        return self.scheduled_at, self.occurrence_id, self.sequence or 0 if self.disposition == "interval" else 0


class Page(msgspec.Struct, frozen=True):
    """Some rows, and the cursor of the page that follows, or None at the end."""

    items: tuple[Row, ...]
    next: str | None


class BadCursor(Error, ValueError):
    """What was given as a cursor is none."""


def page_of(rows: Sequence[Row], after: str | None, limit: int, *, shown: Callable[[Row], Row] | None = None) -> Page:
    """The rows behind the cursor `after`, at most `limit`, as `shown` has them. Raises BadCursor, also for a limit that
    is no count."""
    if type(limit) is not int or limit < 1:
        raise BadCursor(f"limit: {limit!r} is not a count; give a whole number of at least 1")
    show = shown or _as_it_is
    start = 0 if after is None else bisect_right(rows, _parse_cursor(after), key=lambda row: show(row).key)
    items = tuple(map(show, rows[start : start + limit]))
    more = start + limit < len(rows)
    return Page(items, _cursor(items[-1]) if more and items else None)


def _as_it_is(row: Row) -> Row:
    return row


def _cursor(row: Row) -> str:
    instant, occurrence, span = row.key
    return f"{instant.isoformat()}|{occurrence}|{span}"


def _parse_cursor(cursor: object) -> tuple[datetime, str, int]:
    try:
        instant, occurrence, span = str(cursor).split("|")
        parsed = datetime.fromisoformat(instant), occurrence, int(span)
    except ValueError:
        parsed = None
    if parsed is None or parsed[0].utcoffset() is None:
        raise BadCursor(f"{cursor!r} is no cursor; give the `next` of the page before")
    return parsed


class Reign(msgspec.Struct):
    """Which rule a schedule's instants came from, from `start` (excluded) on, and of which revision it is."""

    start: datetime
    rule: TriggerRule
    revision: int


ENDED_RUNS: Final = 16
"""How many runs that have ended a history still knows, with their results: it is asked for one straight behind its end,
and where there are many schedules there are as many histories."""


class History:
    """The fold of one schedule's entries into rows; feed it every entry of a journal, in order."""

    def __init__(self, schedule_id: str) -> None:
        self.schedule_id = schedule_id
        self.rows: dict[datetime, Row] = {}
        """By their instants; a row has its `occurrence_id` only in the `table`."""
        self.spans: list[Row] = []
        self.doubles: list[datetime] = []
        self.reigns: list[Reign] = []
        self.rules: dict[int, TriggerRule] = {}
        self.joined: list[Range] = []
        self.calendar_changed: CalendarChanged | None = None
        self._state = State()
        self._runs: dict[int, datetime] = {}

    @property
    def schedule(self) -> ScheduleState | None:
        """The schedule's state after what was folded, or None if it was never created."""
        return self._state.by_id.get(self.schedule_id)

    def run(self, run_id: int) -> Run | None:
        """A run of the schedule that is open or ended lately, or None."""
        return self._state.known_run(run_id)

    def apply(self, sequence: int, entry: Entry) -> bool:
        """Folds one entry in; those that do not concern this schedule change nothing. Whether it does."""
        kind = type(entry)
        if kind is not ClockRegressed and getattr(entry, "schedule_id", None) != self.schedule_id:
            return False
        state = self._state
        before = state.by_id.get(self.schedule_id)
        if before is not None:
            if kind in STEPS_BACK:
                self._void(before, entry)
            elif len(before.kept) >= MOST:
                self._join(before, entry)
        anomalies = state.anomaly_count
        state.apply(sequence, entry)
        if len(state.runs_recent) > ENDED_RUNS:
            state.runs_recent.popitem(last=False)
        if state.anomaly_count != anomalies:
            if isinstance(entry, _DECISIONS) and entry.scheduled_at in self.rows:
                self.doubles.append(entry.scheduled_at)
        elif (note := self._NOTES.get(kind)) is not None:
            note(self, sequence, entry)
        return True

    def table(self) -> list[Row]:
        """All rows in the order of their instants; the candidate is among them, what waits is not."""
        return [self._named(row) for row in self._sorted(())]

    def page(self, after: str | None, limit: int, waiting: Iterable[Row] = ()) -> Page:
        """As `page_of` the table and the rows of what waits; its rows are copies, which nothing changes any more.
        Raises BadCursor."""
        return page_of(self._sorted(waiting), after, limit, shown=lambda row: copy(self._named(row)))

    def _sorted(self, waiting: Iterable[Row]) -> list[Row]:
        # The sort is stable: a span that ends at an instant stays behind its row, and behind older spans that do.
        return sorted([*self.rows.values(), *waiting, *self.spans], key=_INSTANT)

    def _named(self, row: Row) -> Row:
        if row.occurrence_id == UNNAMED:
            row.occurrence_id = occurrence_id(self.schedule_id, row.scheduled_at)
        return row

    def _join(self, schedule: ScheduleState, entry: Entry) -> None:
        """Notes the gap that the fold is about to count as decided, having too many ranges to keep apart."""
        if not is_kept(entry):
            return
        gap = joined_gap(schedule.kept, entry.scheduled_at, schedule.consumed_through)
        if gap is not None:
            self.joined.append(gap)

    def _void(self, schedule: ScheduleState, entry: Entry) -> None:
        if isinstance(entry, ClockRegressed) and schedule.consumed_through - entry.at > entry.tolerance:
            self._step_back(schedule, entry.at)
        elif isinstance(entry, ScheduleRebaselined) and entry.regressed:
            self._step_back(schedule, entry.through)

    def _step_back(self, schedule: ScheduleState, now: datetime) -> None:
        for instant in [one for one in self.rows if one > now]:
            row = self.rows[instant]
            kept = row.disposition == "admitted" or row.reason in KEPT_REASONS
            if not kept and range_holding(schedule.kept, instant) is None:
                del self.rows[instant]
        self.spans = [self._clipped(span, now) for span in self.spans if span.after is None or span.after < now]
        while len(self.reigns) > 1 and self.reigns[-2].start >= now:
            del self.reigns[-2]
        self.reigns[-1].start = min(self.reigns[-1].start, now)

    def _clipped(self, span: Row, now: datetime) -> Row:
        if span.scheduled_at <= now:
            return span
        return msgspec.structs.replace(span, scheduled_at=now, occurrence_id=UNNAMED, superseded_by=None)

    def _note_admitted(self, sequence: int, entry: OccurrenceAdmitted) -> None:
        self._runs[sequence] = entry.scheduled_at
        row = Row(
            scheduled_at=entry.scheduled_at,
            occurrence_id=UNNAMED,
            disposition="admitted",
            run_id=sequence,
            run_state="pending",
            revision=entry.revision,
            admitted_at=entry.at,
            sequence=sequence,
        )
        self._put(row)

    def _note_skipped(self, sequence: int, entry: OccurrenceSkipped) -> None:
        row = Row(
            scheduled_at=entry.scheduled_at,
            occurrence_id=UNNAMED,
            disposition="skipped",
            reason=entry.reason,
            detail=entry.detail or _told(entry),
            revision=entry.revision,
            sequence=sequence,
        )
        self._put(row)

    def _note_superseded(self, sequence: int, entry: OccurrenceSuperseded) -> None:
        row = Row(
            scheduled_at=entry.scheduled_at,
            occurrence_id=UNNAMED,
            disposition="superseded",
            superseded_by=entry.by,
            revision=entry.revision,
            sequence=sequence,
        )
        self._put(row)

    def _note_held(self, sequence: int, entry: CandidateHeld) -> None:
        row = Row(
            scheduled_at=entry.scheduled_at,
            occurrence_id=UNNAMED,
            disposition="held",
            revision=entry.revision,
            sequence=sequence,
        )
        self._put(row)

    def _put(self, row: Row) -> None:
        known = self.rows.get(row.scheduled_at)
        if known is not None and known.disposition != "held":
            self.doubles.append(row.scheduled_at)
        self.rows[row.scheduled_at] = row

    def _note_interval(self, sequence: int, entry: IntervalSkipped) -> None:
        self._span(
            sequence,
            entry,
            (entry.after, entry.before - datetime.resolution),
            reason=entry.reason,
            superseded_by=entry.before if entry.reason == "superseded" else None,
            at_least=entry.at_least,
        )

    def _note_calendar(self, sequence: int, entry: CalendarChanged) -> None:
        self.calendar_changed = entry

    def _note_rebaselined(self, sequence: int, entry: ScheduleRebaselined) -> None:
        if not entry.regressed:
            self._span(sequence, entry, (entry.covers_after, entry.through), reason="operator")

    def _note_cover(self, sequence: int, entry: _Covering) -> None:
        self._span(sequence, entry, (entry.covers_after, entry.covers_through))
        if isinstance(entry, ScheduleCreated | ScheduleEdited):
            revision = self._state.by_id[self.schedule_id].revision
            self.reigns.append(Reign(entry.covers_through, entry.definition.trigger, revision))
            self.rules[revision] = entry.definition.trigger

    def _span(  # noqa: PLR0913 - the fields of the row
        self,
        sequence: int,
        entry: Entry,
        bounds: tuple[datetime | None, datetime],
        *,
        reason: str | None = None,
        superseded_by: datetime | None = None,
        at_least: int = 0,
    ) -> None:
        after, through = bounds
        if after is not None and after >= through:
            return
        row = Row(
            scheduled_at=through,
            occurrence_id=UNNAMED,
            disposition="interval",
            reason=reason,
            detail=kind_of(entry),
            superseded_by=superseded_by,
            revision=self._state.by_id[self.schedule_id].revision,
            sequence=sequence,
            after=after,
            at_least=at_least,
        )
        self.spans.append(row)

    def _note_run(self, sequence: int, entry: RunEntry) -> None:
        run_id = entry.run_id
        instant = self._runs.get(run_id)
        run = None if instant is None else self._state.known_run(run_id)
        if instant is None or run is None:
            return
        row = self.rows.get(instant)
        if row is not None:  # whoever looks at some rows only has taken the others out
            row.run_state = run.state
            row.error = run.error
            row.started_at = run.started_at
            row.ended_at = run.ended_at
        if run.state in ENDED and run.attempt_id is None:
            del self._runs[run_id]  # nothing more is told of it, and a record has many

    _NOTES: ClassVar[dict[type[Entry], Callable[[History, int, Any], None]]] = {
        OccurrenceAdmitted: _note_admitted,
        OccurrenceSkipped: _note_skipped,
        OccurrenceSuperseded: _note_superseded,
        CandidateHeld: _note_held,
        IntervalSkipped: _note_interval,
        CalendarChanged: _note_calendar,
        ScheduleRebaselined: _note_rebaselined,
        **dict.fromkeys(get_args(_Covering), _note_cover),
        **dict.fromkeys(RUN_ENTRIES, _note_run),
    }
    """What an accepted entry of a kind does to the rows; no other kind does anything."""


def _told(entry: OccurrenceSkipped) -> str:
    if entry.blocking_run is not None:
        return f"run {entry.blocking_run} was active"
    if entry.by is not None:
        return f"its period was spent by entry {entry.by}"
    return ""
