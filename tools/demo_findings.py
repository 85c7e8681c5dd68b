"""What the demo found: every figure of it, counted from the journal alone.

Rules kept here: nothing is taken from the processes that made the journal; an occurrence that has no disposition of its
own counts as unaccounted, also where the library is more lenient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from duly.journal import Verification, read, verify
from duly.journal.entries import CronRule, JournalOpened, OccurrenceAdmitted, RunAbandoned, RunFailed, ScheduleCreated
from duly.scheduler.accounting import ScheduleAccount, account_of
from duly.scheduler.instants import describe_instant
from duly.tools.demo import BEGIN, Story
from duly.tools.demo_moments import Moment, Numbered, moments
from duly.tools.describe import REASONS, describe_trigger


@dataclass(frozen=True, slots=True)
class ScheduleFindings:
    """What became of one schedule's occurrences, and how its runs ended if not well."""

    schedule_id: str
    when: str
    due: int
    admitted: int
    superseded: int
    waiting: int
    skipped: Mapping[str, int]
    ends: Mapping[str, int]
    unaccounted: int
    double: int
    foreign: int
    fault: str

    @property
    def balanced(self) -> bool:
        return not (self.unaccounted or self.double or self.foreign or self.fault)


@dataclass(frozen=True, slots=True)
class Findings:
    """The whole of it."""

    days: int
    owners: int
    schedules: tuple[ScheduleFindings, ...]
    moments: tuple[Moment, ...]
    killed_at_work: datetime | None
    """The occurrence whose run was at work when its owner was killed."""
    verification: Verification

    @property
    def right(self) -> bool:
        """Whether nothing was decided twice, nothing was lost, and the record is intact."""
        return self.verification.intact and all(one.balanced for one in self.schedules)

    def total(self, name: str) -> int:
        """The sum of one figure over all schedules."""
        return sum(int(getattr(one, name)) for one in self.schedules)

    @property
    def skipped(self) -> int:
        return sum(sum(one.skipped.values()) for one in self.schedules)


def find_out(story: Story) -> Findings:
    """Read the journal and count."""
    entries: list[Numbered] = [(record.sequence, record.entry) for record in read(story.journal)]
    created = [entry for _, entry in entries if isinstance(entry, ScheduleCreated)]
    accounts = {one.schedule_id: one for one in account_of(entries).schedules}
    ends = _bad_ends(entries)
    return Findings(
        days=round((entries[-1][1].at - BEGIN).total_seconds() / 86_400),
        owners=sum(isinstance(entry, JournalOpened) for _, entry in entries),
        schedules=tuple(_of_schedule(one, accounts[one.schedule_id], ends) for one in created),
        moments=tuple(moments(entries)),
        killed_at_work=_killed_at_work(story, entries),
        verification=verify(story.journal),
    )


def findings_document(story: Story, found: Findings) -> dict[str, Any]:
    """The findings as JSON."""
    return {
        "right": found.right,
        "journal": str(story.journal),
        "days": found.days,
        "owners": found.owners,
        "due": found.total("due"),
        "admitted": found.total("admitted"),
        "skipped": found.skipped,
        "superseded": found.total("superseded"),
        "waiting": found.total("waiting"),
        "unaccounted": found.total("unaccounted"),
        "double": found.total("double"),
        "foreign": found.total("foreign"),
        "verdict": str(found.verification),
        "problems": [str(problem) for problem in story.crontab.problems],
        "schedules": [
            {
                "schedule_id": one.schedule_id,
                "when": one.when,
                "due": one.due,
                "admitted": one.admitted,
                "superseded": one.superseded,
                "waiting": one.waiting,
                "skipped": dict(one.skipped),
                "ends": dict(one.ends),
                "unaccounted": one.unaccounted,
                "double": one.double,
                "foreign": one.foreign,
                "fault": one.fault,
            }
            for one in found.schedules
        ],
        "moments": [{"at": describe_instant(one.at), "kind": one.kind, "text": one.text} for one in found.moments],
    }


def _killed_at_work(story: Story, entries: Sequence[Numbered]) -> datetime | None:
    admitted = {at: entry.scheduled_at for at, entry in entries if isinstance(entry, OccurrenceAdmitted)}
    return admitted.get(story.kill.run_id) if story.kill is not None else None


def _bad_ends(entries: Sequence[Numbered]) -> Counter[tuple[str | None, str]]:
    return Counter(
        (entry.schedule_id, "failed" if isinstance(entry, RunFailed) else "abandoned")
        for _, entry in entries
        if isinstance(entry, RunFailed | RunAbandoned)
    )


def _of_schedule(
    created: ScheduleCreated, account: ScheduleAccount, ends: Mapping[tuple[str | None, str], int]
) -> ScheduleFindings:
    counts = account.counts
    skipped = {str(reason): counts[f"skipped:{reason}"] for reason in REASONS}
    skipped["backlog"] += counts["interval:backlog"]
    superseded = counts["superseded"] + counts["interval:superseded"]
    waiting = counts["waiting"] + counts["held"]
    accounted = counts["admitted"] + sum(skipped.values()) + superseded + waiting + counts["covered"]
    told = {state: ends.get((created.schedule_id, state), 0) for state in ("failed", "abandoned")}
    rule = created.definition.trigger
    when = f"{rule.expression} {rule.zone.rpartition('/')[2]}" if isinstance(rule, CronRule) else describe_trigger(rule)
    return ScheduleFindings(
        schedule_id=created.schedule_id,
        when=when,
        due=account.due,
        admitted=counts["admitted"],
        superseded=superseded,
        waiting=waiting,
        skipped={reason: number for reason, number in skipped.items() if number},
        ends={state: number for state, number in told.items() if number},
        unaccounted=account.due - accounted,
        double=len(account.double),
        foreign=len(account.foreign),
        fault=account.fault,
    )
