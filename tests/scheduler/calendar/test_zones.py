"""Zones: whose data they are, that nobody else notices, and which instants bear a wall-clock time."""

import pickle
import subprocess
import sys
import zoneinfo
from datetime import UTC, datetime, timedelta
from importlib import import_module, resources
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from duly.scheduler.errors import DefinitionError
from duly.scheduler.instants import instant_at
from duly.scheduler.triggers import Cron
from duly.scheduler.zones import WALL_EPOCH, tzdata_version, zone_names, zone_of
from tests.scheduler.calendar.oracle import transitions
from tests.scheduler.calendar.oracle import zone as independent_zone


def wall(text: str) -> int:
    return (datetime.fromisoformat(text) - WALL_EPOCH) // timedelta(seconds=1)


def instants(zone: str, text: str, fold: str = "both") -> list[str]:
    found = zone_of(zone).occurrences_of(wall(text), "first" if fold == "first" else "both")
    return [f"{instant_at(stamp):%Y-%m-%dT%H:%M}" for stamp in found]


def test_a_zone_is_one_object():
    assert zone_of("Europe/Berlin") is zone_of("Europe/Berlin") is zone_of(ZoneInfo("Europe/Berlin"))
    assert zone_of(zone_of("UTC")) is zone_of("UTC")
    assert pickle.loads(pickle.dumps(zone_of("Asia/Tokyo"))) is zone_of("Asia/Tokyo")  # noqa: S301 - our own bytes


def test_a_zone_bears_its_name():
    assert (zone_of("Europe/Berlin").name, zone_of("Europe/Berlin").tzinfo.key) == ("Europe/Berlin", "Europe/Berlin")
    assert repr(zone_of("Europe/Berlin")) == "Zone('Europe/Berlin')"


def test_the_version_is_that_of_the_data():
    assert tzdata_version() == import_module("tzdata").__version__


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("Europe/Berln", "Nearest: 'Europe/Berlin'"),
        ("europe/berlin", "Nearest: 'Europe/Berlin'"),
        ("Berlin", "Nearest: 'Europe/Berlin'"),
        ("New York", "'America/New_York'"),
        ("America/NewYork", "'America/New_York'"),
        ("utc", "'UTC'"),
        ("", "IANA name"),
        ("xyzzy", "IANA name"),
        ("../../etc/passwd", "IANA name"),
        ("zones", "IANA name"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_names(name: str, nearest: str):
    with pytest.raises(DefinitionError) as caught:
        Cron("0 0 * * *", name)
    assert (caught.value.field, caught.value.value) == ("zone", name)
    assert nearest in caught.value.remedy
    assert tzdata_version() in caught.value.problem


@pytest.mark.parametrize("given", [None, 5, UTC, ["UTC"]])
def test_what_names_no_zone_is_refused(given: object):
    with pytest.raises(DefinitionError, match=r"^zone: .* does not say which IANA zone it is"):
        zone_of(given)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - it is what is refused


def test_a_zone_without_a_name_is_refused():
    data = resources.files("tzdata").joinpath("zoneinfo", "Europe", "Berlin")
    with data.open("rb") as file, pytest.raises(DefinitionError, match="does not say which IANA zone it is"):
        zone_of(ZoneInfo.from_file(file))


def test_the_operating_system_has_no_say(tmp_path: Path):
    """The search path leads to a Berlin that is really Tokyo: duly does not notice, zoneinfo does."""
    (tmp_path / "Europe").mkdir()
    tokyo = resources.files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").read_bytes()
    (tmp_path / "Europe" / "Berlin").write_bytes(tokyo)
    script = (
        "from datetime import UTC, datetime; from zoneinfo import ZoneInfo; from duly.scheduler.triggers import Cron;"
        "now = datetime(2026, 6, 1, tzinfo=UTC);"
        "print(Cron('0 12 * * *', 'Europe/Berlin').next_after(now).hour);"
        "print(now.astimezone(ZoneInfo('Europe/Berlin')).hour)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONTZPATH": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["10", "9"]


def test_nobody_else_notices():
    path_before = zoneinfo.TZPATH
    ours = zone_of("America/Anchorage").tzinfo
    path_after = zoneinfo.TZPATH
    assert path_after == path_before
    assert ZoneInfo("America/Anchorage") is not ours
    assert ZoneInfo("America/Anchorage") is ZoneInfo("America/Anchorage")


@pytest.mark.parametrize(
    "name", ["Africa/Casablanca", "America/New_York", "Antarctica/Casey", "Asia/Gaza", "Pacific/Apia", "UTC"]
)
def test_every_change_of_offset_is_listed(name: str):
    listed = [instant_at(start) for start in zone_of(name).starts[1:] if 1971 < instant_at(start).year < 2105]
    assert listed == transitions(name, 1972, 2104)


@pytest.mark.torture
@pytest.mark.parametrize("name", sorted(zone_names()))
def test_every_change_of_offset_of_every_zone_is_listed(name: str):
    zone = zone_of(name)
    listed = [instant_at(start) for start in zone.starts[1:] if 1972 < instant_at(start).year < 2105]
    assert listed == transitions(name, 1973, 2104)
    assert zone.grain == 60 or name in {"Africa/Monrovia", "Liberia"}


def test_every_zone_can_be_loaded():
    names = sorted(zone_names())
    assert len(names) > 500
    noon = datetime(2026, 7, 1, 12, tzinfo=UTC)
    for name in names[::7]:
        expected = noon.astimezone(independent_zone(name)).replace(tzinfo=None)
        assert WALL_EPOCH + timedelta(seconds=zone_of(name).wall_at(int(noon.timestamp()))) == expected


@pytest.mark.parametrize(
    ("zone", "text", "expected"),
    [
        ("Europe/Berlin", "2026-05-05T12:00", ["2026-05-05T10:00"]),
        ("Europe/Berlin", "2026-03-29T02:30", ["2026-03-29T01:00"]),
        ("Europe/Berlin", "2026-03-29T02:00", ["2026-03-29T01:00"]),
        ("Europe/Berlin", "2026-03-29T01:59", ["2026-03-29T00:59"]),
        ("Europe/Berlin", "2026-03-29T03:00", ["2026-03-29T01:00"]),
        ("Europe/Berlin", "2026-10-25T02:30", ["2026-10-25T00:30", "2026-10-25T01:30"]),
        ("Europe/Berlin", "2026-10-25T02:00", ["2026-10-25T00:00", "2026-10-25T01:00"]),
        ("Europe/Berlin", "2026-10-25T03:00", ["2026-10-25T02:00"]),
        ("Australia/Lord_Howe", "2026-10-04T02:15", ["2026-10-03T15:30"]),
        ("Australia/Lord_Howe", "2026-04-05T01:45", ["2026-04-04T14:45", "2026-04-04T15:15"]),
        ("Pacific/Apia", "2011-12-30T00:00", ["2011-12-30T10:00"]),
        ("Pacific/Apia", "2011-12-30T23:59", ["2011-12-30T10:00"]),
        ("Pacific/Kwajalein", "1993-08-21T12:00", ["1993-08-21T12:00"]),
        ("Europe/Berlin", "2090-03-26T02:30", ["2090-03-26T01:00"]),
    ],
)
def test_a_wall_time_is_borne_by_one_instant_or_two_or_replaced_by_the_first_after_the_gap(
    zone: str, text: str, expected: list[str]
):
    assert instants(zone, text) == expected
    assert instants(zone, text, "first") == expected[:1]
