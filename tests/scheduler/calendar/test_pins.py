"""The pins: the observed contract of cron in this house, each as one readable fact."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest

from duly.scheduler.cron import croniter_version
from duly.scheduler.errors import DefinitionError
from duly.scheduler.triggers import Cron, OccurrenceSource
from duly.scheduler.zones import zone_of

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
MINUTE = timedelta(minutes=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(text: str, zone: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone_of(zone).tzinfo, fold=fold).astimezone(UTC)


def forward(source: OccurrenceSource, instant: datetime) -> Iterator[datetime]:
    found = source.next_after(instant)
    while found is not None:
        yield found
        found = source.next_after(found)


def backward(source: OccurrenceSource, instant: datetime) -> Iterator[datetime]:
    found = source.prev_before(instant)
    while found is not None:
        yield found
        found = source.prev_before(found)


def wall(instants: list[datetime], zone: str) -> list[str]:
    return [f"{zone_of(zone).local(instant):%m-%d %H:%M}" for instant in instants]


def test_a_daily_chain_in_utc_rises_by_exactly_a_day():
    chain = list(islice(forward(Cron("0 3 * * *", "UTC"), utc("2026-01-01")), 1000))
    assert chain == [utc("2026-01-01T03:00") + timedelta(days=day) for day in range(1000)]


def test_ho_chi_minh_is_seven_hours_ahead_all_year():
    assert Cron("30 9 * * *", "Asia/Ho_Chi_Minh").next_after(utc("2026-06-01")) == utc("2026-06-01T02:30")


@pytest.mark.parametrize("start", ["2026-03-07T12:00", "2026-10-31T12:00"])
def test_an_hourly_schedule_in_a_zone_without_dst_hits_48_times_in_48_hours(start: str):
    chain = list(islice(forward(Cron("0 * * * *", "Asia/Ho_Chi_Minh"), utc(start)), 48))
    assert chain == [utc(start) + timedelta(hours=hour) for hour in range(1, 49)]


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("* * * * *", "2026-05-05T10:00:30", "2026-05-05T10:01"),
        ("5/15 * * * *", "2026-05-05T10:00", "2026-05-05T10:05"),
        ("5/15 * * * *", "2026-05-05T10:50", "2026-05-05T11:05"),
        ("0,30 1-2 * * *", "2026-05-05T00:59", "2026-05-05T01:00"),
        ("0,30 1-2 * * *", "2026-05-05T02:30", "2026-05-06T01:00"),
        ("*/20 1-3 * * *", "2026-05-05T01:50", "2026-05-05T02:00"),
        ("59/15 * * * *", "2026-05-05T10:00", "2026-05-05T10:59"),
        ("3-3 * * * *", "2026-05-05T10:04", "2026-05-05T11:03"),
    ],
)
def test_minutes_and_hours_mean_what_crontabs_mean(expression: str, after: str, expected: str):
    assert Cron(expression, "UTC").next_after(utc(after)) == utc(expected)


def test_sunday_is_0_and_7_and_sun():
    streams = [
        list(islice(forward(Cron(f"0 12 * * {day}", "UTC"), utc("2026-01-01")), 50)) for day in ("0", "7", "sun")
    ]
    assert streams[0] == streams[1] == streams[2]
    assert {instant.isoweekday() for instant in streams[0]} == {7}


def test_two_restricted_day_fields_mean_either():
    chain = list(islice(forward(Cron("0 12 13 * fri", "UTC"), utc("2026-09-01")), 4))
    assert [f"{instant:%m-%d}" for instant in chain] == ["09-04", "09-11", "09-13", "09-18"]


def test_a_skipped_time_fires_at_the_first_instant_after_the_gap():
    daily = Cron("30 2 * * *", NEW_YORK)
    chain = list(islice(forward(daily, local("2026-03-07T12:00", NEW_YORK)), 2))
    assert wall(chain, NEW_YORK) == ["03-08 03:00", "03-09 02:30"]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("2026-03-09T00:00", "03-08 03:00"),
        ("2026-03-08T12:00", "03-08 03:00"),
        ("2026-03-08T03:01", "03-08 03:00"),
        ("2026-03-08T03:00", "03-07 02:30"),
        ("2026-03-08T01:59", "03-07 02:30"),
    ],
)
def test_looking_back_over_the_gap_agrees(before: str, expected: str):
    found = Cron("30 2 * * *", NEW_YORK).prev_before(local(before, NEW_YORK))
    assert found is not None
    assert wall([found], NEW_YORK) == [expected]


def test_every_minute_goes_from_0159_to_0300_and_invents_nothing():
    chain = list(islice(forward(Cron("* * * * *", NEW_YORK), local("2026-03-08T01:57", NEW_YORK)), 4))
    assert wall(chain, NEW_YORK) == ["03-08 01:58", "03-08 01:59", "03-08 03:00", "03-08 03:01"]


def test_several_skipped_times_become_one():
    chain = list(islice(forward(Cron("0,20,40 2,3 * * *", NEW_YORK), local("2026-03-08T01:00", NEW_YORK)), 3))
    assert wall(chain, NEW_YORK) == ["03-08 03:00", "03-08 03:20", "03-08 03:40"]


def test_an_all_hours_expression_invents_nothing_in_a_missing_day():
    apia = "Pacific/Apia"
    chain = list(islice(forward(Cron("0 */1 30 12 *", apia), local("2011-12-28T00:00", apia)), 1))
    assert wall(chain, apia) == ["12-30 00:00"]
    assert chain[0].year == 2012
    noon = list(islice(forward(Cron("0 12 * * *", apia), local("2011-12-29T00:00", apia)), 3))
    assert wall(noon, apia) == ["12-29 12:00", "12-31 00:00", "12-31 12:00"]


def test_a_repeated_time_fires_in_both_passes():
    chain = list(islice(forward(Cron("30 1 * * *", NEW_YORK), utc("2026-11-01T00:00")), 3))
    assert chain == [utc("2026-11-01T05:30"), utc("2026-11-01T06:30"), utc("2026-11-02T06:30")]
    back = list(islice(backward(Cron("30 1 * * *", NEW_YORK), utc("2026-11-02T06:30")), 3))
    assert back == [utc("2026-11-01T06:30"), utc("2026-11-01T05:30"), utc("2026-10-31T05:30")]


def test_with_the_first_pass_alone_a_daily_job_runs_once():
    daily = Cron("30 1 * * *", NEW_YORK, fold="first")
    assert list(islice(forward(daily, utc("2026-11-01T00:00")), 2)) == [
        utc("2026-11-01T05:30"),
        utc("2026-11-02T06:30"),
    ]
    assert daily.next_after(utc("2026-11-01T06:00")) == utc("2026-11-02T06:30")
    assert daily.prev_before(utc("2026-11-01T06:45")) == utc("2026-11-01T05:30")


def test_the_stream_over_a_fold_rises_strictly_and_loses_nothing():
    start = utc("2026-11-01T02:00")
    chain = list(islice(forward(Cron("* * * * *", NEW_YORK), start), 560))
    assert chain == [start + MINUTE * count for count in range(1, 561)]


def test_a_seasonal_expression_fires_in_both_passes_too():
    chain = list(islice(forward(Cron("30 1 1 11 *", NEW_YORK), utc("2026-10-01")), 2))
    assert chain == [utc("2026-11-01T05:30"), utc("2026-11-01T06:30")]


def test_a_schedule_every_hour_goes_through_the_repeated_hour_and_on():
    chain = list(islice(forward(Cron("30 * * * *", "Europe/Helsinki"), utc("2017-10-28T22:45")), 5))
    assert chain == [utc("2017-10-28T23:30") + timedelta(hours=hour) for hour in range(5)]


def test_both_ways_exclude_the_instant_itself():
    noon = Cron("0 12 * * *", BERLIN)
    at = local("2026-05-05T12:00", BERLIN)
    tick = timedelta(microseconds=1)
    assert noon.next_after(at) == at + timedelta(days=1)
    assert noon.prev_before(at) == at - timedelta(days=1)
    assert (noon.next_after(at - tick), noon.prev_before(at + tick)) == (at, at)


def test_three_years_of_minutes_later_the_latest_missed_one_is_one_call_away():
    assert Cron("* * * * *", BERLIN).prev_before(utc("2029-05-05T10:00:00.000001")) == utc("2029-05-05T10:00")


def test_a_day_that_no_month_has_is_left_to_the_weekday():
    chain = list(islice(forward(Cron("30 6 31 2 1", "UTC"), utc("2026-01-01")), 5))
    assert [f"{instant:%Y-%m-%d %H:%M}" for instant in chain] == [
        *(f"2026-02-{day:02} 06:30" for day in (2, 9, 16, 23)),
        "2027-02-01 06:30",
    ]
    assert Cron("0 0 31 4 0", "UTC").prev_before(utc("2000-01-26T13:00:59")) == utc("1999-04-25")


def test_a_leap_day_is_found_over_the_years_that_lack_one():
    leap = Cron("0 0 29 2 *", "UTC")
    assert leap.next_after(utc("2096-03-01")) == utc("2104-02-29")
    assert leap.next_after(utc("2100-12-31T23:59")) == utc("2104-02-29")
    assert leap.prev_before(utc("1972-02-29")) == utc("1968-02-29")


@pytest.mark.parametrize("direction", ["next_after", "prev_before"])
def test_a_naive_datetime_is_refused(direction: str):
    with pytest.raises(DefinitionError, match=r"^instant: .* is naive"):
        getattr(Cron("0 0 * * *", "UTC"), direction)(datetime(2026, 1, 1))  # noqa: DTZ001 - it is what is refused


def test_two_instants_of_one_zone_are_not_compared_by_their_wall_time():
    new_york = zone_of(NEW_YORK).tzinfo
    second_pass = datetime(2026, 11, 1, 1, 15, tzinfo=new_york, fold=1)
    assert Cron("30 1 * * *", NEW_YORK).next_after(second_pass) == utc("2026-11-01T06:30")
    assert Cron("30 1 * * *", NEW_YORK).prev_before(second_pass) == utc("2026-11-01T05:30")


def test_there_is_one_answer_between_two_neighbours():
    quarter = Cron("*/15 * * * *", NEW_YORK)
    chain = list(islice(forward(quarter, utc("2026-11-01T03:00")), 40))
    for earlier, later in pairwise(chain):
        assert (quarter.next_after(earlier), quarter.prev_before(later)) == (later, earlier)


def test_the_versions_in_use_are_among_those_that_were_probed():
    # A new one: run `pytest -m torture tests/scheduler/calendar`, read its changes, then add it here.
    assert croniter_version() in {"6.2.4", "7.0.0"}
