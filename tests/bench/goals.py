"""The goals of speed and scale, each as a ratio of two figures of one round, or as a figure that no noise can blur.

Rule: a row says which lines it compares. Nothing is judged from figures of different rounds; the median of the rounds'
ratios is, and their least and greatest are shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

Line = Mapping[str, Any]


class Pick(NamedTuple):
    """Which lines: those whose fields have these values; and which of their figures."""

    fields: Mapping[str, Any]
    figure: str = "seconds"

    def by_round(self, lines: Iterable[Line]) -> dict[int, float]:
        """The figure of each round."""
        found: dict[int, float] = {}
        for line in lines:
            figure = line.get(self.figure)
            if figure is not None and all(line.get(name) == value for name, value in self.fields.items()):
                found[line.get("round", 0)] = float(figure)
        return found


class Goal(NamedTuple):
    """A row: `over` / `under` (or `over` alone, times `scale`) has to be at most `bound`, or at least, if `least`."""

    axis: str
    text: str
    bound: float
    over: Pick
    under: Pick | None = None
    least: bool = False
    scale: float = 1.0
    unit: str = ""

    @property
    def needs_peers(self) -> bool:
        """Whether the peers' folder measures it."""
        return any(str(pick.fields["axis"]).startswith("P") for pick in (self.over, self.under) if pick is not None)


class Judged(NamedTuple):
    """A row with what was measured; `middle` is None where nothing was."""

    goal: Goal
    middle: float | None
    low: float = math.nan
    high: float = math.nan
    rounds: int = 0
    error: str = ""

    @property
    def met(self) -> bool:
        """Whether the median reaches the goal."""
        assert self.middle is not None
        return self.middle >= self.goal.bound if self.goal.least else self.middle <= self.goal.bound


def judge(goal: Goal, lines: Sequence[Line]) -> Judged:
    """The median of the rounds' ratios."""
    over = goal.over.by_round(lines)
    under = None if goal.under is None else goal.under.by_round(lines)
    ratios = [
        figure * goal.scale / (1.0 if under is None else under[number])
        for number, figure in over.items()
        if under is None or under.get(number)
    ]
    if not ratios:
        return Judged(goal, None, error=_error_of(goal, lines))
    return Judged(goal, median(ratios), min(ratios), max(ratios), len(ratios))


def _error_of(goal: Goal, lines: Iterable[Line]) -> str:
    """Why there is no figure, if a line tells it."""
    for pick in (goal.over, goal.under):
        if pick is None:
            continue
        named = {name: value for name, value in pick.fields.items() if name not in {"peer", "unit"}}
        for line in lines:
            told = line.get("error") or (line.get("timeout_s") and f"no answer in {line['timeout_s']:.0f} s")
            if told and all(line.get(name) == value for name, value in named.items()):
                return str(told)
    return ""


def own(axis: str, case: str, peer: str = "duly", figure: str = "seconds", **more: Any) -> Pick:
    """A figure of one of this folder's scripts."""
    return Pick({"axis": axis, "case": case, "peer": peer, **more}, figure)


def busy(axis: str, case: str, peer: str = "duly") -> Pick:
    """The CPU seconds of one of this folder's scripts, where nothing waits for a disk: other tenants do not count."""
    return own(axis, case, peer, "cpu_seconds")


def peers(axis: str, peer: str, figure: str = "seconds", **case: Any) -> Pick:
    """A figure of the peers' folder."""
    return Pick({"axis": axis, "peer": peer, **case}, figure)


def _polls() -> list[Goal]:
    goals = [
        Goal(
            "idle poll, nothing due",
            "1,000,000 schedules / 1,000",
            1.3,
            own("polls", "0 due, large"),
            own("polls", "0 due, small"),
        ),
        Goal(
            "idle poll, nothing due",
            "1,000,000 schedules / APScheduler in memory, 10,000 jobs",
            1,
            peers("P1", "duly", n=1_000_000, d=0),
            peers("P1", "apscheduler-memory", n=10_000, d=0),
        ),
    ]
    for peer, told in (("duly", ""), ("duly-mixed", ", mixed"), ("duly-reports", ", with reports and starts")):
        axis = f"poll, 10 due of 10,000, durable{told}"
        ours = peers("P1", peer, n=10_000, d=10)
        goals += [
            Goal(axis, "/ APScheduler in memory", 1, ours, peers("P1", "apscheduler-memory", n=10_000, d=10)),
            Goal(
                axis, "APScheduler on SQLite /", 25, peers("P1", "apscheduler-sqlite", n=10_000, d=10), ours, least=True
            ),
        ]
    for peer, told in (("duly", ""), ("duly-mixed", ", mixed"), ("duly-reports", ", with reports and starts")):
        for size in (1_000, 10_000, 100_000, 1_000_000):
            axis = f"poll, 1,000 due of {size:,}, durable{told}"
            ours = peers("P1", peer, n=size, d=1000)
            theirs = {store: peers("P1", f"apscheduler-{store}", n=size, d=1000) for store in ("memory", "sqlite")}
            goals += [
                Goal(axis, "/ APScheduler in memory", 1, ours, theirs["memory"]),
                Goal(axis, "APScheduler on SQLite /", 100, theirs["sqlite"], ours, least=True),
            ]
        goals.append(
            Goal(
                f"poll, 1,000 due, durable{told}",
                "1,000,000 schedules / 1,000",
                4,
                own("polls", "1000 due, large", peer),
                own("polls", "1000 due, small", peer),
            )
        )
    goals.append(
        Goal(
            "cost of a poll, 10 due",
            "function calls at 100,000 schedules / 1,000",
            1.1,
            own("polls", "calls, large", figure="value"),
            own("polls", "calls, small", figure="value"),
        )
    )
    return goals


def _disk() -> list[Goal]:
    counted = [("idle poll", 0), ("poll, 1 due", 1), ("poll, 1000 due", 1), ("create", 1), ("report of 1000", 1)]
    goals = [Goal("fsyncs", f"of one {case}", bound, own("fsyncs", case, figure="value")) for case, bound in counted]
    for peer, told in (("duly", "an admission"), ("duly-skip", "a skip"), ("duly-report", "a result")):
        ours = own("one decision", "one", peer)
        goals += [
            Goal(f"one decision, durable: {told}", "/ 300 bytes and an fsync", 1.25, ours, _alone("append")),
            Goal(f"one decision, durable: {told}", "/ an SQLite commit", 0.75, ours, _alone("sqlite")),
        ]
    goals.append(
        Goal(
            "1,000 entries in a batch",
            "CPU of the journal for each",
            6,
            own("batch", "1000", "journal", "cpu_seconds"),
            scale=1e6,
            unit=" µs",
        )
    )
    for peer, told in (("duly", ""), ("duly-mixed", ", mixed"), ("duly-reports", ", with reports and starts")):
        ours = own("batch", "1000", peer)
        axis = f"1,000 decisions{told}"
        goals += [
            Goal(axis, "/ SQLite: 1,000 rows inserted", 1, ours, own("batch", "1000", "sqlite-rows")),
            Goal(axis, "/ SQLite: selected, inserted, moved on", 1, ours, own("batch", "1000", "sqlite-poll")),
            Goal(axis, "bytes for each", 400, own("batch", "1000", peer, "value"), unit=" bytes"),
        ]
    one, sixteen = own("threads", "reports", "duly-1"), own("threads", "reports", "duly-16")
    goals.append(Goal("results, one a call", "16 threads / 1 thread, a second", 5, one, sixteen, least=True))
    return goals


def _alone(peer: str) -> Pick:
    return own("one decision", "one", peer)


def _recovery() -> list[Goal]:
    bounds = {"1 a line": 7, "4 a line": 4, "1000 a line": 4}
    return [
        *(
            Goal(
                "replay, verified, state rebuilt",
                f"/ bare decode, {case}",
                bound,
                busy("replay", case),
                busy("replay", case, "decode"),
            )
            for case, bound in bounds.items()
        ),
        Goal(
            "replay, peak memory",
            "1,000,000 entries / 100,000",
            1.2,
            own("replay", "memory, long", figure="value"),
            own("replay", "memory, short", figure="value"),
        ),
        Goal(
            "cold start, 100,000 schedules, 1,000,000 entries",
            "/ full replay",
            0.1,
            busy("cold start", "open"),
            busy("cold start", "replay"),
        ),
        Goal(
            "cold start, 100,000 schedules",
            "/ APScheduler loading as many from SQLite",
            0.1,
            peers("P3", "duly", m=100_000, kind="cold"),
            peers("P3", "apscheduler-sqlite-all", m=100_000, kind="cold"),
        ),
        Goal(
            "three years of missed minutes",
            "calendar calls for a schedule",
            102,
            own("missed", "calls, three years", figure="value"),
        ),
        Goal(
            "three years of missed minutes",
            "/ one day",
            1.2,
            busy("missed", "gap, three years"),
            busy("missed", "gap, one day"),
        ),
        Goal(
            "three years of missed minutes",
            "APScheduler, coalescing /",
            1000,
            peers("P4", "apscheduler-memory:one", n=1, m=1_576_800),
            peers("P4", "duly:one", n=1, m=1_576_800),
            least=True,
        ),
        Goal(
            "10,000 per-minute schedules, three years down",
            "largest poll / batch",
            1,
            own("missed", "long downtime", "largest poll", "value"),
            own("missed", "long downtime", "batch", "value"),
        ),
        Goal(
            "10,000 per-minute schedules, three years down",
            "first poll / all of them",
            0.1,
            own("missed", "long downtime", "first poll"),
            own("missed", "long downtime", "all polls"),
        ),
    ]


def _state() -> list[Goal]:
    searches = ("every minute", "every five", "weekdays", "monthly")
    goals = [
        Goal(
            f"calendar, {case}",
            "/ croniter on a naive time",
            1.15,
            busy("calendar", case),
            busy("calendar", case, "croniter"),
        )
        for case in searches
    ]
    goals += [
        Goal("calendar, remembered", "one search", 2, busy("calendar", "remembered"), scale=1e6, unit=" µs"),
        Goal("calendar, 100,000 equal schedules", "searches", 1, own("calendar", "equal", figure="value")),
        Goal("calendar, a gap in New York", "worst search", 1, own("calendar", "gap, New York"), scale=1e3, unit=" ms"),
        Goal("calendar, Apia's missing day", "worst search", 1, own("calendar", "gap, Apia"), scale=1e3, unit=" ms"),
    ]
    for peer, told in (("duly", "created"), ("duly-opened", "replayed")):
        where = f"100,000 idle schedules, {told}"
        pause, theirs = busy("idle memory", peer, peer), busy("idle memory", "apscheduler", "apscheduler")
        goals += [
            Goal(where, "bytes for each", 1000, own("idle memory", peer, peer, "value", unit="bytes"), unit=" bytes"),
            Goal(where, "gc objects for each", 3, own("idle memory", peer, peer, "value", unit="gc objects")),
            Goal(where, "full collection / APScheduler's", 0.1, pause, theirs),
        ]
    goals += [
        Goal(
            "registration, each of 100 at once",
            "/ APScheduler on SQLite",
            0.2,
            peers("P5", "register:duly-bulk", "register_us", n=100),
            peers("P5", "register:apscheduler-sqlite", "register_us", n=100),
        ),
        Goal(
            "next of one schedule",
            "/ APScheduler in memory",
            3,
            busy("questions", "next, large", "duly-next"),
            busy("questions", "next, large", "apscheduler-next"),
        ),
        Goal(
            "next 100 of all",
            "100,000 schedules / 1,000",
            1.3,
            busy("questions", "next, large", "duly-100"),
            busy("questions", "next, small", "duly-100"),
        ),
    ]
    for peer, told in (
        ("duly-last", "last 100 entries of a schedule"),
        ("duly-occurrences", "100 occurrences of a schedule"),
        ("duly-page", "the next 100 occurrences of it"),
        ("duly-explain", "explain"),
    ):
        ours = busy("questions", "record, long", peer)
        goals += [
            Goal(told, "/ indexed SQLite", 3, ours, busy("questions", "record, long", "sqlite")),
            Goal(told, "1,000,000 entries / 10,000", 1.3, ours, busy("questions", "record, short", peer)),
        ]
    beside = "/ APScheduler with its cron trigger"
    goals += [
        Goal("import", beside, 1, own("import", "import"), own("import", "import", "apscheduler")),
        Goal(
            "import",
            f"{beside}, each in an environment of its own",
            1,
            peers("P7", "duly"),
            peers("P7", "apscheduler"),
        ),
    ]
    return goals


GOALS = (*_polls(), *_disk(), *_recovery(), *_state())
