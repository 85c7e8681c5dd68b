"""The adapter itself: what it asks croniter, what it refuses, what it remembers, and that threads may share it."""

import statistics
import sys
import timeit
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from importlib.machinery import ModuleSpec
from itertools import product
from random import Random

import pytest
from croniter import croniter

from duly.scheduler import cron
from duly.scheduler.cron import WallSearch, croniter_version, search_of
from duly.scheduler.errors import DefinitionError, TriggerError
from duly.scheduler.instants import EARLIEST, LATEST
from duly.scheduler.triggers import Cron
from duly.scheduler.zones import zone_of

NOON = datetime(2026, 5, 5, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    forget()
    yield
    forget()


def forget() -> None:
    cron.next_after.cache_clear()
    cron.prev_before.cache_clear()
    search_of.cache_clear()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every question that is put to croniter."""
    questions: list[tuple[str, int]] = []
    after, before = WallSearch.after, WallSearch.before

    def counted_after(self: WallSearch, wall: int) -> int:
        questions.append(("after", wall))
        return after(self, wall)

    def counted_before(self: WallSearch, wall: int) -> int:
        questions.append(("before", wall))
        return before(self, wall)

    monkeypatch.setattr(WallSearch, "after", counted_after)
    monkeypatch.setattr(WallSearch, "before", counted_before)
    return questions


# What it costs.


def test_outside_transitions_one_question_is_asked(asked: list[tuple[str, int]]):
    trigger = Cron("30 2 * * *", "Europe/Berlin")
    asked.clear()
    trigger.next_after(NOON)
    trigger.prev_before(NOON)
    assert [direction for direction, _ in asked] == ["after", "before"]


@pytest.mark.parametrize("expression", ["0 0 1 1 *", "0 0 29 2 *", "30 2 31 3,10 *"])
def test_a_sparse_expression_passes_many_transitions_for_one_question(expression: str, asked: list[tuple[str, int]]):
    trigger = Cron(expression, "America/New_York")
    asked.clear()
    trigger.next_after(NOON)
    trigger.prev_before(NOON)
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("expression", "zone", "instant"),
    [
        ("30 2 * * *", "America/New_York", datetime(2026, 3, 8, 6, 59, tzinfo=UTC)),
        ("* * * * *", "America/New_York", datetime(2026, 3, 8, 6, 59, tzinfo=UTC)),
        ("30 1 * * *", "America/New_York", datetime(2026, 11, 1, 5, 45, tzinfo=UTC)),
        ("30 1 * * *", "America/New_York", datetime(2026, 11, 1, 6, 15, tzinfo=UTC)),
        ("* * * * *", "Pacific/Apia", datetime(2011, 12, 30, 9, 59, tzinfo=UTC)),
        ("* * 30 12 *", "Pacific/Apia", datetime(2011, 12, 30, 9, 59, tzinfo=UTC)),
        ("0 12 * * *", "Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
    ],
)
def test_a_gap_or_a_fold_costs_at_most_one_question_more(
    expression: str, zone: str, instant: datetime, asked: list[tuple[str, int]]
):
    trigger = Cron(expression, zone)
    for search in (trigger.next_after, trigger.prev_before):
        for minutes in range(-90, 91, 15):
            asked.clear()
            search(instant + timedelta(minutes=minutes))
            assert len(asked) <= 2


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe", "Pacific/Apia"])
def test_croniter_is_never_asked_with_a_zone(zone: str, monkeypatch: pytest.MonkeyPatch):
    zones: list[object] = []
    plain = croniter.set_current

    def watched(self: croniter, start_time: object, force: bool = True) -> object:
        zones.append(getattr(start_time, "tzinfo", None) or self.tzinfo if hasattr(self, "tzinfo") else None)
        return plain(self, start_time, force)  # type: ignore[no-any-return, arg-type, unused-ignore]  # pyright: ignore - croniter has no type information

    monkeypatch.setattr(croniter, "set_current", watched)
    Cron("30 2 * * *", zone).next_after(datetime(2026, 3, 8, 6, 59, tzinfo=UTC))
    assert zones
    assert set(zones) == {None}


def test_equal_schedules_share_one_search(asked: list[tuple[str, int]]):
    triggers = [Cron(text, "Europe/Berlin") for text in ("*/15 * * * *", "0,15,30,45 * * * *", "0/15 * * * *") * 50]
    asked.clear()
    answers = {trigger.next_after(NOON + timedelta(seconds=second)) for second, trigger in enumerate(triggers[:59])}
    assert (answers, len(asked)) == ({NOON + timedelta(minutes=15)}, 1)
    asked.clear()
    before = {trigger.prev_before(NOON + timedelta(seconds=second)) for second, trigger in enumerate(triggers[:59], 1)}
    assert (before, len(asked)) == ({NOON}, 1)


def test_zone_and_fold_are_part_of_what_is_remembered():
    instant = datetime(2026, 11, 1, 5, 45, tzinfo=UTC)
    answers = [
        Cron("30 1 * * *", "America/New_York", fold="both").next_after(instant),
        Cron("30 1 * * *", "America/New_York", fold="first").next_after(instant),
        Cron("30 1 * * *", "UTC").next_after(instant),
        Cron("30 1 * * *", "America/New_York", fold="both").next_after(instant),
    ]
    assert [f"{answer:%d %H:%M}" for answer in answers if answer] == ["01 06:30", "02 06:30", "02 01:30", "01 06:30"]


def test_what_is_remembered_is_bounded():
    trigger = Cron("* * * * *", "UTC")
    for minute in range(300):
        trigger.next_after(NOON + timedelta(minutes=minute))
        trigger.prev_before(NOON + timedelta(minutes=minute))
    for memory in (cron.next_after, cron.prev_before, search_of):
        assert memory.cache_info().maxsize in {cron.REMEMBERED, cron.SEARCHES}
    assert cron.next_after.cache_info().currsize == 300


def test_a_search_that_was_forgotten_is_made_again(monkeypatch: pytest.MonkeyPatch):
    trigger = Cron("*/7 * * * *", "UTC")
    search_of.cache_clear()
    assert trigger.next_after(NOON) == NOON + timedelta(minutes=7)


@pytest.mark.torture
@pytest.mark.parametrize("expression", ["* * * * *", "*/15 * * * *", "30 2 * * *", "0 12 13 * 5", "0 0 1 1 *"])
def test_a_search_costs_little_more_than_croniter_and_a_remembered_one_next_to_nothing(expression: str):
    trigger = Cron(expression, "Europe/Berlin")
    iterator = croniter(expression, NOON.replace(tzinfo=None))

    def search() -> None:
        cron.next_after.cache_clear()
        trigger.next_after(NOON)

    def baseline() -> None:
        iterator.get_next(datetime, start_time=NOON.replace(tzinfo=None))

    searched, asked_plainly = interleaved(search, baseline)
    trigger.next_after(NOON)
    remembered, again = interleaved(lambda: trigger.next_after(NOON), baseline)
    assert searched <= 1.15 * asked_plainly
    assert remembered <= again / 5


def interleaved(one: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """The least time of each, measured in turns, so that a busy machine disturbs both."""
    times = [(timeit.timeit(one, number=50), timeit.timeit(other, number=50)) for _ in range(80)]
    return min(a for a, _ in times), min(b for _, b in times)


# What it refuses.


@pytest.mark.parametrize(
    "instant",
    [
        datetime(1, 1, 1, tzinfo=UTC),
        EARLIEST - timedelta(microseconds=1),
        LATEST + timedelta(microseconds=1),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "America/Adak"])
def test_an_instant_outside_the_supported_range_is_refused(instant: datetime, zone: str):
    trigger = Cron("0 0 29 2 *", zone)
    for search in (trigger.next_after, trigger.prev_before):
        with pytest.raises(TriggerError, match="outside the supported range") as caught:
            search(instant)
        assert caught.value.instant == instant


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Africa/Monrovia"])
def test_the_edges_of_the_supported_range_have_answers(zone: str):
    for expression, instant in product(("* * * * *", "0 0 29 2 *", "59 23 31 12 *"), (EARLIEST, LATEST)):
        later, earlier = Cron(expression, zone).next_after(instant), Cron(expression, zone).prev_before(instant)
        assert later is not None
        assert earlier is not None
        assert earlier < instant < later


@pytest.mark.parametrize("answer", [0.0, 90.0, -60.0, 1e18])
def test_what_croniter_answers_is_checked(answer: float, monkeypatch: pytest.MonkeyPatch):
    trigger = Cron("* * * * *", "UTC")

    def wrong(*_: object, **__: object) -> float:
        return answer

    monkeypatch.setattr(croniter, "get_prev" if answer > 1e9 else "get_next", wrong)
    with pytest.raises(TriggerError, match="has no usable minute"):
        (trigger.prev_before if answer > 1e9 else trigger.next_after)(NOON)


def test_an_error_inside_croniter_is_a_trigger_error(monkeypatch: pytest.MonkeyPatch):
    trigger = Cron("* * * * *", "UTC")

    def failing(*_: object, **__: object) -> float:
        raise OverflowError("date value out of range")

    monkeypatch.setattr(croniter, "get_next", failing)
    monkeypatch.setattr(croniter, "get_prev", failing)
    for search in (trigger.next_after, trigger.prev_before):
        with pytest.raises(TriggerError, match="date value out of range"):
            search(NOON)


def test_what_croniter_cannot_evaluate_is_refused_when_it_is_defined(monkeypatch: pytest.MonkeyPatch):
    def failing(*_: object, **__: object) -> float:
        raise ValueError("failed to find prev date")

    monkeypatch.setattr(croniter, "get_prev", failing)
    with pytest.raises(DefinitionError, match="failed to find prev date"):
        Cron("1 2 3 4 *", "UTC")


def test_the_version_of_croniter_is_read_without_its_metadata(monkeypatch: pytest.MonkeyPatch, tmp_path: object):
    assert croniter_version().count(".") == 2
    for found in (ModuleSpec("croniter", None, origin=f"{tmp_path}/croniter/__init__.py"), None):
        croniter_version.cache_clear()
        monkeypatch.setattr("duly.scheduler.cron.find_spec", {"croniter": found}.get)
        assert croniter_version() == "unknown"
    croniter_version.cache_clear()


# Zones whose offset is not whole minutes.


def test_a_zone_with_half_minutes_fires_on_its_own_whole_minutes():
    monrovia = Cron("* * * * *", "Africa/Monrovia")  # 44:30 behind UTC until 1972-01-07
    first = monrovia.next_after(datetime(1972, 1, 3, tzinfo=UTC))
    assert first is not None
    assert first == datetime(1972, 1, 3, 0, 0, 30, tzinfo=UTC)
    assert monrovia.next_after(datetime(1972, 1, 3, 0, 0, 10, tzinfo=UTC)) == first
    assert monrovia.next_after(first) == first + timedelta(minutes=1)
    assert monrovia.prev_before(datetime(1972, 1, 3, 0, 0, 40, tzinfo=UTC)) == first
    assert monrovia.prev_before(first) == first - timedelta(minutes=1)
    gap = Cron("30 0 7 1 *", "Africa/Monrovia").next_after(datetime(1972, 1, 3, tzinfo=UTC))
    assert gap == datetime(1972, 1, 7, 0, 44, 30, tzinfo=UTC)
    assert zone_of("Africa/Monrovia").grain == 1


# Threads.


def test_threads_share_a_search_and_disturb_nobody():
    expressions = ["*/7 * * * *", "*/7 * * * *", "30 1 * * *", "0 12 13 * 5"]
    triggers = [Cron(expression, "America/New_York") for expression in expressions]
    random = Random(5)  # noqa: S311 - a seed that repeats is what is wanted
    questions = [
        (random.randrange(4), datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=random.randrange(600_000)))
        for _ in range(400)
    ]

    def answer(question: tuple[int, datetime]) -> tuple[datetime | None, datetime | None]:
        trigger, instant = triggers[question[0]], question[1]
        cron.next_after.cache_clear()
        return trigger.next_after(instant), trigger.prev_before(instant)

    expected = [answer(question) for question in questions]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            for _ in range(4):
                cron.prev_before.cache_clear()
                assert list(threads.map(answer, questions)) == expected
    finally:
        sys.setswitchinterval(interval)


def test_the_threads_of_that_test_would_notice_a_missing_lock(monkeypatch: pytest.MonkeyPatch):
    """Two searches of one object, interleaved by hand where a thread could be stopped, without its lock."""
    search = search_of("*/7 * * * *")
    asked: list[int] = []
    plain = croniter.set_current

    def interrupted(self: croniter, start_time: object, force: bool = True) -> object:
        found = plain(self, start_time, force)  # type: ignore[arg-type, unused-ignore]  # pyright: ignore - croniter has no type information
        if isinstance(start_time, int) and not asked:
            asked.append(start_time)
            self.set_current(start_time - 86_400)
        return found

    monkeypatch.setattr(croniter, "set_current", interrupted)
    with pytest.raises(TriggerError, match="has no usable minute"):
        search.after(1_800_000_000)
    assert statistics.mean(asked) == 1_800_000_000
