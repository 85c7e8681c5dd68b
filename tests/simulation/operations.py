"""The calls that a simulated host makes, drawn from what it believes, sometimes against all sense.

Rules: an operation knows how to make its call, what to note when the call returns, and, where the specification leaves
no doubt, whether the call is legal in a given chronicle. `<7>` in its words stands for the name of run 7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from duly import Attempt, Completed, Failed, Interrupted, Poll, Run, Scheduler
from tests.simulation.chronicle import Chronicle
from tests.simulation.claims import Claims
from tests.simulation.host import Host, Result
from tests.simulation.workload import Workload

NO_SUCH_RUN = 999_999


def _nothing(_: Any) -> None:
    """Nothing to note."""


def _unsure(_: Chronicle) -> bool | None:
    return None


@dataclass
class Operation:
    """One call of the API."""

    words: str
    call: Callable[[Scheduler], object]
    done: Callable[[Any], None] = _nothing
    unclear: Callable[[], None] = lambda: None
    legal: Callable[[Chronicle], bool | None] = _unsure
    token: str = ""
    closes: bool = False
    outcome: object = None
    error: BaseException | None = None


class Before(NamedTuple):
    """What the record said before a call that nobody was beside of."""

    legal: bool | None
    free: int
    waiting: list[int]

    @classmethod
    def of(cls, work: Operation, chronicle: Chronicle) -> Before:
        """Whether the call is legal, how many task slots are free, and which runs wait for one, oldest first."""
        return cls(
            work.legal(chronicle),
            max(0, chronicle.slots - len(chronicle.started)),
            [run.id for run in chronicle.pending if not chronicle.blocked(run.schedule_id)],
        )

    def examine(self, poll: Poll, *, stopped: bool) -> None:
        """Holds a poll to it: nothing beyond the free slots, and what is pending comes first, oldest first."""
        offered = [run.id for run in poll.offered]
        admitted = [run.id for run in poll.admitted]
        unusable = not 1972 <= poll.now.year <= 2100
        if stopped or unusable:
            assert (offered, poll.decisions) == ([], ()), "a poll decides, though it may not"
            assert poll.warnings or not unusable, "an unusable clock is loud"
            return
        assert len(offered) <= self.free, f"{offered} are offered, and {self.free} slots are free"
        waiting = self.waiting[: self.free]
        swept = [run_id for run_id in offered if run_id not in admitted]
        assert swept == (waiting[: len(swept)] if poll.more else waiting), f"{swept} of {waiting} are offered"
        assert offered == swept + admitted, "what is pending comes first, then what this poll admits"


class Operations:
    """Draws operations."""

    def __init__(self, random: Random, workload: Workload, host: Host, claims: Claims) -> None:
        self.random = random
        self.workload = workload
        self.host = host
        self.claims = claims
        self.chronicle = Chronicle()
        self.now = workload.start
        self.stopped = False
        self._said = 0
        self._created = 0

    def draw(self) -> Operation:
        """The next call."""
        random = self.random
        if len(self.chronicle.schedules) < 2 or random.random() < 0.04:
            return self.create()
        resumable = any(run.state == "interrupted" for run in self.chronicle.runs.values())
        kinds = (self.poll, self.start, self.result, self.resume, self.run_now, self.administer, self.abandon)
        weights = (
            8,
            6 if self.host.offers else 0.3,
            6 if self.host.executing else 0.3,
            5 if resumable else 0.2,
            0.8,
            1.6,
            0.4,
        )
        if random.random() < 0.1:
            return random.choice((self.ask, self.note, self.edit, self.external, self.rebaseline))()
        return random.choices(kinds, weights)[0]()

    # Words that come back

    def say(self) -> str:
        """A word that nothing else in the journal says."""
        self._said += 1
        return f"said-{self._said}"

    # Schedules

    def create(self) -> Operation:
        random = self.random
        self._created += 1
        schedule_id = f"s{self._created}" if random.random() < 0.95 or self._created < 3 else "s1"
        trigger, told = self.workload.trigger(self.now)
        fields, policy = self.workload.policy()
        token = self.say()
        return Operation(
            f"create {schedule_id} {told} {policy}",
            lambda scheduler: scheduler.create(schedule_id, trigger, target=schedule_id, note=token, **fields),
            token=token,
        )

    def edit(self) -> Operation:
        schedule_id = self.some_schedule()
        facts = self.chronicle.schedules.get(schedule_id)
        revision = (facts.revision if facts is not None else 1) + (self.random.random() < 0.1)
        fields, policy = self.workload.policy()
        if self.random.random() < 0.5:
            trigger, told = self.workload.trigger(self.now)
            fields, policy = fields | {"trigger": trigger}, f"{told} {policy}"
        steps = self.random.randrange(1, 1000)
        changes: dict[str, Any] = fields | {"limits": {"max_steps": steps}}
        token = self.say()
        return Operation(
            f"edit {schedule_id} revision={revision} {policy} limits='{{\"max_steps\":{steps}}}'",
            lambda scheduler: scheduler.edit(schedule_id, expected_revision=revision, note=token, **changes),
            token=token,
        )

    def administer(self) -> Operation:
        schedule_id = self.some_schedule()
        verb = self.random.choices(
            ("pause", "unpause", "disable", "enable", "block", "unblock", "delete"), (3, 4, 2, 3, 2, 4, 0.4)
        )[0]
        facts = self.chronicle.schedules.get(schedule_id)
        if facts is not None and self.random.random() < 0.5:
            undo = [word for word, on in (("unpause", facts.paused), ("enable", facts.disabled)) if on]
            undo += ["unblock"] if facts.blocked else []
            verb = self.random.choice(undo) if undo else verb
        reason = {"reason": "drawn"} if verb == "block" else {}
        return Operation(f"{verb} {schedule_id}", lambda scheduler: getattr(scheduler, verb)(schedule_id, **reason))

    def external(self) -> Operation:
        schedule_id, token = self.some_schedule(), self.say()
        at = self.now + self.random.choice((-1, 0, 1, 30)) * self.workload.profile.steps[-1]
        return Operation(
            f"external {schedule_id} at={at:%Y-%m-%dT%H:%M:%S.%fZ}",
            lambda scheduler: scheduler.record_external_run(schedule_id, at, note=token),
            token=token,
        )

    def rebaseline(self) -> Operation:
        schedule_id = self.some_schedule()
        through = self.now - self.random.choice(self.workload.profile.steps)
        return Operation(
            f"rebaseline {schedule_id} through={through:%Y-%m-%dT%H:%M:%S.%fZ}",
            lambda scheduler: scheduler.rebaseline(schedule_id, through),
        )

    def some_schedule(self) -> str:
        known = sorted(one.id for one in self.chronicle.schedules.values() if not one.deleted)
        return self.random.choice(known) if known and self.random.random() < 0.98 else "s99"

    # Polls

    def poll(self) -> Operation:
        start = self.random.random() < 0.4
        host = self.host

        def done(poll: Poll) -> None:
            for run in poll.offered:
                if start:
                    host.begin(run, None)
                else:
                    host.offers[run.id] = None

        return Operation(
            "poll start=yes" if start else "poll", lambda scheduler: scheduler.poll(start=start), done=done
        )

    # Runs

    def start(self) -> Operation:
        offers = list(self.host.offers)
        chosen = offers if self.random.random() < 0.7 else offers[:1]
        if self.random.random() < 0.12 or not chosen:
            chosen = [*chosen, self.some_run()]
        run_ids = tuple(dict.fromkeys(chosen))

        def done(runs: tuple[Run, ...]) -> None:
            for run in runs:
                self.host.begin(run, None)

        def legal(chronicle: Chronicle) -> bool:
            runs = [chronicle.runs.get(run_id) for run_id in run_ids]
            ready = all(run is not None and run.state == "pending" for run in runs)
            free = chronicle.slots - len(chronicle.started)
            return (
                ready and len(run_ids) <= free and not any(run and chronicle.blocked(run.schedule_id) for run in runs)
            )

        names = " ".join(f"<{one}>" for one in run_ids)
        return Operation(f"start {names}", lambda scheduler: scheduler.start(*run_ids), done=done, legal=legal)

    def result(self) -> Operation:
        random = self.random
        executing = list(self.host.executing.items())
        if executing and random.random() < 0.9:
            run_id, attempt_id = random.choice(executing)
            if random.random() < 0.08:
                attempt_id = random.choice((None, run_id, attempt_id, (attempt_id or run_id) + 1))
        else:
            run_id, attempt_id = self.some_run(), random.choice((None, None, 5))
        token = self.say()
        kind = random.choices((Completed, Failed, Interrupted), (5, 2, 4))[0]
        result: Result = kind(run_id, attempt_id, token)

        def legal(chronicle: Chronicle) -> bool:
            run = chronicle.runs.get(run_id)
            if run is None or run.attempt_id != attempt_id:
                return False
            return run.state == "started" or (run.state == "pending" and kind is Failed)

        verb = {Completed: "complete", Failed: "fail", Interrupted: "interrupt"}[kind]
        return Operation(
            f"{verb} <{run_id}> attempt={'none' if attempt_id is None else f'[{attempt_id}]'} value='\"{token}\"'",
            lambda scheduler: scheduler.report([result]),
            done=lambda _: self.host.reported(result),
            unclear=lambda: self.host.left_unclear(result),
            legal=legal,
            token=token,
        )

    def resume(self) -> Operation:
        interrupted = [run.id for run in self.chronicle.runs.values() if run.state == "interrupted"]
        useful = interrupted and self.random.random() < 0.9
        run_id = self.random.choice(interrupted) if useful else self.some_run()

        def done(attempt: Attempt) -> None:
            self.host.begin(attempt.run, attempt.attempt_id)

        def legal(chronicle: Chronicle) -> bool:
            run = chronicle.runs.get(run_id)
            return (
                run is not None
                and (run.state, run.attempt_id) == ("interrupted", None)
                and not chronicle.blocked(run.schedule_id)
                and len(chronicle.started) < chronicle.slots
                and not self.stopped
            )

        return Operation(f"resume <{run_id}>", lambda scheduler: scheduler.resume(run_id), done=done, legal=legal)

    def abandon(self) -> Operation:
        living = [run.id for run in self.chronicle.runs.values() if not run.ended]
        run_id = self.random.choice(living) if living else NO_SUCH_RUN
        token = self.say()

        def legal(chronicle: Chronicle) -> bool:
            run = chronicle.runs.get(run_id)
            return run is not None and not run.ended

        return Operation(
            f"abandon <{run_id}>",
            lambda scheduler: scheduler.abandon(run_id, note=token),
            done=lambda _: self._stop_working(run_id),
            legal=legal,
            token=token,
        )

    def note(self) -> Operation:
        run_id, token = self.some_run(), self.say()

        def legal(chronicle: Chronicle) -> bool:
            run = chronicle.runs.get(run_id)
            return run is not None and not run.ended

        return Operation(
            f"note <{run_id}> value='\"{token}\"'",
            lambda scheduler: scheduler.note_run(run_id, token),
            legal=legal,
            token=token,
        )

    def run_now(self) -> Operation:
        token = self.say()
        if self.random.random() < 0.2:
            return Operation(
                "run_now target=loose", lambda scheduler: scheduler.run_now(target="loose", note=token), token=token
            )
        schedule_id = self.some_schedule()
        return Operation(
            f"run_now {schedule_id}", lambda scheduler: scheduler.run_now(schedule_id, note=token), token=token
        )

    def ask(self) -> Operation:
        """A question. It is no line of a timeline, so that it is told as a remark."""
        run_id = self.some_run()
        if self.random.random() < 0.5:
            return Operation("# runs", lambda scheduler: scheduler.runs())
        return Operation(f"# run <{run_id}>", lambda scheduler: scheduler.run(run_id))

    def leave(self) -> Operation:
        """The scheduler is closed, or admits nothing any more, while others are at work."""
        if self.random.random() < 0.5:
            return Operation("reopen", lambda scheduler: scheduler.close(), closes=True)
        return Operation("stop", lambda scheduler: scheduler.stop_admitting(), done=lambda _: self._stop())

    def _stop(self) -> None:
        self.stopped = True

    def some_run(self) -> int:
        known = list(self.chronicle.runs)
        return self.random.choice(known[-8:]) if known and self.random.random() < 0.95 else NO_SUCH_RUN

    def _stop_working(self, run_id: int) -> None:
        self.host.executing.pop(run_id, None)
        self.host.offers.pop(run_id, None)
