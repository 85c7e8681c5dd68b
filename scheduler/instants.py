"""What an instant is: an aware datetime, compared and returned in UTC, within the supported range.

Rules kept here:
- a naive datetime is refused wherever one could be given;
- everything is converted to UTC before it is compared: two datetimes of one tzinfo compare by wall time, and ignore
  which pass of a repeated hour they belong to;
- a query outside 1972 … 2100 is refused; an answer may lie up to ten years beyond, so that the last leap day in the
  range still has a successor and nothing is exhausted by the range's end.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from duly.scheduler.errors import DefinitionError, TriggerError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EARLIEST = datetime(1972, 1, 1, tzinfo=UTC)
"""The first instant of the supported range."""
LATEST = datetime(2100, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
"""The last instant of the supported range."""

FIRST_QUERY = (EARLIEST - EPOCH) // SECOND
LAST_QUERY = (LATEST - EPOCH) // SECOND + 1
_FIRST_ANSWER = EARLIEST.replace(year=1962)
_LAST_ANSWER = LATEST.replace(year=2110)
FIRST_ANSWER = (_FIRST_ANSWER - EPOCH) // SECOND
LAST_ANSWER = (_LAST_ANSWER - EPOCH) // SECOND


def in_range(instant: datetime) -> bool:
    """Whether the aware `instant` lies in the supported range, 1972 … 2100 in UTC."""
    return EARLIEST <= instant <= LATEST


def require_aware(instant: object, field: str = "instant") -> datetime:
    """`instant`, if it is an aware datetime; otherwise a `DefinitionError` that names `field`."""
    if not isinstance(instant, datetime):
        raise DefinitionError(field, instant, "is not a datetime", "Give an aware datetime, in UTC for example.")
    if instant.utcoffset() is None:
        raise DefinitionError(
            field,
            instant,
            "is naive: it names no instant",
            "Give it a time zone: datetime(…, tzinfo=UTC), or .replace(tzinfo=…) with the zone that it was meant in.",
        )
    return instant


def require_utc(instant: object, field: str = "instant") -> datetime:
    """`instant` in UTC, if it is an aware datetime that has one; otherwise a `DefinitionError` that names `field`."""
    aware = require_aware(instant, field)
    try:
        return aware.astimezone(UTC)
    except OverflowError:  # in the first or the last hours of what a datetime can be
        remedy = "Give an instant in 1972 to 2100."
        raise DefinitionError(field, instant, "lies outside of what is supported", remedy) from None


def instant_at(stamp: int) -> datetime:
    """The UTC datetime of a Unix time in whole seconds."""
    if stamp >= 0:
        return datetime.fromtimestamp(stamp, UTC)
    return EPOCH + timedelta(seconds=stamp)  # some platforms convert no negative times


def seconds_through(instant: datetime) -> int:
    """The Unix time of the last whole second ≤ `instant`, which must be aware and in the supported range."""
    try:
        stamp = (instant - EPOCH) // SECOND
    except TypeError:  # what is naive, or no datetime, has no difference from an instant
        require_aware(instant)
        raise
    if not FIRST_QUERY <= stamp < LAST_QUERY:
        raise out_of_range(instant)
    return stamp


def seconds_until(instant: datetime) -> int:
    """The Unix time of the first whole second ≥ `instant`, which must be aware and in the supported range."""
    stamp = seconds_through(instant)
    return stamp + 1 if instant.microsecond else stamp


def out_of_range(instant: datetime) -> TriggerError:
    return TriggerError(
        f"{instant.isoformat()} lies outside the supported range, 1972 … 2100",
        instant=instant,
        hint="Check the clock or the date that was asked about.",
    )


def is_answer(instant: datetime) -> bool:
    """Whether the aware `instant` may be an occurrence: at most ten years outside the supported range."""
    return _FIRST_ANSWER <= instant <= _LAST_ANSWER


def answer_at(stamp: int) -> datetime | None:
    """The answer of a source of ours as an instant, or None where it lies too far beyond the supported range."""
    return instant_at(stamp) if FIRST_ANSWER <= stamp <= LAST_ANSWER else None


def describe_instant(instant: datetime) -> str:
    """`2026-03-29T01:00:00Z`, with the fraction only where there is one."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
