"""The moments of a record that are worth telling: what happened, and what was decided because of it.

Rules kept here: pure; all is found in the entries, and in the zones' lists of changes; a moment of a kind that comes
often (a schedule that is still running, a full house) is told the first time it happens to a schedule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from duly.journal.entries import (
    CandidateHeld,
    CronRule,
    Entry,
    IntervalSkipped,
    JournalClosed,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    RunAbandoned,
    RunFailed,
    RunStarted,
    ScheduleCreated,
)
from duly.scheduler.triggers import Cron
from duly.scheduler.zones import Zone, zone_of
from duly.tools.describe import REASONS
from duly.tools.moments import describe_duration
from duly.tools.upcoming import ClockChange, clock_changes
from duly.tools.wording import counted

Numbered = tuple[int, Entry]
MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class Moment:
    """Something worth telling; `kind` is one of clocks, opened, down, killed, overlap, capacity, failed."""

    at: datetime
    kind: str
    text: str


def moments(entries: Sequence[Numbered]) -> list[Moment]:
    """All moments of the record, in order."""
    found = [*_changes_of_clocks(entries), *_owners(entries), *_firsts(entries)]
    return sorted(found, key=lambda moment: moment.at)


def _firsts(entries: Sequence[Numbered]) -> Iterator[Moment]:
    """The first overlap, the first wait for a slot and the first failure of each schedule."""
    told: set[tuple[str, str]] = set()
    owner_of = {sequence: entry for sequence, entry in entries if isinstance(entry, OccurrenceAdmitted)}
    for position, (_, entry) in enumerate(entries):
        schedule = getattr(entry, "schedule_id", None) or ""
        match entry:
            case OccurrenceSkipped(reason="overlap", blocking_run=run):
                kind = "overlap"
                since = f", since {owner_of[run].scheduled_at:%H:%M}Z" if run in owner_of else ""
                text = f"{_occurrence(entry)} skipped: run {run} is still at work{since}"
            case OccurrenceSkipped(reason="capacity"):
                kind = "capacity"
                text = f"{_occurrence(entry)} skipped: no task slot came free in time"
            case CandidateHeld():
                kind = "capacity"
                text = (
                    f"{_occurrence(entry)} held, all task slots are taken; {_end_of_waiting(entries[position:], entry)}"
                )
            case RunFailed():
                kind, text = "failed", f"run {entry.run_id} of {schedule} failed: {entry.error.message}"
            case _:
                continue
        if (kind, schedule) not in told:
            told.add((kind, schedule))
            yield Moment(entry.at, kind, text)


def _end_of_waiting(entries: Sequence[Numbered], held: CandidateHeld) -> str:
    for sequence, entry in entries:
        if getattr(entry, "schedule_id", None) != held.schedule_id:
            continue
        if getattr(entry, "scheduled_at", None) == held.scheduled_at:
            if isinstance(entry, OccurrenceAdmitted):
                return f"admitted {describe_duration(entry.at - held.scheduled_at)} late as run {sequence}"
            if isinstance(entry, OccurrenceSuperseded):
                return f"superseded by the one of {entry.by:%H:%M}Z"
            if isinstance(entry, OccurrenceSkipped):
                return f"then skipped: {REASONS[entry.reason]}"
    return "it still waits"


def _owners(entries: Sequence[Numbered]) -> Iterator[Moment]:
    """Each taking of the journal: the first one, one after a close, one after a death."""
    before: Entry | None = None
    opened: JournalOpened | None = None
    for position, (_, entry) in enumerate(entries):
        if isinstance(entry, JournalOpened):
            following = entries[position + 1 :]
            if before is None or opened is None:
                kept = sum(isinstance(one, ScheduleCreated) for _, one in following)
                keeps = f"keeps {counted(kept, 'schedule')}"
                yield Moment(entry.at, "opened", f"process {entry.pid} takes the new journal and {keeps}")
            elif isinstance(before, JournalClosed):
                down = describe_duration(entry.at - before.at)
                yield Moment(entry.at, "down", f"back after {down} of downtime: {_catching_up(following, entry.at)}")
            else:
                yield Moment(
                    before.at, "killed", f"kill -9 of process {opened.pid}: {_left_behind(entries[:position])}"
                )
                yield Moment(entry.at, "opened", f"process {entry.pid} takes over: {_recovered(following, entries)}")
            opened = entry
        before = entry


def _catching_up(following: Sequence[Numbered], at: datetime) -> str:
    counts: Counter[str] = Counter()
    late: list[str] = []
    for _, entry in following:
        if entry.at > at:
            break
        match entry:
            case OccurrenceAdmitted(scheduled_at=scheduled_at) if scheduled_at < at:
                late.append(entry.schedule_id)
            case OccurrenceSkipped():
                counts[f"skipped ({REASONS[entry.reason]})"] += 1
            case OccurrenceSuperseded():
                counts["superseded by a newer one"] += 1
            case IntervalSkipped():
                counts[f"{entry.reason} in one interval"] += entry.at_least
            case CandidateHeld():
                counts["waiting for a free slot"] += 1
            case _:
                continue
    told = [f"{number} {what}" for what, number in counts.items()]
    told += [f"{len(late)} run late ({', '.join(late)})"] if late else []
    return ", ".join(told) or "nothing had come due"


def _left_behind(entries: Sequence[Numbered]) -> str:
    started, admitted = dict[int, str](), dict[int, str]()
    for sequence, entry in entries:
        if isinstance(entry, OccurrenceAdmitted):
            admitted[sequence] = entry.schedule_id
        elif isinstance(entry, RunStarted):
            started[entry.run_id] = admitted.pop(entry.run_id, entry.schedule_id or "")
        elif getattr(entry, "run_id", None) is not None:
            started.pop(getattr(entry, "run_id", 0), None)
    at_work = ", ".join(f"run {run} ({schedule})" for run, schedule in started.items()) or "nothing"
    pending = ", ".join(f"run {run} ({schedule})" for run, schedule in admitted.items()) or "nothing"
    return f"at work: {at_work}; admitted and not started: {pending}"


def _recovered(following: Sequence[Numbered], entries: Sequence[Numbered]) -> str:
    schedules = {sequence: entry.schedule_id for sequence, entry in entries if isinstance(entry, OccurrenceAdmitted)}
    abandoned: list[str] = []
    resumed: list[str] = []
    fresh: set[int] = set()
    for sequence, entry in following:
        if isinstance(entry, JournalOpened | JournalClosed):
            break
        if isinstance(entry, OccurrenceAdmitted):
            fresh.add(sequence)
        elif isinstance(entry, RunAbandoned):
            abandoned.append(f"run {entry.run_id} ({schedules.get(entry.run_id, '-')}) abandoned, never repeated")
        elif isinstance(entry, RunStarted) and entry.run_id not in fresh:
            resumed.append(f"run {entry.run_id} ({schedules.get(entry.run_id, '-')}) started now, once")
    return "; ".join([*abandoned, *resumed]) or "nothing was left open"


def _changes_of_clocks(entries: Sequence[Numbered]) -> Iterator[Moment]:
    rules: dict[str, CronRule] = {}
    for _, entry in entries:
        if isinstance(entry, ScheduleCreated) and isinstance(entry.definition.trigger, CronRule):
            rules[entry.schedule_id] = entry.definition.trigger
    if not entries:
        return
    for zone in map(zone_of, sorted({rule.zone for rule in rules.values()})):
        here = {key: rule for key, rule in rules.items() if rule.zone == zone.name}
        for change in clock_changes(zone, entries[0][1].at, entries[-1][1].at):
            yield Moment(change.at, "clocks", f"{zone.name}: {change}{_affected(entries, here, zone, change)}")


def _affected(entries: Sequence[Numbered], rules: dict[str, CronRule], zone: Zone, change: ClockChange) -> str:
    """What the change did to the schedules that it touched."""
    told: list[str] = []
    if change.forward:
        for sequence, entry in entries:
            rule = rules.get(getattr(entry, "schedule_id", None) or "")
            if not isinstance(entry, OccurrenceAdmitted) or entry.scheduled_at != change.at or rule is None:
                continue
            if not _fires_on_the_wall(rule, change.after):
                told.append(f"{entry.schedule_id} (run {sequence})")
        if told:
            told = [f"the skipped time of {', '.join(told)} became {change.after:%H:%M}"]
    else:
        hour = change.before - change.after
        for schedule_id in rules:
            runs = [
                (sequence, entry)
                for sequence, entry in entries
                if isinstance(entry, OccurrenceAdmitted)
                and entry.schedule_id == schedule_id
                and change.at - hour <= entry.scheduled_at < change.at + hour
            ]
            walls = Counter(f"{zone.local(entry.scheduled_at):%H:%M}" for _, entry in runs)
            twice = [wall for wall, number in walls.items() if number > 1]
            if twice:
                told.append(f"{schedule_id} runs at both {', '.join(twice)} (runs {_named([run for run, _ in runs])})")
    return "".join(f"; {text}" for text in told)


def _fires_on_the_wall(rule: CronRule, wall: datetime) -> bool:
    """Whether the expression names this wall-clock time itself: in UTC there is nothing to skip."""
    instant = wall.replace(tzinfo=UTC)
    return Cron(rule.expression, "UTC").next_after(instant - timedelta(seconds=1)) == instant


def _named(runs: Sequence[int]) -> str:
    shown = ", ".join(map(str, runs[:MOST_NAMED]))
    return f"{shown}, …" if len(runs) > MOST_NAMED else shown


def _occurrence(entry: OccurrenceSkipped | CandidateHeld) -> str:
    return f"{entry.schedule_id} {entry.scheduled_at:%H:%M}Z"
