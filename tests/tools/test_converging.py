"""A journal converges on a file: what is new, changed, gone and back again; and the plan says all of it before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duly import Cron, ManualClock, Scheduler
from duly.projections import replay
from duly.tools.converging import Change, converge, plan, provenance
from duly.tools.schedule_file import ScheduleFile, read_schedule_file
from tests.tools.conftest import Duly

START = datetime(2026, 3, 2, 0, 0, tzinfo=UTC)
A = "0 1 * * *  job a\n"
B = "0 2 * * *  job b\n"


class Keeping:
    """A crontab and a journal, with a clock."""

    def __init__(self, folder: Path) -> None:
        self.path, self.journal = folder / "crontab", folder / "j"
        self.clock = ManualClock(START)

    def read(self, text: str) -> ScheduleFile:
        self.path.write_text(text, encoding="utf-8")
        return read_schedule_file(self.path, zone="UTC")

    def open(self) -> Scheduler:
        return Scheduler.open(self.journal, clock=self.clock)

    def planned(self, text: str) -> tuple[Change, ...]:
        file = self.read(text)
        origin = provenance(self.journal, file.source)
        changes, refused = plan(replay(self.journal), file, origin, self.clock.now())
        assert refused == ()
        return changes

    def __call__(self, text: str) -> dict[str, str]:
        """Makes it so; what became of each. The plan must have said the same."""
        if not self.journal.exists():
            self.open().close()
        planned = self.planned(text)
        with self.open() as scheduler:
            changes, refused = converge(scheduler, self.read(text), self.clock.now())
        assert refused == ()
        assert [(one.schedule_id, one.outcome) for one in planned] == [
            (one.schedule_id, one.outcome) for one in changes
        ]
        return {one.schedule_id: one.outcome for one in changes}

    def states(self) -> dict[str, bool]:
        """Which schedules are on."""
        return {one.id: not one.disabled for one in replay(self.journal).schedules()}


@pytest.fixture
def keep(tmp_path: Path) -> Keeping:
    return Keeping(tmp_path)


def test_what_is_new_is_created_what_has_changed_is_edited_and_the_rest_is_let_be(keep: Keeping):
    assert keep(A + B) == {"job-a": "created", "job-b": "created"}
    assert keep(A + B) == {"job-a": "unchanged", "job-b": "unchanged"}
    assert keep(A.replace("0 1", "5 1") + B) == {"job-a": "edited", "job-b": "unchanged"}


def test_repeating_it_records_nothing(keep: Keeping):
    keep(A + B)
    keep(A)
    before = replay(keep.journal)
    keep(A)
    after = replay(keep.journal)
    assert after.sequence - before.sequence == 2  # opened and closed


def test_what_has_vanished_is_disabled_and_comes_back_when_it_returns(keep: Keeping):
    keep(A + B)
    assert keep(A) == {"job-a": "unchanged", "job-b": "disabled"}
    assert keep.states() == {"job-a": True, "job-b": False}
    assert keep(A) == {"job-a": "unchanged"}
    assert keep(A + B) == {"job-a": "unchanged", "job-b": "enabled"}
    assert keep(A) == {"job-a": "unchanged", "job-b": "disabled"}
    assert keep(A + B.replace("0 2", "5 2")) == {"job-a": "unchanged", "job-b": "edited and enabled"}
    assert keep.states() == {"job-a": True, "job-b": True}


def test_what_an_operator_has_switched_off_stays_off(keep: Keeping):
    keep(A + B)
    with keep.open() as scheduler:
        scheduler.disable("job-b", actor="ann")
    assert keep(A + B) == {"job-a": "unchanged", "job-b": "unchanged"}
    keep(A)
    keep(A + B)
    assert keep.states() == {"job-a": True, "job-b": False}


def test_schedules_of_others_are_let_be(keep: Keeping):
    keep(A)
    with keep.open() as scheduler:
        scheduler.create("theirs", Cron("0 3 * * *", zone="UTC"), target="theirs", actor="ann")
    assert keep(A) == {"job-a": "unchanged"}
    assert keep.states() == {"job-a": True, "theirs": True}


def test_what_an_import_of_the_same_file_brought_belongs_to_the_file(keep: Keeping, duly: Duly):
    keep.read(A + B)
    duly("import", keep.path, "-j", keep.journal, "--zone", "UTC", "--actor", "ann")
    keep.clock.advance(timedelta(days=3650))  # the import was by the clock of this machine
    assert keep(A) == {"job-a": "unchanged", "job-b": "disabled"}


def test_an_id_that_was_deleted_refuses_the_whole_file(keep: Keeping):
    keep(A)
    with keep.open() as scheduler:
        scheduler.delete("job-a")
    file = keep.read(A + B)
    changes, refused = plan(replay(keep.journal), file, provenance(keep.journal, file.source), keep.clock.now())
    with keep.open() as scheduler:
        assert converge(scheduler, file, keep.clock.now()) == ((), refused)
    assert ([one.outcome for one in changes], [one.line for one in refused]) == (["created"], [1])
    assert keep.states() == {}


def test_a_one_shot_that_is_past_refuses_the_whole_file_until_it_is_there(keep: Keeping):
    keep.clock.advance(timedelta(days=1))
    text = '[schedules.{}]\ncommand = "x"\n{}\n'
    daily, past = text.format("b", 'cron = "@daily"'), text.format("a", "once = 2026-03-02T00:00:00Z")
    keep.path = keep.path.with_suffix(".toml")
    file = keep.read(past + daily)
    with keep.open() as scheduler:
        changes, refused = converge(scheduler, file, keep.clock.now())
        assert (changes, [one.line for one in refused], scheduler.schedules()) == ((), [1], ())
    keep.clock.step(-timedelta(days=2))
    with keep.open() as scheduler:
        assert len(converge(scheduler, file, keep.clock.now())[0]) == 2
        keep.clock.advance(timedelta(days=3))
        scheduler.poll()
        changes, refused = converge(scheduler, file, keep.clock.now())
    assert ([one.outcome for one in changes], refused) == (["unchanged", "unchanged"], ())


def test_a_file_that_says_nothing_disables_nothing(keep: Keeping):
    keep(A)
    keep(A + B)
    file = keep.read("# nothing\n")
    _, planned = plan(replay(keep.journal), file, provenance(keep.journal, file.source), keep.clock.now())
    with keep.open() as scheduler:
        changes, refused = converge(scheduler, file, keep.clock.now())
        told = "there is no schedule in it, and that would disable all 2 that it brought"
        assert (changes, refused, [one.message for one in refused]) == ((), planned, [told])
        scheduler.disable("job-a")
        scheduler.disable("job-b")
        assert converge(scheduler, file, keep.clock.now()) == ((), ())


def test_a_plan_says_which_catch_ups_an_edit_discards(keep: Keeping):
    keep(A + B)
    keep.clock.advance(timedelta(days=1, hours=1, minutes=30))
    instants = tuple(START + timedelta(hours=hour) for hour in (1, 25))
    edited = Change("job-a", 1, "edited", ("trigger",), instants)
    assert keep.planned(A.replace("0 1", "0 5") + B) == (edited, Change("job-b", 2, "unchanged"))
    gone = Change("job-a", 0, "disabled", (), instants)
    assert keep.planned(B) == (Change("job-b", 1, "unchanged"), gone)


def test_a_plan_counts_no_further_than_a_poll_would(keep: Keeping):
    keep("* * * * *  job\n")
    keep.clock.advance(timedelta(days=1))
    [change] = keep.planned("*/5 * * * *  job\n")
    assert (change.outcome, change.more, change.discards) == ("edited", True, (START + timedelta(days=1),))


def test_a_held_candidate_is_among_what_is_discarded(keep: Keeping):
    keep(A)
    with Scheduler.open(keep.journal, clock=keep.clock, task_slots=1) as scheduler:
        scheduler.start(scheduler.run_now(target="hog").id)
        keep.clock.advance(timedelta(hours=1))
        scheduler.poll()
        [change] = keep.planned(A.replace("job a", "job a").replace("0 1", "0 5"))
    assert change.discards == (START + timedelta(hours=1),)
