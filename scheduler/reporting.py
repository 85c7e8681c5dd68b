"""Reporting: a journal, told as a whole: what became of every occurrence, why, and what else happened.

Rules: the record is read twice, however much is shown: once to count and to choose, once to explain what was chosen.
What is explained is what `explain` says of it. Where more happened than can be shown, what ended badly goes before what
ended well, and the newest before the old; the rest is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, Literal, NamedTuple

from duly.journal import Reader
from duly.journal.entries import ClockRegressed, Entry, IntervalSkipped
from duly.journal.errors import UnconfirmedGone
from duly.projections.history import Row
from duly.projections.ranges import FIRST_INSTANT
from duly.projections.schedules import ScheduleState
from duly.scheduler.decisions.occurrences import next_instant
from duly.scheduler.errors import DefinitionError, TriggerError
from duly.scheduler.explanations import Explanation, rule_of_cover, rule_of_skip
from duly.scheduler.instants import require_utc
from duly.scheduler.judging import judged
from duly.scheduler.reports import (
    BIN_WIDTHS,
    MOST_BINS,
    MOST_DAYS,
    MOST_SCHEDULES,
    MOST_SHOWN,
    Bin,
    Outcome,
    Report,
    ScheduleReport,
    Shown,
    Span,
    failing,
    outcome_of,
)
from duly.scheduler.sources import SourceFactory, checked_prev_before
from duly.scheduler.story import Setting, Story
from duly.scheduler.surveying import Subject, Survey, Window, most_beside
from duly.scheduler.triggers import trigger_of
from duly.scheduler.unknown import unknown_schedule

_INTERVAL: Final = str(IntervalSkipped.__struct_config__.tag)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_URGENCY: Final[dict[Outcome, int]] = {
    "failed": 0,
    "abandoned": 0,
    "open": 0,
    "held": 0,
    "waiting": 0,
    "skipped": 1,
    "superseded": 1,
    "completed": 2,
}
_BADLY: Final = ("failed", "abandoned", "skipped")


def report_data(  # noqa: PLR0913 - each narrows the report
    journal: Path | str | Sequence[tuple[int, Entry]],
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    schedules: Collection[str] | None = None,
    now: datetime | None = None,
    sources: Mapping[str, SourceFactory] | None = None,
    most_shown: int = MOST_SHOWN,
) -> Report:
    """The report of the journal at a path, or of its entries: of the occurrences from `since` through `until`, of all
    schedules or of those that are named.

    `now` is what is past and what lies ahead; None: the record's last clock reading. `sources` are the factories of the
    host's own triggers; `most_shown` is how many occurrences are told one by one. Raises UnknownSchedule,
    DefinitionError for naive instants and a window that ends before it begins, and the journal's errors.
    """
    window = _window(since, until)
    judged_at = None if now is None else require_utc(now, "now")
    reporting = _Reporting(journal, window, schedules, judged_at, sources or {}, most_shown)
    try:
        return reporting.report()
    except UnconfirmedGone:
        # A crash took the end while it was read, and the next owner went on without it: what was counted is no record.
        return reporting.report()


def _window(since: datetime | None, until: datetime | None) -> Window:
    begin = None if since is None else require_utc(since, "since")
    end = None if until is None else require_utc(until, "until")
    if begin is not None and end is not None and end < begin:
        raise DefinitionError("until", until, "lies before since", "Swap the two.")
    return Window(begin, end)


class _Chosen(NamedTuple):
    """What is shown of one schedule, before it is explained."""

    subject: Subject
    rows: list[Row]
    shown: list[Row]
    spans: list[tuple[Row, datetime | None]]
    unshown_spans: int


class _Record(NamedTuple):
    """What the files say of the journal itself."""

    journal_id: str = ""
    anchor: str = ""
    unfinished: str = ""


class _Reporting:
    def __init__(  # noqa: PLR0913, PLR0917 - what is asked for
        self,
        journal: Path | str | Sequence[tuple[int, Entry]],
        window: Window,
        wanted: Collection[str] | None,
        now: datetime | None,
        sources: Mapping[str, SourceFactory],
        most_shown: int,
    ) -> None:
        self.journal = journal
        self.window = window
        self.wanted = None if wanted is None else frozenset(wanted)
        self.asked_now = now
        self.sources = sources
        self.most_shown = most_shown
        self.now = FIRST_INSTANT

    def report(self) -> Report:
        survey = Survey(self.window, self.wanted)
        record = self._survey(survey)
        for schedule_id in sorted((self.wanted or frozenset()) - survey.ids):
            raise unknown_schedule(schedule_id, survey.ids)
        self.now = survey.last_at if self.asked_now is None else self.asked_now
        rows = {one.id: one.rows(self.now, self.sources) for one in survey.subjects.values()}
        counts: Counter[Outcome] = Counter(outcome_of(row) for some in rows.values() for row in some)
        days = _days(rows.values())
        total = len([one for one in survey.subjects if one])
        told = self._chosen(survey, rows)
        begin, end = self._bounds(survey, rows)
        width = next((one for one in BIN_WIDTHS if (end - begin) / one <= MOST_BINS), BIN_WIDTHS[-1])
        explained = self._explained(told, survey.state.sequence)
        limit = most_beside(len(told))
        return Report(
            journal_id=record.journal_id,
            anchor=record.anchor,
            entries=survey.state.sequence,
            unfinished=record.unfinished,
            lost=survey.state.lost,
            since=begin,
            until=end,
            now=self.now,
            narrowed=self.window.narrowed or self.wanted is not None,
            bin_width=width,
            schedules=tuple(self._told(one, explained.get(one.subject.id, {}), width, limit) for one in told),
            schedules_total=total,
            counts=counts,
            days=dict(sorted(days.items())[-MOST_DAYS:]),
            unshown_days=max(0, len(days) - MOST_DAYS),
            anomalies=tuple(survey.state.anomalies),
            anomaly_count=survey.state.anomaly_count,
            moments=tuple(survey.moments),
            regressions=survey.moment_counts[ClockRegressed.__name__],
            steps_back=survey.readings.steps_back,
            largest_step_back=survey.readings.largest_step_back,
            unshown_moments=survey.moment_counts.total() - len(survey.moments),
            downtimes=tuple(survey.unowned()),
        )

    def _survey(self, survey: Survey) -> _Record:
        if not isinstance(self.journal, Path | str):
            for sequence, entry in self.journal:
                survey.apply(sequence, entry)
            return _Record()
        reader = Reader(self.journal)
        for record in reader.records():
            survey.apply(record.sequence, record.entry)
        unfinished = "" if reader.unfinished is None else reader.unfinished.fault
        return _Record(reader.journal_id, f"{reader.place.next - 1}:{reader.chain.hex()}", unfinished)

    def _bounds(self, survey: Survey, rows: Mapping[str, Sequence[Row]]) -> tuple[datetime, datetime]:
        """From where to where the report goes: what it holds, and the reading `now`, as far as the window is open."""
        seen = [one for some in rows.values() if some for one in (some[0].scheduled_at, some[-1].scheduled_at)]
        for subject in survey.subjects.values():
            begun = [] if subject.schedule is None else [subject.schedule.created_at]
            seen += begun + [run.run.admitted_at for run in subject.by_hand.values()]
        begin = max(self.window.since, min([*seen, self.now]))
        return begin, max(begin, min(self.window.until, max([*seen, self.now])))

    # Which are shown

    def _chosen(self, survey: Survey, rows: dict[str, list[Row]]) -> list[_Chosen]:
        subjects = survey.subjects
        if len(subjects) > MOST_SCHEDULES:
            badly = {name: sum(outcome_of(row) in _BADLY for row in some) for name, some in rows.items()}
            first = sorted(subjects, key=lambda name: (_is_well(subjects[name]), -badly[name], name))[:MOST_SCHEDULES]
            subjects = {name: subjects[name] for name in first}
        shares = shared_out({name: len(rows[name]) for name in subjects}, self.most_shown)
        limit = most_beside(len(subjects))
        chosen: list[_Chosen] = []
        for name, subject in sorted(subjects.items(), key=lambda item: (not item[0], item[0])):
            urgent = sorted(rows[name], key=lambda row: (_URGENCY[outcome_of(row)], _EPOCH - row.scheduled_at))[
                : shares[name]
            ]
            spans = list(subject.spans())
            kept = [(span, self._within(subject, span)) for span in spans[-limit:]]
            chosen.append(_Chosen(subject, rows[name], urgent, kept, len(spans) - len(kept)))
        return chosen

    def _within(self, subject: Subject, span: Row) -> datetime | None:
        """The newest occurrence of an interval that was decided at once, to be explained for all of them."""
        rule = subject.history.rules.get(span.revision or 0)
        if span.detail != _INTERVAL or rule is None or span.after is None:
            return None
        try:
            found = checked_prev_before(trigger_of(rule, self.sources), span.scheduled_at + datetime.resolution)
        except TriggerError:
            return None
        return found if found is not None and found > span.after else None

    # Why

    def _explained(self, told: Iterable[_Chosen], through: int) -> dict[str, dict[datetime, Explanation]]:
        setting = Setting()
        stories: dict[str, Story] = {}
        for one in told:
            asked = {row.scheduled_at for row in one.shown} | {within for _, within in one.spans if within is not None}
            if asked:
                stories[one.subject.id] = Story(one.subject.id, asked, setting)
        for sequence, entry in self._entries():
            if sequence > through:
                break
            setting.apply(sequence, entry)
            if isinstance(entry, ClockRegressed):
                for story in stories.values():
                    story.follow(sequence, entry)
            elif (found := stories.get(getattr(entry, "schedule_id", None) or "")) is not None:
                found.follow(sequence, entry)
        return {name: self._judged(story) for name, story in stories.items()}

    def _judged(self, story: Story) -> dict[datetime, Explanation]:
        schedule = story.history.schedule
        if schedule is None:
            return {}
        return {
            instant: judged(story, schedule, thread, self.now, self.sources)
            for instant, thread in story.threads.items()
        }

    def _entries(self) -> Iterator[tuple[int, Entry]]:
        if not isinstance(self.journal, Path | str):
            return iter(self.journal)
        return ((record.sequence, record.entry) for record in Reader(self.journal).records())

    # All of it together

    def _told(
        self, one: _Chosen, explained: Mapping[datetime, Explanation], width: timedelta, limit: int
    ) -> ScheduleReport:
        subject, schedule = one.subject, one.subject.schedule
        apart = {row.scheduled_at for row in one.shown if row.scheduled_at in explained}
        by_hand = tuple(subject.by_hand.values())[-limit:]
        acts = tuple(subject.acts)[-limit:]
        next_due, fault = self._next_due(schedule)
        shown = (
            Shown(outcome=outcome_of(row), explanation=explained[row.scheduled_at])
            for row in one.shown
            if row.scheduled_at in apart
        )
        return ScheduleReport(
            id=subject.id,
            definition=None if schedule is None else schedule.definition,
            revision=0 if schedule is None else schedule.revision,
            created_at=None if schedule is None else schedule.created_at,
            state="" if schedule is None else _state_of(schedule),
            block=None if schedule is None else schedule.block,
            next_due=next_due,
            fault=fault,
            counts=Counter(outcome_of(row) for row in one.rows),
            failing=failing(one.rows),
            reasons=Counter(row.reason or "" for row in one.rows if row.disposition == "skipped"),
            shown=tuple(sorted(shown, key=lambda told: told.explanation.scheduled_at)),
            bins=tuple(_bins((row for row in one.rows if row.scheduled_at not in apart), width)),
            spans=tuple(_span(row, explained.get(within) if within else None) for row, within in one.spans),
            acts=acts,
            by_hand=by_hand,
            unshown_spans=one.unshown_spans,
            unshown_acts=subject.act_count - len(acts),
            unshown_by_hand=subject.by_hand_count - len(by_hand),
        )

    def _next_due(self, schedule: ScheduleState | None) -> tuple[datetime | None, str]:
        """The first instant ahead that is undecided, or why this machine cannot tell."""
        if schedule is None or not schedule.live:
            return None, ""
        try:
            source = trigger_of(schedule.definition.trigger, self.sources)
            return next_instant(source, max(schedule.consumed_through, self.now), schedule.kept), ""
        except TriggerError as error:
            return None, str(error)


def shared_out(counts: Mapping[str, int], budget: int) -> dict[str, int]:
    """How many of each may be shown, so that all together are at most the budget: who has few shows all of them."""
    shares: dict[str, int] = {}
    for done, (name, count) in enumerate(sorted(counts.items(), key=lambda item: item[1])):
        shares[name] = min(count, budget // (len(counts) - done))
        budget -= shares[name]
    return shares


def _is_well(subject: Subject) -> bool:
    return subject.schedule is not None and subject.schedule.block is None


def _state_of(schedule: ScheduleState) -> str:
    for is_so, word in (
        (schedule.deleted, "deleted"),
        (schedule.block is not None, "blocked"),
        (schedule.paused, "paused"),
        (schedule.disabled, "disabled"),
        (schedule.exhausted, "exhausted"),
    ):
        if is_so:
            return word
    return "live"


def _days(rows: Iterable[Iterable[Row]]) -> dict[date, Counter[Outcome]]:
    days: dict[date, Counter[Outcome]] = {}
    for some in rows:
        for row in some:
            days.setdefault(row.scheduled_at.date(), Counter())[outcome_of(row)] += 1
    return days


def _bins(rows: Iterable[Row], width: timedelta) -> Iterator[Bin]:
    counted: dict[int, Counter[Outcome]] = {}
    for row in rows:
        counted.setdefault((row.scheduled_at - _EPOCH) // width, Counter())[outcome_of(row)] += 1
    for number, counts in sorted(counted.items()):
        start = _EPOCH + number * width
        yield Bin(start=start, end=start + width, counts=dict(counts))


def _span(row: Row, explanation: Explanation | None) -> Span:
    became: Literal["skipped", "superseded", "covered"] = "covered"
    if row.detail == _INTERVAL:
        became = "superseded" if row.reason == "superseded" else "skipped"
    rule = rule_of_skip("backlog") if row.detail == _INTERVAL else rule_of_cover(row.detail)
    return Span(
        after=row.after or FIRST_INSTANT,
        through=row.scheduled_at,
        became=became,
        kind=row.detail,
        rule=explanation.rule if explanation is not None else rule,
        sequence=row.sequence or 0,
        at_least=row.at_least or 0,
        explanation=explanation,
    )
