"""How long a run takes that nobody ever saw run: the duration model of a what-if and of a simulation.

Rules: a duration that is given goes first, then one for all (`*`), then the median of the schedule's recorded runs;
where there is none of them nothing is made up: the schedule is noted, and the answer is refused with what to give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from duly.scheduler.changes import EVERY
from duly.scheduler.errors import DefinitionError
from duly.scheduler.explaining import unknown_schedule

LONGEST: Final = timedelta(days=366)


class Durations:
    """What runs of each schedule are taken to last."""

    def __init__(
        self, given: Mapping[str, timedelta], recorded: Mapping[str, Sequence[timedelta]] | None = None
    ) -> None:
        """`given` by schedule id, `*` for all others; `recorded` are durations that were seen. Raises
        DefinitionError."""
        for schedule_id, duration in given.items():
            _check_duration(schedule_id, duration)
        self.used: dict[str, timedelta] = {}
        self.missing: set[str] = set()
        self._given = dict(given)
        self._recorded = dict(recorded or {})

    def check_schedules(self, ids: Iterable[str]) -> None:
        """Raises UnknownSchedule, with the nearest, for a duration of a schedule that is not among these."""
        known = set(ids)
        for schedule_id in self._given:
            if schedule_id != EVERY and schedule_id not in known:
                raise unknown_schedule(schedule_id, known)

    def of(self, schedule_id: str | None) -> timedelta:
        """How long a run of the schedule is taken to last; nothing, and noted as missing, if that cannot be told."""
        name = schedule_id or ""
        if name not in self.used:
            found = self._found(name)
            if found is None:
                self.missing.add(name)
            self.used[name] = found if found is not None else timedelta()
        return self.used[name]

    def require_all(self) -> None:
        """Raises DefinitionError if a duration was asked for that nothing tells."""
        named = sorted(name for name in self.missing if name)
        if named:
            one = len(named) == 1
            problem = f"{'has' if one else 'have'} no recorded run that ended, to tell how long one takes"
            remedy = f"Say it: --duration {' --duration '.join(f'{name}=10m' for name in named)}; *=10m is for all."
            raise DefinitionError("durations", ", ".join(named), problem, remedy)

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
