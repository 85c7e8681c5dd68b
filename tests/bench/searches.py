"""The calendar: a search that nothing remembers beside croniter's own on a naive time, a search that is remembered,
the worst search around a gap, and a hundred thousand equal schedules.

`python -m tests.bench.searches`. The two calendars walk the same minutes, alternately; what duly remembers is
forgotten before each walk, untimed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from croniter import croniter

from duly import Cron
from duly.scheduler import cron
from tests.bench.measuring import Case, Contender, Line, Measured, alternate, run_axis, timed

EXPRESSIONS = {
    "every minute": ("* * * * *", "UTC"),
    "every five": ("*/5 * * * *", "Europe/Berlin"),
    "weekdays": ("0 9 * * 1-5", "Europe/Berlin"),
    "monthly": ("30 3 1 * *", "America/New_York"),
}
GAPS = {
    "gap, New York": ("America/New_York", datetime(2026, 3, 8, 6, 0, tzinfo=UTC)),
    "gap, Apia": ("Pacific/Apia", datetime(2011, 12, 30, 9, 0, tzinfo=UTC)),
}
CASES = [
    *(Case(name, {"walk": 200, "steps": 30}) for name in EXPRESSIONS),
    Case("remembered", {"times": 10_000}),
    *(Case(name, {"minutes": 240}) for name in GAPS),
    Case("equal", {"schedules": 100_000}),
]
BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def measure(case: Measured) -> Iterator[Line]:
    """Seconds of one search."""
    if case.name in EXPRESSIONS:
        yield from compared(case)
    elif case.name in GAPS:
        yield {"peer": "duly", "seconds": worst(*GAPS[case.name], case.sizes["minutes"])}
    elif case.name == "equal":
        cron.next_after.cache_clear()
        for _ in range(case.sizes["schedules"]):
            Cron("*/5 * * * *", zone="Europe/Berlin").next_after(BEGIN)
        yield {"peer": "duly", "value": cron.next_after.cache_info().misses, "unit": "searches"}
    else:
        trigger, times = Cron("*/5 * * * *", zone="Europe/Berlin"), case.sizes["times"]
        trigger.next_after(BEGIN)
        line = timed(lambda: [trigger.next_after(BEGIN) for _ in range(times)])
        yield {"peer": "duly", **{figure: seconds / times for figure, seconds in line.items()}}


def compared(case: Measured) -> Iterator[Line]:
    """The same walk by both."""
    expression, zone = EXPRESSIONS[case.name]
    trigger = Cron(expression, zone=zone)
    walk = case.sizes["walk"]

    def ours() -> None:
        instant: datetime | None = BEGIN
        for _ in range(walk):
            assert instant is not None
            instant = trigger.next_after(instant)

    def theirs() -> None:
        found = croniter(expression, BEGIN.replace(tzinfo=None), ret_type=datetime)
        for _ in range(walk):
            found.get_next()

    forget = cron.next_after.cache_clear
    yield from alternate(
        [Contender("duly", ours, forget, per=walk), Contender("croniter", theirs, per=walk)], steps=case.sizes["steps"]
    )


def worst(zone: str, begin: datetime, minutes: int) -> float:
    """Seconds of the slowest search that begins at any minute around the gap, the fastest of five tries of each."""
    slowest = 0.0
    for expression in ("30 2 * * *", "*/5 * * * *", "0 12 30 12 *", "* * * * *"):
        trigger = Cron(expression, zone=zone)
        trigger.next_after(begin)
        for minute in range(minutes):
            instant = begin + timedelta(minutes=minute)
            tries: list[float] = []
            for _ in range(5):
                cron.next_after.cache_clear()
                begun = time.perf_counter()
                trigger.next_after(instant)
                tries.append(time.perf_counter() - begun)
            slowest = max(slowest, min(tries))
    return slowest


if __name__ == "__main__":
    run_axis("calendar", measure, CASES)
