"""What a timeline may ask: a schedule, a run or an occurrence, and the answer as words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from duly import Scheduler
from tests.scheduler.timeline_rules import value_of
from tests.scheduler.timeline_text import Decision, Line


def answer(scheduler: Scheduler, line: Line, run_id: Callable[[str], int]) -> Decision:
    """The question's own words, with what is true for each of the names that the line gives."""
    subject = line.subjects[0]
    ask = {"schedule": _schedule, "run": _run, "occurrence": _occurrence}[line.verb]
    told = ask(scheduler, subject, run_id)
    return Decision(f"{line.verb} {subject}", tuple((name, value_of(told(name))) for name in line.options))


def _schedule(scheduler: Scheduler, subject: str, run_id: Callable[[str], int]) -> Callable[[str], object]:
    def told(name: str) -> object:
        found = scheduler.find(subject)
        match name:
            case "known":
                return found is not None
            case "listed":
                return subject in [schedule.id for schedule in scheduler.schedules()]
            case "next":
                return scheduler.next_due(subject)
            case "blocked":
                return found is not None and found.blocked is not None
            case _:
                return getattr(found, name)

    return told


def _run(scheduler: Scheduler, subject: str, run_id: Callable[[str], int]) -> Callable[[str], object]:
    run = scheduler.run(run_id(subject))
    return lambda name: getattr(run, name)


def _occurrence(scheduler: Scheduler, subject: str, run_id: Callable[[str], int]) -> Callable[[str], object]:
    schedule_id, _, instant = subject.partition("@")
    scheduled_at = datetime.fromisoformat(instant)
    rows = scheduler.occurrences(schedule_id, limit=1000).items
    (row,) = [row for row in rows if row.scheduled_at == scheduled_at and row.disposition != "interval"]
    return lambda name: getattr(row, name)
