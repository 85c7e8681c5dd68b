"""Durations, instants and positions: what is understood, what is refused, and that both directions agree."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.scheduler.instants import describe_instant
from duly.tools.moments import (
    LONGEST,
    describe_duration,
    describe_roughly,
    parse_duration,
    parse_instant,
    parse_position,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("90s", 90), ("30m", 1800), ("1h30m", 5400), ("2d", 172_800), ("1w", 604_800), ("1h1h", 7200)],
)
def test_a_duration_is_read(text: str, seconds: int):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "-5m", "5 m", "1.5h", "m", "5M", "٣m", "999999999w", "1h30"])
def test_what_is_no_duration_is_refused_with_a_remedy(text: str):
    with pytest.raises(ValueError, match=r": write "):
        parse_duration(text)


@given(st.timedeltas(timedelta(), LONGEST).map(lambda span: span - timedelta(microseconds=span.microseconds)))
def test_a_described_duration_is_read_back(span: timedelta):
    assert parse_duration(describe_duration(span)) == span


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(), "0s"),
        (timedelta(days=9, hours=1), "9d1h"),
        (timedelta(seconds=-90), "-1m30s"),
        (timedelta(seconds=1, microseconds=500_000), "1.5s"),
        (timedelta(microseconds=250), "0.00025s"),
    ],
)
def test_a_duration_is_described(span: timedelta, text: str):
    assert describe_duration(span) == text


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(days=213, hours=18, minutes=37, microseconds=26_128_427), "213d18h37m26s"),
        (timedelta(microseconds=63_851), "0.064s"),
        (timedelta(microseconds=9_999_999), "10s"),
        (timedelta(microseconds=400), "0s"),
        (-timedelta(seconds=75, microseconds=500), "-1m15s"),
    ],
)
def test_people_are_told_a_duration_without_its_microseconds(span: timedelta, text: str):
    assert describe_roughly(span) == text


def test_an_instant_is_read_in_any_zone_and_shown_in_utc():
    berlin = datetime(2026, 3, 29, 3, 0, tzinfo=timezone(timedelta(hours=2)))
    assert parse_instant("2026-03-29T03:00:00+02:00") == parse_instant("2026-03-29T01:00:00Z") == berlin
    assert parse_instant("2026-03-29T03:00:00+02:00").tzinfo is UTC
    assert describe_instant(berlin) == "2026-03-29T01:00:00Z"


@pytest.mark.parametrize(
    "text", ["", "now", "2026-03-29T03:00:00", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+10:00", "1204"]
)
def test_what_is_no_instant_is_refused(text: str):
    with pytest.raises(ValueError, match=r"instant|zone|years"):
        parse_instant(text)


def test_a_position_is_a_sequence_or_an_instant():
    assert parse_position("1204") == 1204
    assert parse_position("2026-03-29T01:00:00Z") == datetime(2026, 3, 29, 1, tzinfo=UTC)
    with pytest.raises(ValueError, match="a sequence such as 1204 is understood too"):
        parse_position("twelve")


@given(st.text())
def test_any_text_is_read_or_refused(text: str):
    remedies: list[str] = []
    for parse in (parse_duration, parse_instant, parse_position):
        try:
            parse(text)
        except ValueError as error:
            remedies.append(str(error))
    assert all(remedies)
