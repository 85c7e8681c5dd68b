"""The reference model's ranges of decisions that survive a clock regression (SPEC section 9)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

MOST_RANGES = 16


@dataclass(frozen=True)
class Kept:
    """A range of decisions that a clock regression does not undo, both ends included."""

    first: datetime
    last: datetime


def keep(ranges: list[Kept], before: datetime | None, instant: datetime) -> list[Kept]:
    """The ranges after one more kept decision, made while the watermark stood at `before`."""
    # "A kept decision whose preceding C is the end of a range extends it; any other opens one"
    grown = [Kept(one.first, instant) if one.last == before and instant > one.last else one for one in ranges]
    if grown == ranges:
        grown = [*ranges, Kept(instant, instant)]
    return _at_most(_merged(sorted(grown, key=lambda one: one.first)))


def _merged(ranges: list[Kept]) -> list[Kept]:
    """ "overlapping ranges merge" """
    merged = [ranges[0]]
    for one in ranges[1:]:
        if one.first <= merged[-1].last:
            merged[-1] = Kept(merged[-1].first, max(merged[-1].last, one.last))
        else:
            merged.append(one)
    return merged


def _at_most(ranges: list[Kept]) -> list[Kept]:
    """ "Over 16, the two neighbours with the smallest distance become one (the older pair on a tie)" """
    if len(ranges) <= MOST_RANGES:
        return ranges
    distances = [later.first - earlier.last for earlier, later in pairwise(ranges)]
    closest = distances.index(min(distances))
    joined = Kept(ranges[closest].first, ranges[closest + 1].last)
    return [*ranges[:closest], joined, *ranges[closest + 2 :]]
