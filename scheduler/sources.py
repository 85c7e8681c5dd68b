"""Sources of instants: the protocol, and the checks that stand between any source and a decision.

Rules kept here:
- every source answers `next_after` and `prev_before`: aware instants in, UTC instants out, exclusive both ways, None
  when there is none;
- an answer is used only after it was checked: an aware datetime, in whole seconds, strictly later or earlier than what
  was asked, within reach of the supported range. Anything else, and any exception of a host's source, is a
  `TriggerError`: it blocks one schedule, and never looks like progress.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol, TypeAlias

from duly.journal.entries import Json, TriggerRule
from duly.scheduler.errors import TriggerError
from duly.scheduler.instants import is_answer, seconds_through
from duly.scheduler.wording import describe_error, describe_value


class OccurrenceSource(Protocol):
    """A source of instants. Duly's triggers are; a host may bring its own.

    Both methods take an aware datetime and return an aware datetime in whole seconds, or None when there is no such
    instant (exhausted). They must be pure: the same answer for the same question, in every process. To be used in a
    schedule, a host's source has an attribute `rule`, a `SourceRule` with the name that its factory is registered under
    and the JSON parameters that the factory makes it from.
    """

    def next_after(self, instant: datetime, /) -> datetime | None:
        """The first occurrence strictly after `instant`."""
        ...

    def prev_before(self, instant: datetime, /) -> datetime | None:
        """The last occurrence strictly before `instant`."""
        ...


class Unevaluable:
    """Stands in for a trigger that this machine cannot evaluate: its rule is known, its instants are not."""

    def __init__(self, rule: TriggerRule, error: TriggerError) -> None:
        self.rule = rule
        self._error = error

    def next_after(self, instant: datetime, /) -> datetime | None:
        """Raises the TriggerError that says why."""
        raise self._error

    def prev_before(self, instant: datetime, /) -> datetime | None:
        """Raises the TriggerError that says why."""
        raise self._error

    def __repr__(self) -> str:
        return f"Unevaluable({self.rule!r})"


SourceFactory: TypeAlias = Callable[[Json], OccurrenceSource]
"""Makes a host's source from the parameters that the journal holds."""


def checked_next_after(source: OccurrenceSource, instant: datetime) -> datetime | None:
    """The source's first occurrence strictly after the aware `instant`, in UTC, or None; checked.

    Raises `TriggerError` for an answer that cannot be one and for an exception inside the source, `DefinitionError` for
    a naive `instant`.
    """
    seconds_through(instant)
    try:
        found = _in_utc(source.next_after(instant))
    except TriggerError:
        raise
    except Exception as error:
        raise _failed(source, instant, "after", error) from error
    if found is None:
        return None
    _check(source, instant, "after", found)
    # In UTC, so that two datetimes of one zone are not compared by their wall time.
    if found <= instant:
        raise _refused(source, instant, "after", found, "is not later")
    return found


def checked_prev_before(source: OccurrenceSource, instant: datetime) -> datetime | None:
    """The source's last occurrence strictly before the aware `instant`, in UTC, or None; checked.

    Raises as `checked_next_after` does.
    """
    seconds_through(instant)
    try:
        found = _in_utc(source.prev_before(instant))
    except TriggerError:
        raise
    except Exception as error:
        raise _failed(source, instant, "before", error) from error
    if found is None:
        return None
    _check(source, instant, "before", found)
    if found >= instant:
        raise _refused(source, instant, "before", found, "is not earlier")
    return found


def _in_utc(answer: object) -> datetime | None:
    """A source's answer in UTC; raises where it is neither None nor an aware datetime."""
    if answer is None:
        return None
    if type(answer) is datetime and answer.tzinfo is UTC:
        return answer
    if not isinstance(answer, datetime):
        raise TypeError(f"{describe_value(answer)} is not a datetime")
    if answer.utcoffset() is None:
        raise TypeError(f"{describe_value(answer)} is naive: it names no instant")
    return answer.astimezone(UTC)


def _check(source: OccurrenceSource, instant: datetime, direction: str, found: datetime) -> None:
    if found.microsecond:
        raise _refused(source, instant, direction, found, "is not in whole seconds")
    if not is_answer(found):
        raise _refused(source, instant, direction, found, "lies outside the supported range, 1972 … 2100")


def _failed(source: OccurrenceSource, instant: datetime, direction: str, error: Exception) -> TriggerError:
    return TriggerError(
        f"{describe_value(source)} failed on the instant {direction} {instant.isoformat()}: {describe_error(error)}",
        instant=instant,
        hint="Mend the source, then unblock or edit the schedule.",
    )


def _refused(
    source: OccurrenceSource, instant: datetime, direction: str, found: datetime, problem: str
) -> TriggerError:
    asked = f"the instant {direction} {instant.isoformat()}"
    return TriggerError(
        f"{describe_value(source)} answered {found.isoformat()} for {asked}, which {problem}",
        instant=instant,
        hint="Mend the source, then unblock or edit the schedule.",
    )
