"""Questions: what is, as the journal has it.

Rules: a question changes nothing, comes from the folded state, and is answered only once all that it saw is durable;
on a poisoned or closed scheduler it raises.
"""

from __future__ import annotations

from datetime import datetime
from heapq import heappop, heappush
from itertools import islice

import msgspec

from duly.projections import Run, Schedule
from duly.projections.history import Page, Row
from duly.projections.runs import RunState, occurrence_id
from duly.projections.schedules import ScheduleState, view
from duly.scheduler.copies import run_copies, run_copy
from duly.scheduler.decisions.occurrences import next_instant
from duly.scheduler.decisions.runs import run_of
from duly.scheduler.definitions import check_count
from duly.scheduler.errors import TriggerError, UnknownRun
from duly.scheduler.explanations import Explanation
from duly.scheduler.shell import Shell
from duly.scheduler.sources import OccurrenceSource
from duly.scheduler.waiting import waiting_rows


class Upcoming(msgspec.Struct, frozen=True):
    """An occurrence that is still to be decided; `scheduled_at` is UTC."""

    schedule_id: str
    scheduled_at: datetime

    @property
    def occurrence_id(self) -> str:
        """`<schedule_id>@<YYYY-MM-DDTHH:MM:SSZ>`."""
        return occurrence_id(self.schedule_id, self.scheduled_at)


class Inspection(Shell):
    """The part of the Scheduler that answers questions."""

    def find(self, schedule_id: str) -> Schedule[OccurrenceSource] | None:
        """The schedule, also a deleted one (`deleted=True`), or None if the id was never used."""

        def look() -> Schedule[OccurrenceSource] | None:
            found = self._state.by_id.get(schedule_id)
            return None if found is None else self._shown(found)

        return self._exclusively(look)

    def schedule(self, schedule_id: str) -> Schedule[OccurrenceSource]:
        """The schedule. Raises UnknownSchedule if there is none, or if it is deleted."""
        return self._exclusively(lambda: self._viewed(schedule_id))

    def schedules(
        self, *, after: str | None = None, limit: int | None = None
    ) -> tuple[Schedule[OccurrenceSource], ...]:
        """All schedules that are not deleted, by id; or the first `limit` whose ids come after `after`."""
        _check_limit(limit)

        def look() -> tuple[Schedule[OccurrenceSource], ...]:
            by_id = self._state.by_id
            living = (one for one in self._ordering.behind(after, by_id) if not by_id[one].deleted)
            return tuple(self._shown(by_id[one]) for one in islice(living, limit))

        return self._exclusively(look)

    def run(self, run_id: int) -> Run:
        """The run, however long ago it ended. Raises UnknownRun."""
        try:
            return run_copy(self._exclusively(lambda: run_of(self._state, run_id)))
        except UnknownRun:
            ended = self._recorded_run(run_id)
            if ended is None:
                raise
            return ended

    def runs(
        self,
        *,
        schedule_id: str | None = None,
        state: RunState | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> tuple[Run, ...]:
        """The runs that are open, and those that ended lately, by id; of one schedule or in one state if asked. Or the
        first `limit` of them with ids above `after`."""
        _check_limit(limit)

        def look() -> tuple[Run, ...]:
            found = (
                run
                for run in self._state.runs_after(0 if after is None else after)
                if (schedule_id is None or run.schedule_id == schedule_id) and (state is None or run.state == state)
            )
            return run_copies(islice(found, limit))

        return self._exclusively(look)

    def next_due(self, schedule_id: str) -> datetime | None:
        """The schedule's first instant that is not decided, or None if there is none or it is not live.

        Raises UnknownSchedule, TriggerError.
        """

        def look() -> datetime | None:
            schedule = self._living(schedule_id)
            if not schedule.live:
                return None
            source = self._source_of(schedule.definition.trigger)
            return next_instant(source, schedule.consumed_through, schedule.kept)

        return self._exclusively(look)

    def upcoming(self, limit: int = 100) -> tuple[Upcoming, ...]:
        """The next `limit` occurrences of all schedules that are not decided, in order. Raises DefinitionError."""
        if limit == 0:
            return ()
        check_count("limit", limit)

        def look() -> tuple[Upcoming, ...]:
            coming = self._agenda.soonest(limit, self._is_coming)
            found: list[Upcoming] = []
            frontier: list[tuple[datetime, str]] = []
            for item in coming:
                heappush(frontier, item)
            while frontier and len(found) < limit:
                instant, schedule_id = heappop(frontier)
                found.append(Upcoming(schedule_id, instant))
                following = self._following(schedule_id, instant)
                if following is not None:
                    heappush(frontier, (following, schedule_id))
            return tuple(found)

        return self._exclusively(look)

    def occurrences(self, schedule_id: str, *, after: str | None = None, limit: int = 100) -> Page:
        """What became of the schedule's occurrences, in the order of their instants, also of a deleted one's.

        `after` is the `next` of the page before; rows that come to be meanwhile move no other row to another page.
        Spans that one entry decided or covered are rows of their own (`interval`). Raises UnknownSchedule.
        """

        check_count("limit", limit)

        def look() -> tuple[int, list[Row]]:
            schedule = self._state.by_id.get(schedule_id)
            if schedule is None:
                self._living(schedule_id)
                return 0, []
            return self._state.sequence, waiting_rows(schedule, self._clock.now(), self._source_of)

        through, waiting = self._exclusively(look)
        with self._indexes.history(schedule_id, through) as history:
            return history.page(after, limit, waiting)

    def explain(self, schedule_id: str, instant: datetime) -> Explanation:
        """What became of the schedule's occurrence at the aware `instant`, and why; also of one that never came due.

        Raises UnknownSchedule, DefinitionError for a naive instant.
        """
        from duly.scheduler.explaining import explain

        through, now = self._exclusively(lambda: (self._state.sequence, self._clock.now()))
        with self._indexes.lent() as journal:
            return explain(journal, schedule_id, instant, sources=self._sources, now=now, through=through)

    def digest(self) -> str:
        """The digest of the folded state, equal to that of a replay of the journal."""
        return self._exclusively(self._state.digest)

    def _is_coming(self, schedule_id: str, instant: datetime) -> bool:
        """Whether a line of the agenda is an occurrence: of what cannot be evaluated it is the watermark."""
        schedule = self._state.by_id[schedule_id]
        return schedule.live and instant > schedule.consumed_through

    def _following(self, schedule_id: str, instant: datetime) -> datetime | None:
        schedule = self._state.by_id[schedule_id]
        try:
            return next_instant(self._source_of(schedule.definition.trigger), instant, schedule.kept)
        except TriggerError:
            return None

    def _viewed(self, schedule_id: str) -> Schedule[OccurrenceSource]:
        return self._shown(self._living(schedule_id))

    def _shown(self, schedule: ScheduleState) -> Schedule[OccurrenceSource]:
        return view(schedule, self._shown_trigger(schedule))


def _check_limit(limit: int | None) -> None:
    if limit is not None:
        check_count("limit", limit)
