"""Ranges of kept decisions: the instants of one schedule that stay decided when the clock steps back.

Rules: ranges are closed, sorted and disjoint; every occurrence inside one is decided for good; there are never more
than `MOST`, and when one too many is opened, the closest neighbours become one, so that what is forgotten is only the
gap between them (and that counts as decided: a lost early run is the price, never a second run).
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, TypeAlias

MOST = 16
FIRST_INSTANT: Final = datetime(1972, 1, 1, tzinfo=UTC)
LAST_INSTANT: Final = datetime(2101, 1, 1, tzinfo=UTC)
"""Clock readings outside of these do not count for the highest `at`."""

Range: TypeAlias = tuple[datetime, datetime]
Ranges: TypeAlias = tuple[Range, ...]


def range_holding(ranges: Ranges, instant: datetime) -> Range | None:
    """The range that the instant lies in, or None."""
    if not ranges:
        return None
    if instant > ranges[-1][1]:
        return None
    at = bisect_right(ranges, instant, key=_start) - 1
    if at >= 0 and instant <= ranges[at][1]:
        return ranges[at]
    return None


def extended(ranges: Ranges, instant: datetime, preceding: datetime) -> Ranges:
    """The ranges after one more kept decision at `instant`, made when the watermark stood at `preceding`.

    A decision that follows directly on the end of a range extends it; any other opens one.
    """
    if ranges and instant > preceding:
        start, end = ranges[-1]
        if end == preceding:
            return (*ranges[:-1], (start, instant))
        if end < preceding:
            return _closest_joined((*ranges, (instant, instant)))
    start = next((start for start, end in ranges if end == preceding and instant > preceding), instant)
    return _closest_joined(_merged((start, instant), ranges))


def joined_gap(ranges: Ranges, instant: datetime, preceding: datetime) -> Range | None:
    """The gap that one more kept decision closes because there would be too many ranges, both ends excluded; what lies
    in it counts as decided."""
    kept = extended(ranges, instant, preceding)
    for earlier, later in pairwise(sorted({*ranges, (instant, instant)})):
        if earlier[1] < later[0] and earlier[1] != preceding and _is_within(kept, earlier[1], later[0]):
            return earlier[1], later[0]
    return None


def _is_within(ranges: Ranges, start: datetime, end: datetime) -> bool:
    return any(one[0] <= start and end <= one[1] for one in ranges)


def _start(one: Range) -> datetime:
    return one[0]


def _merged(new: Range, ranges: Ranges) -> Ranges:
    start, end = new
    before: list[Range] = []
    after: list[Range] = []
    for one in ranges:
        if one[1] < start:
            before.append(one)
        elif one[0] > end:
            after.append(one)
        else:
            start, end = min(start, one[0]), max(end, one[1])
    return (*before, (start, end), *after)


def _closest_joined(ranges: Ranges) -> Ranges:
    if len(ranges) <= MOST:
        return ranges
    gaps = [later[0] - earlier[1] for earlier, later in pairwise(ranges)]
    at = gaps.index(min(gaps))
    return (*ranges[:at], (ranges[at][0], ranges[at + 1][1]), *ranges[at + 2 :])
