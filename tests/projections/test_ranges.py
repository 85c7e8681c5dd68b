"""Ranges of kept decisions, against a model that is slow and obvious."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from duly.projections.ranges import MOST, Ranges, extended, range_holding
from tests.projections.samples import DAY

Spans = list[tuple[int, int]]


def instant(minute: int) -> datetime:
    return DAY + timedelta(minutes=minute)


def spans(*found: tuple[int, int]) -> Ranges:
    return tuple((instant(start), instant(end)) for start, end in found)


def after_one_more(kept: Spans, minute: int, preceding: int) -> Spans:
    """Section 9, read slowly: it extends the range that ends at the watermark, or opens one; what overlaps is one; over
    sixteen, the closest two become one, the older two where two pairs are equally close."""
    follows = [span for span in kept if span[1] == preceding and minute > preceding]
    start = follows[0][0] if follows else minute
    covered = set(range(start, minute + 1)).union(
        *(range(span[0], span[1] + 1) for span in touched(kept, start, minute))
    )
    untouched = [span for span in kept if span not in touched(kept, start, minute)]
    result = sorted([*untouched, (min(covered), max(covered))])
    if len(result) > 16:
        gaps = [later[0] - earlier[1] for earlier, later in pairwise(result)]
        closest = gaps.index(min(gaps))
        result[closest : closest + 2] = [(result[closest][0], result[closest + 1][1])]
    return result


def touched(kept: Spans, start: int, end: int) -> Spans:
    return [span for span in kept if span[0] <= end and start <= span[1]]


DECISIONS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=80)


@given(DECISIONS)
def test_kept_ranges_are_what_the_slow_model_says(decisions: Spans):
    ranges: Ranges = ()
    model: Spans = []
    for minute, preceding in decisions:
        ranges = extended(ranges, instant(minute), instant(preceding))
        model = after_one_more(model, minute, preceding)
        assert ranges == spans(*model)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 4)), max_size=60))
def test_a_walk_of_decisions_that_follow_each_other_is_what_the_slow_model_says(steps: Spans):
    ranges: Ranges = ()
    model: Spans = []
    watermark = 0
    for back, ahead in steps:
        watermark = max(watermark - back, 0) if back > 30 else watermark
        ranges = extended(ranges, instant(watermark + ahead), instant(watermark))
        model = after_one_more(model, watermark + ahead, watermark)
        watermark += ahead
        assert ranges == spans(*model)


@given(DECISIONS, st.integers(0, 400))
def test_whatever_was_kept_is_held_for_good(decisions: Spans, asked: int):
    ranges: Ranges = ()
    for minute, preceding in decisions:
        ranges = extended(ranges, instant(minute), instant(preceding))
    for minute, _ in decisions:
        assert range_holding(ranges, instant(minute)) is not None
    holding = [span for span in ranges if span[0] <= instant(asked) <= span[1]]
    assert range_holding(ranges, instant(asked)) == (holding[0] if holding else None)


@given(DECISIONS)
def test_ranges_are_sorted_and_disjoint_and_never_more_than_sixteen(decisions: Spans):
    ranges: Ranges = ()
    for minute, preceding in decisions:
        ranges = extended(ranges, instant(minute), instant(preceding))
        assert len(ranges) <= 16
        assert all(start <= end for start, end in ranges)
        assert all(earlier[1] < later[0] for earlier, later in pairwise(ranges))


def test_the_limit_is_the_one_of_the_specification():
    assert MOST == 16


def test_a_decision_at_the_end_of_a_range_extends_it_and_any_other_opens_one():
    ranges = extended((), instant(15), instant(0))
    assert ranges == spans((15, 15))
    assert extended(ranges, instant(30), instant(15)) == spans((15, 30))
    assert extended(ranges, instant(30), instant(16)) == spans((15, 15), (30, 30))


def test_a_range_in_the_middle_is_extended_and_swallows_what_it_reaches():
    ranges = spans((0, 10), (20, 30), (40, 50))
    assert extended(ranges, instant(15), instant(10)) == spans((0, 15), (20, 30), (40, 50))
    assert extended(ranges, instant(25), instant(10)) == spans((0, 30), (40, 50))
    assert extended(ranges, instant(45), instant(10)) == spans((0, 50))


def test_on_the_seventeenth_the_closest_neighbours_become_one():
    ranges = spans(*((100 * n, 100 * n) for n in range(15)), (1_407, 1_407))
    joined = extended(ranges, instant(3_000), instant(2_000))
    assert joined == spans(*((100 * n, 100 * n) for n in range(14)), (1_400, 1_407), (3_000, 3_000))


def test_of_two_pairs_equally_close_the_older_becomes_one():
    ranges = spans(*((100 * n, 100 * n) for n in range(16)))
    joined = extended(ranges, instant(1_600), instant(1_550))
    assert joined == spans((0, 100), *((100 * n, 100 * n) for n in range(2, 17)))


def test_what_lies_between_two_that_became_one_counts_as_decided():
    ranges = spans(*((100 * n, 100 * n) for n in range(16)))
    joined = extended(ranges, instant(1_600), instant(1_550))
    assert range_holding(joined, instant(50)) == (instant(0), instant(100))
    assert range_holding(joined, instant(150)) is None
