"""A state as lines of JSON text, and back: what a checkpoint holds.

Rules:
- Decoding gives the state that was encoded, digest and all; definitions that schedules share are written once, and are
  shared again afterwards.
- A line holds so little that neither direction keeps other threads from running for long.
- Lines are only ever added to: a later version reads what an earlier one wrote. What a newer one wrote is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from duly.journal.checkpoint import CheckpointDoubted
from duly.journal.entries import Checkpoint, Definition, JournalOpened
from duly.journal.scanning import UNDECODABLE
from duly.projections.facts import Anomaly, Facts, Request
from duly.projections.ranges import Ranges
from duly.projections.runs import Run
from duly.projections.schedules import Block, ScheduleState

PART: Final = 256 * 1024
"""How many characters of the text a `Checkpoint` entry holds."""
SCHEMA: Final = 1
FEW: Final = 500
"""How many rows a line holds at most."""
FEW_RUNS: Final = 50
"""The same for runs, which may be large."""

T = TypeVar("T")


class _Head(msgspec.Struct, omit_defaults=True):
    """The first line."""

    schema: int
    sequence: int
    highest_at: datetime | None = None
    last_at: datetime | None = None
    newest_admission: str | None = None
    opened: JournalOpened | None = None
    opened_sequence: int = 0
    lost: int = 0
    anomaly_count: int = 0


class _ScheduleRow(msgspec.Struct, array_like=True, gc=False):
    id: str
    definition: int
    created_at: datetime
    consumed_through: datetime
    revision: int
    candidate: datetime | None
    paused: int
    disabled: int
    deleted: int
    block: Block | None
    exhausted: bool
    exhausted_through: datetime | None
    last_decided: datetime | None
    active: tuple[int, ...]
    kept: Ranges
    spent: list[tuple[datetime, int]] | None


class _RequestRow(msgspec.Struct, array_like=True):
    key: str
    request: Request


class _CreationRow(msgspec.Struct, array_like=True, gc=False):
    schedule_id: str
    key_hash: int


class _Rows(msgspec.Struct, omit_defaults=True):
    """Every other line: some of these. The last one says that it is the end."""

    definitions: Sequence[Definition] = ()
    schedules: Sequence[_ScheduleRow] = ()
    open: Sequence[Run] = ()
    recent: Sequence[Run] = ()
    pending: Sequence[int] = ()
    started: Sequence[int] = ()
    requests: Sequence[_RequestRow] = ()
    creations: Sequence[_CreationRow] = ()
    anomalies: Sequence[Anomaly] = ()
    end: bool = False


_head: Final = msgspec.json.Decoder(_Head)
_rows: Final = msgspec.json.Decoder(_Rows)


def encode_state(state: Facts) -> Iterator[bytes]:
    """The state as lines, without their newlines. The state must not change meanwhile."""
    encode = msgspec.json.Encoder().encode
    yield encode(
        _Head(
            schema=SCHEMA,
            sequence=state.sequence,
            highest_at=state.highest_at,
            last_at=state.last_at,
            newest_admission=state.newest_admission,
            opened=state.opened,
            opened_sequence=state.opened_sequence,
            lost=state.lost,
            anomaly_count=state.anomaly_count,
        )
    )
    numbers: dict[int, int] = {}
    for schedules in _few(state.by_id.values()):
        fresh: list[Definition] = []
        for each in schedules:
            if id(each.definition) not in numbers:
                numbers[id(each.definition)] = len(numbers)
                fresh.append(each.definition)
        yield encode(_Rows(definitions=fresh, schedules=[_row(each, numbers) for each in schedules]))
    for runs in _few(state.runs_open.values(), FEW_RUNS):
        yield encode(_Rows(open=runs))
    for runs in _few(state.runs_recent.values(), FEW_RUNS):
        yield encode(_Rows(recent=runs))
    for ids in _few(state.pending):
        yield encode(_Rows(pending=ids))
    for ids in _few(state.started):
        yield encode(_Rows(started=ids))
    for requests in _few(state.requests.items()):
        yield encode(_Rows(requests=[_RequestRow(key, request) for key, request in requests]))
    for creations in _few(state.creations.items()):
        yield encode(_Rows(creations=[_CreationRow(schedule_id, found) for schedule_id, found in creations]))
    for anomalies in _few(state.anomalies):
        yield encode(_Rows(anomalies=anomalies))
    yield encode(_Rows(end=True))


def _few(rows: Iterable[T], most: int = FEW) -> Iterator[list[T]]:
    found: list[T] = []
    for row in rows:
        found.append(row)
        if len(found) == most:
            yield found
            found = []
    if found:
        yield found


def _row(of: ScheduleState, numbers: dict[int, int]) -> _ScheduleRow:
    return _ScheduleRow(
        of.id,
        numbers[id(of.definition)],
        of.created_at,
        of.consumed_through,
        of.revision,
        of.candidate,
        of.paused,
        of.disabled,
        of.deleted,
        of.block,
        of.exhausted,
        of.exhausted_through,
        of.last_decided,
        of.active,
        of.kept,
        of.spent,
    )


def encode_parts(state: Facts) -> list[str]:
    """The state as the texts of `Checkpoint` entries, each of them short enough for a line of the journal."""
    text = b"\n".join(encode_state(state)).decode()
    return [text[begin : begin + PART] for begin in range(0, len(text), PART)]


def found_state(state: Facts, sequence: int, entry: Checkpoint) -> None:
    """Takes in a part of the state that a journal goes on from, where nothing is known of what was before: because it
    is archived, or lost. With the last part the state is there. Where everything is known, parts say nothing new."""
    if entry.part == 1 and entry.through == sequence - 1 > 0 and state.sequence in {0, state.lost}:
        state.founding = []
    elif not state.founding or entry.part != len(state.founding) + 1:
        return
    state.founding.append(entry.state)
    if entry.part < entry.parts:
        return
    lines = iter("".join(state.founding).encode().split(b"\n"))
    lost = state.lost
    state.founding = []
    fresh = Facts()
    try:
        load_state(fresh, lines)
    except CheckpointDoubted as doubt:
        state.mark_anomaly(sequence, entry, str(doubt), schedule_id=None)
        return
    vars(state).update(vars(fresh))
    state.lost += lost


def load_state(state: Facts, lines: Iterator[bytes]) -> None:
    """Fills an empty state with what the lines hold. CheckpointDoubted if they hold none; the state is good for nothing
    then."""
    try:
        _load_head(state, next(lines, b""))
        definitions: list[Definition] = []
        for line in lines:
            rows = _rows.decode(line)
            definitions.extend(state.shared(each) for each in rows.definitions)
            for row in rows.schedules:
                state.by_id[row.id] = _schedule(row, definitions)
            _load_others(state, rows)
            if rows.end:
                return
    except (*UNDECODABLE, IndexError) as error:
        raise CheckpointDoubted(f"the state in it cannot be decoded: {error}") from error
    raise CheckpointDoubted("the state in it is cut")


def _load_head(state: Facts, line: bytes) -> None:
    head = _head.decode(line)
    if head.schema > SCHEMA:
        raise CheckpointDoubted(f"a newer version of duly made it (schema {head.schema}, and this one reads {SCHEMA})")
    for name in _Head.__struct_fields__[1:]:
        setattr(state, name, getattr(head, name))


def _load_others(state: Facts, rows: _Rows) -> None:
    state.runs_open.update((run.id, run) for run in rows.open)
    state.runs_recent.update((run.id, run) for run in rows.recent)
    state.pending.update(dict.fromkeys(rows.pending))
    state.started.update(dict.fromkeys(rows.started))
    state.requests.update((row.key, row.request) for row in rows.requests)
    state.creations.update((row.schedule_id, row.key_hash) for row in rows.creations)
    state.anomalies.extend(rows.anomalies)


def _schedule(row: _ScheduleRow, definitions: Sequence[Definition]) -> ScheduleState:
    # Positional, as this is what opening with a checkpoint takes most of its time for.
    return ScheduleState(
        row.id,
        definitions[row.definition],
        row.created_at,
        row.consumed_through,
        row.revision,
        row.candidate,
        row.paused,
        row.disabled,
        row.deleted,
        row.block,
        row.exhausted,
        row.exhausted_through,
        row.last_decided,
        row.active,
        row.kept,
        row.spent,
    )
