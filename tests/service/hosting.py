"""What the tests of the host share: a host in a thread, work that is due at once, and what the record says of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from duly import OneShot, Run
from duly.projections import replay
from duly.service import Event, Host

T = TypeVar("T")
PATIENCE = float(os.environ.get("DULY_TESTS_PATIENCE", "30"))
"""Seconds after which a test gives up waiting; nothing is expected to take a part of it. A fault that was put in on
purpose is waited for less."""


def just_now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def due(host: Host, *names: str, **policy: Any) -> None:
    """Schedules, each named like its target, that are due at once."""
    for name in names:
        host.scheduler.declare(name, OneShot(just_now()), target=name, **policy)


def until(condition: Callable[[], T], what: str = "it never came to be") -> T:
    """Waits until the condition holds, and gives its value."""
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.005)
    return value


@contextmanager
def running(host: Host) -> Generator[Host]:
    """The host runs in a thread; it is stopped at the end, and must end by that."""
    thread = Thread(target=host.run)
    thread.start()
    try:
        yield host
    finally:
        host.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the host did not end"


def ended(host: Host) -> Callable[[], bool]:
    """Whether nothing is pending or started any more, and something has been."""

    def condition() -> bool:
        runs = host.scheduler.runs()
        return bool(runs) and all(run.state not in ("pending", "started") for run in runs)

    return condition


def outcomes(journal: Path) -> dict[str, object]:
    """By schedule: the state, and the result, the checkpoint or the error's type of its last run."""
    return {run.schedule_id or run.target: outcome(run) for run in replay(journal).runs()}


def outcome(run: Run) -> object:
    match run.state:
        case "completed":
            return run.result
        case "failed":
            return run.error.type if run.error is not None else None
        case "interrupted":
            return ("interrupted", run.checkpoint)
        case _:
            return run.state


class Seen(list[Event]):
    """An observer that keeps what it was told."""

    def __call__(self, event: Event) -> None:
        self.append(event)

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self]
