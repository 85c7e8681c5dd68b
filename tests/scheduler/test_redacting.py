"""Redaction: a marker in every text of every kind of entry is found nowhere in the export, whatever kinds are added."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from duly import Cron, ManualClock, Scheduler, Target, occurrence
from duly.journal import Journal, read, verify
from duly.journal.entries import (
    ENTRY_CLASSES,
    Checkpoint,
    CronRule,
    Definition,
    Entry,
    EntryLost,
    FromOccurrence,
    JournalOpened,
    Literally,
    OccurrenceAdmitted,
    RunAbandoned,
    RunNoted,
    ScheduleBlocked,
    ScheduleCreated,
    ScheduleEdited,
)
from duly.projections import State, replay
from duly.scheduler.decisions.recovery import AT_OPENING, EFFECTS
from duly.scheduler.engine import engine_check
from duly.scheduler.exporting import export
from duly.scheduler.redacting import TRIGGERS, Redactor

AT = datetime(2026, 3, 1, tzinfo=UTC)
NUMBER, FRACTION = 987654321, 98765.4321
DEEPEST = 3
Type: Any = msgspec.inspect


class Planter:
    """Makes a value of any type, with a marker of its own in each of its texts and keys."""

    def __init__(self) -> None:
        self._count = count(1)

    def marker(self) -> str:
        return f"SECRET{next(self._count)}"

    def value(self, info: Any, depth: int = 0) -> Any:  # noqa: PLR0911, PLR0912 - one arm for each type
        match info:
            case Type.StrType():
                return self.marker()
            case Type.AnyType():
                return {self.marker(): [self.marker(), NUMBER, FRACTION, True, None, {self.marker(): self.marker()}]}
            case Type.LiteralType():
                return info.values[0]
            case Type.BoolType():
                return True
            case Type.IntType():
                return 7
            case Type.DateTimeType():
                return AT
            case Type.TimeDeltaType():
                return timedelta(seconds=5)
            case Type.NoneType():
                return None
            case Type.VarTupleType():
                return tuple(self.value(one, depth) for one in self.choices(info.item_type, depth))
            case Type.DictType():
                return {self.marker(): self.value(one, depth) for one in self.choices(info.value_type, depth)}
            case Type.UnionType():
                return self.value(self.choices(info, depth)[0], depth)
            case Type.StructType() if info.cls in TRIGGERS:
                return CronRule("0 0 * * *", "UTC")  # triggers are kept, and tested by themselves
            case Type.StructType():
                return info.cls(**{one.name: self.value(one.type, depth + 1) for one in info.fields})
            case _:
                raise AssertionError(f"nobody has said how to make {info}")

    def choices(self, info: Any, depth: int) -> list[Any]:
        """The members of a union, without None, and without what would go on for ever."""
        if not isinstance(info, Type.UnionType):
            return [info]
        found = [one for one in info.types if not isinstance(one, Type.NoneType)]
        if depth >= DEEPEST:
            found = [one for one in found if getattr(one, "cls", None) in (Literally, FromOccurrence)] or found
        return found


def planted(kind: type[Entry]) -> Entry:
    entry: Entry = Planter().value(msgspec.inspect.type_info(kind))
    return entry


def texts_in(kind: type[Entry]) -> int:
    info: Any = msgspec.inspect.type_info(kind)
    return sum("StrType" in repr(field.type) or "AnyType" in repr(field.type) for field in info.fields)


@pytest.mark.parametrize("kind", ENTRY_CLASSES, ids=lambda kind: kind.__name__)
def test_no_text_of_any_kind_of_entry_is_left(kind: type[Entry]):
    entry = planted(kind)
    before = msgspec.json.encode(entry)
    assert len(set(re.findall(rb"SECRET\d+", before))) >= texts_in(kind)
    redacted = Redactor([]).redacted(entry)
    after = msgspec.json.encode(redacted)
    assert b"SECRET" not in after
    assert str(NUMBER).encode() not in after
    assert str(FRACTION).encode() not in after
    assert shape(msgspec.json.decode(after)) == shape(msgspec.json.decode(before))


def shape(value: object) -> object:
    """The value's types, without keys' names, texts and numbers."""
    if isinstance(value, dict):
        return [shape(one) for one in cast("dict[str, object]", value).values()]
    if isinstance(value, list):
        return [shape(one) for one in cast("list[object]", value)]
    return type(value).__name__


def test_no_marker_is_anywhere_in_the_exported_files(tmp_path: Path):
    entries = [planted(kind) for kind in ENTRY_CLASSES if kind not in (EntryLost, Checkpoint)]
    with Journal.open(tmp_path / "journal", now=AT) as journal:
        for entry in entries:
            journal.append([entry], AT)
    found = export(tmp_path / "journal", tmp_path / "copy", AT, redact=True)
    assert found.entries == len(entries)
    assert verify(found.path).intact
    assert b"SECRET" in content(tmp_path / "journal")
    assert b"SECRET" not in content(found.path)


def content(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_equal_values_have_equal_names_wherever_they_stand():
    redactor = Redactor(["a"])
    one = redactor.redacted(RunNoted(at=AT, run_id=1, data={"key": "ann", "n": [5, 5.0, 6, True]}))
    two = redactor.redacted(opened("ann"))
    three = redactor.redacted(RunNoted(at=AT, run_id=1, data={"key": "bob", "n": [5]}))
    assert one.data == {"key-1": "data-1", "key-2": [1, 2.5, 3, True]}
    assert (two.actor, three.data) == ("data-1", {"key-1": "data-2", "key-2": [1]})


def opened(actor: str) -> JournalOpened:
    return JournalOpened(
        at=AT,
        host="db7",
        pid=4711,
        duly="0.1.0",
        croniter="6.2.4",
        tzdata="2026.1",
        python="3.13.1",
        task_slots=1,
        batch=9,
        clock_tolerance=timedelta(),
        actor=actor,
    )


def test_versions_and_settings_stay_and_the_machine_does_not():
    redacted = Redactor([]).redacted(opened(""))
    assert redacted == msgspec.structs.replace(opened(""), host="host-1", pid=1)


def test_names_of_schedules_sort_as_the_schedules_do():
    ids = ["zeta", "a", "Z", "b.1", "b:1", *(f"n{number}" for number in range(20))]
    names = Redactor(ids).schedules
    assert [names[one] for one in sorted(ids)] == sorted(names.values())


def test_what_the_engine_tells_decisions_apart_by_stays():
    redactor = Redactor(["a"])
    block = ScheduleBlocked(at=AT, schedule_id="a", cause="trigger", reason="Mars/Olympus", note=AT_OPENING)
    gone = RunAbandoned(at=AT, run_id=1, cause="crash", detail=EFFECTS)
    assert redactor.redacted(block).note == AT_OPENING
    assert redactor.redacted(block).reason == "reason-1"
    assert redactor.redacted(gone).detail == EFFECTS


def test_a_trigger_stays_as_it_is_and_an_edit_names_what_it_changed():
    planter = Planter()
    edited: Any = planter.value(msgspec.inspect.type_info(ScheduleEdited))
    edited = msgspec.structs.replace(edited, changed=("target", "lateness"))
    redacted = Redactor([]).redacted(edited)
    assert redacted.definition.trigger == CronRule("0 0 * * *", "UTC")
    assert redacted.changed == ("target", "lateness")


def test_an_input_that_refers_to_its_occurrence_resolves_to_what_is_recorded(tmp_path: Path):
    clock = ManualClock(AT)
    given = {
        "report.day": occurrence.scheduled_at,
        "report.name": "revenue of ACME",
        "whole": [occurrence.occurrence_id, {"id": occurrence.schedule_id, "of": "acme", "n": 12}],
        "other": "acme",
    }
    with Scheduler.open(
        tmp_path / "journal", clock=clock, targets=lambda name: Target(name, "rev-ACME", {"HOME": "/srv/acme"})
    ) as scheduler:
        scheduler.create("acme", Cron("* * * * *", zone="UTC"), target="bill", input=given, limits={"timeout": 30})
        clock.advance(timedelta(minutes=1))
        scheduler.poll(start=True)
    found = export(tmp_path / "journal", tmp_path / "copy", AT, redact=True)
    assert (found.faithful, found.polls, found.names) == (True, 1, {"acme": "schedule-1"})
    assert engine_check(found.path).ok
    raw = content(found.path)
    assert [word for word in (b"acme", b"ACME", b"bill", b"revenue", b"HOME") if word in raw] == []
    state = replay(found.path)
    [run] = state.runs()
    instant = "2026-03-01T00:01:00Z"
    assert run.occurrence_id == f"schedule-1@{instant}"
    values = [*run.input.values()]
    assert values[0] == dict(zip(values[0], [instant, "value-1"], strict=True))
    assert values[1][0] == run.occurrence_id
    assert [*values[1][1].values()][:2] == ["schedule-1", "schedule-1"]
    assert values[2] == "schedule-1"
    assert isinstance(state, State)


def test_a_schedule_s_entries_stay_together_under_its_name(tmp_path: Path):
    redactor = Redactor(["acme", "beta"])
    created: Any = Planter().value(msgspec.inspect.type_info(ScheduleCreated))
    admitted: Any = Planter().value(msgspec.inspect.type_info(OccurrenceAdmitted))
    names = {
        redactor.redacted(msgspec.structs.replace(one, schedule_id="beta")).schedule_id for one in (created, admitted)
    }
    assert names == {"schedule-2"}


def test_what_is_called_as_a_field_of_a_definition_is_redacted_as_anything_else_is(tmp_path: Path):
    words = Definition.__struct_fields__
    clock = ManualClock(AT)
    with Scheduler.open(tmp_path / "journal", clock=clock, targets=Target) as scheduler:
        for word in (*words, "zz", "0.9"):
            given = {"a": [word for word in words if word != "input"]}
            scheduler.create(word, Cron("*/5 * * * *", zone="UTC"), target=word, input=given, actor=word, note=word)
        scheduler.edit("trigger", expected_revision=1, target="zz", misfire="skip", actor="limits")
        for _ in range(3):
            clock.advance(timedelta(minutes=5))
            scheduler.poll()
    found = export(tmp_path / "journal", tmp_path / "copy", AT, redact=True)
    assert found.faithful
    assert list(found.names) == sorted((*words, "zz", "0.9"))
    assert list(found.names.values()) == sorted(set(found.names.values()))
    state = replay(found.path)
    assert {schedule.id for schedule in state.schedules()} == set(found.names.values())
    texts = [text for record in read(found.path) for text in texts_of(record.entry)]
    assert sorted(set(texts) & set(words)) == []


def texts_of(entry: Entry) -> list[str]:
    """All texts in the entry, but for reasons and for the names of fields: its own, and those that an edit changed."""
    found: list[str] = []

    def collect(value: object) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            for key, member in cast("dict[str, object]", value).items():
                collect(key)
                collect(member)
        elif isinstance(value, list | tuple):
            for item in cast("list[object]", value):
                collect(item)
        elif isinstance(value, msgspec.Struct):
            for name in value.__struct_fields__:
                if name not in ("changed", "reason"):
                    collect(getattr(value, name))

    collect(entry)
    return found
