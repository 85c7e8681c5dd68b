"""A history that the Scheduler and the reference model live through together, line by line.

After every line both must have decided the same, and what SPEC section 14.9 demands must hold. Whatever goes wrong is
told as a timeline that can be pasted into `check`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from duly.journal.entries import OccurrenceAdmitted, kind_of
from duly.projections import State
from tests.scheduler.memory_disk import MemoryDisk
from tests.scheduler.reference_calendar import Cadence
from tests.scheduler.reference_model import Model, Polled, Rule
from tests.scheduler.reference_runs import Refused, Told
from tests.scheduler.timeline_text import Decision, Line, describe_instant, parse_duration, retold, shorten
from tests.scheduler.timeline_world import World

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
RESULTS = {"complete": "RunCompleted", "fail": "RunFailed", "interrupt": "RunInterrupted"}
EVIDENCE = {
    "completed": "RunCompleted",
    "failed": "RunFailed",
    "interrupted": "RunInterrupted",
    "running": "StillRunning",
}


class History:
    def __init__(self, *, slots: int, batch: int) -> None:
        opening = Line(1, START, "open", (), {"slots": str(slots), "batch": str(batch)}, (), "")
        opening = replace(opening, text=_text(opening))
        self.now = START
        self.told: list[str] = [opening.text]
        self.model = Model(task_slots=slots, batch=batch)
        self.model.reopen(START, {})
        self.world = World(Path("/"), [opening], memory=MemoryDisk())
        self.replayed = State()
        self.admitted: set[tuple[str, datetime]] = set()
        self._fold()

    def close(self) -> None:
        self.world.scheduler.close()

    # Commands: the same to both

    def create(self, schedule_id: str, cadence: Cadence, policy: dict[str, str]) -> None:
        options = dict(cadence.options) | policy
        rule = _with_policy(Rule(cadence.instants, cadence.kind), policy)
        self._do("create", (schedule_id,), options, lambda: self.model.create(self.now, schedule_id, rule))

    def edit(self, schedule_id: str, cadence: Cadence | None, policy: dict[str, str], *, stale: bool = False) -> None:
        schedule = self.model.schedules[schedule_id]
        rule = _with_policy(schedule.rule, policy)
        if cadence is not None:
            rule = replace(rule, instants=cadence.instants, cadence=cadence.kind)
        revision = schedule.revision + stale
        options = dict(cadence.options if cadence is not None else ()) | policy | {"revision": str(revision)}
        self._do("edit", (schedule_id,), options, lambda: self.model.edit(self.now, schedule_id, revision, rule))

    def administer(self, verb: str, schedule_id: str) -> None:
        command: Callable[[datetime, str], list[Told]] = getattr(self.model, verb)
        self._do(verb, (schedule_id,), {}, lambda: command(self.now, schedule_id))

    def rebaseline(self, schedule_id: str, back: timedelta) -> None:
        through = self.now - back
        options = {"through": describe_instant(through)}
        self._do("rebaseline", (schedule_id,), options, lambda: self.model.rebaseline(self.now, schedule_id, through))

    def external(self, schedule_id: str, later: timedelta) -> None:
        stamp = self.now + later
        options = {"at": describe_instant(stamp)}
        self._do("external", (schedule_id,), options, lambda: self.model.external(self.now, schedule_id, stamp))

    def start(self, *run_ids: int) -> None:
        self._do("start", self._names(*run_ids), {}, lambda: self.model.start(self.now, *run_ids))

    def report(self, verb: str, run_id: int, *, stale: bool = False) -> None:
        attempt = None if stale else self.model.runs[run_id].attempt
        options = {"attempt": "none"} if stale else {}
        kind = RESULTS[verb]
        self._do(verb, self._names(run_id), options, lambda: self.model.report(self.now, kind, run_id, attempt))

    def resume(self, run_id: int) -> None:
        self._do("resume", self._names(run_id), {}, lambda: self.model.resume(self.now, run_id))

    def abandon(self, run_id: int) -> None:
        self._do("abandon", self._names(run_id), {}, lambda: self.model.abandon(self.now, run_id))

    def host(self, option: str, value: str) -> None:
        def hear() -> list[Told]:
            self.model.refusing |= {value} if option == "refuse" else set()
            self.model.refusing -= {value} if option == "accept" else set()
            return []

        self._do("host", (), {option: value}, hear)

    def stop(self) -> None:
        def stop() -> list[Told]:
            self.model.stopped = True
            return []

        self._do("stop", (), {}, stop)

    def crash(self, known: dict[int, str]) -> None:
        """A crash. Of each of these runs the host knows that it is `completed`, `failed`, `interrupted`, `running`."""
        evidence = {run_id: (EVIDENCE[word], self.model.runs[run_id].attempt) for run_id, word in known.items()}
        options = {
            word: ",".join(self._names(*[run_id for run_id, said in known.items() if said == word]))
            for word in sorted(set(known.values()))
        }
        self._do("crash", (), options, lambda: self.model.reopen(self.now, evidence))

    def poll(self, *, start: bool = False) -> None:
        before = self.model.started_runs()
        polled = Polled([], [], False)

        def decide() -> list[Told]:
            nonlocal polled
            polled = self.model.poll(self.now, start=start)
            return polled.entries

        self._do("poll", (), {"start": "yes"} if start else {}, decide)
        real = self.world.polled
        offered = [run.id for run in real.offered]
        assert (offered, real.more) == (polled.offered, polled.more), self.story("the model", str(polled))
        due = self.model.next_due(self.now, slot_free=before < self.model.task_slots)
        unheard = real.more or self.model.stopped
        assert unheard or real.next_due == due, self.story("the model is next due at", f"{due}, not {real.next_due}")
        assert not offered or before + len(offered) <= self.model.task_slots, self.story("offers beyond the slots", "")

    # Both, compared

    def _do(
        self, verb: str, subjects: tuple[str, ...], options: dict[str, str], expected: Callable[[], list[Told]]
    ) -> None:
        line = Line(0, self.now, verb, subjects, options, (), "")
        line = replace(line, text=_text(line))
        decided = self.world.run(line)
        self.told.append(retold(line, [_short(decision, line) for decision in decided]))
        refused = [decision.text.removeprefix("raises ") for decision in decided if decision.text.startswith("raises ")]
        told, refusal = _answer(expected)
        assert refused == refusal, self.story("the model raises", ", ".join(refusal))
        real = [entry for _, entry in self.world.entries if kind_of(entry) != "JournalClosed"]
        seen = [
            {"kind": kind_of(entry), **{name: getattr(entry, name) for name in one if name != "kind"}}
            for entry, one in zip(real, told, strict=False)
        ]
        assert (len(real), seen) == (len(told), told), self.story("the model decides", "\n    ".join(map(str, told)))
        self._hold(line)

    def _hold(self, line: Line) -> None:
        """What must hold after every line."""
        self._fold()
        if line.verb == "crash":
            kinds = {kind_of(entry) for _, entry in self.world.entries}
            assert not kinds & {"OccurrenceAdmitted", "RunStarted", "ResumeMarked"}, self.story("recovery acts", "")
        assert len(self.replayed.started) <= self.model.task_slots, self.story("started beyond the slots", "")
        assert self.replayed.sequence == self.model.sequence, self.story("sequences part", str(self.model.sequence))
        assert self.world.digest() == self.replayed.digest(), self.story("the digest of a replay differs", "")
        assert self.replayed.anomalies == [], self.story("an anomaly", str(self.replayed.anomalies))
        for schedule_id, schedule in self.model.schedules.items():
            real = self.replayed.by_id[schedule_id]
            ours = (
                schedule.consumed_through,
                schedule.candidate,
                tuple((one.first, one.last) for one in schedule.kept),
            )
            theirs = (real.consumed_through, real.candidate, real.kept)
            assert theirs == ours, self.story(f"{schedule_id} in the model", str(ours))

    def _fold(self) -> None:
        for sequence, entry in self.world.entries:
            assert sequence == self.replayed.sequence + 1
            self.replayed.apply(sequence, entry)
            if isinstance(entry, OccurrenceAdmitted):
                key = entry.schedule_id, entry.scheduled_at
                assert key not in self.admitted, self.story("admitted twice", str(key))
                self.admitted.add(key)

    def story(self, what: str, expected: str) -> str:
        """The history as a timeline."""
        lines = "\n    ".join(self.told)
        return f"{what}: {expected}\n    {lines}\n"

    def _names(self, *run_ids: int) -> tuple[str, ...]:
        return tuple(self.world.words.name(run_id) for run_id in run_ids)


def _answer(expected: Callable[[], list[Told]]) -> tuple[list[Told], list[str]]:
    """What the model records, and the name of the error that it raises."""
    try:
        return expected(), []
    except Refused as refusal:
        return [], [str(refusal)]


def _with_policy(rule: Rule, policy: dict[str, str]) -> Rule:
    if "overlap" in policy:
        rule = replace(rule, overlap=policy["overlap"], limit=int(policy.get("limit", "1").replace("none", "1")))
    if "misfire" in policy:
        rule = replace(rule, misfire=policy["misfire"])
    if "lateness" in policy:
        rule = replace(rule, lateness=parse_duration(policy["lateness"]))
    return rule


def _text(line: Line) -> str:
    options = [f'{name}="{value}"' if " " in value else f"{name}={value}" for name, value in line.options.items()]
    return " ".join([describe_instant(line.now), line.verb, *line.subjects, *options])


def _short(decision: Decision, line: Line) -> str:
    return shorten(decision.text, line.now.date())
