"""The errors of the scheduler, all under `SchedulerError`.

Rules: an error is named after what happened, carries the value that caused it and says what to do next. Its text is
for people; its attributes are for programs, None where they do not apply. Whoever raises one has recorded nothing.
"""

from __future__ import annotations

from datetime import datetime

from duly.journal.errors import Error
from duly.scheduler.wording import describe_value

LONGEST_VALUE = 200  # characters of a refused value that a message repeats


class SchedulerError(Error):
    """A command or question that the scheduler refuses, or cannot answer."""

    def __init__(
        self,
        message: str,
        *,
        schedule_id: str | None = None,
        run_id: int | None = None,
        hint: str = "",
    ) -> None:
        self.message = message
        self.schedule_id = schedule_id
        self.run_id = run_id
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


class DefinitionError(SchedulerError, ValueError):
    """A definition, or an argument of a command, that cannot be meant: nothing is journaled.

    `field` names what is wrong, `value` is what was given, `problem` says why it is refused and `remedy` what to write
    instead.
    """

    def __init__(self, field: str, value: object, problem: str, remedy: str) -> None:
        self.field = field
        self.value = value
        self.problem = problem
        self.remedy = remedy
        shown = describe_value(value)
        if len(shown) > LONGEST_VALUE:
            shown = f"{shown[:LONGEST_VALUE]}…"
        super().__init__(f"{field}: {shown} {problem}", hint=remedy)

    def __reduce__(self) -> tuple[type[DefinitionError], tuple[str, object, str, str]]:
        return type(self), (self.field, self.value, self.problem, self.remedy)


class TriggerError(SchedulerError):
    """A trigger that cannot be evaluated: its zone is missing, the query lies outside the supported range, or what its
    source answers is no instant that can follow. It blocks its schedule and never looks like progress.

    `instant` is the instant that was asked about, if any.
    """

    def __init__(self, message: str, *, instant: datetime | None = None, hint: str = "") -> None:
        self.instant = instant
        super().__init__(message, hint=hint)


class UnknownSchedule(SchedulerError, LookupError):
    """No schedule has this id, or it is deleted: `schedule_id`."""


class UnknownRun(SchedulerError, LookupError):
    """No run has this id: `run_id`."""


class DuplicateSchedule(SchedulerError):
    """The id is taken, by a living or a deleted schedule: `schedule_id`."""


class RevisionConflict(SchedulerError):
    """The schedule is at `actual`, not at the `expected` revision that the edit was written against."""

    def __init__(self, message: str, *, schedule_id: str, expected: int, actual: int, hint: str = "") -> None:
        self.expected = expected
        self.actual = actual
        super().__init__(message, schedule_id=schedule_id, hint=hint)


class WrongRunState(SchedulerError):
    """The run is in `state`, where the command is not legal; `recorded` is what the journal holds about its end."""

    def __init__(self, message: str, *, run_id: int, state: str, recorded: object = None, hint: str = "") -> None:
        self.state = state
        self.recorded = recorded
        super().__init__(message, run_id=run_id, hint=hint)


class NoTaskSlot(SchedulerError):
    """Every task slot is taken; a run that ends or is interrupted frees one."""


class StaleAttempt(SchedulerError):
    """A result names the attempt `given` (or none), and the run's ACTIVE attempt is `active`: nothing is recorded."""

    def __init__(self, message: str, *, run_id: int, given: int | None, active: int | None, hint: str = "") -> None:
        self.given = given
        self.active = active
        super().__init__(message, run_id=run_id, hint=hint)


class Blocked(SchedulerError):
    """The schedule is blocked since the entry `sequence`, for `reason`."""

    def __init__(
        self, message: str, *, schedule_id: str, reason: str = "", sequence: int | None = None, hint: str = ""
    ) -> None:
        self.reason = reason
        self.sequence = sequence
        super().__init__(message, schedule_id=schedule_id, hint=hint)


class ClockUnusable(SchedulerError):
    """The clock reads `reading`, outside the supported range: nothing that depends on the time can be decided."""

    def __init__(self, message: str, *, reading: datetime | None = None, hint: str = "") -> None:
        self.reading = reading
        super().__init__(message, hint=hint)


class SchedulerClosed(SchedulerError):
    """The scheduler is closed, or admits nothing any more."""
