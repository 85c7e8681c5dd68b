"""What became of every instant of one schedule, once more and slowly: the oracle that explanations are judged by.

It knows the entries and the calendars (as data), shares no code with the folds, and takes the ranges of kept decisions
from the reference model.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from duly.journal.entries import Entry, kind_of
from tests.scheduler.reference_kept import Kept, keep

MICROSECOND = timedelta(microseconds=1)
KEPT_SKIPS = {"overlap", "preflight", "spent", "operator"}
BASELINES = {
    f"Schedule{what}" for what in ("Created", "Edited", "Paused", "Unpaused", "Disabled", "Enabled", "Deleted")
}
DECIDED = {"OccurrenceAdmitted": "admitted", "OccurrenceSuperseded": "superseded", "CandidateHeld": "held"}


@dataclass
class Cover:
    after: datetime | None
    through: datetime
    became: str

    def holds(self, instant: datetime) -> bool:
        return (self.after is None or self.after < instant) and instant <= self.through


@dataclass
class Dispositions:
    """One schedule's, after the entries that were told."""

    schedule_id: str
    consumed_through: datetime | None = None
    decided: dict[datetime, tuple[str, bool]] = field(default_factory=dict[datetime, tuple[str, bool]])
    covers: list[Cover] = field(default_factory=list[Cover])
    kept: list[Kept] = field(default_factory=list[Kept])
    reigns: list[tuple[datetime, int]] = field(default_factory=list[tuple[datetime, int]])
    revision: int = 0
    deleted: bool = False
    off: bool = False

    def tell(self, entries: Iterable[Entry]) -> Dispositions:
        for entry in entries:
            self._tell(kind_of(entry), entry)
        return self

    def of(  # noqa: PLR0911 - one return for each disposition
        self, instant: datetime, now: datetime, calendars: Mapping[int, Sequence[datetime]]
    ) -> str:
        """The disposition of an instant, with the reason of a skip; "" where it cannot be told from here."""
        if instant in self.decided:
            return self.decided[instant][0]
        revision = next((made for start, made in reversed(self.reigns) if start < instant), self.reigns[0][1])
        calendar = calendars[revision]
        position = bisect_left(calendar, instant)
        if position == len(calendar) or calendar[position] != instant:
            return "none"
        for cover in self.covers:
            if cover.holds(instant):
                return cover.became
        if any(one.first <= instant <= one.last for one in self.kept):
            return "kept"
        assert self.consumed_through is not None
        if instant <= self.consumed_through:
            return ""  # what lay in a gap that two ranges closed, for example
        if self.deleted:
            return "ended"
        return "projected" if instant > now else "waiting"

    def _tell(self, kind: str, entry: Any) -> None:
        through = self.consumed_through
        if kind == "ClockRegressed" and through is not None and through > entry.at + entry.tolerance:
            self._regress(entry.at)
        if getattr(entry, "schedule_id", None) != self.schedule_id:
            return
        if kind in BASELINES:
            self.covers.append(Cover(entry.covers_after, entry.covers_through, "covered"))
            self._consume(entry.covers_through)
            if kind in {"ScheduleCreated", "ScheduleEdited"}:
                self.revision += 1
                self.reigns.append((entry.covers_through, self.revision))
            self.deleted = self.deleted or kind == "ScheduleDeleted"
        elif kind == "ScheduleRebaselined" and entry.regressed:
            self._regress(entry.through)
        elif kind == "ScheduleRebaselined":
            self.covers.append(Cover(entry.covers_after, entry.through, "covered"))
            self._consume(entry.through)
        elif kind == "IntervalSkipped":
            became = "skipped:backlog" if entry.reason == "backlog" else "superseded"
            self.covers.append(Cover(entry.after, entry.before - MICROSECOND, became))
            self._consume(entry.before - MICROSECOND)
        elif kind in DECIDED or kind == "OccurrenceSkipped":
            became = DECIDED.get(kind) or f"skipped:{entry.reason}"
            stays = kind == "OccurrenceAdmitted" or (kind == "OccurrenceSkipped" and entry.reason in KEPT_SKIPS)
            if stays:
                self.kept = keep(self.kept, self.consumed_through, entry.scheduled_at)
            self.decided[entry.scheduled_at] = (became, stays)
            self._consume(entry.scheduled_at)

    def _consume(self, instant: datetime) -> None:
        self.consumed_through = instant if self.consumed_through is None else max(self.consumed_through, instant)

    def _regress(self, now: datetime) -> None:
        ranges = self.kept
        self.decided = {
            instant: told
            for instant, told in self.decided.items()
            if instant <= now or told[1] or any(one.first <= instant <= one.last for one in ranges)
        }
        self.covers = [
            Cover(cover.after, min(cover.through, now), cover.became)
            for cover in self.covers
            if cover.after is None or cover.after < now
        ]
        earlier = [reign for reign in self.reigns[:-1] if reign[0] < now]
        start, made = self.reigns[-1]
        self.reigns = [*earlier, (min(start, now), made)]
        self.consumed_through = now
