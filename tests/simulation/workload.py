"""What a simulated day is made of: triggers, definitions and the moves of the clock, drawn from a source of choices.

Each comes with its words in the language of `tests.scheduler.timeline`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any, Literal, NamedTuple

from duly import Cron, Every, OncePer, OneShot
from tests.scheduler.timeline_text import describe_instant
from tests.simulation.machine import Calendar, OwnSource

Trigger = Cron | Every | OncePer | OneShot | OwnSource
PERIODS: tuple[Literal["day", "week", "month"], ...] = ("day", "week", "month")
ZONES = ("UTC", "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
STARTS = (
    datetime(2026, 3, 2, 9, tzinfo=UTC),
    datetime(2026, 3, 29, 0, 20, tzinfo=UTC),
    datetime(2026, 11, 1, 4, 50, tzinfo=UTC),
    datetime(2027, 12, 31, 23, 40, tzinfo=UTC),
)


class Spoken(NamedTuple):
    """Values for the API, and the same as words of a timeline."""

    fields: dict[str, Any]
    words: str


class Profile(NamedTuple):
    """How fast time goes by: which crons, which steps, and how far a wrong clock may read."""

    crons: tuple[str, ...]
    steps: tuple[timedelta, ...]
    jumps: tuple[timedelta, ...]


HOURLY = Profile(
    crons=("* * * * *", "*/5 * * * *", "*/15 * * * *", "7,22 * * * *", "0 * * * *", "30 2 * * *"),
    steps=tuple(timedelta(seconds=one) for one in (0, 1, 20, 59, 60, 61, 180, 300, 900, 1500, 3600, 9000)),
    jumps=tuple(timedelta(seconds=one) for one in (-1, -30, -200, -301, -3600, -90000, 1, 290, 400, 7200, 86400)),
)
DAILY = Profile(
    crons=("0 6 * * *", "30 2 * * *", "0 12 * * mon", "30 2 1 * *", "0 0,12 * * *"),
    steps=tuple(timedelta(hours=one) for one in (0, 0.01, 1, 6, 12, 24, 25, 72, 24 * 8, 24 * 40)),
    jumps=tuple(timedelta(days=one) for one in (-0.001, -0.1, -1, -30, -365, 1, 30, 365, 3650, -3650)),
)


class Workload:
    """Draws what a host might ask for."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.calendar = Calendar()
        self.profile = random.choices((HOURLY, DAILY), (3, 2))[0]
        self.start = random.choice(STARTS)

    def trigger(self, now: datetime) -> tuple[Trigger, str]:
        """A trigger of any kind."""
        random = self.random
        zone = random.choice(ZONES)
        coarse = self.profile is DAILY
        match random.choices(("cron", "once", "once_per", "every", "own"), (6, 2, 2, 2, 1))[0]:
            case "cron":
                expression = random.choice(self.profile.crons)
                return Cron(expression, zone=zone), f'cron="{expression}" zone={zone}'
            case "once":
                at = (now + random.choice(self.profile.steps[1:])).replace(microsecond=0)
                return OneShot(at), f"once={describe_instant(at)}"
            case "once_per":
                period = random.choice(PERIODS) if coarse else "day"
                return OncePer(period, zone=zone), f"once_per={period} zone={zone}"
            case "own":
                minutes = random.choice((600, 1440) if coarse else (5, 60))
                return OwnSource(self.calendar, minutes), f'every="{minutes} minute" anchor=2026-01-01T00:00Z'
            case _:
                return self._every(now, zone, coarse)

    def _every(self, now: datetime, zone: str, coarse: bool) -> tuple[Trigger, str]:
        count = self.random.choice((1, 2, 7, 15))
        if coarse:
            anchor = date(2026, 1, 31)
            unit = self.random.choice(PERIODS)
            trigger = Every(count, unit, at="02:30", zone=zone, anchor=anchor)
            return trigger, f'every="{count} {unit}" at=02:30 anchor={anchor} zone={zone}'
        begin = now.replace(second=0, microsecond=0)
        return Every(count, "minute", anchor=begin), f'every="{count} minute" anchor={describe_instant(begin)}'

    def policy(self) -> Spoken:
        """Overlap, misfire and lateness."""
        random = self.random
        fields: dict[str, Any] = {}
        words: list[str] = []
        if random.random() < 0.4:
            limit = random.choice((1, 2, 3))
            fields |= {"overlap": "parallel", "max_active_runs": limit}
            words.append(f"overlap=parallel limit={limit}")
        if random.random() < 0.5:
            fields["misfire"] = "skip"
            words.append("misfire=skip")
        if random.random() < 0.4:
            seconds = random.choice((0, 30, 300, 3600, 86400))
            fields["lateness"] = timedelta(seconds=seconds)
            words.append(f"lateness={seconds}s")
        if random.random() < 0.1:
            fields["target_revision"] = "1"
            words.append("pin=1")
        return Spoken(fields, " ".join(words))

    def step(self, now: datetime) -> timedelta:
        """How much time passes: sometimes to just before, or just at, a full minute or hour."""
        step = self.random.choice(self.profile.steps)
        draw = self.random.random()
        if draw < 0.5:
            return step
        later = now + step
        unit = 3600 if self.profile is DAILY else 60
        full = later - timedelta(seconds=later.timestamp() % unit) + timedelta(seconds=unit)
        return full - now - (timedelta(microseconds=1) if draw < 0.65 else timedelta())

    def jump(self) -> timedelta:
        """How far the wall clock is set, while no time passes."""
        return self.random.choice(self.profile.jumps)
