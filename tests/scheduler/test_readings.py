"""The readings of the clock in a record: steps back that nothing else tells of, and when nobody owned the journal."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from duly import Cron, ManualClock, Scheduler
from duly.scheduler.reporting import report_data

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def lives(path: Path, *spans: tuple[int, int]) -> Path:
    """A journal that is owned from one minute to another, and again."""
    for begin, end in spans:
        clock = ManualClock(AT + begin * MINUTE)
        with Scheduler.open(path, clock=clock) as scheduler:
            scheduler.declare("job", Cron("0 0 * * *", zone="UTC"), target="work")
            clock.advance((end - begin) * MINUTE)
            scheduler.poll()
    return path


def unowned(path: Path) -> list[tuple[float, float]]:
    return [((one.since - AT) / MINUTE, (one.until - AT) / MINUTE) for one in report_data(path).downtimes]


def test_what_an_owner_has_lived_through_is_no_downtime_of_a_clock_that_went_back(tmp_path: Path):
    path = lives(tmp_path / "journal", (0, 4), (1, 1), (6, 7))
    assert unowned(path) == [(4, 6)]


def test_a_step_back_within_the_tolerance_is_told(tmp_path: Path):
    report = report_data(lives(tmp_path / "journal", (0, 4), (1, 1), (6, 7)))
    assert (report.regressions, report.steps_back, report.largest_step_back) == (0, 1, 3 * MINUTE)


def test_a_step_that_has_an_entry_is_told_once(tmp_path: Path):
    report = report_data(lives(tmp_path / "journal", (0, 60), (10, 12), (70, 71)))
    assert (report.regressions, report.steps_back, report.largest_step_back) == (1, 0, timedelta())


def test_two_lives_with_a_pause_between_them_have_a_downtime(tmp_path: Path):
    assert unowned(lives(tmp_path / "journal", (0, 4), (9, 10), (10, 12))) == [(4, 9)]
