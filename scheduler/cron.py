"""The instants of a cron expression in a zone: croniter asked in wall-clock time, joined with the zone's offsets.

Rules kept here:
- croniter owns which wall-clock minutes match, and is asked in naive local time only: given aware datetimes it misses
  second passes, invents instants in gaps in one version, and scans a gap minute by minute;
- the zone owns which instants bear a wall-clock time. A skipped one fires at the first instant after the gap, several
  in one gap once; an expression for all hours invents nothing in a gap. A repeated one fires in both passes, or in the
  first alone;
- one search asks croniter once, and once more for each gap or fold that the answer really depends on;
- what croniter answers is checked: a whole minute, strictly later or earlier, or a `TriggerError`;
- one croniter object per plain expression, shared under a lock (croniter's objects keep a position); searches are
  remembered by (expression, zone, fold, minute), a bounded number of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import datetime
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from duly.scheduler.errors import DefinitionError, TriggerError
from duly.scheduler.expressions import parse_expression
from duly.scheduler.instants import instant_at
from duly.scheduler.zones import Zone

REMEMBERED = 16_384  # searches in each direction
SEARCHES = 4_096  # croniter objects; each costs some kilobytes
PROBE = 1_767_225_600  # 2026-01-01T00:00 on any wall: where an expression must have a next and a previous minute
MINUTE = 60


class WallSearch:
    """The wall-clock minutes of one plain expression, as seconds since 1970-01-01T00:00 on the wall."""

    __slots__ = ("_croniter", "_lock", "all_hours", "plain")

    def __init__(self, plain: str) -> None:
        from duly.scheduler.naive_croniter import NaiveCroniter

        self.plain = plain
        self.all_hours = plain.split(" ")[1] == "*"
        self._croniter: Any = NaiveCroniter(plain, PROBE, ret_type=float)
        self._lock = Lock()

    def after(self, wall: int) -> int:
        """The first matching minute strictly after `wall`."""
        try:
            with self._lock:
                found: float = self._croniter.get_next(start_time=wall)
        except Exception as error:
            raise self._unanswered("after", wall, error) from error
        if found <= wall or found % MINUTE:
            raise self._unanswered("after", wall, found)
        return int(found)

    def before(self, wall: int) -> int:
        """The last matching minute strictly before `wall`."""
        try:
            with self._lock:
                found: float = self._croniter.get_prev(start_time=wall)
        except Exception as error:
            raise self._unanswered("before", wall, error) from error
        if found >= wall or found % MINUTE:
            raise self._unanswered("before", wall, found)
        return int(found)

    def _unanswered(self, direction: str, wall: int, answer: object) -> TriggerError:
        return TriggerError(
            f"croniter {croniter_version()} has no usable minute of {self.plain!r} {direction} {wall} s on the wall: "
            f"{answer!r}",
            hint="Report this: it is a fault of duly or of croniter, and the schedule is blocked until it is edited.",
        )


@lru_cache(maxsize=SEARCHES)
def search_of(plain: str) -> WallSearch:
    """The search for a plain expression, which must find something in both directions."""
    search = WallSearch(plain)
    search.after(PROBE)
    search.before(PROBE)
    return search


_defining = Lock()


def define(expression: object) -> tuple[str, str]:
    """The text of an expression and its plain form; `DefinitionError` where it is refused or never fires."""
    if not isinstance(expression, str):
        raise DefinitionError("expression", expression, "is no text", 'Write five fields, such as "30 2 * * *".')
    parsed = parse_expression(expression)
    try:
        with _defining:
            search_of(parsed.plain)
    except (TriggerError, ValueError) as error:
        raise DefinitionError(
            "expression", expression, "cannot be evaluated", f"Write another one; the reason: {error}"
        ) from error
    return parsed.text, parsed.plain


@lru_cache(maxsize=REMEMBERED)
def next_after(plain: str, zone: Zone, first_pass_only: bool, stamp: int) -> datetime:
    """The first occurrence strictly after the Unix time `stamp`, in UTC.

    Remembered, so ask with a multiple of the zone's grain: no occurrence lies between two of them.
    """
    search = search_of(plain)
    starts, offsets = zone.starts, zone.offsets
    segment = bisect_right(starts, stamp) - 1
    offset = offsets[segment]
    wall = stamp + offset
    if first_pass_only and segment and wall < starts[segment] + offsets[segment - 1]:
        wall = starts[segment] + offsets[segment - 1] - 1  # the second pass is over before anything fires again
    # From here on: no minute in (wall, found) matches.
    found = search.after(wall)
    following = segment + 1
    while following < len(starts) and found - offset >= starts[following]:
        turn = starts[following]
        change = offsets[following] - offset
        reopened = turn + offset + min(change, 0)  # the first wall time of what is skipped or repeated
        if change > 0:
            if found < reopened + change:
                if not search.all_hours:
                    return instant_at(turn)
                wall = reopened + change - 1
                found = search.after(wall)
        elif wall >= reopened and not first_pass_only:
            wall = reopened - 1  # the query lies in the first pass, and the second may match before it
            found = search.after(wall)
        offset += change
        following += 1
    return instant_at(found - offset)


@lru_cache(maxsize=REMEMBERED)
def prev_before(plain: str, zone: Zone, first_pass_only: bool, stamp: int) -> datetime:
    """The last occurrence strictly before the Unix time `stamp`, in UTC. Remembered, as `next_after` is."""
    search = search_of(plain)
    starts, offsets = zone.starts, zone.offsets
    segment = bisect_left(starts, stamp) - 1
    offset = offsets[segment]
    wall = stamp + offset
    # From here on: no minute in (found, wall) matches.
    found = search.before(wall)
    for current in range(segment, 0, -1):
        turn = starts[current]
        change = offset - offsets[current - 1]
        end = turn + offsets[current - 1]  # where the wall stood when the segment before it ended
        if found >= (end if first_pass_only and change < 0 else turn + offset):
            break
        if change > 0:
            if found >= end:
                if not search.all_hours:
                    return instant_at(turn)
                wall = end
                found = search.before(wall)
        elif wall < end:
            wall = end  # the query lies in the second pass, and the first may match after it
            found = search.before(wall)
        offset -= change
    return instant_at(found - offset)


@cache
def croniter_version() -> str:
    """The version of croniter in use, such as "7.0.0"; "unknown" where it was installed without its metadata.

    croniter does not say it in code, so it is read from the name of the metadata folder beside the package.
    """
    found = find_spec("croniter")
    if found is None or found.origin is None:
        return "unknown"
    beside = Path(found.origin).parent.parent.glob("croniter-*.dist-info")
    versions = [folder.name.removeprefix("croniter-").removesuffix(".dist-info") for folder in beside]
    return versions[0] if len(versions) == 1 else "unknown"
