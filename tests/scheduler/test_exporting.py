"""An export is a small journal that is decided anew as the original was: an eventful record, and generated ones."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from duly import DefinitionError, ForeignJournal, ManualClock, Scheduler, UnknownSchedule
from duly.journal import Disk, Journal, Reader, RealDisk, verify
from duly.journal.entries import ClockJumped, Entry, EntryLost, OccurrenceAdmitted, RunCompleted, ScheduleRebaselined
from duly.projections import replay
from duly.projections.history import History as Occurrences
from duly.scheduler.accounting import account_of
from duly.scheduler.engine import check_lines, engine_check
from duly.scheduler.exporting import Export, export
from tests.scheduler.embedding import QUARTERLY, Program, at
from tests.scheduler.test_explained_histories import live
from tests.tools.recorded import make_recorded

NOW = datetime(2026, 5, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
Batches = list[tuple[int, tuple[Entry, ...]]]


class Told(NamedTuple):
    """What a record says of one occurrence; a run by its place among the runs."""

    scheduled_at: datetime
    disposition: str
    reason: str | None
    revision: int | None
    state: str | None
    superseded_by: datetime | None


def batches(path: Path, disk: Disk | None = None, *, last: int | None = None) -> Batches:
    found = [(line.first, line.entries) for line in Reader(path, disk=disk).lines()]
    return [one for one in found if last is None or one[0] <= last]


def numbered(record: Batches) -> list[tuple[int, Entry]]:
    return [(first + n, entry) for first, entries in record for n, entry in enumerate(entries)]


def told(record: Batches, schedule_id: str, since: datetime) -> list[Told]:
    history = Occurrences(schedule_id)
    for sequence, entry in numbered(record):
        history.apply(sequence, entry)
    return [
        Told(row.scheduled_at, row.disposition, row.reason, row.revision, row.run_state, row.superseded_by)
        for row in history.table()
        if row.scheduled_at > since
    ]


def figures(record: Batches, since: datetime) -> dict[str, tuple[Any, ...]]:
    counted = account_of(numbered(record), since=since + TICK)
    return {
        one.schedule_id: (dict(one.counts), one.unaccounted, one.double, one.foreign, one.due)
        for one in counted.schedules
    }


def covered_through(copy: Batches) -> datetime:
    covers = [one for _, one in numbered(copy) if isinstance(one, ScheduleRebaselined) and "export" in one.actor]
    return max((one.through for one in covers), default=datetime(1972, 1, 1, tzinfo=UTC))


def hold_alike(original: Batches, copy: Batches, found: Export) -> None:
    """The copy verifies by the caller; here it is decided anew, counted and told beside the original."""
    anew = check_lines(copy)
    whole = check_lines(original)
    before = check_lines([one for one in original if one[0] < found.first])
    assert (anew.divergences, anew.incomparable) == ((), whole.incomparable)
    left_out = 0 if found.whole_past else before.polls
    if set(found.kept) == {one.schedule_id for one in account_of(numbered(original)).schedules}:
        assert anew.polls == whole.polls - left_out
    since = covered_through(copy)
    names = {one: found.names.get(one, one) for one in found.kept}
    mine, theirs = figures(original, since), figures(copy, since)
    assert {names[one]: mine[one] for one in found.kept} == theirs
    for one, name in names.items():
        assert told(original, one, since) == told(copy, name, since)
    # What was left out is covered, so that nothing is missed in it.
    everything = figures(copy, datetime(1972, 1, 1, tzinfo=UTC))
    assert {one: figure[1:4] for one, figure in everything.items()} == {one: ([], [], []) for one in everything}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_recorded(tmp_path_factory.mktemp("recorded") / "journal")


@pytest.mark.parametrize("redact", [False, True])
@pytest.mark.parametrize(
    ("ends", "trimmed"),
    [
        ((None, None), False),
        ((None, 60), False),
        ((60, None), True),
        ((90, 120), True),
        ((150, 199), True),
        ((datetime(2026, 3, 29, 5, 0, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC)), True),
    ],
)
def test_a_slice_of_the_eventful_record_replays_as_it_was(
    ends: tuple[int | datetime | None, int | datetime | None],
    trimmed: bool,
    redact: bool,
    recorded: Path,
    tmp_path: Path,
):
    found = export(recorded, tmp_path / "copy", NOW, since=ends[0], until=ends[1], redact=redact)
    assert (found.faithful, found.divergences, found.whole_past) == (True, 0, not trimmed)
    assert verify(found.path).intact
    assert replay(found.path).anomaly_count == 0
    assert found.entries == replay(found.path).sequence
    assert (found.entries < found.last) == trimmed
    hold_alike(batches(recorded, last=found.last), batches(found.path), found)
    assert verify(recorded).intact


def test_an_export_of_everything_says_the_same_under_another_id(recorded: Path, tmp_path: Path):
    found = export(recorded, tmp_path / "copy", NOW)
    assert batches(found.path) == batches(recorded)
    assert replay(found.path).digest() == replay(recorded).digest()
    assert verify(found.path).journal_id != verify(recorded).journal_id


def test_a_slice_begins_and_ends_with_whole_batches(recorded: Path, tmp_path: Path):
    [(first, batch)] = [one for one in batches(recorded) if len(one[1]) > 20][:1]
    found = export(recorded, tmp_path / "copy", NOW, since=first + 3, until=first + 5)
    assert (found.first, found.last) == (first, first + len(batch) - 1)
    copy = dict(batches(found.path))
    assert [type(one) for one in copy[found.begins]] == [type(one) for one in batch]


def test_runs_keep_their_order_and_every_reference_leads_to_its_run(recorded: Path, tmp_path: Path):
    found = export(recorded, tmp_path / "copy", NOW, since=70)
    copy = dict(numbered(batches(found.path)))
    original = dict(numbered(batches(recorded)))
    ended = [one for one in copy.values() if isinstance(one, RunCompleted)]
    assert len(ended) > 3
    for one in ended:
        assert getattr(copy[one.run_id], "schedule_id", "") == one.schedule_id
    admitted = [one for _, one in sorted(copy.items()) if isinstance(one, OccurrenceAdmitted)]
    same = [one for _, one in sorted(original.items()) if isinstance(one, OccurrenceAdmitted)]
    assert admitted == [one for one in same if one in admitted]


@pytest.mark.parametrize("seed", range(16))
def test_slices_of_a_generated_history_replay_as_they_were(seed: int, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.ERROR, logger="duly")
    history, _ = live(seed)
    disk, path = history.world.memory, history.world.path
    total = numbered(batches(path, disk))[-1][0]
    for number, (since, until, redact) in enumerate(
        [
            (None, None, True),
            (total // 3, None, False),
            (2 * total // 3, None, True),
            (total // 2, 3 * total // 4, False),
        ]
    ):
        found = export(path, Path(f"/copy-{number}"), NOW, since=since, until=until, redact=redact, disk=disk)
        assert found.faithful, history.story(f"the export of {since} to {until}", "is another")
        hold_alike(batches(path, disk, last=found.last), batches(found.path, disk), found)
    history.close()


def test_most_slices_leave_the_past_out(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.ERROR, logger="duly")
    shapes: Counter[bool] = Counter()
    for seed in range(16):
        history, _ = live(seed)
        disk, path = history.world.memory, history.world.path
        total = numbered(batches(path, disk))[-1][0]
        shapes[export(path, "/copy", NOW, since=2 * total // 3, disk=disk).whole_past] += 1
        history.close()
    assert shapes[False] > 10


def test_a_schedule_alone_is_exported_where_no_other_one_stood_in_its_way(tmp_path: Path):
    program = Program(tmp_path / "program")
    scheduler = program.open(task_slots=8)
    for name in ("a", "b", "c"):
        scheduler.create(name, QUARTERLY, target=name)
    for minute in ("09:15", "09:30", "09:45"):
        for run in program.poll_at(scheduler, minute, start=True).offered:
            scheduler.complete(run.id)
    program.close()
    found = export(program.path, tmp_path / "b", NOW, schedules=["b"])
    assert (found.kept, found.faithful) == (("b",), True)
    assert {getattr(one, "schedule_id", "b") for _, one in numbered(batches(found.path))} == {"b"}
    original, copy = batches(program.path), batches(found.path)
    assert told(original, "b", at("09:00")) == told(copy, "b", at("09:00"))
    assert (replay(found.path).last_at, replay(found.path).highest_at) == (
        replay(program.path).last_at,
        replay(program.path).highest_at,
    )


def test_where_a_schedule_waited_for_others_they_are_exported_too(tmp_path: Path):
    program = Program(tmp_path / "program")
    scheduler = program.open(task_slots=1)
    for name in ("a", "b"):
        scheduler.create(name, QUARTERLY, target=name)
    program.poll_at(scheduler, "09:15", start=True)
    program.close()
    found = export(program.path, tmp_path / "copy", NOW, schedules=["b"])
    assert (found.kept, found.faithful) == (("a", "b"), True)


def test_what_is_left_out_leaves_its_clock_reading_where_the_record_depends_on_it(tmp_path: Path):
    program = Program(tmp_path / "program")
    scheduler = program.open(task_slots=8)
    for name in ("a", "b"):
        scheduler.create(name, QUARTERLY, target=name)
    program.poll_at(scheduler, "09:15")
    program.clock.advance(timedelta(hours=4))
    scheduler.pause("a")  # the highest reading, of a schedule that is left out
    program.clock.step(-timedelta(hours=2))
    scheduler.poll()
    program.close()
    found = export(program.path, tmp_path / "copy", NOW, schedules=["b"])
    assert (found.kept, found.faithful, found.divergences) == (("b",), True, 0)
    readings = [one for _, one in numbered(batches(found.path)) if isinstance(one, ClockJumped)]
    assert [one.ahead for one in readings] == [timedelta()]
    assert engine_check(found.path).ok


def test_where_an_entry_was_lost_no_instant_begins_and_none_ends(tmp_path: Path):
    """The reading of a salvage is later than all around it."""
    with Journal.open(tmp_path / "lost", now=NOW) as journal:
        for n in range(3):
            journal.append([ClockJumped(at=NOW + timedelta(hours=n), ahead=timedelta(hours=1))], NOW)
            journal.append([EntryLost(at=NOW + timedelta(hours=99))], NOW)
    total = replay(tmp_path / "lost").sequence
    found = export(tmp_path / "lost", tmp_path / "copy", NOW, since=NOW + timedelta(hours=2))
    assert (found.first, found.last) == (total - 1, total)
    assert replay(tmp_path / "lost", until=NOW + timedelta(hours=2)).sequence == total - 1
    assert replay(tmp_path / "lost", until=NOW + timedelta(hours=99)).sequence == total - 1
    export(tmp_path / "lost", tmp_path / "until", NOW, until=NOW + timedelta(hours=2))
    assert replay(tmp_path / "until").lost == 2


def test_a_record_that_lost_entries_is_exported_whole(recorded: Path, tmp_path: Path):
    with Journal.open(tmp_path / "lost", now=NOW) as journal:
        for _, batch in batches(recorded)[:12]:
            journal.append(batch, NOW)
        journal.append([EntryLost(at=NOW)], NOW)
        for _, batch in batches(recorded)[13:20]:
            journal.append(batch, NOW)
    total = replay(tmp_path / "lost").sequence
    found = export(tmp_path / "lost", tmp_path / "copy", NOW, since=total - 2, schedules=["nightly"], redact=True)
    assert (found.whole_past, found.entries) == (True, total)
    assert replay(found.path).lost == 1


def test_a_slice_of_nothing_and_a_schedule_that_is_not_there_are_refused(recorded: Path, tmp_path: Path):
    with pytest.raises(DefinitionError, match="holds no entry"):
        export(recorded, tmp_path / "copy", NOW, since=9_999)
    with pytest.raises(DefinitionError, match="holds no entry"):
        export(recorded, tmp_path / "copy", NOW, since=20, until=10)
    with pytest.raises(DefinitionError, match="naive"):
        export(recorded, tmp_path / "copy", NOW, since=datetime(2026, 1, 1))  # noqa: DTZ001 - that is what is refused
    with pytest.raises(UnknownSchedule, match="nightly"):
        export(recorded, tmp_path / "copy", NOW, schedules=["nihgtly"])
    assert not (tmp_path / "copy").exists()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "photo.jpg").write_bytes(b"")
    with pytest.raises(ForeignJournal, match="not empty"):
        export(recorded, tmp_path / "taken", NOW)


def test_an_export_can_be_opened_and_goes_on(recorded: Path, tmp_path: Path):
    found = export(recorded, tmp_path / "copy", NOW, since=60, redact=True)
    last = replay(found.path).last_at
    assert last is not None
    with Scheduler.open(found.path, task_slots=2, clock=ManualClock(last + timedelta(hours=1))) as scheduler:
        scheduler.poll()
    assert engine_check(found.path).ok


def test_nothing_is_left_behind_where_the_disk_is_full(recorded: Path, tmp_path: Path):
    class Full(RealDisk):
        def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(Exception, match="No space left"):
        export(recorded, tmp_path / "copy", NOW, disk=Full())
    assert not (tmp_path / "copy").exists()
    assert export(recorded, tmp_path / "copy", NOW).faithful
