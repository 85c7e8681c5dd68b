"""Two records: equal, a copy that ends earlier, a salvage, two hosts, and what they decided differently."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from duly import Cron, ForeignJournal, ManualClock, Scheduler
from duly.journal import read, salvage
from duly.journal.entries import Entry, EntryLost, OccurrenceAdmitted, OccurrenceSkipped
from duly.scheduler.comparing import Difference, diff
from tests.scheduler.embedding import MINUTE, NINE, QUARTERLY, Program, at

Numbered = list[tuple[int, Entry]]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.close()


def morning(program: Program, *, until: int = 4) -> Numbered:
    """A morning with two schedules, polled every quarter of an hour; `b` overlaps now and then."""
    scheduler = program.open(task_slots=2)
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.create("b", QUARTERLY, target="x", misfire="skip")
    for minutes in range(15, 15 * (until + 1), 15):
        program.clock.advance(NINE + minutes * MINUTE - program.clock.now())
        for run in scheduler.poll(start=True).offered:
            if run.schedule_id == "a" or minutes % 30 == 0:
                scheduler.complete(run.id)
        for run in scheduler.runs(schedule_id="b", state="started"):
            if minutes % 30 == 0:
                scheduler.complete(run.id)
    scheduler.close()
    return [(one.sequence, one.entry) for one in read(program.path)]


def told(found: Difference) -> dict[str, tuple[str, str]]:
    return {f"{one.schedule_id}@{one.scheduled_at:%H:%M}": (str(one.a), str(one.b)) for one in found.occurrences}


def spoilt(entries: Sequence[tuple[int, Entry]], kind: type[Entry], nth: int = 0, **fields: Any) -> Numbered:
    """The entries with one of a kind changed."""
    places = [n for n, (_, entry) in enumerate(entries) if isinstance(entry, kind)]
    changed = list(entries)
    sequence, entry = changed[places[nth]]
    anything: Any = entry
    changed[places[nth]] = sequence, msgspec.structs.replace(anything, **fields)
    return changed


def test_a_record_is_equal_to_itself(program: Program):
    entries = morning(program)
    found = diff(program.path, program.path)
    assert (found.equal, found.same_journal, found.copies, found.divergence) == (True, True, True, None)
    assert found.entries_a == found.entries_b == len(entries)
    assert diff(entries, entries).equal


def test_a_copy_that_ends_earlier_says_where_the_other_goes_on(program: Program, tmp_path: Path):
    morning(program, until=2)
    backup = tmp_path / "backup"
    shutil.copytree(program.path, backup)
    before = len(list(read(backup)))
    scheduler = program.open(task_slots=2)
    scheduler.create("c", QUARTERLY, target="x")
    program.poll_at(scheduler, "09:45", start=True)
    scheduler.close()
    found = diff(backup, program.path)
    assert (found.equal, found.same_journal, found.decided_alike) == (False, True, True)
    assert found.divergence is not None
    assert (found.divergence.sequence, found.divergence.a) == (before + 1, None)
    assert (found.only_a, found.only_b) == ((), ())
    turned = diff(program.path, backup)
    assert turned.divergence is not None
    assert (turned.divergence.sequence, turned.divergence.b) == (before + 1, None)


def test_a_backup_that_went_its_own_way_parts_where_it_did(program: Program, tmp_path: Path):
    morning(program, until=2)
    fork = tmp_path / "fork"
    shutil.copytree(program.path, fork)
    before = len(list(read(fork)))
    scheduler = program.open(task_slots=2)
    program.poll_at(scheduler, "09:45", start=True)
    scheduler.close()
    clock = ManualClock(at("09:47"))
    with Scheduler.open(fork, clock=clock, task_slots=2) as other:
        other.poll(start=True)
    found = diff(program.path, fork)
    assert found.divergence is not None
    assert found.divergence.sequence == before + 1
    assert found.same_journal
    assert told(found) == {"b@09:45": ("admitted", "skipped: misfire")}


def test_a_salvage_says_what_is_lost(program: Program, tmp_path: Path):
    entries = morning(program)
    [segment] = program.path.glob("*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if b'"b"' in line and b"OccurrenceAdmitted" in line)
    lines[place] = b"x" * (len(lines[place]) - 1) + b"\n"
    damaged = tmp_path / "damaged"
    shutil.copytree(program.path, damaged)
    (damaged / segment.name).write_bytes(b"".join(lines))
    saved = tmp_path / "saved"
    salvaged = salvage(damaged, saved, at("12:00"))
    found = diff(program.path, saved)
    assert (found.same_journal, found.copies, found.divergence, found.lost_a) == (False, True, None, ())
    assert list(found.lost_b) == list(range(salvaged.lost[0].first, salvaged.lost[0].last + 1))
    assert not found.equal
    assert told(found)["b@09:15"] == ("admitted", "unaccounted")
    assert found.entries_a == found.entries_b == len(entries)
    whole = tmp_path / "whole"
    salvage(program.path, whole, at("12:00"))
    assert diff(program.path, whole).equal


def host(folder: Path, *, seconds: int, misfire: str = "skip", lateness: timedelta = MINUTE) -> Path:
    """A host that keeps two schedules through a morning and polls some seconds after each quarter."""
    clock = ManualClock(NINE + timedelta(seconds=seconds))
    fields: dict[str, Any] = {"misfire": misfire, "lateness": lateness}
    with Scheduler.open(folder, clock=clock, task_slots=2, actor=f"host {seconds}") as scheduler:
        scheduler.create("a", QUARTERLY, target="x", **fields)
        scheduler.create("b", Cron("20 * * * *", zone="UTC"), target="x")
        for _ in range(8):
            clock.advance(15 * MINUTE)
            for run in scheduler.poll(start=True).offered:
                scheduler.complete(run.id, result={"by": seconds})
    return folder


def test_two_hosts_that_decide_alike_are_equal_whatever_their_clocks_and_results(tmp_path: Path):
    found = diff(host(tmp_path / "a", seconds=2), host(tmp_path / "b", seconds=31))
    assert (found.equal, found.same_journal, found.copies, found.divergence) == (True, False, False, None)


def test_two_hosts_of_different_policies_differ_by_occurrence(tmp_path: Path):
    """The second is always too late by half a minute, so that it skips all of `a`, and `b` is as before."""
    found = diff(host(tmp_path / "a", seconds=2), host(tmp_path / "b", seconds=31, lateness=timedelta(seconds=10)))
    assert found.divergence is not None
    assert type(found.divergence.a).__name__ == type(found.divergence.b).__name__ == "ScheduleCreated"
    assert set(told(found).values()) == {("admitted", "skipped: misfire")}
    assert {name.partition("@")[0] for name in told(found)} == {"a"}
    assert len(found.occurrences) == 8


def test_what_only_the_longer_record_came_to_decide_is_no_difference(tmp_path: Path):
    shorter, longer = host(tmp_path / "a", seconds=2), host(tmp_path / "b", seconds=2)
    clock = ManualClock(at("11:15"))
    with Scheduler.open(longer, clock=clock, task_slots=2) as scheduler:
        scheduler.poll(start=True)
    found = diff([(n, entry) for n, entry in numbered(shorter)], longer)
    assert found.occurrences == ()
    assert found.until == at("11:00:02")


def numbered(path: Path) -> Numbered:
    return [(one.sequence, one.entry) for one in read(path)]


def test_a_schedule_that_one_record_has_alone_is_named(tmp_path: Path):
    one, other = tmp_path / "a", host(tmp_path / "b", seconds=2)
    clock = ManualClock(NINE)
    with Scheduler.open(one, clock=clock, task_slots=2) as scheduler:
        scheduler.create("c", QUARTERLY, target="x")
    found = diff(one, other)
    assert (found.only_a, found.only_b, found.equal) == (("c",), ("a", "b"), False)


EDITS: dict[str, tuple[type[Entry], dict[str, Any]]] = {
    "another disposition's reason": (OccurrenceSkipped, {"reason": "misfire"}),
    "another instant": (OccurrenceAdmitted, {"scheduled_at": at("09:16")}),
    "another target": (OccurrenceAdmitted, {"target": "z"}),
}


@pytest.mark.parametrize("case", EDITS)
@pytest.mark.parametrize("copies", [True, False])
def test_an_edited_entry_is_where_two_records_part(case: str, copies: bool, program: Program):
    entries = morning(program)
    kind, fields = EDITS[case]
    other = spoilt(entries, kind, **fields)
    if not copies:
        opened: Any = other[0][1]
        other[0] = other[0][0], msgspec.structs.replace(opened, host="elsewhere", pid=2, at=at("08:59"))
    found = diff(entries, other)
    sequence = next(one for one, entry in entries if isinstance(entry, kind))
    assert found.divergence is not None
    assert (found.divergence.sequence, found.copies, found.equal) == (sequence, copies, False)


def test_a_clock_reading_parts_copies_and_not_hosts(program: Program):
    entries = morning(program)
    other = spoilt(entries, OccurrenceAdmitted, at=at("09:15:01"))
    assert diff(entries, other).divergence is not None
    opened: Any = other[0][1]
    other[0] = other[0][0], msgspec.structs.replace(opened, host="elsewhere")
    assert diff(entries, other).divergence is None


def test_lost_entries_part_nothing_by_themselves(program: Program):
    entries = morning(program)
    other = [
        (n, EntryLost(at=at("12:00")) if type(entry).__name__ == "RunCompleted" else entry) for n, entry in entries
    ]
    found = diff(entries, other)
    assert (found.divergence, found.occurrences, found.equal) == (None, (), False)
    assert len(found.lost_b) > 2


def test_a_path_without_a_journal_is_refused(program: Program, tmp_path: Path):
    morning(program)
    with pytest.raises(ForeignJournal):
        diff(program.path, tmp_path / "nowhere")
