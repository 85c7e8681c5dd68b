"""The adapter beside an oracle that looks at every minute: drawn expressions, around drawn transitions, both ways."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from duly.journal.entries import Fold
from duly.scheduler.cadence import Elapsed
from duly.scheduler.triggers import Cron, Every, OccurrenceSource
from tests.scheduler.calendar.oracle import MINUTE, Matcher, Minute, minutes, occurrences, transitions

ZONES = (
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Asuncion",
    "America/Caracas",
    "America/Havana",
    "America/New_York",
    "America/Nuuk",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "Asia/Gaza",
    "Asia/Ho_Chi_Minh",
    "Asia/Kathmandu",
    "Asia/Pyongyang",
    "Asia/Tehran",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Dublin",
    "Europe/London",
    "Europe/Moscow",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kwajalein",
    "UTC",
)
FOLDS: tuple[Fold, Fold] = ("both", "first")


def draw_values(random: Random, low: int, high: int, near: list[int]) -> str:
    """One field: around `near` in most cases, else anything that the grammar has."""
    a, b = (random.choice(near) if random.random() < 0.7 else random.randint(low, high) for _ in range(2))
    step = random.randint(1, max(1, (high - low) // 2))
    forms = [str(a), str(a), f"{a},{b}", f"{a}-{b}", f"{a}/{step}", f"*/{step}", "*"]
    forms += [f"{a}-{b}/{step}", f"{random.randint(low, high)},{a}-{b}"]
    return random.choice(forms)


def draw_expression(random: Random, walk: list[Minute]) -> str:
    """An expression that has something to do with the walls of this walk."""
    eventful = [wall for minute in walk for wall in (*minute.skipped, *((minute.wall,) if minute.second_pass else ()))]
    wall = random.choice(eventful or [random.choice(walk).wall])
    minute = draw_values(random, 0, 59, [0, 30, 59, wall.minute])
    hour = draw_values(random, 0, 23, [wall.hour, wall.hour, (wall.hour + 1) % 24, (wall.hour - 1) % 24])
    day = random.choice(["*", "*", draw_values(random, 1, 31, [wall.day, min(31, wall.day + 1)])])
    weekday = random.choice(["*", "*", draw_values(random, 0, 7, [wall.isoweekday() % 7])])
    month = random.choice(["*", "*", draw_values(random, 1, 12, [wall.month])])
    if "*" in day + weekday and "*" not in {day, weekday}:
        weekday = "*"  # a */n beside another restricted day is refused
    if weekday == "*" and max(days_of(month)) < min(Matcher(f"* * {day} * *").sets[2]):
        day = "*"  # what never fires is refused
    return f"{minute} {hour} {day} {month} {weekday}"


def days_of(month: str) -> list[int]:
    return [
        (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[number - 1] for number in Matcher(f"* * * {month} *").sets[3]
    ]


def drawn_walk(random: Random, zone: str, turns: list[datetime]) -> list[Minute]:
    if turns and random.random() < 0.9:
        middle = random.choice(turns)
    else:
        middle = datetime(2026, 1, 1, tzinfo=UTC) + MINUTE * random.randint(-10_000_000, 10_000_000)
    before, after = (timedelta(minutes=random.randint(5, 2200)) for _ in range(2))
    return minutes(zone, middle - before, middle + after)


def assert_agrees(trigger: OccurrenceSource, expected: list[datetime], walk: list[Minute], random: Random) -> None:
    """The whole stream in both directions, then single questions from anywhere in the walk."""
    start, end = walk[0].instant, walk[-1].instant
    assert stream(trigger.next_after, start - timedelta(seconds=1), start, end) == expected, repr(trigger)
    assert stream(trigger.prev_before, end + timedelta(seconds=1), start, end) == expected[::-1], repr(trigger)
    for _ in range(5):
        instant = random.choice(walk).instant + timedelta(microseconds=random.choice([-1, 0, 0, 1, 29_999_999]))
        later, earlier = trigger.next_after(instant), trigger.prev_before(instant)
        asked = f"{trigger!r} at {instant}"
        assert (later if later and later <= end else None) == next((f for f in expected if f > instant), None), asked
        assert (earlier if earlier and earlier >= start else None) == next(
            (f for f in reversed(expected) if f < instant), None
        ), asked


def stream(
    step: Callable[[datetime], datetime | None], instant: datetime, start: datetime, end: datetime
) -> list[datetime]:
    found: list[datetime] = []
    answer = step(instant)
    while answer is not None and start <= answer <= end:
        found.append(answer)
        answer = step(answer)
    return found


def compare(seed: int, zone: str, walks: int, expressions: int) -> int:
    """How many occurrences were compared."""
    random = Random(f"{seed} {zone}")  # noqa: S311 - a seed that repeats is what is wanted
    turns = transitions(zone, 1973, 2050)
    compared = 0
    for _ in range(walks):
        walk = drawn_walk(random, zone, turns)
        for _ in range(expressions):
            expression = draw_expression(random, walk)
            for fold in FOLDS:
                expected = occurrences(expression, walk, fold)
                if len(expected) > 700 and random.random() > 0.05:
                    continue  # most of the time goes into what is rare
                assert_agrees(Cron(expression, zone, fold=fold), expected, walk, random)
                compared += len(expected)
    return compared


@pytest.mark.parametrize("zone", ZONES)
def test_the_adapter_agrees_with_a_walk_over_every_minute(zone: str):
    assert compare(1, zone, walks=6, expressions=6) > 20


@pytest.mark.torture
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("seed", [2, 3])
def test_the_adapter_agrees_with_many_walks(seed: int, zone: str):
    assert compare(seed, zone, walks=20, expressions=12) > 1000


def test_the_oracle_is_no_echo_of_the_adapter():
    """What the zone's rules give, written out by hand: the oracle, too, has to be right."""
    spring = minutes(
        "America/New_York", datetime(2026, 3, 8, 6, 57, tzinfo=UTC), datetime(2026, 3, 8, 7, 2, tzinfo=UTC)
    )
    assert [f"{minute.wall:%H:%M}" for minute in spring] == ["01:57", "01:58", "01:59", "03:00", "03:01", "03:02"]
    assert [len(minute.skipped) for minute in spring] == [0, 0, 0, 60, 0, 0]
    assert occurrences("30 2 * * *", spring) == [datetime(2026, 3, 8, 7, tzinfo=UTC)]
    assert occurrences("30 * * * *", spring) == []
    autumn = minutes("America/New_York", datetime(2026, 11, 1, 5, tzinfo=UTC), datetime(2026, 11, 1, 7, tzinfo=UTC))
    both = [datetime(2026, 11, 1, hour, 30, tzinfo=UTC) for hour in (5, 6)]
    assert (occurrences("30 1 * * *", autumn), occurrences("30 1 * * *", autumn, "first")) == (both, both[:1])


def test_elapsed_time_agrees_with_counting():
    start = 1_000
    counted = [start + 420 * k for k in range(50)]
    cadence = Elapsed(start, 420)
    for stamp in range(0, counted[-1], 97):
        assert cadence.after(stamp) == next(found for found in counted if found > stamp)
        assert cadence.before(stamp) == next((found for found in reversed(counted) if found < stamp), None)


@pytest.mark.parametrize("zone", ZONES)
def test_a_daily_cadence_agrees_with_a_daily_cron(zone: str):
    random = Random(zone)  # noqa: S311 - a seed that repeats is what is wanted
    for turn in transitions(zone, 1973, 2050)[:60]:
        wall = minutes(zone, turn, turn)[0]
        at = random.choice([wall.wall, *wall.skipped]) if wall.skipped else wall.wall
        anchor = datetime(1973, 1, 1).date()  # noqa: DTZ001 - a date bears no zone
        for fold in FOLDS:
            cron = Cron(f"{at.minute} {at.hour} * * *", zone, fold=fold)
            every = Every(1, "day", at=f"{at:%H:%M}", zone=zone, anchor=anchor, fold=fold)
            for hours in (-26, -3, -1, 0, 1, 3, 26):
                instant = turn + timedelta(hours=hours, seconds=random.randint(-1, 1))
                assert every.next_after(instant) == cron.next_after(instant), (every, instant)
                assert every.prev_before(instant) == cron.prev_before(instant), (every, instant)
