"""The machine of a simulation: the same everywhere, with a disk that fails as planned and a calendar that may break.

Rules: everything is drawn from the source of choices that is given; a fault happens once.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeAlias
from unittest.mock import patch

from duly import Invocation, Target
from duly.journal import Journal
from duly.journal.entries import Json, SourceRule
from duly.journal.format import SEGMENT_BYTES
from tests.journal.simulated_disk import Call, Fault

FaultFor: TypeAlias = Callable[[int, Call, Path], Fault | None]
ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)


@contextmanager
def one_machine(seed: int) -> Generator[None]:
    """The same machine everywhere, so that a seed writes the same bytes wherever it runs. Some have small segments."""
    quiet = logging.getLogger("duly")
    level = quiet.level
    quiet.setLevel(logging.CRITICAL)
    bytes_of_a_segment = (SEGMENT_BYTES, SEGMENT_BYTES, 2_000, 6_000)[seed % 4]
    try:
        with (
            patch.object(Journal, "open", partial(Journal.open, segment_bytes=bytes_of_a_segment)),
            patch("os.getpid", lambda: 4242),
            patch("platform.node", lambda: "host"),
            patch("platform.python_version", lambda: "3"),
            patch("duly.journal.recovery.new_journal_id", lambda: f"{seed:032x}"),
        ):
            yield
    finally:
        quiet.setLevel(level)


def planned_fault(random: Random) -> FaultFor:
    """One of the next few writes or syncs goes wrong: it fails, is short, finds no space, or is interrupted."""
    wanted: Call = random.choice(("write", "sync"))
    countdown = random.randrange(4)
    kept = random.choice((0, 1, 30, 100, 400))
    after = random.random() < 0.3
    error: OSError | KeyboardInterrupt | None = OSError(errno.EIO, "EIO")
    draw = random.random()
    if wanted == "write":
        error = None if draw < 0.3 else OSError(errno.ENOSPC, "ENOSPC") if draw < 0.6 else error
    if draw > 0.85:
        error = KeyboardInterrupt()

    def fault_for(number: int, call: Call, path: Path) -> Fault | None:
        nonlocal countdown
        if call != wanted:
            return None
        countdown -= 1
        if countdown != -1:
            return None
        return Fault(error, kept=max(kept, 1) if error is None else kept, after=after and error is not None)

    return fault_for


class Calendar:
    """The host's own calendar, which can be out of order for a while."""

    def __init__(self) -> None:
        self.broken = False

    def source(self, parameters: Json) -> OwnSource:
        """The factory that the Scheduler is given."""
        assert isinstance(parameters, int)
        return OwnSource(self, parameters)


class OwnSource:
    """A trigger of the host's own: every so many minutes, while its calendar is in order."""

    def __init__(self, calendar: Calendar, minutes: int) -> None:
        self.rule = SourceRule("own", minutes)
        self._calendar = calendar
        self._step = timedelta(minutes=minutes)

    def __repr__(self) -> str:
        return f"own {self.rule.parameters}"

    def next_after(self, instant: datetime, /) -> datetime | None:
        self._check()
        return ANCHOR + ((instant - ANCHOR) // self._step + 1) * self._step

    def prev_before(self, instant: datetime, /) -> datetime | None:
        self._check()
        return ANCHOR - ((ANCHOR - instant) // self._step + 1) * self._step

    def _check(self) -> None:
        if self._calendar.broken:
            raise LookupError("the calendar is out of order")


class Answers:
    """What the host answers when a decision asks: mostly yes."""

    def __init__(self, random: Random, *, calm: bool) -> None:
        self._random = random
        self.picky = random.random() < 0.4 and not calm
        self.revision = "1"

    def target(self, name: str) -> Target | None:
        """The target as it is now; some are unknown at times."""
        if self.picky and self._random.random() < 0.05:
            return None
        return Target(name, self.revision, {"name": name})

    def preflight(self, invocation: Invocation) -> str | None:
        """A refusal at times, and sometimes an exception."""
        if not self.picky or self._random.random() < 0.9:
            return None
        if self._random.random() < 0.3:
            raise RuntimeError("the preflight broke")
        return f"{invocation.target} is refused"
