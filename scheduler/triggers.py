"""The triggers: what a schedule's instants are, as values that know their form on disk.

Rules kept here:
- every source answers `next_after` and `prev_before`: aware instants in, UTC instants out, exclusive both ways, None
  when there is none; it is a pure function of its rule, so that a stored "next" is never truth;
- a trigger is checked when it is made: what cannot be meant raises `DefinitionError` with field, value and remedy;
- a trigger is immutable, and equal to any other of the same rule; `rule` is what the journal records;
- a source that the host brings is recorded by name and parameters, and made again from them by a registered factory:
  `trigger_of` is the way back from a rule, `rule_of` the way to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Generic, TypeVar, get_args
from zoneinfo import ZoneInfo

import msgspec

from duly.journal.entries import (
    CronRule,
    EveryRule,
    Fold,
    OncePerRule,
    OneShotRule,
    Period,
    SourceRule,
    TriggerRule,
    Unit,
)
from duly.scheduler import cron
from duly.scheduler.cadence import SECONDS_IN, Elapsed, OnTheWall, cadence_of
from duly.scheduler.calling import explained
from duly.scheduler.errors import DefinitionError, TriggerError
from duly.scheduler.instants import (
    EARLIEST,
    LATEST,
    answer_at,
    in_range,
    require_aware,
    seconds_through,
    seconds_until,
)
from duly.scheduler.periods import next_period_start, previous_period_start
from duly.scheduler.sources import OccurrenceSource, SourceFactory, checked_next_after, checked_prev_before
from duly.scheduler.wording import describe_error, describe_value
from duly.scheduler.zones import Zone, zone_of

__all__ = [
    "Cron",
    "Every",
    "OccurrenceSource",
    "OncePer",
    "OneShot",
    "SourceFactory",
    "checked_next_after",
    "checked_prev_before",
    "rule_of",
    "trigger_of",
]

LARGEST_COUNT = 1_000_000
TIME_OF_DAY = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
INTERNED = 65_536


Rule = TypeVar("Rule", CronRule, OneShotRule, OncePerRule, EveryRule)


class _Trigger(Generic[Rule]):
    """A value that is its rule: immutable, comparable, hashable."""

    __slots__ = ("rule",)
    rule: Rule

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable: make another one instead of setting {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable: {name} stays")

    def __eq__(self, other: object) -> bool:
        return self.rule == other.rule if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.rule)

    def __reduce__(self) -> tuple[Callable[[TriggerRule], OccurrenceSource], tuple[TriggerRule]]:
        return trigger_of, (self.rule,)

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


class Cron(_Trigger[CronRule]):
    """The wall-clock minutes of a cron expression in a time zone.

    `expression` has five fields (minute, hour, day of month, month, day of week) or is an alias such as `@daily`;
    `zone` is an IANA name or a ZoneInfo. A time that a gap skips fires at the first instant after the gap; one that a
    fold repeats fires in both passes, or with `fold="first"` in the first alone.

    Raises `DefinitionError` for an expression that is malformed, ambiguous or never fires, and for an unknown zone.
    """

    __slots__ = ("_first", "_plain", "_zone")
    _plain: str
    _zone: Zone
    _first: bool

    @explained("Cron", 'Write the expression and the zone that its times are meant in: Cron("30 2 * * *", zone="UTC").')
    def __init__(self, expression: str, zone: str | ZoneInfo, *, fold: Fold = "both") -> None:
        text, plain = cron.define(expression)
        known = zone_of(zone)
        rule = CronRule(text, known.name, _checked_fold(fold))
        self._set(rule=rule, _plain=plain, _zone=known, _first=fold == "first")

    def next_after(self, instant: datetime, /) -> datetime | None:
        """The first occurrence strictly after the aware `instant`, in UTC."""
        stamp = seconds_through(instant)
        return cron.next_after(self._plain, self._zone, self._first, stamp - stamp % self._zone.grain)

    def prev_before(self, instant: datetime, /) -> datetime | None:
        """The last occurrence strictly before the aware `instant`, in UTC."""
        stamp = seconds_until(instant)
        return cron.prev_before(self._plain, self._zone, self._first, stamp + -stamp % self._zone.grain)

    def __repr__(self) -> str:
        fold = "" if self.rule.fold == "both" else f", fold={self.rule.fold!r}"
        return f"Cron({self.rule.expression!r}, zone={self.rule.zone!r}{fold})"


class OneShot(_Trigger[OneShotRule]):
    """A single instant `at`: aware, in whole seconds, within 1972 … 2100."""

    __slots__ = ()

    @explained("OneShot", "Write one instant: OneShot(datetime(2026, 3, 1, 2, 30, tzinfo=UTC)).")
    def __init__(self, at: datetime) -> None:
        self._set(rule=OneShotRule(_checked_instant("at", at)))

    def next_after(self, instant: datetime, /) -> datetime | None:
        """The instant, if it lies strictly after the aware `instant`."""
        seconds_through(instant)
        return self.rule.at if self.rule.at > instant.astimezone(UTC) else None

    def prev_before(self, instant: datetime, /) -> datetime | None:
        """The instant, if it lies strictly before the aware `instant`."""
        seconds_through(instant)
        return self.rule.at if self.rule.at < instant.astimezone(UTC) else None

    def __repr__(self) -> str:
        return f"OneShot({self.rule.at!r})"


class OncePer(_Trigger[OncePerRule]):
    """Once in every calendar period of `zone`, at any time in it: a day, an ISO week (from Monday) or a month.

    Its occurrences are the first instants of the periods.
    """

    __slots__ = ("_zone",)
    _zone: Zone

    @explained("OncePer", 'Write the period and the zone whose days they are: OncePer("day", zone="UTC").')
    def __init__(self, period: Period, zone: str | ZoneInfo) -> None:
        if period not in get_args(Period):
            raise DefinitionError("period", period, "is no period", 'Write "day", "week" or "month".')
        known = zone_of(zone)
        self._set(rule=OncePerRule(period, known.name), _zone=known)

    def next_after(self, instant: datetime, /) -> datetime | None:
        """The first instant of the first period that begins strictly after the aware `instant`, in UTC."""
        return next_period_start(instant, self.rule.period, self._zone)

    def prev_before(self, instant: datetime, /) -> datetime | None:
        """The first instant of the last period that begins strictly before the aware `instant`, in UTC."""
        return previous_period_start(instant, self.rule.period, self._zone)

    def __repr__(self) -> str:
        return f"OncePer({self.rule.period!r}, zone={self.rule.zone!r})"


class Every(_Trigger[EveryRule]):
    """Every `count` units, counted from `anchor`, whose own instant counts and before which there is none.

    `minute` and `hour` are elapsed time from `anchor`, an aware datetime in whole seconds. `day`, `week`, `month` and
    `year` are dates counted from `anchor`, a date, at the time of day `at` ("HH:MM", else "00:00") on the wall of
    `zone`; a month that lacks the day is clamped to its last one, without drift. Gaps and folds are as for `Cron`.
    """

    __slots__ = ("_cadence",)
    _cadence: Elapsed | OnTheWall

    @explained(
        "Every",
        'Write a count, a unit and where counting begins: Every(5, "minute", anchor=datetime(2026, 3, 1, tzinfo=UTC)), '
        'or Every(1, "day", anchor=date(2026, 3, 1), at="02:30", zone="UTC").',
    )
    def __init__(  # noqa: PLR0913 - a rule has six parts, and one reads badly in pieces
        self,
        count: int,
        unit: Unit,
        *,
        anchor: date,
        at: str | None = None,
        zone: str | ZoneInfo | None = None,
        fold: Fold = "both",
    ) -> None:
        if type(count) is not int or not 1 <= count <= LARGEST_COUNT:
            raise DefinitionError("count", count, "is no count of units", f"Write 1 … {LARGEST_COUNT:,}.")
        if unit not in get_args(Unit):
            raise DefinitionError("unit", unit, "is no unit", f"Write one of {', '.join(get_args(Unit))}.")
        name = None if zone is None else zone_of(zone).name
        _checked_fold(fold)
        if unit in SECONDS_IN:
            start = _checked_instant("anchor", anchor).isoformat().replace("+00:00", "Z")
            if at is not None or fold != "both":
                given = ("at", at) if at is not None else ("fold", fold)
                raise DefinitionError(*given, f"means nothing beside the unit {unit}", "Leave it out, or count days.")
        else:
            start = _checked_date("anchor", anchor)
            at = _checked_time("at", "00:00" if at is None else at)
            if name is None:
                raise DefinitionError("zone", zone, f"is missing, and a {unit} is a day on a wall", 'Write zone="UTC".')
        rule = EveryRule(count, unit, start, name, at, fold)
        self._set(rule=rule, _cadence=cadence_of(rule))

    def next_after(self, instant: datetime, /) -> datetime | None:
        """The first occurrence strictly after the aware `instant`, in UTC."""
        found = self._cadence.after(seconds_through(instant))
        return None if found is None else answer_at(found)

    def prev_before(self, instant: datetime, /) -> datetime | None:
        """The last occurrence strictly before the aware `instant`, in UTC; None before the anchor."""
        found = self._cadence.before(seconds_until(instant))
        return None if found is None else answer_at(found)

    def __repr__(self) -> str:
        rule = self.rule
        told = [f"{name}={value!r}" for name, value in (("at", rule.at), ("zone", rule.zone)) if value is not None]
        anchor = date.fromisoformat(rule.anchor) if rule.at is not None else datetime.fromisoformat(rule.anchor)
        fold = [] if rule.fold == "both" else [f"fold={rule.fold!r}"]
        return f"Every({', '.join([str(rule.count), repr(rule.unit), *told, f'anchor={anchor!r}', *fold])})"


def _checked_fold(fold: Fold) -> Fold:
    if fold not in get_args(Fold):
        raise DefinitionError("fold", fold, "is no rule for repeated times", 'Write "both" or "first".')
    return fold


def _checked_instant(field: str, given: object) -> datetime:
    instant = require_aware(given, field)
    if not in_range(instant):
        raise DefinitionError(field, instant, "lies outside the supported range", "Write an instant in 1972 … 2100.")
    if instant.astimezone(UTC).microsecond:
        raise DefinitionError(field, instant, "is not in whole seconds", "Write .replace(microsecond=0).")
    return instant.astimezone(UTC)


def _checked_date(field: str, day: object) -> str:
    if isinstance(day, datetime) or not isinstance(day, date):
        raise DefinitionError(field, day, "is not a date", "Write date(year, month, day): the time of day is `at`.")
    if not EARLIEST.date() <= day <= LATEST.date():
        raise DefinitionError(field, day, "lies outside the supported range", "Write a date in 1972 … 2100.")
    return day.isoformat()


def _checked_time(field: str, time: object) -> str:
    if not isinstance(time, str) or not TIME_OF_DAY.fullmatch(time):
        raise DefinitionError(field, time, "is no time of day", 'Write "HH:MM", from "00:00" to "23:59".')
    return time


def rule_of(trigger: OccurrenceSource, sources: Mapping[str, SourceFactory] | None = None) -> TriggerRule:
    """What the journal records of a trigger: its `rule`.

    A host's source has a `SourceRule` there, with a name that `sources` knows. Raises `DefinitionError` otherwise.
    """
    if isinstance(trigger, Cron | OneShot | OncePer | Every):
        return trigger.rule
    rule = getattr(trigger, "rule", None)
    if not isinstance(rule, SourceRule):
        remedy = "Use a trigger of duly, or give your OccurrenceSource an attribute `rule`, a SourceRule."
        raise DefinitionError("trigger", trigger, "cannot be recorded", remedy)
    if rule.source not in (sources or {}):
        remedy = f"Register its factory; registered are: {', '.join(sorted(sources or {})) or 'none'}."
        raise DefinitionError("trigger", rule.source, "is no registered source", remedy)
    try:
        msgspec.json.encode(rule.parameters)
    except (TypeError, ValueError, RecursionError) as error:
        raise DefinitionError("trigger", rule.parameters, f"cannot be recorded: {error}", "Use plain JSON.") from error
    return rule


def trigger_of(rule: TriggerRule, sources: Mapping[str, SourceFactory] | None = None) -> OccurrenceSource:
    """The trigger of a recorded rule. Equal rules give the same object, as long as it is among the recently used.

    `sources` maps the names that a host's sources are recorded under to the factories that make them. Raises
    `TriggerError` where this machine cannot evaluate the rule: an unknown zone, an unregistered source.
    """
    if not isinstance(rule, SourceRule):
        return _own_trigger(rule)
    factory = (sources or {}).get(rule.source)
    if factory is None:
        raise TriggerError(
            f"the source {rule.source!r} is not registered in this process",
            hint="Register its factory when opening the scheduler, or edit the schedule.",
        )
    try:
        parameters = msgspec.json.encode(rule.parameters, order="deterministic")
        return _source(factory, rule.source, parameters)
    except Exception as error:
        made_from = describe_value(rule.parameters)
        raise TriggerError(
            f"the source {rule.source!r} cannot be made from {made_from}: {describe_error(error)}",
            hint="Mend its factory, or edit the schedule.",
        ) from error


@lru_cache(maxsize=INTERNED)
def _own_trigger(rule: CronRule | OneShotRule | OncePerRule | EveryRule) -> OccurrenceSource:
    try:
        match rule:
            case CronRule():
                return Cron(rule.expression, rule.zone, fold=rule.fold)
            case OneShotRule():
                return OneShot(rule.at)
            case OncePerRule():
                return OncePer(rule.period, rule.zone)
            case EveryRule():
                elapsed = rule.unit in SECONDS_IN
                anchor = datetime.fromisoformat(rule.anchor) if elapsed else date.fromisoformat(rule.anchor)
                return Every(rule.count, rule.unit, at=rule.at, zone=rule.zone, anchor=anchor, fold=rule.fold)
    except ValueError as error:  # every DefinitionError is one
        raise TriggerError(
            f"{rule} cannot be evaluated on this machine: {error}", hint="Edit the schedule, or update tzdata."
        ) from error


@lru_cache(maxsize=INTERNED)
def _source(factory: SourceFactory, name: str, parameters: bytes) -> OccurrenceSource:
    made = factory(msgspec.json.decode(parameters))
    if not all(callable(getattr(made, method, None)) for method in ("next_after", "prev_before")):
        raise TypeError(f"the factory of {name!r} made {describe_value(made)}, which lacks next_after or prev_before")
    return made
