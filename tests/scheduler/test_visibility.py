"""Nothing is seen before it is durable, and one fsync is enough for whatever belongs together."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable

import pytest

from duly import Completed, JournalPoisoned, Run, Scheduler
from duly.projections import replay
from duly.projections.indexed import IndexedJournal
from tests.scheduler.embedding import QUARTERLY, Program, Task, at


class Gate:
    """A disk's sync that says when it is reached, and goes on when it is told to."""

    def __init__(self, program: Program) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()
        self._error: OSError | None = None
        program.disk.before_sync = self._wait

    def open(self, error: OSError | None = None) -> None:
        self._error = error
        self.opened.set()

    def _wait(self) -> None:
        self.reached.set()
        assert self.opened.wait(10)
        if self._error is not None:
            raise self._error


QUESTIONS: dict[str, Callable[[Scheduler], object]] = {
    "find": lambda scheduler: scheduler.find("a"),
    "schedule": lambda scheduler: scheduler.schedule("a"),
    "schedules": lambda scheduler: scheduler.schedules(),
    "run": lambda scheduler: scheduler.run(3),
    "runs": lambda scheduler: scheduler.runs(),
    "upcoming": lambda scheduler: scheduler.upcoming(),
    "next_due": lambda scheduler: scheduler.next_due("a"),
    "occurrences": lambda scheduler: scheduler.occurrences("a"),
    "digest": lambda scheduler: scheduler.digest(),
    "a poll": lambda scheduler: scheduler.poll(),
    "a command": lambda scheduler: scheduler.pause("a"),
}


def polling_behind(program: Program, scheduler: Scheduler) -> tuple[Gate, Task[object]]:
    """A poll that has decided, and whose fsync does not return."""
    scheduler.create("a", QUARTERLY, target="x")
    program.clock.advance(at("09:15") - program.clock.now())
    gate = Gate(program)
    poll = Task(scheduler.poll)
    assert gate.reached.wait(10)
    return gate, poll  # type: ignore[return-value]  # a task of anything


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_question_is_answered_before_what_it_would_show_is_durable(program: Program, question: str):
    scheduler = program.open()
    gate, poll = polling_behind(program, scheduler)
    asking = Task(lambda: QUESTIONS[question](scheduler))
    asking.thread.join(0.05)
    assert (poll.running, asking.running) == (True, True)
    gate.open()
    poll.outcome()
    asking.outcome()


@pytest.mark.parametrize("question", QUESTIONS)
def test_when_the_fsync_fails_everybody_who_waits_gets_the_error_and_everybody_after(program: Program, question: str):
    scheduler = program.open()
    gate, poll = polling_behind(program, scheduler)
    durable = scheduler_digest_of_durable(program)
    asking = Task(lambda: QUESTIONS[question](scheduler))
    asking.thread.join(0.02)
    gate.open(OSError(errno.EIO, os.strerror(errno.EIO)))
    with pytest.raises(JournalPoisoned, match="indeterminate"):
        poll.outcome()
    with pytest.raises(JournalPoisoned):
        asking.outcome()
    for ask in QUESTIONS.values():
        with pytest.raises(JournalPoisoned):
            ask(scheduler)
    assert durable == replay(program.path, until=2).digest()


def scheduler_digest_of_durable(program: Program) -> str:
    return replay(program.path, confirmed=True).digest()


def test_a_reopened_journal_holds_what_was_durable_and_whole_batches_of_the_rest(program: Program):
    scheduler = program.open()
    gate, poll = polling_behind(program, scheduler)
    gate.open(OSError(errno.EIO, os.strerror(errno.EIO)))
    with pytest.raises(JournalPoisoned):
        poll.outcome()
    scheduler.close()
    program.disk.before_sync = lambda: None
    again = program.open()
    assert again.schedule("a").id == "a"
    assert program.consistent(again)
    runs = again.poll().offered
    assert [run.scheduled_at for run in runs] == [at("09:15")], "decided or not, it is offered exactly once"


def test_a_power_cut_behind_a_failed_fsync_loses_nothing_that_was_acknowledged(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    acknowledged = shutil.copytree(program.path, program.path.parent / "as it was durable")
    program.disk.before_sync = failing
    with pytest.raises(JournalPoisoned):
        scheduler.create("b", QUARTERLY, target="x")
    scheduler.close()
    assert [one.id for one in replay(acknowledged).schedules()] == ["a"]


def failing() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_poisoned_scheduler_closes_without_a_word_and_gives_the_journal_up(program: Program):
    scheduler = program.open()
    program.disk.before_sync = failing
    with pytest.raises(JournalPoisoned) as caught:
        scheduler.create("a", QUARTERLY, target="x")
    assert isinstance(caught.value.__cause__, OSError)
    scheduler.close()
    scheduler.close()
    program.disk.before_sync = lambda: None
    assert program.open().recovery.replayed >= 2


def test_a_page_shows_nothing_that_was_written_after_its_question_and_is_not_durable(
    program: Program, monkeypatch: pytest.MonkeyPatch
):
    scheduler = program.open()
    gates: list[Gate] = []
    polls: list[Task[object]] = []
    refresh = IndexedJournal.refresh

    def refresh_behind(journal: IndexedJournal) -> None:
        gate, poll = polling_behind(program, scheduler)
        gates.append(gate)
        polls.append(poll)
        refresh(journal)

    scheduler.create("b", QUARTERLY, target="x")
    monkeypatch.setattr(IndexedJournal, "refresh", refresh_behind)
    rows = scheduler.occurrences("b").items
    gates[0].open()
    polls[0].outcome()
    assert [row.disposition for row in rows] == ["interval"]
    monkeypatch.setattr(IndexedJournal, "refresh", refresh)
    assert [row.disposition for row in scheduler.occurrences("b").items] == ["interval", "admitted"]


# Fsyncs, counted


@pytest.fixture
def busy(program: Program) -> Scheduler:
    scheduler = program.open(task_slots=100)
    for number in range(50):
        scheduler.create(f"s{number:02}", QUARTERLY, target="x")
    return scheduler


def syncs(program: Program, work: Callable[[], object]) -> int:
    before = program.disk.syncs
    work()
    return program.disk.syncs - before


def test_a_poll_takes_one_fsync_however_much_it_decides_and_none_if_nothing(program: Program, busy: Scheduler):
    assert syncs(program, busy.poll) == 0
    assert syncs(program, lambda: program.poll_at(busy, "09:15", start=True)) == 1
    assert syncs(program, busy.poll) == 0
    assert program.kinds().count("RunStarted") == 50


def test_a_poll_that_records_what_the_clock_did_takes_one_fsync(program: Program, busy: Scheduler):
    program.poll_at(busy, "09:15")
    program.clock.step(at("08:00") - program.clock.now())
    assert syncs(program, busy.poll) == 1
    assert "ClockRegressed" in program.kinds()
    program.clock.step(at("10:00") - program.clock.now())
    assert syncs(program, busy.poll) == 1
    assert "ClockJumped" in program.kinds()


COMMANDS: dict[str, Callable[[Scheduler], object]] = {
    "create": lambda scheduler: scheduler.create("new", QUARTERLY, target="x"),
    "declare": lambda scheduler: scheduler.declare("new", QUARTERLY, target="x"),
    "edit": lambda scheduler: scheduler.edit("s00", expected_revision=1, target="y"),
    "pause": lambda scheduler: scheduler.pause("s00"),
    "disable": lambda scheduler: scheduler.disable("s00"),
    "delete": lambda scheduler: scheduler.delete("s00"),
    "block": lambda scheduler: scheduler.block("s00", "wait"),
    "rebaseline": lambda scheduler: scheduler.rebaseline("s00", at("08:00")),
    "external": lambda scheduler: scheduler.record_external_run("s00", at("08:00")),
    "run_now": lambda scheduler: scheduler.run_now("s00"),
    "start of all": lambda scheduler: scheduler.start(*(run.id for run in scheduler.runs(state="pending"))),
    "note_run": lambda scheduler: scheduler.note_run(scheduler.runs()[0].id, {"pid": 7}),
    "abandon": lambda scheduler: scheduler.abandon(scheduler.runs()[0].id),
    "fail": lambda scheduler: scheduler.fail(scheduler.runs()[0].id, error="no"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_one_fsync(program: Program, busy: Scheduler, command: str):
    program.poll_at(busy, "09:15")
    assert syncs(program, lambda: COMMANDS[command](busy)) == 1


REPEATED: dict[str, Callable[[Scheduler], object]] = {
    "declare": lambda scheduler: scheduler.declare("s00", QUARTERLY, target="x"),
    "edit of nothing": lambda scheduler: scheduler.edit("s00", expected_revision=1, target="x"),
    "unpause": lambda scheduler: scheduler.unpause("s00"),
    "enable": lambda scheduler: scheduler.enable("s00"),
    "unblock": lambda scheduler: scheduler.unblock("s00"),
    "start of none": lambda scheduler: scheduler.start(),
    "report of none": lambda scheduler: scheduler.report([]),
    "create_many of none": lambda scheduler: scheduler.create_many([]),
    "questions": lambda scheduler: [scheduler.schedules(), scheduler.upcoming(), scheduler.occurrences("s00")],
}


@pytest.mark.parametrize("command", REPEATED)
def test_what_changes_nothing_takes_no_fsync_and_writes_no_byte(program: Program, busy: Scheduler, command: str):
    before = program.bytes()
    assert syncs(program, lambda: REPEATED[command](busy)) == 0
    assert program.bytes() == before


def offered(program: Program, scheduler: Scheduler) -> tuple[Run, ...]:
    return program.poll_at(scheduler, "09:15", start=True).offered


def test_many_results_reported_together_take_one_fsync(program: Program, busy: Scheduler):
    runs = offered(program, busy)
    assert syncs(program, lambda: busy.report([Completed(run.id, result=run.id) for run in runs])) == 1
    assert [run.result for run in busy.runs(state="completed")] == [run.id for run in runs]


def test_sixteen_threads_that_report_at_once_share_their_fsyncs(program: Program, busy: Scheduler):
    runs = offered(program, busy)[:48]
    barrier = threading.Barrier(16)

    def report(mine: tuple[Run, ...]) -> None:
        barrier.wait(10)
        for run in mine:
            busy.complete(run.id, result=run.id)

    program.disk.before_sync = lambda: time.sleep(0.005)
    before = program.disk.syncs
    tasks = [Task(lambda mine=runs[n::16]: report(mine)) for n in range(16)]  # type: ignore[misc]  # bound at once
    for task in tasks:
        task.outcome()
    assert program.disk.syncs - before < 24, "48 results in fewer fsyncs than half of them"
    assert [run.result for run in busy.runs(state="completed")] == [run.id for run in runs]
    assert program.consistent(busy)


def test_create_many_takes_one_fsync_for_a_chunk(program: Program):
    scheduler = program.open()
    many = [{"schedule_id": f"s{n:04}", "trigger": QUARTERLY, "target": "x"} for n in range(1_500)]
    assert syncs(program, lambda: scheduler.create_many(many)) <= 2
    lines = {(record.segment, record.offset) for record in program.records() if record.sequence > 1}
    assert len(lines) == 2, "two chunks, each a line and so atomic"
