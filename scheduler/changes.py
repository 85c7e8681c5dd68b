"""Changes of policy, as a what-if is asked about them: which schedule or setting, which field, which value.

Rules: a name is `SCHEDULE.FIELD`, with `*` for every schedule, or a setting of the host; a name that is not known is
refused with what there is and the nearest; a changed definition is checked as a user's own would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, cast

import msgspec

from duly.journal.entries import CronRule, Definition, JournalOpened
from duly.scheduler.definitions import DefinitionFields, check_count, parse_definition
from duly.scheduler.errors import DefinitionError
from duly.scheduler.triggers import Cron
from duly.scheduler.unknown import unknown_schedule

SETTINGS: Final = ("task_slots", "batch", "clock_tolerance")
FIELDS: Final = ("misfire", "lateness", "overlap", "max_active_runs", "cron", "zone", "fold")
EVERY: Final = "*"
_TIMING: Final = ("cron", "zone", "fold")
_LONGEST_TOLERANCE: Final = timedelta(days=365)


class Changes:
    """Another policy, laid over what is recorded."""

    def __init__(self, given: Mapping[str, object]) -> None:
        """`given` maps names, such as `nightly.misfire` or `task_slots`, to values. Raises DefinitionError."""
        self.given = dict(given)
        self._settings: dict[str, object] = {}
        self._fields: dict[str, dict[str, object]] = {}
        for name, value in given.items():
            schedule_id, dot, field = name.rpartition(".")
            if not dot:
                _check_known(field, SETTINGS, "setting", name)
                self._settings[field] = _checked_setting(field, value)
            else:
                _check_known(field, FIELDS, "field", name)
                self._fields.setdefault(schedule_id, {})[field] = value

    def check_schedules(self, ids: Iterable[str]) -> None:
        """Raises UnknownSchedule, with the nearest, for a schedule that is not among these."""
        known = set(ids)
        for schedule_id in self._fields:
            if schedule_id != EVERY and schedule_id not in known:
                raise unknown_schedule(schedule_id, known)

    def opened(self, recorded: JournalOpened) -> JournalOpened:
        """The opening with the changed settings."""
        settings: dict[str, Any] = self._settings
        return msgspec.structs.replace(recorded, **settings) if settings else recorded

    def definition(self, schedule_id: str, recorded: Definition) -> Definition:
        """The definition as it is under the changes. Raises DefinitionError for what cannot be meant."""
        own = self._fields.get(schedule_id, {})
        wanted = {**self._fields.get(EVERY, {}), **own}
        if not wanted:
            return recorded
        fields: dict[str, object] = {name: value for name, value in wanted.items() if name not in _TIMING}
        timing = {name: value for name, value in wanted.items() if name in _TIMING}
        if timing and (isinstance(recorded.trigger, CronRule) or any(name in own for name in timing)):
            fields["trigger"] = _timed(schedule_id, recorded, timing)
        if fields.get("overlap") == "skip" and "max_active_runs" not in fields:
            fields["max_active_runs"] = None
        try:
            return parse_definition(cast("DefinitionFields", fields), recorded)
        except DefinitionError as error:
            raise DefinitionError(f"{schedule_id}.{error.field}", error.value, error.problem, error.remedy) from error

    def retimes(self, schedule_id: str) -> bool:
        """Whether the schedule's trigger is another one."""
        wanted = {**self._fields.get(EVERY, {}), **self._fields.get(schedule_id, {})}
        return any(name in wanted for name in _TIMING)


def _timed(schedule_id: str, recorded: Definition, timing: Mapping[str, object]) -> Cron:
    rule = recorded.trigger
    name = next(iter(timing))
    if not isinstance(rule, CronRule):
        expression, zone = timing.get("cron"), timing.get("zone", getattr(rule, "zone", None))
        if expression is None or zone is None:
            problem = f"cannot be changed: the trigger of {schedule_id!r} is no cron expression"
            remedy = f"Give {schedule_id}.cron and {schedule_id}.zone together."
            raise DefinitionError(f"{schedule_id}.{name}", timing[name], problem, remedy)
        rule = CronRule(str(expression), str(zone))
    fold: Any = timing.get("fold", rule.fold)
    try:
        return Cron(str(timing.get("cron", rule.expression)), zone=str(timing.get("zone", rule.zone)), fold=fold)
    except DefinitionError as error:
        raise DefinitionError(f"{schedule_id}.{name}", error.value, error.problem, error.remedy) from error


def _check_known(field: str, known: tuple[str, ...], what: str, name: str) -> None:
    if field in known:
        return
    # Costs its import only when something is refused.
    from difflib import get_close_matches

    near = get_close_matches(field, known, n=1)
    if field in FIELDS:
        hint = f"Name its schedule, as in nightly.{field}, or *.{field} for all"
    elif field in SETTINGS:
        hint = f"It is a setting of the host: write {field} alone"
    else:
        hint = f"The nearest: {near[0]}" if near else "Mind the spelling"
    listed = f"fields of a schedule are {', '.join(FIELDS)}; settings are {', '.join(SETTINGS)}"
    raise DefinitionError("changes", name, f"names no {what} that can be changed", f"{hint}; {listed}.")


def _checked_setting(name: str, value: object) -> object:
    if name != "clock_tolerance":
        check_count(name, value)
    elif not isinstance(value, timedelta) or not timedelta() <= value <= _LONGEST_TOLERANCE:
        raise DefinitionError(name, value, "is no tolerance", "Give a timedelta from 0 to 365 days.")
    return value
