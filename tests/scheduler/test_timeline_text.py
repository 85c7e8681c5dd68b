"""The text of timelines: what a line means, and that a wrong transcript is seen as wrong."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from tests.scheduler.timeline_text import (
    DEFAULT_DAY,
    Decision,
    TimelineError,
    compared,
    expand,
    parse_decision,
    parse_duration,
    parse_timeline,
    shorten,
)


def test_a_day_continues_until_a_line_changes_it() -> None:
    lines = parse_timeline("""
        09:00  poll  -> nothing
        2026-03-08T06:59Z  poll  -> nothing
        07:30:15.25  poll  -> nothing
               poll  -> nothing
        2026-03-09
        poll  -> nothing
        2026-03-10  poll  -> nothing
    """)
    assert [line.now for line in lines] == [
        datetime(2026, 3, 2, 9, 0, tzinfo=UTC),
        datetime(2026, 3, 8, 6, 59, tzinfo=UTC),
        datetime(2026, 3, 8, 7, 30, 15, 250_000, tzinfo=UTC),
        datetime(2026, 3, 8, 7, 30, 15, 250_000, tzinfo=UTC),
        datetime(2026, 3, 9, tzinfo=UTC),
        datetime(2026, 3, 10, tzinfo=UTC),
    ]


def test_a_line_has_a_command_its_subjects_and_its_options() -> None:
    (line,) = parse_timeline("""
        # a remark
        09:00  create report cron="*/15 * * * *" overlap=skip note="why not"   (another remark)
    """)
    assert (line.verb, line.subjects) == ("create", ("report",))
    assert line.options == {"cron": "*/15 * * * *", "overlap": "skip", "note": "why not"}
    assert line.expected == (Decision("create report"),)


def test_decisions_name_occurrences_by_time_of_day_or_in_full() -> None:
    (line,) = parse_timeline("""
        09:30  poll  -> skip report@09:15 overlap blocked_by=report@2026-03-01T23:45Z, supersede a@09:00 by 09:30
                     -> interval b@2025-01-01T00:00Z..09:29:30 backlog
    """)
    assert line.expected == (
        Decision("skip report@2026-03-02T09:15:00Z overlap", (("blocked_by", "report@2026-03-01T23:45:00Z"),)),
        Decision("supersede a@2026-03-02T09:00:00Z by 2026-03-02T09:30:00Z"),
        Decision("interval b@2025-01-01T00:00:00Z..2026-03-02T09:29:30Z backlog"),
    )


def test_the_entry_of_a_command_is_understood_unless_it_decides_nothing() -> None:
    lines = parse_timeline("""
        09:20  pause report covers=09:15..09:20  -> skip report@09:15 paused
        09:21  pause report  -> nothing
        09:22  start a@09:15 a@09:20
        09:23  start a@09:15  raises=WrongRunState
        09:24  schedule report paused=yes
        09:25  poll next=10:00  -> nothing
    """)
    covers = (("covers", "2026-03-02T09:15:00Z..2026-03-02T09:20:00Z"),)
    assert [line.expected for line in lines] == [
        (Decision("pause report", covers), Decision("skip report@2026-03-02T09:15:00Z paused")),
        (),
        (Decision("start a@2026-03-02T09:15:00Z"), Decision("start a@2026-03-02T09:20:00Z")),
        (Decision("raises WrongRunState"),),
        (Decision("schedule report", (("paused", "yes"),)),),
        (Decision("next", (("next", "2026-03-02T10:00:00Z"),)),),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("09:00  poll", "line 1: poll must say what it decides"),
        ("09:00  poll ->", "line 1: nothing after the arrow"),
        ("-> nothing", "line 1: an arrow without a command"),
        ("09:00  pole -> nothing", "line 1: unknown command 'pole'"),
        ("09:00  start a raises=Blocked -> nothing", "line 1: a refused command decides nothing"),
    ],
)
def test_a_wrong_timeline_is_an_error_that_names_its_line(text: str, problem: str) -> None:
    with pytest.raises(TimelineError, match=problem):
        parse_timeline(text)


def test_a_wrong_missing_or_surplus_decision_makes_the_two_sides_differ() -> None:
    admitted, skipped = (
        parse_decision("admit a@09:00", DEFAULT_DAY),
        parse_decision("skip b@09:00 overlap", DEFAULT_DAY),
    )
    assert compared((admitted, skipped), (admitted, skipped), DEFAULT_DAY) == (
        ["admit a@09:00", "skip b@09:00 overlap"],
        ["admit a@09:00", "skip b@09:00 overlap"],
    )
    for actual in ((), (admitted,), (skipped,), (skipped, admitted), (admitted, skipped, skipped)):
        left, right = compared((admitted, skipped), actual, DEFAULT_DAY)
        assert left != right


def test_details_are_compared_only_where_the_timeline_names_them() -> None:
    actual = Decision(
        "skip a@2026-03-02T09:00:00Z overlap", (("blocked_by", "a@2026-03-02T08:00:00Z"), ("actor", "eve"))
    )
    silent = parse_decision("skip a@09:00 overlap", DEFAULT_DAY)
    right = parse_decision("skip a@09:00 overlap blocked_by=a@08:00", DEFAULT_DAY)
    wrong = parse_decision("skip a@09:00 overlap blocked_by=a@07:00", DEFAULT_DAY)
    missing = parse_decision("skip a@09:00 overlap at_least=3", DEFAULT_DAY)
    sides = [compared((expected,), (actual,), DEFAULT_DAY) for expected in (silent, right, wrong, missing)]
    assert [left == right for left, right in sides] == [True, True, False, False]


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("a@09:00", "a@2026-03-02T09:00:00Z"),
        ("a@09:00:30", "a@2026-03-02T09:00:30Z"),
        ("09:00..09:15", "2026-03-02T09:00:00Z..2026-03-02T09:15:00Z"),
        ("a@09:00:30.500000", "a@2026-03-02T09:00:30.500000Z"),
    ],
)
def test_a_text_is_the_same_short_and_in_full(short: str, full: str) -> None:
    assert expand(short, DEFAULT_DAY) == full
    assert expand(full, date(2000, 1, 1)) == full
    assert shorten(full, DEFAULT_DAY) == short


def test_durations_read_as_they_are_said() -> None:
    assert parse_duration("1h30m") == timedelta(minutes=90)
    assert parse_duration("-2d") == timedelta(days=-2)
    assert parse_duration("250ms") == timedelta(milliseconds=250)
    with pytest.raises(TimelineError, match="not a duration"):
        parse_duration("90")
