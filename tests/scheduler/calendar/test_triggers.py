"""Triggers as values, their rules and the way back from them, a host's own source, and the checks on every answer."""

import copy
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from duly.journal.entries import CronRule, Definition, EveryRule, OncePerRule, OneShotRule, SourceRule, TriggerRule
from duly.journal.errors import Error
from duly.scheduler.errors import DefinitionError, SchedulerError, TriggerError
from duly.scheduler.triggers import (
    Cron,
    Every,
    OccurrenceSource,
    OncePer,
    OneShot,
    checked_next_after,
    checked_prev_before,
    rule_of,
    trigger_of,
)
from tests.scheduler.calendar.test_pins import utc

NOON = utc("2026-05-05T12:00")
TRIGGERS: tuple[Cron | OneShot | OncePer | Every, ...] = (
    Cron("30 2 * * *", zone="Europe/Berlin"),
    Cron("30 2 * * *", "Europe/Berlin", fold="first"),
    OneShot(NOON),
    OncePer("week", zone="UTC"),
    Every(5, "minute", anchor=NOON),
    Every(2, "hour", anchor=NOON, zone="UTC"),
    Every(1, "month", at="09:00", zone="Europe/Rome", anchor=date(2020, 12, 31)),
    Every(1, "day", zone="UTC", anchor=date(2026, 1, 1), fold="first"),
)
RULES: tuple[TriggerRule, ...] = (
    CronRule("30 2 * * *", "Europe/Berlin"),
    CronRule("30 2 * * *", "Europe/Berlin", "first"),
    OneShotRule(NOON),
    OncePerRule("week", "UTC"),
    EveryRule(5, "minute", "2026-05-05T12:00:00Z"),
    EveryRule(2, "hour", "2026-05-05T12:00:00Z", "UTC"),
    EveryRule(1, "month", "2020-12-31", "Europe/Rome", "09:00"),
    EveryRule(1, "day", "2026-01-01", "UTC", "00:00", "first"),
)


def test_a_trigger_knows_its_form_on_disk():
    assert tuple(trigger.rule for trigger in TRIGGERS) == RULES
    assert tuple(map(rule_of, TRIGGERS)) == RULES


@pytest.mark.parametrize("trigger", TRIGGERS, ids=repr)
def test_a_rule_goes_to_disk_and_comes_back_as_an_equal_trigger(trigger: OccurrenceSource):
    bytes_on_disk = msgspec.json.encode(Definition(trigger=rule_of(trigger), target="backup"))
    again = trigger_of(msgspec.json.decode(bytes_on_disk, type=Definition).trigger)
    assert (again, type(again), hash(again)) == (trigger, type(trigger), hash(trigger))
    assert again.next_after(utc("2020-01-01")) == trigger.next_after(utc("2020-01-01"))


@pytest.mark.parametrize("trigger", TRIGGERS, ids=repr)
def test_what_a_trigger_prints_makes_it_again(trigger: OccurrenceSource):
    import datetime as module  # the name that a repr of a datetime begins with

    names = {"Cron": Cron, "Every": Every, "OncePer": OncePer, "OneShot": OneShot, "datetime": module}
    assert eval(repr(trigger), names) == trigger  # noqa: S307 - a repr that this test made


@pytest.mark.parametrize("trigger", TRIGGERS, ids=repr)
def test_a_trigger_is_immutable_and_can_be_copied(trigger: Any):
    with pytest.raises(AttributeError, match="is immutable"):
        trigger.rule = CronRule("* * * * *", "UTC")
    with pytest.raises(AttributeError, match="is immutable"):
        del trigger.rule
    assert copy.deepcopy(trigger) == trigger
    assert pickle.loads(pickle.dumps(trigger)) == trigger  # noqa: S301 - our own bytes


def test_triggers_are_equal_by_their_rule():
    assert len({*TRIGGERS, *TRIGGERS, OneShot(NOON)}) == len(TRIGGERS)
    assert Cron("30 2 * * *", "UTC") == Cron(" 30  2 * * *", zone="UTC")
    assert Cron("30 2 * * *", "UTC") != Cron("30 2 * * *", "Etc/UTC")
    assert Cron("30 2 * * *", "UTC") != "30 2 * * *"
    assert Cron("30 2 * * *", ZoneInfo("Asia/Tokyo")) == Cron("30 2 * * *", "Asia/Tokyo")


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_equal_rules_give_the_same_trigger(rule: TriggerRule):
    assert trigger_of(rule) is trigger_of(copy.deepcopy(rule))


@pytest.mark.parametrize(
    "rule",
    [
        CronRule("30 2 * * *", "Mars/Olympus"),
        CronRule("61 2 * * *", "UTC"),
        OncePerRule("day", "Mars/Olympus"),
        EveryRule(1, "day", "2026-01-01", "Mars/Olympus", "00:00"),
        EveryRule(1, "day", "no date", "UTC", "00:00"),
        EveryRule(0, "hour", "2026-05-05T12:00:00Z"),
        OneShotRule(utc("2300-01-01")),
    ],
    ids=repr,
)
def test_a_rule_that_this_machine_cannot_evaluate_is_a_trigger_error(rule: TriggerRule):
    for _ in range(2):
        with pytest.raises(TriggerError, match="cannot be evaluated on this machine"):
            trigger_of(rule)


def test_a_one_shot_is_one_instant():
    shot = OneShot(datetime(2026, 5, 5, 14, tzinfo=timezone(timedelta(hours=2))))
    tick = timedelta(microseconds=1)
    assert shot.rule.at == NOON
    assert (shot.next_after(NOON - tick), shot.next_after(NOON), shot.next_after(NOON + tick)) == (NOON, None, None)
    assert (shot.prev_before(NOON - tick), shot.prev_before(NOON), shot.prev_before(NOON + tick)) == (None, None, NOON)


@pytest.mark.parametrize(
    "at",
    [
        NOON.replace(tzinfo=None),
        NOON.replace(microsecond=1),
        NOON.replace(year=1971),
        NOON.replace(year=2101),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))),
        date(2026, 5, 5),
        "2026-05-05T12:00Z",
    ],
    ids=repr,
)
def test_what_is_no_instant_is_no_one_shot(at: object):
    with pytest.raises(DefinitionError) as caught:
        OneShot(at)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - it is what is refused
    assert caught.value.field == "at"


@pytest.mark.parametrize("trigger", TRIGGERS, ids=repr)
def test_every_trigger_refuses_a_naive_instant_and_one_out_of_range(trigger: OccurrenceSource):
    for search in (trigger.next_after, trigger.prev_before):
        with pytest.raises(DefinitionError, match="is naive"):
            search(NOON.replace(tzinfo=None))
        with pytest.raises(TriggerError, match="outside the supported range"):
            search(NOON.replace(year=1971))
        with pytest.raises(TriggerError, match="outside the supported range"):
            search(datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))))


def test_a_fold_that_is_no_rule_is_refused():
    with pytest.raises(DefinitionError, match=r"^fold: "):
        Cron("0 0 * * *", "UTC", fold="second")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - it is what is refused


# A host's own source.


class Tides:
    """Every `hours` hours from 2026 on."""

    def __init__(self, hours: int) -> None:
        self.rule = SourceRule("tides", {"hours": hours})
        self.step = timedelta(hours=hours)

    def next_after(self, instant: datetime, /) -> datetime | None:
        return utc("2026-01-01") + ((instant - utc("2026-01-01")) // self.step + 1) * self.step

    def prev_before(self, instant: datetime, /) -> datetime | None:
        return utc("2026-01-01") + -((utc("2026-01-01") - instant) // self.step + 1) * self.step


def make_tides(parameters: Any) -> OccurrenceSource:
    return Tides(**parameters)


SOURCES: dict[str, Callable[[Any], OccurrenceSource]] = {"tides": make_tides}


def test_a_source_of_the_host_is_recorded_and_made_again():
    rule = rule_of(Tides(6), SOURCES)
    assert rule == SourceRule("tides", {"hours": 6})
    again = trigger_of(msgspec.json.decode(msgspec.json.encode(rule), type=SourceRule), SOURCES)
    assert checked_next_after(again, NOON) == utc("2026-05-05T18:00")
    assert checked_prev_before(again, NOON) == utc("2026-05-05T06:00")
    assert trigger_of(SourceRule("tides", {"hours": 6}), SOURCES) is again
    assert trigger_of(SourceRule("tides", {"hours": 7}), SOURCES) is not again


def test_a_source_that_cannot_be_recorded_is_refused():
    class Bare:
        def next_after(self, instant: datetime, /) -> datetime | None:
            return None

        prev_before = next_after

    with pytest.raises(DefinitionError, match="attribute `rule`"):
        rule_of(Bare(), SOURCES)
    with pytest.raises(
        DefinitionError, match=r"'tides' is no registered source\. Register its factory; registered are: none"
    ):
        rule_of(Tides(6))
    odd = Tides(6)
    odd.rule = SourceRule("tides", {"hours": {6}.__iter__})
    with pytest.raises(DefinitionError, match="cannot be recorded"):
        rule_of(odd, SOURCES)


def test_a_source_that_cannot_be_made_is_a_trigger_error():
    with pytest.raises(TriggerError, match="'moons' is not registered"):
        trigger_of(SourceRule("moons"), SOURCES)
    with pytest.raises(TriggerError, match=r"TypeError: .*unexpected keyword argument 'days'"):
        trigger_of(SourceRule("tides", {"days": 6}), SOURCES)
    with pytest.raises(TriggerError, match="lacks next_after or prev_before"):
        trigger_of(SourceRule("tides"), {"tides": lambda _: object()})  # type: ignore[dict-item, return-value]  # pyright: ignore[reportArgumentType] - it is what is refused


class Answering:
    """A source that answers whatever it was given, and says `Answering` of itself."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def next_after(self, instant: datetime, /) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    prev_before = next_after

    def __repr__(self) -> str:
        return "Answering"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (NOON, "is not later"),
        (NOON - timedelta(hours=1), "is not later"),
        (NOON.replace(tzinfo=None) + timedelta(hours=1), "is naive"),
        (NOON + timedelta(microseconds=1), "is not in whole seconds"),
        (NOON.replace(year=2150), "outside the supported range"),
        (datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-5))), "OverflowError"),
        (date(2026, 5, 6), "is not a datetime"),
        ("tomorrow", "'tomorrow' is not a datetime"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (RecursionError("too deep"), "RecursionError: too deep"),
    ],
    ids=repr,
)
def test_an_answer_that_cannot_be_one_is_a_trigger_error(answer: object, says: str):
    with pytest.raises(TriggerError) as caught:
        checked_next_after(Answering(answer), NOON)
    assert says in str(caught.value)
    assert "Answering" in str(caught.value)
    assert (caught.value.instant, isinstance(caught.value, Error)) == (NOON, True)


def test_an_answer_looking_back_is_checked_the_same_way():
    hour = timedelta(hours=1)
    assert checked_prev_before(Answering(NOON - hour), NOON) == NOON - hour
    for answer, says in (
        (NOON, "is not earlier"),
        (NOON + hour, "is not earlier"),
        (NOON.replace(year=1950), "outside the supported range"),
        (NOON - timedelta(microseconds=1), "is not in whole seconds"),
        ((NOON - hour).replace(tzinfo=None), "is naive"),
        (KeyError("tide"), "KeyError: 'tide'"),
    ):
        with pytest.raises(TriggerError) as caught:
            checked_prev_before(Answering(answer), NOON)
        assert says in str(caught.value)


def test_a_right_answer_comes_back_in_utc():
    answer = checked_next_after(Answering(datetime(2026, 5, 5, 23, tzinfo=timezone(timedelta(hours=2)))), NOON)
    assert (answer, answer and answer.tzinfo) == (utc("2026-05-05T21:00"), UTC)
    assert checked_next_after(Answering(None), NOON) is None
    assert checked_prev_before(Answering(None), NOON) is None


def test_later_means_later_in_time_and_not_on_the_wall():
    new_york = ZoneInfo("America/New_York")
    asked = datetime(2026, 11, 1, 1, 45, tzinfo=new_york)
    second_pass = datetime(2026, 11, 1, 1, 30, tzinfo=new_york, fold=1)
    assert checked_next_after(Answering(second_pass), asked) == utc("2026-11-01T06:30")
    with pytest.raises(TriggerError, match="is not earlier"):
        checked_prev_before(Answering(second_pass), asked)


def test_the_question_is_checked_before_a_host_is_asked():
    for search in (checked_next_after, checked_prev_before):
        with pytest.raises(DefinitionError, match="is naive"):
            search(Answering(None), NOON.replace(tzinfo=None))
        with pytest.raises(TriggerError, match="outside the supported range"):
            search(Answering(None), NOON.replace(year=2101))


def test_an_interruption_is_not_swallowed():
    class Interrupted(Answering):
        def next_after(self, instant: datetime, /) -> datetime | None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checked_next_after(Interrupted(None), NOON)


def test_an_error_of_the_scheduler_can_be_pickled_and_read():
    with pytest.raises(DefinitionError) as caught:
        Cron("61 * * * *", "UTC")
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert (str(again), again.field) == (str(caught.value), "minute")
    assert isinstance(again, SchedulerError)
    assert str(again) == "minute: '61' is out of range. Write 0 … 59."
