"""A report tells what the account counts and what `explain` says, of every occurrence, and is bounded."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duly import Cron, DefinitionError, ManualClock, Scheduler, UnknownSchedule
from duly.journal import read
from duly.journal.entries import ClockRegressed, Entry
from duly.projections.history import Row
from duly.scheduler.explaining import explain_all
from duly.scheduler.reporting import report_data, shared_out
from duly.scheduler.reports import MOST_BINS, OUTCOMES, Report, ScheduleReport, outcome_of
from tests.scheduler.reference_dispositions import Dispositions
from tests.scheduler.test_explained_histories import live, record_of, said
from tests.tools.many import make_many
from tests.tools.recorded import make_recorded

BEGIN = datetime(2026, 3, 28, tzinfo=UTC)
HOUR = timedelta(hours=1)
RAN = ("completed", "failed", "abandoned", "open")
Record = list[tuple[int, Entry]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal in which everything happens. It is only read."""
    return make_recorded(tmp_path_factory.mktemp("recorded") / "journal")


@pytest.fixture(scope="module")
def record(recorded: Path) -> Record:
    return [(one.sequence, one.entry) for one in read(recorded)]


def of(report: Report, schedule_id: str) -> ScheduleReport:
    [found] = [one for one in report.schedules if one.id == schedule_id]
    return found


def counted(one: ScheduleReport) -> Counter[str]:
    """The counts of a schedule, shown and binned, by disposition."""
    outcomes: Counter[str] = Counter(shown.outcome for shown in one.shown)
    for some in one.bins:
        outcomes.update(some.counts)
    assert outcomes == one.counts
    found = Counter({"admitted": sum(outcomes[name] for name in RAN)})
    found.update({name: number for name, number in outcomes.items() if name not in RAN})
    return +found


@pytest.mark.parametrize("seed", range(12))
def test_a_report_shows_what_the_model_has_decided_and_explains_it_as_explain_does(
    seed: int, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.ERROR, logger="duly")
    history, _ = live(seed)
    record = record_of(history)
    schedules = [one for one in report_data(record).schedules if one.id]
    assert {one.id for one in schedules} == set(history.model.schedules)
    for one in schedules:
        told = Dispositions(one.id).tell(entry for _, entry in record)
        decided = {shown.explanation.scheduled_at: shown for shown in one.shown if shown.outcome != "waiting"}
        assert {at: said(shown.explanation) for at, shown in decided.items()} == {
            at: became for at, (became, _) in told.decided.items()
        }
        explained = [shown.explanation for shown in one.shown]
        assert explained == list(explain_all(record, one.id, [one.scheduled_at for one in explained]))
        counted(one)
    history.close()


def test_a_report_tells_everything_that_happened(recorded: Path):
    report = report_data(recorded)
    assert [(one.id, one.state) for one in report.schedules] == [
        ("capped", "live"),
        ("gone", "deleted"),
        ("hourly", "blocked"),
        ("nightly", "paused"),
        ("often", "deleted"),
        ("once", "exhausted"),
        ("tally", "live"),
        ("", ""),
    ]
    assert +report.counts == {
        "superseded": 25,
        "skipped": 8,
        "completed": 7,
        "waiting": 4,
        "abandoned": 1,
        "open": 1,
        "failed": 1,
    }
    assert (report.regressions, report.anomaly_count, report.lost, report.unfinished) == (1, 0, 0, "")
    assert [type(step.entry) for step in report.moments] == [ClockRegressed]
    assert [(one.until - one.since, one.clean) for one in report.downtimes] == [(26 * HOUR, False), (HOUR / 2, True)]
    assert of(report, "often").reasons == {"overlap": 2}
    assert [(hand.run.state, hand.actor) for hand in of(report, "nightly").by_hand] == [("completed", "bob")]
    assert len(of(report, "").by_hand) == 2
    assert of(report, "tally").next_due == datetime(2026, 3, 30, 4, tzinfo=UTC)
    assert {day.isoformat(): counts.total() for day, counts in report.days.items()} == {
        "2026-03-28": 29,
        "2026-03-29": 16,
        "2026-03-31": 2,
    }


def test_what_was_decided_at_once_is_told_by_its_newest_occurrence(recorded: Path):
    [backlog] = [span for span in of(report_data(recorded), "often").spans if span.became == "skipped"]
    assert backlog.explanation is not None
    assert (backlog.kind, backlog.at_least, backlog.explanation.summarised) == ("IntervalSkipped", 100, True)
    assert backlog.after < backlog.explanation.scheduled_at <= backlog.through
    covers = [(span.kind, span.became, span.explanation) for span in of(report_data(recorded), "hourly").spans]
    assert ("ScheduleEnabled", "covered", None) in covers


def test_what_ended_badly_is_shown_before_what_ended_well_and_the_rest_is_counted(tmp_path: Path):
    journal = make_many(tmp_path / "many", schedules=4, days=60)
    whole, bounded = report_data(journal), report_data(journal, most_shown=40)
    assert (whole.shown, whole.occurrences) == (241, 241)
    assert (bounded.shown, bounded.occurrences) == (40, 241)
    for one, all_of_it in zip(bounded.schedules, whole.schedules, strict=True):
        assert one.counts == all_of_it.counts
        assert counted(one) == counted(all_of_it)
        badly = [shown for shown in all_of_it.shown if shown.outcome != "completed"]
        assert [shown for shown in one.shown if shown.outcome != "completed"] == badly
        well = [shown for shown in all_of_it.shown if shown.outcome == "completed"]
        assert [shown for shown in one.shown if shown.outcome == "completed"] == well[len(badly) - 10 :]


def test_a_long_record_has_few_bins(tmp_path: Path):
    report = report_data(make_many(tmp_path / "many", schedules=1, days=20, minutely=1), most_shown=100)
    minutely = of(report, "every-minute-0")
    assert (minutely.occurrences, len(minutely.shown)) == (20 * 1_440 + 1, 79)
    assert report.bin_width == timedelta(hours=6)
    assert 0 < len(minutely.bins) <= MOST_BINS + 1
    assert counted(minutely) == {"admitted": 20 * 1_440, "waiting": 1}
    assert [shown.outcome for shown in minutely.shown].count("failed") == 20


def test_only_so_many_schedules_are_shown_the_troubled_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    journal = make_many(tmp_path / "many", schedules=6, days=30)
    everything = report_data(journal)
    monkeypatch.setattr("duly.scheduler.reporting.MOST_SCHEDULES", 2)
    report = report_data(journal)
    troubles = {one.id: one.counts["failed"] + one.counts["skipped"] for one in everything.schedules}
    assert [one.id for one in report.schedules] == sorted(
        sorted(troubles, key=lambda name: (-troubles[name], name))[:2]
    )
    assert (report.schedules_total, report.counts, report.days) == (6, everything.counts, everything.days)


def test_a_window_and_named_schedules_narrow_a_report(recorded: Path):
    since, until = BEGIN + HOUR / 2, BEGIN + HOUR
    report = report_data(recorded, since=since, until=until, schedules=["often", "hourly"])
    assert [(one.id, [shown.explanation.scheduled_at for shown in one.shown]) for one in report.schedules] == [
        ("hourly", [until]),
        ("often", [since, BEGIN + 3 * HOUR / 4, until]),
    ]
    assert (report.since, report.until, report.narrowed, report.regressions) == (since, until, True, 0)
    for one in report.schedules:
        assert [shown.explanation for shown in one.shown] == list(
            explain_all(recorded, one.id, [shown.explanation.scheduled_at for shown in one.shown])
        )


def test_what_cannot_be_reported_is_refused_by_its_name(recorded: Path):
    with pytest.raises(UnknownSchedule, match="oftn") as unknown:
        report_data(recorded, schedules=["often", "oftn"])
    assert "often" in unknown.value.hint
    naive = BEGIN.replace(tzinfo=None)
    with pytest.raises(DefinitionError, match="since"):
        report_data(recorded, since=naive)
    with pytest.raises(DefinitionError, match="until"):
        report_data(recorded, until=naive)
    with pytest.raises(DefinitionError, match="now"):
        report_data(recorded, now=naive)
    with pytest.raises(DefinitionError, match="lies before since"):
        report_data(recorded, since=BEGIN, until=BEGIN - HOUR)


def test_a_record_is_read_twice_however_much_is_shown(record: Record):
    class Counted(list[tuple[int, Entry]]):
        reads = 0

        def __iter__(self) -> Iterator[tuple[int, Entry]]:
            self.reads += 1
            return super().__iter__()

    counting = Counted(record)
    assert report_data(counting).shown > 40
    assert counting.reads == 2


def test_the_entries_and_the_files_of_a_journal_give_the_same_report(recorded: Path, record: Record):
    by_path, by_entries = report_data(recorded), report_data(record)
    assert by_path.anchor.startswith(f"{len(record)}:")
    assert (by_entries.anchor, by_entries.journal_id) == ("", "")
    assert by_path.schedules == by_entries.schedules


def test_a_journal_is_reported_while_its_owner_writes(tmp_path: Path):
    clock = ManualClock(BEGIN)
    with Scheduler.open(tmp_path / "j", clock=clock) as scheduler:
        assert report_data(tmp_path / "j").schedules == ()
        scheduler.create("a", Cron("@hourly", zone="UTC"), target="x")
        clock.advance(HOUR)
        [run] = scheduler.poll(start=True).offered
        [one] = report_data(tmp_path / "j").schedules
        assert (one.counts, one.next_due) == ({"open": 1}, BEGIN + 2 * HOUR)
        scheduler.complete(run.id)
        [one] = report_data(tmp_path / "j", now=BEGIN + 3 * HOUR).schedules
        assert (one.counts, one.next_due) == ({"completed": 1, "waiting": 2}, BEGIN + 4 * HOUR)


def test_whoever_has_few_shows_all_of_them():
    assert shared_out({"a": 3, "b": 100, "c": 100}, 20) == {"a": 3, "b": 8, "c": 9}
    assert shared_out({"a": 3, "b": 4}, 20) == {"a": 3, "b": 4}
    assert shared_out({}, 20) == {}


def test_every_row_but_a_span_has_one_of_the_outcomes():
    row = Row(scheduled_at=BEGIN, occurrence_id="a", disposition="admitted", run_state="interrupted")
    assert (outcome_of(row), "open" in OUTCOMES) == ("open", True)
    with pytest.raises(ValueError, match="span"):
        outcome_of(Row(scheduled_at=BEGIN, occurrence_id="a", disposition="interval"))
