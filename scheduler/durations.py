"""How long a run takes that nobody ever saw run: the duration model of a what-if and of a simulation.

Rules: a duration that is given goes first, then one for all (`*`), then the median of the schedule's recorded runs;
where there is none of them nothing is made up: the schedule is noted, and the answer is refused with what to give.
Runs by hand that are of no schedule are told of as one, `BY_HAND`: nothing but `*` says how long they take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from duly.scheduler.changes import EVERY
from duly.scheduler.errors import DefinitionError
from duly.scheduler.unknown import unknown_schedule

LONGEST: Final = timedelta(days=366)
BY_HAND: Final = "by hand"
"""The name of the runs that are of no schedule; no schedule can have it."""


class Durations:
    """What runs of each schedule are taken to last."""

    def __init__(
        self, given: Mapping[str, timedelta], recorded: Mapping[str, Sequence[timedelta]] | None = None
    ) -> None:
        """`given` by schedule id, `*` for all others; `recorded` are durations that were seen. Raises
        DefinitionError."""
        for schedule_id, duration in given.items():
            _check_duration(schedule_id, duration)
        self.used: dict[str, timedelta | None] = {}
        """What was asked for; None is what nothing tells."""
        self._given = dict(given)
        self._recorded = dict(recorded or {})

    def check_schedules(self, ids: Iterable[str]) -> None:
        """Raises UnknownSchedule, with the nearest, for a duration of a schedule that is not among these."""
        known = set(ids)
        for schedule_id in self._given:
            if schedule_id != EVERY and schedule_id not in known:
                raise unknown_schedule(schedule_id, known)

    def of(self, schedule_id: str | None) -> timedelta:
        """How long a run of the schedule is taken to last; nothing, and noted so, if nothing tells."""
        name = BY_HAND if schedule_id is None else schedule_id
        if name not in self.used:
            self.used[name] = self._found(name)
        return self.used[name] or timedelta()

    def require_all(self) -> None:
        """Raises DefinitionError if a duration was asked for that nothing tells."""
        missing = sorted(name for name, duration in self.used.items() if duration is None)
        if not missing:
            return
        problem = f"{'has' if len(missing) == 1 else 'have'} no recorded run that ended, to tell how long one takes"
        options = " ".join(f"--duration {name}=10m" for name in missing if name != BY_HAND)
        if BY_HAND in missing:
            remedy = "Say it: --duration *=10m is for all, runs by hand that are of no schedule, too."
        else:
            remedy = f"Say it: {options}; *=10m is for all."
        raise DefinitionError("durations", ", ".join(missing), problem, remedy)

    def _found(self, name: str) -> timedelta | None:
        if name in self._given:
            return self._given[name]
        if EVERY in self._given:
            return self._given[EVERY]
        seen = sorted(self._recorded.get(name, ()))
        if not seen:
            return None
        middle = len(seen) // 2
        return seen[middle] if len(seen) % 2 else (seen[middle - 1] + seen[middle]) / 2


def _check_duration(schedule_id: str, duration: object) -> None:
    if not isinstance(duration, timedelta) or not timedelta() <= duration <= LONGEST:
        problem, remedy = "is no duration", "Give a timedelta from 0 to 366 days."
        raise DefinitionError(f"durations.{schedule_id}", duration, problem, remedy)
