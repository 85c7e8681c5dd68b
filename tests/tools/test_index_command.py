"""`duly index`, and the commands that go by what it wrote: they say the same as without."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from duly import Cron, ManualClock, Scheduler
from duly.journal import Journal, read
from duly.projections import History, replay
from tests.projections.samples import DAY
from tests.projections.segmented import FIRST
from tests.tools.conftest import Duly


@pytest.fixture(scope="module")
def segmented(journal: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The eventful journal, copied into small segments."""
    path = tmp_path_factory.mktemp("segmented") / "journal"
    with Journal.open(path, segment_bytes=2_500) as copy:
        for record in read(journal):
            copy.append([record.entry], DAY)
    return path


@pytest.fixture
def both(segmented: Path, duly: Duly, tmp_path: Path) -> tuple[Path, Path]:
    """The journal without an index, and a copy with all of them."""
    copy = tmp_path / "copy"
    shutil.copytree(segmented, copy)
    answer = duly("index", copy, "--json")
    assert answer.code == 0
    assert [one["written"] for one in answer.document["indexes"]] == [True] * len(list(copy.glob("*.jsonl")))
    assert len(list(copy.glob("*.index"))) == len(list(copy.glob("*.jsonl"))) > 3
    return segmented, copy


def schedules(path: Path) -> list[str]:
    return [one.id for one in replay(path).schedules(deleted=True)]


def test_history_blame_and_log_say_the_same(both: tuple[Path, Path], duly: Duly):
    plain, copy = both
    for name in schedules(plain):
        for command in (
            ("history", name, "-j"),
            ("blame", name, "-j"),
            ("log", "-s", name),
            ("log", "-s", name, "-n", "3"),
            ("log", "-s", name, "-n", "2", "--kind", "OccurrenceAdmitted"),
            ("log", "-s", name, "--since", "20", "--until", "90"),
            ("log", "-s", name, "-s", schedules(plain)[0], "-n", "5"),
        ):
            now = ("--now", "2026-12-01T00:00:00Z") if command[0] == "history" else ()
            assert duly(*command, copy, *now, "--json").out.replace(str(copy), str(plain)) == (
                duly(*command, plain, *now, "--json").out
            )


def test_log_begins_and_ends_at_the_same_moments(both: tuple[Path, Path], duly: Duly):
    plain, copy = both
    moments = sorted({record.entry.at for record in read(plain)})
    name = schedules(plain)[0]
    for moment in moments[:: max(1, len(moments) // 12)]:
        for option in ("--since", "--until"):
            bounds = (option, moment.isoformat().replace("+00:00", "Z"))
            assert duly("log", copy, "-s", name, *bounds).out == duly("log", plain, "-s", name, *bounds).out


def test_every_occurrence_is_explained_in_the_same_words(both: tuple[Path, Path], duly: Duly):
    plain, copy = both
    told = 0
    for name in schedules(plain):
        history = History(name)
        for record in read(plain):
            history.apply(record.sequence, record.entry)
        for row in history.table()[::4]:
            ask = (name, row.scheduled_at.isoformat(), "--now", "2026-12-01T00:00:00Z", "--json", "-j")
            assert duly("explain", *ask, copy).out == duly("explain", *ask, plain).out
            told += 1
    assert told > 10


def test_an_unknown_schedule_is_refused_the_same(both: tuple[Path, Path], duly: Duly):
    plain, copy = both
    for command in (("log", "-s", "nightlx"), ("history", "nightlx", "-j"), ("explain", "nightlx", "2026-03-02", "-j")):
        with_index, without = duly(*command, copy), duly(*command, plain)
        assert (with_index.code, with_index.err) == (without.code, without.err)
        assert with_index.code == 2


def test_a_second_time_there_is_nothing_to_write(both: tuple[Path, Path], duly: Duly):
    _, copy = both
    before = {path.name: path.read_bytes() for path in copy.glob("*.index")}
    shown = duly("index", copy).out
    assert "up to date" in shown
    assert "written" not in shown
    assert {path.name: path.read_bytes() for path in copy.glob("*.index")} == before


def test_a_damaged_index_is_written_anew(both: tuple[Path, Path], duly: Duly):
    _, copy = both
    path = sorted(copy.glob("*.index"))[1]
    good = path.read_bytes()
    path.write_bytes(good[:40] + b"!" + good[41:])
    written = [one["written"] for one in duly("index", copy, "--json").document["indexes"]]
    assert written == [number == 1 for number in range(len(written))]
    assert path.read_bytes() == good


def test_a_journal_without_a_line_has_nothing_to_index(tmp_path: Path, duly: Duly):
    Journal.open(tmp_path / "new").close()
    assert duly("index", tmp_path / "new").out == "there is nothing to index\n"
    assert duly("index", tmp_path / "none").code == 3


def test_an_owner_that_is_asked_writes_the_indexes_of_complete_segments(segmented: Path, tmp_path: Path):
    copy = tmp_path / "copy"
    shutil.copytree(segmented, copy)
    last = max(record.entry.at for record in read(copy))
    name = schedules(copy)[0]
    with Scheduler.open(copy, clock=ManualClock(last), block_unevaluable=False) as scheduler:
        assert list(copy.glob("*.index")) == []
        page = scheduler.occurrences(name, limit=10_000)
        indexes = sorted(path.stem for path in copy.glob("*.index"))
        assert indexes == sorted(path.stem for path in copy.glob("*.jsonl"))[:-1]
        scheduler.create("fresh", Cron("0 0 * * *", zone="UTC"), target="t")
        assert [row.detail for row in scheduler.occurrences("fresh").items] == ["ScheduleCreated"]
        assert scheduler.explain("fresh", FIRST).disposition == "covered"
        assert scheduler.occurrences(name, limit=10_000) == page
