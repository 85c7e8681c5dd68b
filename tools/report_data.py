"""What the report's page is given: a report as JSON of few bytes, which holds no text that could drive anything.

Rules kept here:
- every text passes `printable`, so that no control character or mark of direction reaches a reader;
- texts are kept once and named by number, instants are Unix seconds, and all together stays within `MOST_TEXT`: where
  a record says more, explanations are cut short, and the page says so;
- the JSON is ASCII and has no `<`, `>` or `&`: inside a script element nothing in it can end that element.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Any, Final

from duly.journal.entries import RunAbandoned
from duly.scheduler.explanations import Explanation
from duly.scheduler.instants import describe_instant
from duly.scheduler.reports import OUTCOMES, HandRun, Outcome, Report, ScheduleReport, Shown, Span
from duly.scheduler.zones import Zone, zone_of
from duly.tools.describe import (
    describe_abandonment,
    describe_definition,
    describe_entry,
    describe_error,
    describe_trigger,
)
from duly.tools.explain_command import describe_run, explanation_lines, headline, way_on, zone_of_rule
from duly.tools.printable import printable

MOST_TEXT: Final = 4_000_000
"""Characters of all texts in a page."""
LONGEST_LINE: Final = 400
MOST_LINES: Final = 30
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RUN_OUTCOMES: Final[dict[str, Outcome]] = {"completed": "completed", "failed": "failed", "abandoned": "abandoned"}
_ESCAPED: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def page_data(report: Report, journal: str) -> dict[str, Any]:
    """What the page's scripts draw from; `journal` is its folder, as commands name it."""
    return _Packing(report, journal).data()


def script_json(value: object) -> str:
    """JSON that can stand inside a script element."""
    return re.sub("[<>&]", lambda found: _ESCAPED[found.group()], json.dumps(value, separators=(",", ":")))


def shown_text(text: str) -> str:
    """The text as a page may show it: printable, and not too long."""
    clean = printable(text[: LONGEST_LINE + 1])
    return clean if len(text) <= LONGEST_LINE else f"{clean[:LONGEST_LINE]}…"


def seconds(instant: datetime | None) -> int | float | None:
    """The instant in Unix seconds; whole where it is."""
    if instant is None:
        return None
    exact = (instant - _EPOCH).total_seconds()
    return int(exact) if exact.is_integer() else exact


def end_of(one: Explanation) -> str:
    """Why its run ended badly; nothing if it did not."""
    if one.run is not None and one.run.error is not None:
        return describe_error(one.run.error)
    abandoned = [step.entry for step in one.steps if isinstance(step.entry, RunAbandoned)]
    return describe_abandonment(abandoned[-1]) if abandoned else ""


class _Packing:
    def __init__(self, report: Report, journal: str) -> None:
        self.report = report
        self.journal = journal
        self.shortened = 0
        self._texts: dict[str, int] = {}
        self._size = 0

    def data(self) -> dict[str, Any]:
        report = self.report
        schedules = [self._schedule(one) for one in report.schedules]
        return {
            "now": seconds(report.now),
            "since": seconds(report.since),
            "until": seconds(report.until),
            "again": printable(f"duly report -j {shlex.quote(self.journal)} -o report.html"),
            "outcomes": OUTCOMES,
            "schedules": schedules,
            "days": [[_day(day), *_counts(counts)] for day, counts in report.days.items()],
            "down": [[seconds(one.since), seconds(one.until), one.clean, one.sequence] for one in report.downtimes],
            "moments": [
                [seconds(step.entry.at), self._text(describe_entry(step.entry)), step.sequence]
                for step in report.moments
            ],
            "shortened": self.shortened,
            "texts": list(self._texts),
        }

    def _schedule(self, one: ScheduleReport) -> dict[str, Any]:
        definition = one.definition
        zone = zone_of("UTC") if definition is None else zone_of_rule(definition.trigger)
        return {
            "id": printable(one.id),
            "when": "" if definition is None else shown_text(describe_trigger(definition.trigger)),
            "what": "" if definition is None else shown_text(describe_definition(definition)),
            "state": one.state,
            "marks": [self._mark(shown, zone) for shown in one.shown],
            "bins": [[seconds(some.start), seconds(some.end), *_counts(some.counts)] for some in one.bins],
            "spans": [self._span(span, zone) for span in one.spans],
            "acts": [
                [seconds(step.entry.at), self._text(describe_entry(step.entry)), step.sequence] for step in one.acts
            ],
            "hands": [self._hand(run) for run in one.by_hand],
        }

    def _mark(self, shown: Shown, zone: Zone) -> list[Any]:
        """[scheduled, outcome, started, ended, headline, run, end, lines]."""
        one = shown.explanation
        run = one.run
        return [
            seconds(one.scheduled_at),
            OUTCOMES.index(shown.outcome),
            seconds(run.started_at) if run is not None else None,
            seconds(run.ended_at) if run is not None else None,
            self._text(headline(one)),
            run.run_id if run is not None else None,
            self._text(end) if (end := end_of(one)) else None,
            self._explained(one, zone),
        ]

    def _span(self, span: Span, zone: Zone) -> list[Any]:
        """[after, through, became, at least, headline, lines]."""
        if span.explanation is not None:
            lines = self._explained(span.explanation, zone)
        else:
            lines = self._lines(
                [
                    ("why", span.rule),
                    ("from", f"after {describe_instant(span.after)}"),
                    ("through", describe_instant(span.through)),
                    ("record", f"entry {span.sequence}, {span.kind}"),
                ]
            )
        told = {"covered": "does not run, by decision"}.get(span.became, f"{span.became}, decided at once")
        return [
            seconds(span.after),
            seconds(span.through),
            span.became,
            span.at_least,
            self._text(told),
            lines,
        ]

    def _hand(self, hand: HandRun) -> list[Any]:
        """[admitted, outcome, started, ended, headline, run, end, lines], as of an occurrence."""
        run = hand.run
        by = hand.actor or "somebody"
        lines = [
            ("why", f"{by} asked for it{f': {hand.note}' if hand.note else ''}"),
            ("target", hand.target),
            ("run", describe_run(run)),
        ]
        return [
            seconds(run.admitted_at),
            OUTCOMES.index(_RUN_OUTCOMES.get(run.state, "open")),
            seconds(run.started_at),
            seconds(run.ended_at),
            self._text("run by hand"),
            run.run_id,
            self._text(describe_error(run.error)) if run.error is not None else None,
            self._lines(lines),
        ]

    def _explained(self, one: Explanation, zone: Zone) -> list[int]:
        if self._size < MOST_TEXT:
            return self._lines(explanation_lines(one, zone, self.journal))
        self.shortened += 1
        return self._lines([("why", one.rule), ("more", way_on(one, self.journal))])

    def _lines(self, lines: Iterable[tuple[str, str]]) -> list[int]:
        return [self._text(word) for line in _some_of(list(lines)) for word in line]

    def _text(self, text: str) -> int:
        shown = shown_text(text)
        if shown not in self._texts:
            self._texts[shown] = len(self._texts)
            self._size += len(shown)
        return self._texts[shown]


def _some_of(lines: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    if len(lines) <= MOST_LINES:
        yield from lines
        return
    yield from lines[: MOST_LINES - 2]
    yield "", f"… {len(lines) - MOST_LINES + 1} more lines"
    yield lines[-1]


def _counts(counts: dict[Outcome, int]) -> list[int]:
    return [counts.get(outcome, 0) for outcome in OUTCOMES]


def _day(day: date) -> int:
    return (day - _EPOCH.date()).days
