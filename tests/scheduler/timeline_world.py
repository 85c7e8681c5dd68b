"""The world of a timeline: one journal folder, one clock, one host with its answers, and the scheduler in between.

A crash copies the folder (or the disk in memory) as it is, opens the copy and abandons what was: whatever the old
process would still have done, the new one never sees.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from duly import Error, ManualClock, Poll, Scheduler
from duly.journal import Reader
from duly.journal.entries import ClockJumped, ClockRegressed, Entry, JournalClosed, JournalOpened, OccurrenceAdmitted
from tests.scheduler.memory_disk import MemoryDisk
from tests.scheduler.timeline_host import Evidence, Host
from tests.scheduler.timeline_questions import answer
from tests.scheduler.timeline_rules import changes_of, definition_of, value_of
from tests.scheduler.timeline_text import Decision, Line, parse_duration, parse_instant
from tests.scheduler.timeline_words import Words

UNSEEN = (JournalOpened, JournalClosed)
MANY = 1000  # polls in a row that may say "more"


class World:
    def __init__(self, folder: Path, lines: list[Line], *, memory: MemoryDisk | None = None) -> None:
        opening = lines[0] if lines[0].verb == "open" else None
        self.memory = memory
        self.clock = ManualClock(lines[0].now)
        self.host = Host()
        self.words = Words()
        self.path = folder / "journal"
        self.settings: dict[str, Any] = {"task_slots": 8}
        self._folder, self._crashes = folder, 0
        self.polled = Poll(now=lines[0].now)
        """The latest poll."""
        self.entries: list[tuple[int, Entry]] = []
        """What the latest line appended, marks of opening and closing included."""
        self._seen = 0
        self._stopped = False
        self._crashing = False
        if opening is not None:
            self._set(opening)
            self.host.hear(opening.options)
        self.scheduler = self._open(Evidence())
        self._reader = Reader(self.path, disk=self.memory)
        self._appended()

    def __enter__(self) -> World:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.scheduler.close()

    def digest(self) -> str:
        return self.scheduler.digest()

    def run(self, line: Line) -> tuple[Decision, ...]:
        """Everything that the line decided, in the order of the journal."""
        self._move_to(line)
        extra: list[Decision] = []
        try:
            extra = COMMANDS[line.verb](self, line) or []
        except Error as error:
            extra = [Decision(f"raises {type(error).__name__}")]
        decided = [self.words.decision(entry, sequence) for sequence, entry in self._appended()]
        return (*decided, *extra)

    def crash_unnoticed(self) -> None:
        """A crash of the scheduler alone: the host knows that what was running still runs."""
        self._crashing = True
        if self._stopped:
            return
        running = [run.id for run in self.scheduler.runs(state="started")]
        self._crash(Evidence(running=running))
        assert self._appended() == [], "a crash with nothing lost decides nothing"

    # The scheduler's life

    def _open(self, evidence: Evidence) -> Scheduler:
        callbacks = self.host.callbacks()
        return Scheduler.open(
            self.path, clock=self.clock, evidence=evidence, disk=self.memory, **callbacks, **self.settings
        )

    def _crash(self, evidence: Evidence) -> None:
        if self.memory is not None:
            self.memory = self.memory.crashed()
            self.scheduler.close()
        else:
            self._crashes += 1
            after = self._folder / f"journal-{self._crashes}"
            shutil.copytree(self.path, after)
            self.scheduler.close()
            shutil.rmtree(self.path)
            self.path = after
        self.scheduler = self._open(evidence)
        self._reader = Reader(self.path, disk=self.memory)
        self._stopped = False

    def _set(self, line: Line) -> None:
        for option, name in (("slots", "task_slots"), ("batch", "batch")):
            if option in line.options:
                self.settings[name] = int(line.options[option])
        if "tolerance" in line.options:
            self.settings["clock_tolerance"] = parse_duration(line.options["tolerance"])

    def _move_to(self, line: Line) -> None:
        delta = line.now - self.clock.now()
        if delta < timedelta() or line.verb == "clock":
            self.clock.step(delta)
        else:
            self.clock.advance(delta)

    def _appended(self) -> list[tuple[int, Entry]]:
        """What the journal holds beyond what was seen, without the marks of opening and closing."""
        self.entries = [(record.sequence, record.entry) for record in self._reader.records(self._seen)]
        for sequence, entry in self.entries:
            self._seen = sequence
            self.words.learn(sequence, entry)
        unheard = (*UNSEEN, ClockJumped) if self._crashing else UNSEEN
        return [(sequence, entry) for sequence, entry in self.entries if not isinstance(entry, unheard)]

    # Commands

    def run_id(self, name: str) -> int:
        """The run of this name; one that does not exist gets a number that no run has."""
        return self.words.runs.get(name, 999_999)

    def attempt_of(self, line: Line, run_id: int) -> int | None:
        """The ACTIVE attempt, unless the line says which one it reports for."""
        attempts = self.words.attempts.get(run_id, [])
        match line.options.get("attempt"):
            case None:
                run = self.scheduler.run(run_id) if run_id in self.words.runs.values() else None
                return None if run is None else run.attempt_id
            case "none":
                return None
            case number:
                return attempts[int(number) - 1] if int(number) <= len(attempts) else 999_999

    def create(self, line: Line) -> None:
        trigger, fields = definition_of(line)
        self.scheduler.create(line.subjects[0], trigger, **fields)

    def declare(self, line: Line) -> None:
        trigger, fields = definition_of(line)
        self.scheduler.declare(line.subjects[0], trigger, **fields)

    def edit(self, line: Line) -> None:
        schedule_id = line.subjects[0]
        current = self.scheduler.schedule(schedule_id).revision
        revision = int(line.options.get("revision", current))
        self.scheduler.edit(schedule_id, expected_revision=revision, **changes_of(line))

    def administer(self, line: Line) -> None:
        """pause, unpause, disable, enable, delete, unblock: a schedule, an actor and a note."""
        command: Callable[..., object] = getattr(self.scheduler, line.verb)
        command(line.subjects[0], **_said(line))

    def block(self, line: Line) -> None:
        self.scheduler.block(line.subjects[0], reason=line.options.get("reason", "as the timeline says"), **_said(line))

    def rebaseline(self, line: Line) -> None:
        through = parse_instant(line.options["through"], line.now.date())
        self.scheduler.rebaseline(line.subjects[0], through, **_said(line))

    def external(self, line: Line) -> None:
        started_at = parse_instant(line.options["at"], line.now.date())
        self.scheduler.record_external_run(line.subjects[0], started_at, **_said(line))

    def run_now(self, line: Line) -> None:
        named = {"target", "request", "actor", "note"} & set(line.options)
        fields: dict[str, Any] = {name: line.options[name] for name in named}
        fields |= {name: json.loads(line.options[name]) for name in ("input", "limits") if name in line.options}
        self.scheduler.run_now(line.subjects[0] if line.subjects else None, **fields)

    def poll(self, line: Line) -> list[Decision]:
        """One poll, or as many as it takes until there is no more."""
        start = line.options.get("start") == "yes"
        extra: list[Decision] = []
        for _ in range(MANY):
            poll = self.polled = self.scheduler.poll(start=start)
            admitted = [sequence for sequence, entry in poll.decisions if isinstance(entry, OccurrenceAdmitted)]
            offered = [run.id for run in poll.offered]
            assert [run.id for run in poll.admitted] == admitted
            assert set(admitted) <= set(offered), "what a poll admits, it offers"
            self._learn(poll.decisions)
            extra += [Decision(f"offer {self.words.name(run_id)}") for run_id in offered if run_id not in admitted]
            loud = any(isinstance(entry, ClockRegressed | ClockJumped) for _, entry in poll.decisions)
            assert poll.warnings or not loud, "a wrong clock is loud"
            if line.subjects != ("more",) or not poll.more:
                break
        else:
            raise AssertionError("there is always more")
        extra += [Decision("more")] if poll.more else []
        extra += [Decision("warn")] if poll.warnings and not loud else []
        if "next" in line.options:
            extra.append(Decision("next", (("next", value_of(poll.next_due)),)))
        return extra

    def _learn(self, decisions: tuple[tuple[int, Entry], ...]) -> None:
        for sequence, entry in decisions:
            if sequence > self._seen:
                self.words.learn(sequence, entry)

    def start(self, line: Line) -> None:
        self.scheduler.start(*[self.run_id(name) for name in line.subjects])

    def report(self, line: Line) -> None:
        """complete, fail, interrupt."""
        run_id = self.run_id(line.subjects[0])
        attempt_id = self.attempt_of(line, run_id)
        value: Any = json.loads(line.options.get("value", "null"))
        if line.verb == "complete":
            self.scheduler.complete(run_id, attempt_id=attempt_id, result=value)
        elif line.verb == "fail":
            self.scheduler.fail(run_id, attempt_id=attempt_id, error=value or "it did not work")
        else:
            self.scheduler.interrupt(run_id, attempt_id=attempt_id, checkpoint=value)

    def resume(self, line: Line) -> None:
        self.scheduler.resume(self.run_id(line.subjects[0]))

    def abandon(self, line: Line) -> None:
        self.scheduler.abandon(self.run_id(line.subjects[0]), **_said(line))

    def note(self, line: Line) -> None:
        self.scheduler.note_run(self.run_id(line.subjects[0]), json.loads(line.options.get("value", "null")))

    def stop(self, line: Line) -> None:
        assert line.verb == "stop"
        self.scheduler.stop_admitting()
        self._stopped = True

    def crash(self, line: Line) -> None:
        self._set(line)
        self._crash(Evidence.of_line(line, self))

    def reopen(self, line: Line) -> None:
        self._set(line)
        evidence = Evidence.of_line(line, self)
        self.scheduler.close()
        self.scheduler = self._open(evidence)
        self._stopped = False

    def hear(self, line: Line) -> None:
        self.host.hear(line.options)

    def ask(self, line: Line) -> list[Decision]:
        return [answer(self.scheduler, line, self.run_id)]

    def nothing(self, line: Line) -> None:
        """The line has done all it does: `open` before it, `clock` by its time."""


def _said(line: Line) -> dict[str, str]:
    return {name: line.options[name] for name in ("actor", "note") if name in line.options}


COMMANDS: dict[str, Callable[[World, Line], list[Decision] | None]] = {
    "create": World.create,
    "declare": World.declare,
    "edit": World.edit,
    **dict.fromkeys(("pause", "unpause", "disable", "enable", "delete", "unblock"), World.administer),
    "block": World.block,
    "rebaseline": World.rebaseline,
    "external": World.external,
    "run_now": World.run_now,
    "poll": World.poll,
    "start": World.start,
    **dict.fromkeys(("complete", "fail", "interrupt"), World.report),
    "resume": World.resume,
    "abandon": World.abandon,
    "note": World.note,
    "stop": World.stop,
    "crash": World.crash,
    "reopen": World.reopen,
    "host": World.hear,
    **dict.fromkeys(("schedule", "run", "occurrence"), World.ask),
    **dict.fromkeys(("open", "clock"), World.nothing),
}
