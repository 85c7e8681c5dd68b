"""What a report is: a journal, told schedule by schedule, small enough to be looked at as a whole.

Rules: plain data, all instants UTC; however long the record is, a report is bounded: what is not shown one by one is
counted, and what is left out is said. The bounds are here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec

from duly.journal.entries import ClockJumped, ClockRegressed, Definition, Entry, JournalOpened
from duly.projections.facts import Anomaly
from duly.projections.history import Row
from duly.projections.schedules import Block
from duly.scheduler.explanations import Explanation, RunFacts, Step

Outcome: TypeAlias = Literal["completed", "failed", "abandoned", "open", "skipped", "superseded", "held", "waiting"]
"""What became of an occurrence, with the end of its run: `open` has a run that has not ended."""

OUTCOMES: Final[tuple[Outcome, ...]] = (
    "completed",
    "failed",
    "abandoned",
    "open",
    "skipped",
    "superseded",
    "held",
    "waiting",
)
MOST_SHOWN: Final = 5_000
"""How many occurrences a report shows one by one."""
MOST_SCHEDULES: Final = 200
MOST_BESIDE: Final = 5_000
"""How many spans, how many acts and how many runs by hand a report shows, shared out among its schedules."""
LEAST_BESIDE: Final = 20
MOST_MOMENTS: Final = 200
MOST_BINS: Final = 120
"""How many bins the occurrences of a schedule are counted in."""
MOST_DAYS: Final = 732
BIN_WIDTHS: Final = tuple(
    timedelta(minutes=minutes)
    for minutes in (1, 5, 15, 30, 60, 180, 360, 720, 1_440, 2_880, 10_080, 40_320, 161_280, 525_600, 5_256_000)
)


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One occurrence, and why it became what it did."""

    outcome: Outcome
    explanation: Explanation


class Bin(msgspec.Struct, frozen=True, kw_only=True):
    """Occurrences from `start` up to `end` that are counted only."""

    start: datetime
    end: datetime
    counts: dict[Outcome, int]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """What one entry decided or covered at once, after `after` through `through`.

    `explanation` is that of the newest occurrence in it where an interval was decided; None where a baseline covers it.
    """

    after: datetime
    through: datetime
    became: Literal["skipped", "superseded", "covered"]
    kind: str
    rule: str
    sequence: int
    at_least: int
    explanation: Explanation | None


class HandRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that somebody asked for."""

    run: RunFacts
    target: str
    actor: str
    note: str


class Downtime(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody owned the journal: from the last reading before the entry `sequence` opened it. Not `clean`: the owner
    before left no closing mark."""

    since: datetime
    until: datetime
    sequence: int
    clean: bool


class ScheduleReport(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule. `definition` is None for the runs by hand that belong to none.

    `counts` are all occurrences in the window but those in spans; `failing` is how many of those that ended last failed
    or were abandoned, one after the other; `reasons` are the skips' reasons. What is in `counts`
    and not in `shown` is in `bins`. `unshown_*` are the older ones that were left out.
    """

    id: str
    definition: Definition | None
    revision: int = 0
    created_at: datetime | None = None
    state: str = ""
    block: Block | None = None
    next_due: datetime | None = None
    fault: str = ""
    counts: Counter[Outcome] = msgspec.field(default_factory=Counter[Outcome])
    failing: int = 0
    reasons: Counter[str] = msgspec.field(default_factory=Counter[str])
    shown: tuple[Shown, ...] = ()
    bins: tuple[Bin, ...] = ()
    spans: tuple[Span, ...] = ()
    acts: tuple[Step, ...] = ()
    by_hand: tuple[HandRun, ...] = ()
    unshown_spans: int = 0
    unshown_acts: int = 0
    unshown_by_hand: int = 0

    @property
    def occurrences(self) -> int:
        """How many there are, but for those in spans."""
        return self.counts.total()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A journal, from `since` through `until`, as of the clock reading `now`.

    `anchor` is the last entry and the chain there (`S:H`), and with `journal_id` empty where no journal's files were
    read; `unfinished` is what stands behind it. `schedules_total` counts also those that were left out. `days` are
    counts by UTC day, of all schedules asked for, the newest of them. `regressions` are those of the clock that were
    beyond the tolerance; `steps_back` are the others of a second or more.
    """

    journal_id: str
    anchor: str
    entries: int
    unfinished: str
    lost: int
    since: datetime
    until: datetime
    now: datetime
    narrowed: bool
    bin_width: timedelta
    schedules: tuple[ScheduleReport, ...]
    schedules_total: int
    counts: Counter[Outcome]
    days: dict[date, Counter[Outcome]]
    unshown_days: int
    anomalies: tuple[Anomaly, ...]
    anomaly_count: int
    moments: tuple[Step, ...]
    regressions: int
    steps_back: int
    largest_step_back: timedelta
    unshown_moments: int
    downtimes: tuple[Downtime, ...]

    @property
    def shown(self) -> int:
        """How many occurrences are told one by one."""
        return sum(len(one.shown) for one in self.schedules)

    @property
    def occurrences(self) -> int:
        """How many occurrences there are in the window, but for those in spans."""
        return self.counts.total()


def outcome_of(row: Row) -> Outcome:
    """What became of the row's occurrence."""
    if row.disposition == "interval":
        raise ValueError("a span has no outcome of its own")
    if row.disposition != "admitted":
        return row.disposition
    match row.run_state:
        case "completed" | "failed" | "abandoned":
            return row.run_state
        case _:
            return "open"


def failing(rows: Iterable[Row]) -> int:
    """How many of the occurrences that ended last failed or were abandoned, one after the other."""
    in_a_row = 0
    for row in rows:
        match outcome_of(row):
            case "failed" | "abandoned":
                in_a_row += 1
            case "completed":
                in_a_row = 0
            case _:
                continue
    return in_a_row


def names_a_moment(entry: Entry) -> bool:
    """Whether the entry is about the journal or its clock as a whole, and worth telling."""
    return isinstance(entry, ClockRegressed | ClockJumped) or (isinstance(entry, JournalOpened) and bool(entry.torn))
