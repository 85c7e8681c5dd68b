"""One simulated history: a seed, a disk, a clock, a host, and the real scheduler between them.

Rules: everything is drawn from the seed. After each step that all calls survived, all that the journal holds counts as
acknowledged. After each opening the journal found is held to every claim, the recovery to section 8's table, and the
state to its replay.
"""

# pyright: reportPrivateUsage=false
from __future__ import annotations

from datetime import timedelta
from functools import partial

from duly import Completed, Error, JournalPoisoned, ManualClock, Poll, Scheduler, SchedulerClosed, StillRunning
from duly.journal import Reader
from duly.journal.entries import Entry, JournalOpened
from duly.projections import State
from tests.journal.crash_images import power_loss, seeded
from tests.journal.simulated_disk import PowerLost, Root, SimulatedDisk
from tests.simulation.baton import Baton, interleave
from tests.simulation.chronicle import Chronicle
from tests.simulation.claims import Claims
from tests.simulation.evidence import Answer, BrokenStore, Memory, expected_verdicts, verdict_of
from tests.simulation.host import Host
from tests.simulation.machine import Answers, Calendar, planned_fault
from tests.simulation.operations import NO_SUCH_RUN, Before, Operation, Operations
from tests.simulation.pausing_disk import PausingDisk
from tests.simulation.telling import Settings, Story
from tests.simulation.workload import Workload

JOURNAL = Root / "journal"


class World:
    """One history."""

    def __init__(self, seed: int, *, calm: bool = False) -> None:
        """Of a `calm` history a timeline can tell everything: one thread, no fault, and nothing written is lost."""
        self.calm = calm
        self.random = seeded(f"simulation {seed}")
        self.workload = Workload(self.random)
        self.clock = ManualClock(self.workload.start)
        self.host = Host()
        self.claims = Claims()
        self.operations = Operations(self.random, self.workload, self.host, self.claims)
        self.chronicle = Chronicle()
        self.record: list[Entry] = []
        """What the journal held when all calls had returned last: all of it is acknowledged."""
        self.story = Story(seed, self.clock)
        self.baton = Baton(self.random)
        self.answers = Answers(self.random, calm=calm)
        self.calendar = Calendar()
        self.workload.calendar = self.calendar
        self.disk = PausingDisk()
        self.settings = self._new_settings()
        self._verb = "open"
        self.poisoned = False
        self.threaded = False
        self.lives = 0
        self.scheduler = self._opened()

    # Opening

    def _new_settings(self) -> Settings:
        random = self.random
        return Settings(
            slots=random.choice((1, 2, 3, 4)),
            batch=random.choice((1, 2, 3, 7, 1000, 1000, 1000)),
            tolerance=timedelta(seconds=random.choice((0, 60, 300))),
        )

    def _opened(self) -> Scheduler:
        """Opens the journal, however often the machine dies on the way."""
        random = self.random
        while True:
            memory = self._evidence()
            self.disk.doom = random.randrange(12) if random.random() < 0.15 and not self.calm else None
            self.disk.last_gasp = random.random() < 0.5
            self.disk.image_of = self._image_of
            if random.random() < 0.1 and not self.calm:
                self._plan_fault()
            scheduler: Scheduler | None = None
            try:
                scheduler = Scheduler.open(
                    JOURNAL,
                    clock=self.clock,
                    disk=self.disk,
                    evidence=memory,
                    targets=self.answers.target,
                    preflight=self.answers.preflight,
                    sources={"own": self.calendar.source},
                    task_slots=self.settings.slots,
                    batch=self.settings.batch,
                    clock_tolerance=self.settings.tolerance,
                )
            except PowerLost:
                self._bury()
            except KeyboardInterrupt:
                self._spare()
            except Error as error:
                if self.disk.fault_for is None:
                    raise AssertionError(f"opening is refused: {error!r}") from error
                self._spare()
            if scheduler is not None:
                self._spare()
                self.disk.doom = None
                self._examine_opening(scheduler, memory)
                return scheduler

    def _image_of(self, disk: PausingDisk) -> SimulatedDisk:
        return power_loss(disk, self.random) if self.random.random() < 0.7 and not self.calm else disk.kill()

    def _evidence(self) -> Memory | None:
        """What the host can say: nothing, the truth, or something that it should not."""
        random = self.random
        mode = random.choices(("none", "truth", "muddle"), (1, 5, 2))[0]
        if mode == "none":
            return None

        def answer(run_id: int, attempt_id: int | None) -> Answer:
            known = self.host.truth(run_id, attempt_id)
            return known if mode == "truth" else self._muddled(run_id, attempt_id, known)

        strangers: tuple[tuple[int, str], ...] = ()
        if mode == "muddle" and self.chronicle.schedules and random.random() < 0.3:
            strangers = ((NO_SUCH_RUN, random.choice(sorted(self.chronicle.schedules))),)
        return Memory(answer, strangers)

    def _muddled(self, run_id: int, attempt_id: int | None, known: Answer) -> Answer:
        draw = self.random.random()
        if draw < 0.2:
            raise BrokenStore
        if draw < 0.5:
            other = self.random.choice((None, run_id, (attempt_id or 0) + 1, attempt_id))
            return Completed(run_id, other, self.operations.say())
        return None if draw < 0.6 else known

    def _examine_opening(self, scheduler: Scheduler, memory: Memory | None) -> None:
        self.lives += 1
        entries = self._entries()
        assert entries[: len(self.record)] == self.record, "what was acknowledged is lost or changed"
        assert any(isinstance(entry, JournalOpened) for entry in entries), "opened, and its mark is not in the journal"
        mark = max(place for place, entry in enumerate(entries) if isinstance(entry, JournalOpened))
        chronicle = Chronicle(enumerate(entries[:mark], 1))
        expected = expected_verdicts(chronicle, memory)
        decided = [verdict_of(entry) for entry in entries[mark + 1 :]]
        assert decided == expected, f"recovery decided {decided}; by the table it is {expected}"
        for sequence, entry in enumerate(entries[mark:], mark + 1):
            chronicle.take(sequence, entry)
        self.claims.check(entries, chronicle)
        report = scheduler.recovery
        assert list(report.decisions) == list(enumerate(entries[mark + 1 :], mark + 2))
        assert [run.id for run in report.pending] == [run.id for run in chronicle.pending]
        going_on = (
            set[int]() if memory is None else {one for one, said in memory.given.items() if said == StillRunning(one)}
        )
        assert going_on <= {run.id for run in report.running} <= {run.id for run in chronicle.started}
        self._tell_opening(entries[len(self.record) :], memory)
        self._settle(entries, chronicle)
        self.compare_digests(scheduler)
        self.host.hears_of(chronicle)

    def _tell_opening(self, fresh: list[Entry], memory: Memory | None) -> None:
        if self._verb == "open":
            self.story.answers(f"open {self.settings}", self.answers.revision)
            if self.answers.picky:
                self.story.say("# the host refuses at random")
        else:
            self.story.reopened(self._verb, memory, self.settings, fresh)
        self.story.recovered(fresh, len(self.record) + 1)

    # Reading

    def _entries(self) -> list[Entry]:
        return [record.entry for record in Reader(JOURNAL, disk=self.disk).records()]

    def _settle(self, entries: list[Entry], chronicle: Chronicle) -> None:
        self.record = entries
        self.chronicle = self.operations.chronicle = chronicle
        self._changes = self.disk.changes
        self._reader = Reader(JOURNAL, disk=self.disk)
        for _ in self._reader.records(len(entries)):
            raise AssertionError("the journal grew by itself")

    def read_on(self) -> list[Entry]:
        """What was appended since, all of it acknowledged."""
        first = len(self.record) + 1
        if self.disk.changes == self._changes:
            return []
        self._changes = self.disk.changes
        fresh = [record.entry for record in self._reader.records(len(self.record))]
        self.record += fresh
        for sequence, entry in enumerate(fresh, first):
            self.chronicle.take(sequence, entry)
        return fresh

    def compare_digests(self, scheduler: Scheduler) -> None:
        """Holds the live state to its replay."""
        state = State()
        for sequence, entry in enumerate(self.record, 1):
            state.apply(sequence, entry)
        assert scheduler.digest() == state.digest(), "the live state is not the replayed one"
        assert state.anomalies == []

    # Faults

    def _plan_fault(self) -> None:
        self.disk.fault_for = planned_fault(self.random)

    def _spare(self) -> None:
        self.disk.fault_for = None

    # Steps

    def step(self) -> None:
        """One more thing happens."""
        random = self.random
        draw = random.random()
        if draw < 0.22:
            self._let_time_pass()
        elif draw < 0.25:
            self.story.say("schedule s1")  # a line of no effect, up to which time has passed
            self.clock.step(self._sane(self.workload.jump()))
            self.story.say("clock")
        elif draw < 0.29:
            self._die_idle()
        elif draw < 0.31:
            self.scheduler.close()
            self.reopen("reopen", dies=random.random() < 0.7)
        elif draw < 0.315:
            self.scheduler.stop_admitting()
            self.operations.stopped = True
            self.story.say("stop")
        elif draw < 0.325 and not self.calm:
            self.calendar.broken = not self.calendar.broken
            self.story.say(f"# the host's own calendar is {'out of order' if self.calendar.broken else 'mended'}")
        elif draw < 0.33:
            self.answers.revision = random.choice("12")
            self.story.answers("host", self.answers.revision)
        else:
            self._work()

    def _let_time_pass(self) -> None:
        self.clock.advance(self._sane(self.workload.step(self.clock.now())))

    def _sane(self, delta: timedelta) -> timedelta:
        """A step that stays within what datetimes can say."""
        return delta if 1965 <= self.clock.now().year + delta.days / 365 <= 2110 else timedelta()

    def _work(self) -> None:
        random = self.random
        self.operations.now = self.clock.now()
        together = random.choice((2, 2, 3, 4)) if random.random() < 0.3 and not self.calm else 1
        works = [self.operations.draw() for _ in range(together)]
        if together > 1 and random.random() < 0.3:
            works[1] = self._rival(works[0])
        elif together > 1 and random.random() < 0.05:
            works[-1] = self.operations.leave()
        if self.calm:
            pass
        elif random.random() < 0.1:
            self.disk.doom, self.disk.last_gasp = random.randrange(5), random.random() < 0.5
        elif random.random() < 0.08:
            self._plan_fault()
        before = Before.of(works[0], self.chronicle) if together == 1 else None
        if together > 1:
            self._together(works)
        else:
            self._alone(works[0])
        self._after(works, before)

    def _rival(self, work: Operation) -> Operation:
        """The same call once more, at the same time."""
        if work.token:
            return self.operations.draw()
        return Operation(work.words, work.call, work.done, work.unclear, work.legal)

    def _alone(self, work: Operation) -> None:
        self._perform(work)

    def _together(self, works: list[Operation]) -> None:
        if not self.threaded:
            interleave(self.scheduler, self.baton)
            self.threaded = True
        self.disk.pause = self.baton.pause
        self.baton.run([partial(self._perform, work) for work in works])
        self.disk.pause = lambda: None

    def _perform(self, work: Operation) -> None:
        try:
            work.outcome = work.call(self.scheduler)
        except (PowerLost, KeyboardInterrupt, JournalPoisoned) as error:
            work.error = error
            work.unclear()
            return
        except Error as error:
            work.error = error
            if isinstance(error, SchedulerClosed):
                work.unclear()
            if not self.disk.dead:
                self.claims.refused(error)
            return
        if self.disk.dead:
            return
        self.claims.heard(work.outcome)
        if work.token:
            self.claims.said(work.token)
        work.done(work.outcome)

    def _after(self, works: list[Operation], before: Before | None) -> None:
        self.disk.doom = None
        if self.disk.dead:
            self.story.say("# the power is lost during:")
            self.story.performed(works, (), 0)
            self._bury()
            self.reopen("crash", dies=False)
            return
        if self.scheduler._journal.poisoned or any(isinstance(work.error, KeyboardInterrupt) for work in works):
            self._spare()
            self.story.say("# the disk fails, or an interrupt comes, during:")
            self.story.performed(works, (), 0)
            self._survive()
            return
        self._spare()
        if any(work.closes for work in works):
            self.reopen("reopen", dies=False)
            return
        fresh = self.read_on()
        self.story.performed(works, fresh, len(self.record) - len(fresh) + 1)
        if before is not None:
            self._examine_alone(works[0], before, fresh)
        if self.random.random() < 0.06:
            self.compare_digests(self.scheduler)

    def _examine_alone(self, work: Operation, before: Before, fresh: list[Entry]) -> None:
        """What one call did, with nobody beside it."""
        if before.legal is not None:
            done = work.error is None
            assert done == before.legal, f"{work.words}: done is {done}, legal is {before.legal}: {work.error!r}"
        if work.error is not None:
            assert not fresh, "what is refused is not recorded"
        if isinstance(work.outcome, Poll):
            before.examine(work.outcome, stopped=self.operations.stopped)

    # The end of lives

    def _die_idle(self) -> None:
        """The power goes, or the process, while no call is under way."""
        self.disk.image_of = self._image_of
        self.disk.die()
        self._bury()
        self.reopen("crash", dies=False)

    def _bury(self) -> None:
        """The dead process is gone: its handles, its memory."""
        dead, image = self.disk, self.disk.image
        assert image is not None
        dead.dead, dead.doom, dead.fault_for, dead.pause = False, None, None, lambda: None
        scheduler = getattr(self, "scheduler", None)
        if scheduler is not None:
            scheduler.close()
        self.disk = image
        self.host.dies(workers_survive=self.random.random() < 0.3, store_survives=self.random.random() < 0.5)

    def _survive(self) -> None:
        """The journal is poisoned, and the process lives: what runs goes on, and the journal is opened again."""
        if self.scheduler._journal.poisoned:
            self._ask_the_poisoned()
        if self.random.random() < 0.4:
            self.disk.evict()
        self.scheduler.close()
        self._spare()
        if self.random.random() < 0.3:
            self.disk.image_of = self._image_of
            self.disk.die()
            self._bury()
        self.reopen("crash", dies=False)

    def _ask_the_poisoned(self) -> None:
        for question in (self.scheduler.runs, self.scheduler.poll):
            try:
                question()
            except (JournalPoisoned, SchedulerClosed):
                continue
            raise AssertionError("a poisoned scheduler answers")

    def reopen(self, verb: str, *, dies: bool) -> None:
        """Opens the journal once more; if the process `dies`, what it knew is lost."""
        if dies:
            self.host.dies(workers_survive=self.random.random() < 0.3, store_survives=self.random.random() < 0.5)
        if self.random.random() < 0.3:
            self.settings = self._new_settings()
        self._verb = verb
        self.operations.stopped = False
        self.threaded = False
        self.scheduler = self._opened()
