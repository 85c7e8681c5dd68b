"""Time zones: which instants bear a wall-clock time. zoneinfo owns the answer, the tzdata package owns the data.

Rules kept here:
- a zone is read from the tzdata package, never from the operating system, whose older copy would silently win; the
  process-wide search path and cache of zoneinfo are neither read nor changed;
- a zone is loaded once, and its changes of offset are listed once: a gap or a fold is found by bisection;
- wall-clock times are whole seconds since 1970-01-01T00:00 on the wall, instants are Unix times: integers, so that no
  comparison can fall into the trap of one tzinfo comparing by wall time;
- a skipped wall time means the first instant after the gap; a repeated one means both passes, or the first alone.
"""

from __future__ import annotations

import pkgutil
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from io import BytesIO
from itertools import pairwise
from struct import unpack_from
from threading import Lock
from zoneinfo import ZoneInfo

from duly.journal.entries import Fold
from duly.scheduler.errors import DefinitionError, TriggerError
from duly.scheduler.instants import FIRST_ANSWER, LAST_ANSWER, instant_at

DAY = 86_400
WEEK = 7 * DAY
WALL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall-clock time bears no zone
FIRST_LISTED = FIRST_ANSWER - 2 * 366 * DAY
LAST_LISTED = LAST_ANSWER + 2 * 366 * DAY


class Zone:
    """One IANA zone, as segments of constant offset from UTC.

    Segment `i` begins at the instant `starts[i]` and ends where the next one begins; on its wall, the time is the
    instant plus `offsets[i]` seconds. The first segment has no beginning, the last one no end. What lies outside
    1960 … 2112 is not listed.
    """

    __slots__ = ("grain", "name", "offsets", "starts", "tzinfo")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.tzinfo = ZoneInfo.from_file(BytesIO(data), key=name)
        segments = list(self._segments(data))
        self.starts: tuple[int, ...] = tuple(start for start, _ in segments)
        self.offsets: tuple[int, ...] = tuple(offset for _, offset in segments)
        # Every occurrence of a whole wall minute is a multiple of this many seconds: 60 nearly always (Liberia's
        # offset had half minutes until 1972).
        self.grain = 1 if any(number % 60 for number in (*self.starts[1:], *self.offsets)) else 60

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return zone_of, (self.name,)

    def local(self, instant: datetime) -> datetime:
        """The aware `instant` on the wall of this zone, as an aware datetime."""
        return instant.astimezone(UTC).astimezone(self.tzinfo)

    def wall_at(self, stamp: int) -> int:
        """The wall-clock time at the instant `stamp`."""
        return stamp + self.offsets[bisect_right(self.starts, stamp) - 1]

    def occurrences_of(self, wall: int, fold: Fold = "both") -> tuple[int, ...]:
        """The instants that stand for a wall-clock time, ascending: one; two where it is repeated and `fold` is
        `both`; the first instant after the gap where it is skipped."""
        # No offset, and no change of one, exceeds a day by more than the second one.
        first = bisect_right(self.starts, wall - 2 * DAY) - 1
        last = bisect_right(self.starts, wall + 2 * DAY)
        found = tuple(
            wall - self.offsets[i]
            for i in range(first, last)
            if (i == 0 or self.starts[i] <= wall - self.offsets[i])
            and (i + 1 == len(self.starts) or wall - self.offsets[i] < self.starts[i + 1])
        )
        if found:
            return found if fold == "both" else found[:1]
        return tuple(self.starts[i] for i in range(max(first, 1), last) if wall < self.starts[i] + self.offsets[i])[:1]

    def _offset_at(self, stamp: int) -> int:
        offset = instant_at(stamp).astimezone(self.tzinfo).utcoffset() or timedelta()
        return offset // timedelta(seconds=1)

    def _segments(self, data: bytes) -> list[tuple[int, int]]:
        """The starts and offsets, asked of zoneinfo at every instant where the data says that something may change."""
        changes, rule = _parse_changes(data)
        changes = [change for change in changes if FIRST_LISTED < change < LAST_LISTED]
        segments = [(FIRST_LISTED, self._offset_at(FIRST_LISTED))]
        for change in changes:
            self._extend(segments, change)
        if "," in rule:  # after the last listed change a yearly rule holds, which no data lists
            beginning = changes[-1] if changes else FIRST_LISTED
            for earlier, later in pairwise(range(beginning, LAST_LISTED, WEEK)):
                if self._offset_at(later) != segments[-1][1]:
                    self._extend(segments, self._change_between(earlier, later))
        return segments

    def _extend(self, segments: list[tuple[int, int]], change: int) -> None:
        offset = self._offset_at(change)
        if offset != segments[-1][1]:
            segments.append((change, offset))

    def _change_between(self, earlier: int, later: int) -> int:
        old = self._offset_at(earlier)
        while later - earlier > 1:
            middle = (earlier + later) // 2
            if self._offset_at(middle) == old:
                earlier = middle
            else:
                later = middle
        return later


def _parse_changes(data: bytes) -> tuple[list[int], str]:
    """The instants of change that a TZif file lists (RFC 8536), and the rule in its footer."""
    header = ">4sc15x6I"  # magic, version; then the counts: isut, isstd, leap, time, type, char
    magic, version, isut, isstd, leap, time, kind, char = unpack_from(header, data)
    if magic != b"TZif" or version < b"2":
        raise ValueError("not a TZif file of version 2 or later")
    start = 44 + time * 5 + kind * 6 + char + leap * 8 + isstd + isut  # the second block has 64-bit times
    _, _, isut, isstd, leap, time, kind, char = unpack_from(header, data, start)
    listed = unpack_from(f">{time}q", data, start + 44)
    footer = start + 44 + time * 9 + kind * 6 + char + leap * 12 + isstd + isut
    return list(listed), data[footer:].decode("ascii").strip("\n")


_zones: dict[str, Zone] = {}
_loading = Lock()


def zone_of(zone: str | ZoneInfo | Zone, field: str = "zone") -> Zone:
    """The zone of an IANA name, or of a ZoneInfo that was loaded by name: always the same object for the same name.

    An unknown name is refused with a `DefinitionError` that names `field` and the nearest names there are.
    """
    if isinstance(zone, Zone):
        return zone
    name = zone.key if isinstance(zone, ZoneInfo) else zone
    return _named(name, zone, field)


def _named(name: object, given: object, field: str) -> Zone:
    if not isinstance(name, str):
        raise DefinitionError(
            field, given, "does not say which IANA zone it is", 'Give the name, such as "Europe/Berlin" or "UTC".'
        )
    if name in _zones:
        return _zones[name]
    if name not in zone_names():
        raise DefinitionError(field, name, f"is no zone of tzdata {tzdata_version()}", _nearest(name))
    with _loading:
        if name not in _zones:
            _zones[name] = Zone(name, _tzdata(f"zoneinfo/{name}"))
        return _zones[name]


def _nearest(name: str) -> str:
    # Costs its import only when something is refused.
    from difflib import get_close_matches

    folded = {known.casefold(): known for known in zone_names()}
    last_parts = {known.casefold().rpartition("/")[2]: known for known in sorted(zone_names())}
    wanted = name.casefold().replace(" ", "_")
    near = [folded[match] for match in get_close_matches(wanted, folded, n=3, cutoff=0.7)]
    near += [last_parts[match] for match in get_close_matches(wanted, last_parts, n=1, cutoff=0.8)]
    if not near:
        return 'Give an IANA name, such as "Europe/Berlin" or "UTC".'
    return f"Nearest: {', '.join(repr(known) for known in dict.fromkeys(near))}."


@cache
def zone_names() -> frozenset[str]:
    """Every zone name of the tzdata package."""
    return frozenset(_tzdata("zones").decode("ascii").split())


def _tzdata(resource: str) -> bytes:
    data = pkgutil.get_data("tzdata", resource)
    if data is None:
        raise TriggerError(f"the package tzdata holds no {resource}", hint="Install tzdata again.")
    return data


def tzdata_version() -> str:
    """The version of the tzdata package in use, such as "2026.1"."""
    return str(import_module("tzdata").__version__)  # it has no type information
