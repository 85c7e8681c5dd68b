"""Generated histories once more, with room for two or three ranges of kept decisions instead of sixteen, so that they
join all the time."""

from __future__ import annotations

import logging
from datetime import timedelta
from random import Random

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from duly.scheduler.accounting import account_of
from tests.scheduler.histories import History
from tests.scheduler.reference_calendar import CADENCES
from tests.scheduler.test_explained_histories import live, record_of
from tests.scheduler.test_state_machine import UNHURRIED, Agreement

MINUTES = timedelta(minutes=1)


@pytest.fixture(autouse=True, params=[2, 3])
def most(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> int:
    """How many ranges there may be: in the fold, in the history and in the model."""
    number: int = request.param
    monkeypatch.setattr("duly.projections.ranges.MOST", number)
    monkeypatch.setattr("duly.projections.history.MOST", number)
    monkeypatch.setattr("tests.scheduler.reference_kept.MOST_RANGES", number)
    caplog.set_level(logging.ERROR, logger="duly")
    return number


class FewRanges(Agreement):
    """Clocks go back and forth over minutes, so that ranges open and join within one poll; and the books are kept."""

    slots = (2, 8)

    @rule(
        back=st.integers(6, 200),
        forth=st.lists(st.integers(1, 12), min_size=1, max_size=4),
        start=st.booleans(),
        lateness=st.sampled_from(("", "", "5m", "1h")),
    )
    def the_clock_goes_back_and_on(self, back: int, forth: list[int], start: bool, lateness: str) -> None:
        if lateness and not self.lived.model.schedules["a"].deleted:
            self.lived.edit("a", None, {"lateness": lateness})
        self.pass_time(-back * MINUTES)
        for minutes in forth:
            self.lived.now += minutes * MINUTES
            self.lived.poll(start=start)

    @rule(index=st.integers(0, 30), back=st.sampled_from((0, 10, 50, 300)))
    def rebaseline(self, index: int, back: int) -> None:
        self.lived.rebaseline(self.schedule_ids()[index % len(self.schedule_ids())], back * MINUTES)

    def teardown(self) -> None:
        if self.history is not None:
            record = record_of(self.history)
            books = account_of(record)
            wrong = [one for one in books.schedules if not one.balanced]
            assert wrong == [], self.lived.story("the account does not balance", str(wrong))
        super().teardown()


def test_generated_histories_with_few_ranges_agree_with_the_model() -> None:
    run_state_machine_as_test(FewRanges, settings=settings(UNHURRIED, max_examples=20, phases=[Phase.generate]))


@pytest.mark.torture
def test_a_great_many_generated_histories_with_few_ranges_agree_with_the_model() -> None:
    run_state_machine_as_test(FewRanges, settings=settings(UNHURRIED, max_examples=5_000))


def wandered(seed: int) -> History:
    """A clock that goes back and forth over a schedule of every minute, whose allowance changes on the way."""
    choose = Random(seed)  # noqa: S311 - a seed that can be repeated is the point
    history = History(slots=choose.choice((3, 1000)), batch=choose.choice((4, 1000)))
    history.create("a", CADENCES[0], {"overlap": "parallel", "limit": "1000", "misfire": "skip", "lateness": "30s"})
    for _ in range(50):
        chance = choose.random()
        if chance < 0.15:
            history.now -= choose.randint(6, 60) * MINUTES
        elif chance < 0.3:
            history.edit("a", None, {"lateness": choose.choice(("30s", "4m", "1h"))})
        elif chance < 0.4:
            history.host(choose.choice(("refuse", "accept", "accept")), "a")
        history.now += choose.randint(1, 12) * MINUTES
        history.poll(start=choose.random() < 0.5)
    return history


@pytest.mark.parametrize("seed", range(12))
def test_a_clock_that_wanders_over_few_ranges_never_makes_a_poll_contradict_itself(seed: int, most: int) -> None:
    history = wandered(seed)
    assert len(history.model.schedules["a"].kept) <= most
    assert account_of(record_of(history)).balanced, history.story("the account does not balance", "")
    history.close()


@pytest.mark.parametrize("seed", range(100, 106))
def test_the_books_of_a_history_with_few_ranges_balance(seed: int) -> None:
    history, _ = live(seed, length=80)
    assert account_of(record_of(history)).balanced, history.story("the account does not balance", "")
    history.close()
