"""What ails a journal: each trouble with the command that mends it, or that shows what only a person can mend.

Rules kept here: the journal is only read; a remedy is a whole command line that works as it is printed; what a running
owner mends by itself within minutes is no trouble yet.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from duly import journal as journals
from duly.journal import RealDisk
from duly.journal.entries import ClockJumped, ClockRegressed, JournalClosed, JournalOpened
from duly.journal.mark import read_mark
from duly.journal.operating_system import NETWORK_FILE_SYSTEMS
from duly.projections import Run, State
from duly.projections.schedules import ScheduleState
from duly.scheduler.decisions.occurrences import next_instant
from duly.scheduler.decisions.turns import deadline
from duly.scheduler.errors import TriggerError
from duly.scheduler.instants import describe_instant
from duly.scheduler.triggers import trigger_of
from duly.scheduler.zones import tzdata_version
from duly.tools.describe import describe_error
from duly.tools.moments import describe_duration
from duly.tools.wording import command_about, counted, lost_entries

Gravity: TypeAlias = Literal["note", "bad", "help"]
"""`note`: something to know; `bad`: the journal or its machine is not as it should be; `help`: a schedule is starving
or blocked."""

PATIENCE: Final = timedelta(minutes=10)
"""How long after its deadline an occurrence may be undecided."""
LONG_RUN: Final = timedelta(days=1)
FAILURES: Final = 3
"""How many runs in a row have to come to nothing."""
LEAST_FREE: Final = 256 * 1024 * 1024
"""Bytes: four segments."""
TOLERANCE: Final = timedelta(minutes=5)
PASSING_FILE_SYSTEMS: Final = {
    "tmpfs": "a file system in memory",
    "ramfs": "a file system in memory",
    "overlay": "a container's own layer",
}
"""Where an fsync is no promise beyond a restart of the machine or the container."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as it should be, and the command that mends or shows it."""

    code: str
    gravity: Gravity
    text: str
    remedy: str
    schedule_id: str | None = None
    run_id: int | None = None


def examine(path: Path | str, now: datetime, *, long_run: timedelta = LONG_RUN) -> tuple[Trouble, ...]:
    """The troubles of the journal at `path`, as of `now`. Raises the journal's errors where there is none to read."""
    folder = Path(path)
    found = journals.verify(folder)
    place = shlex.quote(str(folder))
    troubles = list(_of_the_machine(folder, place))
    if found.damage is not None:
        text = f"the journal is damaged: {found.damage.reason}"
        troubles.append(Trouble(code="damaged", gravity="bad", text=text, remedy=_salvage(folder)))
        return tuple(troubles)
    mark = read_mark(RealDisk(), folder)
    if found.unfinished is not None:
        text = f"a torn tail of {found.unfinished.size} bytes: the next owner cuts it off, and keeps a copy"
        troubles.append(Trouble(code="torn", gravity="bad", text=text, remedy=f"duly ctl settle -j {place}"))
    elif mark is None or mark.sequence < found.sequence:
        at = "is missing or torn" if mark is None else f"stands at {mark.sequence}"
        text = (
            f"HEAD {at}, and the record ends at {found.sequence}: its end is not proven durable, and newer entries may "
            f"be gone. First copy the folder, and compare with your last anchor: duly verify {place} --expect ANCHOR. "
            "Then make this its end"
        )
        troubles.append(Trouble(code="head-behind", gravity="bad", text=text, remedy=f"duly ctl settle -j {place}"))
    state, last = State(), None
    for record in journals.Reader(folder, partial=True).records():
        troubles.extend(_of_the_past(record.sequence, record.entry, place))
        state.apply(record.sequence, record.entry)
        last = record.entry
    troubles.extend(_of_the_record(state, place))
    troubles.extend(_of_the_versions(state))
    troubles.extend(_of_the_clock(state, now))
    living = [schedule for schedule in state.by_id.values() if not schedule.deleted]
    ailing = [trouble for schedule in living for trouble in troubles_of(schedule, now, place)]
    if isinstance(last, JournalClosed) and any(trouble.code == "starving" for trouble in ailing):
        troubles.append(_without_owner(last, place))
    troubles.extend(ailing)
    troubles.extend(_of_failures(state, living, place))
    troubles.extend(_of_runs(state, now, long_run, place))
    return tuple(troubles)


def _salvage(folder: Path) -> str:
    return f"duly salvage {shlex.quote(str(folder))} --to {shlex.quote(f'{folder}-salvaged')}"


def _of_the_machine(folder: Path, place: str) -> Iterator[Trouble]:
    kind = RealDisk().file_system(folder)
    if kind in NETWORK_FILE_SYSTEMS:
        text = f"it is on a network file system ({kind}), where a lock keeps nobody out: copy it to a local disk"
        yield Trouble(code="file-system", gravity="bad", text=text, remedy=f"cp -R {place} .")
    elif kind in PASSING_FILE_SYSTEMS:
        text = f"it is on {PASSING_FILE_SYSTEMS[kind]} ({kind}), and is gone with it: keep it on a disk, or a volume"
        yield Trouble(code="passing", gravity="note", text=text, remedy=f"cp -R {place} .")
    usage = shutil.disk_usage(folder)
    if usage.free < LEAST_FREE:
        text = f"only {usage.free // 2**20:,} MiB are free on its disk: a full disk stops the scheduler"
        yield Trouble(code="disk-full", gravity="bad", text=text, remedy=f"df -h {place}")


def _of_the_past(sequence: int, entry: journals.Entry, place: str) -> Iterator[Trouble]:
    shown = f"duly log {place} --since {sequence} --until {sequence}"
    if isinstance(entry, JournalOpened):
        for torn in entry.torn:
            text = f"a torn tail of {torn.size} bytes was cut off, and is kept in {torn.kept}"
            yield Trouble(code="torn-before", gravity="note", text=text, remedy=shown)
    elif isinstance(entry, ClockRegressed):
        back = describe_duration(entry.highest - entry.at)
        text = f"the clock went back by {back}, at {describe_instant(entry.at)}"
        yield Trouble(code="clock-regressed", gravity="note", text=text, remedy=shown)
    elif isinstance(entry, ClockJumped):
        text = f"the clock ran ahead by {describe_duration(entry.ahead)}, at {describe_instant(entry.at)}"
        yield Trouble(code="clock-jumped", gravity="note", text=text, remedy=shown)


def _of_the_record(state: State, place: str) -> Iterator[Trouble]:
    if state.anomalies:
        first = state.anomalies[0]
        more = f", and {counted(state.anomaly_count - 1, 'more', 'more')}" if state.anomaly_count > 1 else ""
        text = f"entry {first.sequence} ({first.kind}) contradicts the record: {first.text}{more}"
        yield Trouble(code="contradiction", gravity="bad", text=text, remedy=f"duly verify {place}")
    if state.lost:
        text = f"{lost_entries(state.lost)} before it was salvaged: what was decided there is not known"
        yield Trouble(code="lost", gravity="note", text=text, remedy=f"duly log {place} --kind EntryLost")


def _of_the_versions(state: State) -> Iterator[Trouble]:
    opened = state.opened
    if opened is None or _version(opened.tzdata) <= _version(tzdata_version()):
        return
    text = f"tzdata {tzdata_version()} here is older than {opened.tzdata}, which the journal's last owner had"
    remedy = f"{shlex.quote(sys.executable)} -m pip install {shlex.quote(f'tzdata>={opened.tzdata}')}"
    yield Trouble(code="tzdata-old", gravity="bad", text=text, remedy=remedy)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def _of_the_clock(state: State, now: datetime) -> Iterator[Trouble]:
    highest = state.highest_at
    if highest is not None and highest - now > TOLERANCE:
        ahead = _rounded(highest - now)
        text = f"the clock reads {describe_instant(now)}, and the record {ahead} more: one of the two is wrong"
        yield Trouble(code="clock-behind", gravity="bad", text=text, remedy="date -u")


def troubles_of(schedule: ScheduleState, now: datetime, place: str) -> Iterator[Trouble]:
    """What ails one schedule, as of `now`; `place` is the journal's folder as it is typed."""
    name = schedule.id
    through = describe_instant(now.replace(microsecond=0))
    moved = command_about(name, "ctl rebaseline", place, through)
    if schedule.block is not None:
        block = schedule.block
        text = f"{name} is blocked since #{block.sequence}, by {block.cause}: {block.reason}"
        remedy = command_about(name, "ctl unblock", place)
        yield Trouble(code="blocked", gravity="help", text=text, remedy=remedy, schedule_id=name)
        return
    if schedule.consumed_through - now > TOLERANCE and not schedule.exhausted:
        text = f"{name} is decided through {describe_instant(schedule.consumed_through)}, which lies ahead"
        yield Trouble(code="watermark-ahead", gravity="help", text=text, remedy=moved, schedule_id=name)
    elif schedule.live:
        waits = _waits_since(schedule, now)
        if waits is not None:
            text = f"{name}: {describe_instant(waits)} is due and undecided. Start its host; or give up what is due"
            yield Trouble(code="starving", gravity="help", text=text, remedy=moved, schedule_id=name)


def _without_owner(closed: JournalClosed, place: str) -> Trouble:
    by = f", when {closed.actor} closed it" if closed.actor else ""
    text = (
        f"nobody has owned the journal since {describe_instant(closed.at.replace(microsecond=0))}{by}: start its host"
    )
    return Trouble(code="no-owner", gravity="help", text=text, remedy=f"duly log {place} -n 1")


def _of_failures(state: State, schedules: Iterable[ScheduleState], place: str) -> Iterator[Trouble]:
    """The schedules of which the last runs that ended, `FAILURES` or more, came to nothing."""
    ended: dict[str, list[Run]] = {}
    for run in state.runs():
        if run.schedule_id is not None and run.state in ("completed", "failed", "abandoned"):
            ended.setdefault(run.schedule_id, []).append(run)
    for schedule in schedules:
        runs = ended.get(schedule.id, [])
        row = list(takewhile(lambda run: run.state != "completed", reversed(runs)))
        if len(row) < FAILURES:
            continue
        many = f"all of its last {len(row)} runs" if len(row) == len(runs) else f"its last {len(row)} runs"
        error = describe_error(row[0].error) if row[0].error is not None else "abandoned"
        text = f"{schedule.id}: {many} came to nothing, the latest, run {row[0].id}, with: {error}"
        remedy = f"duly runs {place} -s {shlex.quote(schedule.id)} -n {len(row)}"
        yield Trouble(
            code="failing", gravity="bad", text=text, remedy=remedy, schedule_id=schedule.id, run_id=row[0].id
        )


def _rounded(duration: timedelta) -> str:
    return describe_duration(timedelta(seconds=int(duration.total_seconds())))


def _waits_since(schedule: ScheduleState, now: datetime) -> datetime | None:
    """The oldest instant that is undecided, or held, long after its deadline; None if there is none."""
    waits = schedule.candidate
    if waits is None:
        try:
            source = trigger_of(schedule.definition.trigger)
            waits = next_instant(source, schedule.consumed_through, schedule.kept)
        except TriggerError:  # only its host can tell
            return None
    overdue = waits is not None and now - deadline(schedule, waits) > PATIENCE
    return waits if overdue else None


def _of_runs(state: State, now: datetime, long_run: timedelta, place: str) -> Iterator[Trouble]:
    for run_id, run in sorted(state.runs_open.items()):
        if run.state != "interrupted":
            continue
        text = (
            f"run {run_id} of {run.schedule_id or run.target} was interrupted, and waits to be resumed by its host "
            f"(duly run --resume, duly ctl resume {run_id} --connect ADDR). Or give it up"
        )
        remedy = f"duly ctl abandon {run_id} -j {place}"
        yield Trouble(
            code="interrupted", gravity="note", text=text, remedy=remedy, schedule_id=run.schedule_id, run_id=run_id
        )
    for run_id in sorted(state.started):
        run = state.runs_open[run_id]
        if run.started_at is None or now - run.started_at <= long_run:
            continue
        whose = run.schedule_id or run.target
        text = f"run {run_id} of {whose} was started {_rounded(now - run.started_at)} ago"
        remedy = f"duly ctl abandon {run_id} -j {place}"
        yield Trouble(
            code="long-run", gravity="bad", text=text, remedy=remedy, schedule_id=run.schedule_id, run_id=run_id
        )
