"""How an entry of the journal reads in a transcript: the canonical text and the details that may be asked for."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from duly.journal.entries import (
    AttemptCleared,
    CalendarChanged,
    CandidateHeld,
    ClockJumped,
    ClockRegressed,
    Entry,
    ExternalRunRecorded,
    IntervalSkipped,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    ResumeMarked,
    RunAbandoned,
    RunAdmittedManually,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunNoted,
    RunStarted,
    ScheduleBlocked,
    ScheduleCreated,
    ScheduleDeleted,
    ScheduleDisabled,
    ScheduleEdited,
    ScheduleEnabled,
    SchedulePaused,
    ScheduleRebaselined,
    ScheduleUnblocked,
    ScheduleUnpaused,
    kind_of,
)
from tests.scheduler.timeline_text import Decision, describe_instant

RUN_WORDS: Final[dict[type[Entry], str]] = {
    RunStarted: "start",
    RunNoted: "note",
    RunCompleted: "complete",
    RunFailed: "fail",
    RunInterrupted: "interrupt",
    ResumeMarked: "resume",
    AttemptCleared: "clear",
}
SCHEDULE_WORDS: Final[dict[type[Entry], str]] = {
    ScheduleCreated: "create",
    ScheduleEdited: "edit",
    SchedulePaused: "pause",
    ScheduleUnpaused: "unpause",
    ScheduleDisabled: "disable",
    ScheduleEnabled: "enable",
    ScheduleDeleted: "delete",
    ScheduleUnblocked: "unblock",
    ScheduleRebaselined: "rebaseline",
    ExternalRunRecorded: "external",
    CalendarChanged: "calendar",
}
PLAIN_DETAILS: Final = ("at_least", "exhausts", "revision", "actor", "note", "regressed")
OTHER_WORDS: Final[dict[type[Entry], str]] = {ClockRegressed: "regress", ClockJumped: "jump"}


class Words:
    """The names of a timeline's runs, learnt from the entries in their order."""

    def __init__(self) -> None:
        self.runs: dict[str, int] = {}
        self.attempts: dict[int, list[int]] = {}
        self._names: dict[int, str] = {}
        self._manual: dict[str, int] = {}

    def name(self, sequence: int) -> str:
        return self._names.get(sequence, f"entry-{sequence}")

    def learn(self, sequence: int, entry: Entry) -> None:
        """Takes note of a name that the entry makes."""
        match entry:
            case OccurrenceAdmitted():
                self._call(sequence, f"{entry.schedule_id}@{describe_instant(entry.scheduled_at)}")
            case RunAdmittedManually():
                schedule_id = entry.schedule_id or ""
                self._manual[schedule_id] = self._manual.get(schedule_id, 0) + 1
                self._call(sequence, f"{schedule_id}#{self._manual[schedule_id]}")
            case ExternalRunRecorded():
                self._names[sequence] = "external"
            case ResumeMarked():
                self.attempts.setdefault(entry.run_id, []).append(sequence)
            case _:
                pass

    def decision(self, entry: Entry, sequence: int) -> Decision:
        return Decision(self._text(entry, sequence), tuple(self._details(entry)))

    def _call(self, sequence: int, name: str) -> None:
        self._names[sequence] = name
        self.runs[name] = sequence

    def _text(self, entry: Entry, sequence: int) -> str:
        match entry:
            case OccurrenceAdmitted() | RunAdmittedManually():
                text = f"admit {self.name(sequence)}"
            case OccurrenceSkipped():
                text = f"skip {_occurrence(entry)} {entry.reason}"
            case OccurrenceSuperseded():
                text = f"supersede {_occurrence(entry)} by {describe_instant(entry.by)}"
            case CandidateHeld():
                text = f"hold {_occurrence(entry)}"
            case IntervalSkipped():
                bounds = f"{describe_instant(entry.after)}..{describe_instant(entry.before)}"
                text = f"interval {entry.schedule_id}@{bounds} {entry.reason}"
            case ScheduleBlocked():
                text = f"block {entry.schedule_id} {entry.cause}"
            case RunAbandoned():
                text = f"abandon {self.name(entry.run_id)} {entry.cause}"
            case _:
                text = self._plain(entry)
        return text

    def _plain(self, entry: Entry) -> str:
        run_id, schedule_id = getattr(entry, "run_id", None), getattr(entry, "schedule_id", None)
        if isinstance(run_id, int) and type(entry) in RUN_WORDS:
            return f"{RUN_WORDS[type(entry)]} {self.name(run_id)}"
        if type(entry) in SCHEDULE_WORDS:
            return f"{SCHEDULE_WORDS[type(entry)]} {schedule_id}"
        return OTHER_WORDS.get(type(entry), kind_of(entry))

    def _details(self, entry: Entry) -> list[tuple[str, str]]:
        told = [(name, self._word(getattr(entry, name, None))) for name in PLAIN_DETAILS]
        match entry:
            case OccurrenceSkipped():
                told.append(("blocked_by", "" if entry.blocking_run is None else self.name(entry.blocking_run)))
                told.append(("spent_by", "" if entry.by is None else self.name(entry.by)))
                told.append(("detail", self._word(bool(entry.detail))))
            case RunFailed():
                told.append(("error", entry.error.type))
            case _:
                through = getattr(entry, "covers_through", getattr(entry, "through", None))
                after = self._word(getattr(entry, "covers_after", None))
                told.append(("covers", f"{after}..{self._word(through)}"))
        return [(name, word) for name, word in told if word not in ("", "..")]

    def _word(self, value: object) -> str:
        if value is None:
            return ""
        if isinstance(value, bool):
            return "yes" if value else "no"
        return describe_instant(value) if isinstance(value, datetime) else str(value)


def _occurrence(entry: OccurrenceSkipped | OccurrenceSuperseded | CandidateHeld) -> str:
    return f"{entry.schedule_id}@{describe_instant(entry.scheduled_at)}"
