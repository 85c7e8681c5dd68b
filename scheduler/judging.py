"""Judging: the explanation that a folded record gives of one instant.

Rules: an entry of the occurrence itself goes before a span that holds it, and a span before what waits; the calendar
says only what has no entry of its own; every outcome has its sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from duly.journal.entries import CandidateHeld, Entry, IntervalSkipped, OccurrenceSkipped
from duly.projections.history import Reign, Row
from duly.projections.runs import occurrence_id
from duly.projections.schedules import ScheduleState
from duly.scheduler.accounting import is_kept
from duly.scheduler.cron import croniter_version
from duly.scheduler.errors import TriggerError
from duly.scheduler.explanations import (
    Became,
    Explanation,
    SlotTaken,
    allowance_of,
    rule_of_cover,
    rule_of_skip,
    spender_in_words,
)
from duly.scheduler.instants import in_range
from duly.scheduler.sources import SourceFactory, checked_next_after, checked_prev_before
from duly.scheduler.story import Story, Thread
from duly.scheduler.triggers import trigger_of
from duly.scheduler.zones import tzdata_version


def judged(
    story: Story, schedule: ScheduleState, thread: Thread, now: datetime, sources: Mapping[str, SourceFactory]
) -> Explanation:
    """What became of the thread's instant, of the schedule that the story is about."""
    return _Judgement(story, schedule, thread, now, sources).explanation()


class _Judgement:
    def __init__(
        self,
        story: Story,
        schedule: ScheduleState,
        thread: Thread,
        now: datetime,
        sources: Mapping[str, SourceFactory],
    ) -> None:
        self.story = story
        self.thread = thread
        self.instant = thread.instant
        self.now = now
        self.sources = sources
        self.schedule = schedule
        self.reign = self._reign()

    def explanation(self) -> Explanation:
        row = self.thread.standing
        if row is not None and row.disposition != "interval":
            return self._of_row(row, row.disposition)
        try:
            if not self._is_occurrence():
                return self._of_none()
        except TriggerError as error:
            return self._untold(row, str(error))
        if row is not None and self.thread.entry is not None:
            return self._of_span(row, self.thread.entry)
        return self._of_undecided()

    # With an entry of its own

    def _of_row(self, row: Row, became: Became) -> Explanation:
        story, thread = self.story, self.thread
        revision = story.revisions.get(row.revision or 0)
        definition = revision.definition if revision is not None else None
        entry = thread.entry
        more: dict[str, Any] = {}
        match row.disposition:
            case "admitted":
                rule = self._rule_of_admission()
                more["run"] = story.runs.get(row.run_id or 0)
            case "skipped" if isinstance(entry, OccurrenceSkipped):
                spender = spender_in_words(entry.by, story.spenders.get(entry.by or 0))
                rule = rule_of_skip(entry.reason, definition, entry.blocking_run, spender)
                more |= {"blocking_run": story.runs.get(entry.blocking_run or 0), "spent_by": entry.by}
                more["detail"] = entry.detail
            case "superseded":
                rule = "misfire=latest: a newer occurrence was due when it was decided, and only the newest runs"
                more["superseded_by"] = row.superseded_by
            case _:
                rule = "misfire=latest: it was due with no task slot free, and waits for one as the candidate"
        slots: tuple[SlotTaken, ...] = ()
        if row.disposition == "held":
            slots = self._slots_now()
        elif row.reason == "capacity" or self._was_held():
            slots = tuple(thread.slots)
        return self._made(
            became,
            rule,
            entry,
            revision_number=row.revision,
            reason=row.reason,
            slots=slots,
            remark=self._doubt(),
            **more,
        )

    def _rule_of_admission(self) -> str:
        if self._was_held():
            return "misfire=latest: it was held as the candidate, and ran once a task slot was free"
        if self._is_late():
            return "misfire=latest: it was decided later than its allowance, as the newest that was due"
        return "it was decided within its allowance, with a slot of the schedule and a task slot free"

    def _is_late(self) -> bool:
        entry = self.thread.entry
        allowance = getattr(entry, "lateness", None)
        revision = self.story.revisions.get(getattr(entry, "revision", 0))
        whole_period = revision is not None and allowance_of(revision.definition) is None
        return entry is not None and allowance is not None and not whole_period and entry.at - self.instant > allowance

    def _was_held(self) -> bool:
        voided = max((one.by for one in self.thread.voided), default=0)
        return any(isinstance(step.entry, CandidateHeld) and step.sequence > voided for step in self.thread.steps)

    def _slots_now(self) -> tuple[SlotTaken, ...]:
        setting = self.story.setting
        return tuple(setting.slots(self.instant, max(self.now, setting.last_at)))

    def _doubt(self) -> str:
        """What to say where this machine's calendar has no such occurrence."""
        try:
            if self._is_occurrence():
                return ""
        except TriggerError:
            return ""
        changed = self.story.history.calendar_changed
        used = f"croniter {croniter_version()}, tzdata {tzdata_version()}"
        since = f"; entry of {changed.at:%Y-%m-%d} says that it changed" if changed is not None else ""
        return f"by this machine's calendar ({used}) it is no occurrence: the calendar changed{since}"

    # In a span, undecided, or nothing

    def _of_span(self, span: Row, entry: Entry) -> Explanation:
        interval: dict[str, Any] = {
            "summarised": True,
            "after": span.after,
            "through": span.scheduled_at,
            "at_least": span.at_least,
        }
        if isinstance(entry, IntervalSkipped):
            if entry.reason == "superseded":
                rule = "misfire=latest: it lay in a backlog too long to be decided one by one, and the newest runs"
                more: dict[str, Any] = {"superseded_by": span.superseded_by}
            else:
                rule, more = rule_of_skip("backlog"), {"reason": "backlog"}
            became: Became = "superseded" if entry.reason == "superseded" else "skipped"
            return self._made(became, rule, entry, revision_number=entry.revision, **interval, **more)
        interval["at_least"] = None
        return self._made("covered", rule_of_cover(span.detail), entry, reason=span.detail, lateness=None, **interval)

    def _of_undecided(self) -> Explanation:
        schedule, instant = self.schedule, self.instant
        history = self.story.history
        if is_kept(history, sorted(history.rows), self.reign.revision, instant):
            return self._made("kept", "it lies between decisions that were made ahead and stay, and counts as decided")
        if instant <= schedule.consumed_through:
            lost = f"; {_lost(self.story.setting.lost)}" if self.story.setting.lost else ""
            return self._made("unaccounted", f"the record is past it and says nothing about it{lost}")
        if schedule.deleted:
            return self._made(
                "ended", f"the schedule was deleted with entry {schedule.deleted}: nothing later comes due"
            )
        if schedule.exhausted:
            return self._made("ended", "the schedule is exhausted: its last occurrence was decided")
        if instant > self.now:
            return self._made("projected", self._projection())
        return self._waiting()

    def _waiting(self) -> Explanation:
        schedule, late = self.schedule, self.now - self.instant
        why = self._off()
        if why:
            return self._made("waiting", f"it is due and undecided: {why}", detail=why, lateness=late)
        setting = self.story.setting
        free = setting.task_slots is None or setting.taken < setting.task_slots
        if free:
            rule = "it is due and undecided: the next poll decides it"
            return self._made("waiting", rule, lateness=late)
        if schedule.definition.misfire == "latest":
            rule = (
                "it is due and undecided, and no task slot is free: the next poll makes it the candidate, or decides it"
            )
        else:
            rule = "misfire=skip: it waits for a task slot, and is skipped once its allowance is over"
        return self._made("waiting", rule, lateness=late, slots=self._slots_now())

    def _off(self) -> str:
        schedule = self.schedule
        if schedule.block is not None:
            return f"blocked since #{schedule.block.sequence} ({schedule.block.reason})"
        if schedule.paused:
            return f"paused since #{schedule.paused}"
        return f"disabled since #{schedule.disabled}" if schedule.disabled else ""

    def _projection(self) -> str:
        why = self._off()
        ahead = "it lies ahead and is projected from the trigger as it is now: nothing is decided"
        if not why:
            return ahead
        return f"{ahead}; the schedule is {why}, and it will not run while that lasts"

    def _of_none(self) -> Explanation:
        rule = "the trigger that was in force has no occurrence at this instant"
        if self.instant.microsecond:
            rule = "no trigger has an occurrence between two whole seconds"
        return self._made("none", rule, nearest=self._nearest())

    def _untold(self, span: Row | None, why: str) -> Explanation:
        entry = self.thread.entry if span is not None else None
        rule = "this machine cannot evaluate the trigger, so it cannot tell whether there was an occurrence at all"
        reason = span.detail if span is not None else None
        return self._made("unknown", rule, entry, reason=reason, detail=why)

    def _made(
        self,
        became: Became,
        rule: str,
        entry: Entry | None = None,
        *,
        revision_number: int | None = None,
        **more: Any,
    ) -> Explanation:
        revision = self.story.revisions.get(revision_number or self.reign.revision)
        facts: dict[str, Any] = {
            "sequence": None if entry is None else self.thread.standing and self.thread.standing.sequence,
            "decided_at": None if entry is None else entry.at,
            "lateness": None if entry is None else entry.at - self.instant,
            "allowance": None if revision is None else allowance_of(revision.definition),
            "revision": revision,
            "task_slots": self._task_slots(),
            "steps": tuple(self.thread.steps),
            "voided": tuple(self.thread.voided),
        }
        return Explanation(
            schedule_id=self.schedule.id,
            scheduled_at=self.instant,
            occurrence_id=occurrence_id(self.schedule.id, self.instant),
            disposition=became,
            rule=rule,
            now=self.now,
            **(facts | more),
        )

    def _task_slots(self) -> int | None:
        if self.thread.entry is not None:
            return self.thread.task_slots
        return self.story.setting.task_slots

    # The calendar

    def _reign(self) -> Reign:
        reigns = self.story.history.reigns
        return next((one for one in reversed(reigns) if one.start < self.instant), reigns[0])

    def _is_occurrence(self) -> bool:
        if self.instant.microsecond or not in_range(self.instant):
            return False
        source = trigger_of(self.reign.rule, self.sources)
        return checked_next_after(source, self.instant - datetime.resolution) == self.instant

    def _nearest(self) -> tuple[datetime, ...]:
        """The occurrences before and after the instant, each by the rule that is in force there."""
        try:
            found = (self._earlier(), self._later())
        except TriggerError:
            return ()
        return tuple(one for one in found if one is not None)

    def _earlier(self) -> datetime | None:
        reigns = self.story.history.reigns
        until = self.instant
        for reign in reversed(reigns[: reigns.index(self.reign) + 1]):
            if in_range(until):
                found = checked_prev_before(trigger_of(reign.rule, self.sources), until)
                if found is not None and (found > reign.start or reign is reigns[0]):
                    return found
            until = min(until, reign.start + datetime.resolution)
        return None

    def _later(self) -> datetime | None:
        reigns = self.story.history.reigns
        after = self.instant
        first = reigns.index(self.reign)
        for reign, following in zip(reigns[first:], [*reigns[first + 1 :], None], strict=True):
            after = max(after, reign.start) if reign is not self.reign else after
            found = checked_next_after(trigger_of(reign.rule, self.sources), after) if in_range(after) else None
            if found is not None and (following is None or found <= following.start):
                ended = self.schedule.deleted and found > self.schedule.consumed_through
                return None if ended else found
        return None


def _lost(count: int) -> str:
    return "1 entry of the record was lost" if count == 1 else f"{count:,} entries of the record were lost"
