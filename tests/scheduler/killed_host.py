"""A host that does real work and is killed: `python -m tests.scheduler.killed_host JOURNAL LOG SECONDS EVIDENCE`.

It runs the documented loop with three workers. Before and after each piece of work it appends a line to LOG, an
O_APPEND file that knows nothing of the journal: `begin RUN ATTEMPT OCCURRENCE`, `end RUN ATTEMPT OCCURRENCE`. Some work
stops with a checkpoint and is resumed. When its time is over without a kill, it lets the work end and closes. EVIDENCE
is `log`, what the log says of the work before, or `none`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from typing import Any

from duly import Completed, Every, Interrupted, Run, Scheduler

SLOTS = 3
SPEED = 600
"""How many seconds of the clock go by in one real second."""


class FastClock:
    """A clock that runs on from the Unix epoch of the machine, so fast that every second has its occurrences."""

    def now(self) -> datetime:
        base = datetime(2026, 1, 1, tzinfo=UTC)
        return base + timedelta(seconds=(time.time() % 1_000_000) * SPEED)

    def monotonic(self) -> float:
        return time.time() * SPEED

    def wait(self, seconds: float, wakeup: object) -> None:
        time.sleep(min(seconds / SPEED, 0.01))


class Log:
    """The world outside: what was done cannot be undone."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, word: str, run: Run, attempt_id: int | None) -> None:
        os.write(self._file, f"{word} {run.id} {attempt_id or 0} {run.occurrence_id}\n".encode())


class FromLog:
    """Evidence out of the log: work with an `end` is complete, with a `stop` interrupted; the rest died with its
    process."""

    def __init__(self, path: str) -> None:
        self._last: dict[tuple[int, int], str] = {}
        if os.path.exists(path):  # noqa: PTH110 - a script of few imports
            with open(path, encoding="utf-8") as lines:  # noqa: PTH123 - as above
                for line in lines:
                    word, run_id, attempt_id, _ = line.split(" ")
                    self._last[int(run_id), int(attempt_id)] = word

    def of(self, run: Run, /) -> Completed | Interrupted | None:
        match self._last.get((run.id, run.attempt_id or 0)):
            case "end":
                return Completed(run.id, run.attempt_id, "found in the log")
            case "stop":
                return Interrupted(run.id, run.attempt_id, "found in the log")
            case _:
                return None

    def runs(self) -> Iterable[tuple[int, str]]:
        return ()


def work(scheduler: Scheduler, log: Log, todo: SimpleQueue[tuple[Run, int | None] | None]) -> None:
    """A worker: it executes what was started, and reports."""
    while (item := todo.get()) is not None:
        run, attempt_id = item
        log.write("begin", run, attempt_id)
        time.sleep(0.002 + (run.id % 5) * 0.002)
        if run.id % 4 == 0 and (attempt_id is None or run.id % 8 == 0) and run.id % 3:
            log.write("stop", run, attempt_id)
            scheduler.report([Interrupted(run.id, attempt_id, {"after": attempt_id})])
        else:
            log.write("end", run, attempt_id)
            time.sleep(0.01)  # a moment in which the work is done, and only its own log knows
            scheduler.report([Completed(run.id, attempt_id, "done")])


def main(journal: str, path: str, seconds: float, known: str) -> None:
    """The documented loop."""
    evidence = FromLog(path) if known == "log" else None
    log = Log(path)
    until = time.monotonic() + seconds
    with Scheduler.open(
        journal, task_slots=SLOTS, clock=FastClock(), evidence=evidence, lock_timeout=5, actor=known
    ) as scheduler:
        anchor = datetime(2026, 1, 1, tzinfo=UTC)
        policy: dict[str, Any] = {"overlap": "parallel", "max_active_runs": 3}
        for name in ("a", "b", "c", "d"):
            scheduler.declare(name, Every(1, "minute", anchor=anchor), target=name, **policy)
        todo: SimpleQueue[tuple[Run, int | None] | None] = SimpleQueue()
        workers = [threading.Thread(target=work, args=(scheduler, log, todo)) for _ in range(SLOTS)]
        for worker in workers:
            worker.start()
        while time.monotonic() < until:
            poll = scheduler.poll(start=True)
            for run in poll.offered:
                todo.put((run, None))
            for run in scheduler.runs(state="interrupted"):
                if len(scheduler.runs(state="started")) < SLOTS - 1:
                    attempt = scheduler.resume(run.id)
                    todo.put((attempt.run, attempt.attempt_id))
            scheduler.wait(poll)
        for _ in workers:
            todo.put(None)
        for worker in workers:
            worker.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4])
