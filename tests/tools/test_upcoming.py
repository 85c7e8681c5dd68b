"""What is said about coming occurrences, and where a machine's zone is taken from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly import Cron
from duly.scheduler.zones import zone_of
from duly.tools import localzone
from duly.tools.upcoming import clock_changes, is_repeated, upcoming
from tests.tools.conftest import Duly


def remarks(expression: str, zone: str, after: datetime, count: int) -> list[tuple[str, str]]:
    found = upcoming(Cron(expression, zone), zone_of(zone), after, count)
    return [(f"{one.local:%m-%d %H:%M %Z}", one.remark) for one in found]


def test_a_skipped_time_is_remarked():
    assert remarks("30 2 * * *", "America/New_York", datetime(2026, 3, 7, 12, tzinfo=UTC), 2) == [
        ("03-08 03:00 EDT", "clocks go forward 02:00 -> 03:00 (EDT); skipped times fire now"),
        ("03-09 02:30 EDT", ""),
    ]


def test_a_change_between_two_occurrences_is_remarked_once():
    assert remarks("0 12 * * *", "Europe/Berlin", datetime(2026, 3, 28, 0, tzinfo=UTC), 3) == [
        ("03-28 12:00 CET", ""),
        ("03-29 12:00 CEST", "clocks go forward 02:00 -> 03:00 (CEST)"),
        ("03-30 12:00 CEST", ""),
    ]


def test_a_fold_of_half_an_hour_is_told_apart():
    found = remarks("45 1 * * *", "Australia/Lord_Howe", datetime(2026, 4, 4, 6, tzinfo=UTC), 2)
    assert [remark.rpartition("; ")[2] for _, remark in found] == ["first 01:45 of two", "second 01:45 of two"]


def test_the_end_of_the_supported_range_ends_the_list(duly: Duly):
    near = ("next", "--cron", "@daily", "--zone", "UTC", "-n", "5", "--json", "--after")
    answer = duly(*near, "2100-12-29T00:00:00Z")
    assert answer.code == 0
    assert [one["scheduled_at"] for one in answer.document["occurrences"]] == [
        "2100-12-30T00:00:00Z",
        "2100-12-31T00:00:00Z",
    ]
    assert "beyond 2100" in answer.document["remark"]
    nothing = duly(*near, "2100-12-31T12:00:00Z")
    assert (nothing.code, nothing.document["occurrences"]) == (0, [])
    assert duly(*near, "2100-12-01T00:00:00Z").document["remark"] == ""


def test_a_skipped_day_is_told():
    [change] = clock_changes(
        zone_of("Pacific/Apia"), datetime(2011, 12, 1, tzinfo=UTC), datetime(2012, 1, 1, tzinfo=UTC)
    )
    assert (change.forward, change.after - change.before) == (True, timedelta(days=1))


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001 - the zone is put on below
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"]),
)
def test_a_time_is_repeated_if_another_instant_shows_it_too(moment: datetime, name: str):
    zone = zone_of(name)
    instant = moment.replace(tzinfo=UTC, second=0, microsecond=0)
    wall = zone.local(instant).replace(tzinfo=None)
    others = [instant + timedelta(minutes=minutes) for minutes in range(-180, 181, 10) if minutes]
    shown = [zone.local(other).replace(tzinfo=None) for other in others]
    assert is_repeated(zone, instant) == (wall in shown)


def test_the_machine_s_zone_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", ":Europe/Berlin")
    assert localzone.local_zone() == "Europe/Berlin"


def test_the_machine_s_zone_is_where_localtime_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data = tmp_path / "zoneinfo" / "Asia" / "Tokyo"
    data.parent.mkdir(parents=True)
    data.write_bytes(b"")
    (tmp_path / "localtime").symlink_to(data)
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr(localzone, "LOCALTIME", tmp_path / "localtime")
    assert localzone.local_zone() == "Asia/Tokyo"


@pytest.mark.parametrize("said", ["", "EST5EDT4,M3.2.0", "/etc/localtime", "Nowhere/Land"])
def test_a_machine_that_names_no_zone_is_in_utc(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", said)
    monkeypatch.setattr(localzone, "LOCALTIME", tmp_path / "localtime")
    assert localzone.local_zone() == "UTC"
