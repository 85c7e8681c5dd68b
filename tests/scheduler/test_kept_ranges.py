"""What survives a clock regression: at most sixteen ranges of kept decisions, and never a second admission."""

from __future__ import annotations

from datetime import timedelta

from tests.scheduler.histories import History
from tests.scheduler.reference_calendar import CADENCES
from tests.scheduler.reference_kept import MOST_RANGES

QUARTER = timedelta(minutes=15)
QUARTERS = CADENCES[1]
MORE = MOST_RANGES + 5
POLICY = {"overlap": "parallel", "limit": "100", "misfire": "skip"}


def scattered(history: History) -> None:
    """Admissions that misfires lie between, more and more of them, so that every admission opens a range of its own."""
    history.create("a", QUARTERS, POLICY)
    for missed in range(MORE):
        history.now += QUARTER * (1 + missed % 3 + missed // 6)
        history.now += timedelta(minutes=2)
        history.poll()
        history.now += QUARTER - timedelta(minutes=2)
        history.poll()


def test_more_ranges_than_are_kept_lose_no_admission_and_join_their_closest_neighbours() -> None:
    history = History(slots=1000, batch=1000)
    start = history.now
    scattered(history)
    end = history.now
    admitted = set(history.admitted)
    kept = history.model.schedules["a"].kept
    assert (len(admitted), len(kept)) == (MORE, MOST_RANGES)
    history.now = start
    history.poll()
    while history.now < end + QUARTER:
        history.now += QUARTER
        history.poll()
    joined = sum((one.last - one.first) // QUARTER + 1 for one in kept)
    assert len(history.admitted) == (end + QUARTER - start) // QUARTER - joined + len(admitted)
    history.close()


def test_a_second_regression_needs_the_ranges_below_the_first() -> None:
    history = History(slots=1000, batch=1000)
    start = history.now
    scattered(history)
    middle = start + (history.now - start) / 2
    history.now = middle
    history.poll()
    history.now += QUARTER
    history.poll()
    history.now = start
    history.poll()
    for _ in range(20):
        history.now += QUARTER
        history.poll()
    history.close()
