"""The host of a timeline: what it answers when a decision asks, and what it knows after a crash."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duly import Completed, Failed, Interrupted, Invocation, Run, StillRunning, Target
from tests.scheduler.timeline_text import Line, expand

if TYPE_CHECKING:
    from tests.scheduler.timeline_world import World


class Host:
    def __init__(self) -> None:
        self._targets: dict[str, str | None] | None = None
        self._refusing: set[str] = set()
        self._breaking: set[str] = set()

    def hear(self, options: dict[str, str]) -> None:
        """What the host answers from here on."""
        if "targets" in options:
            named = [name.partition("@") for name in options["targets"].split(",") if name]
            self._targets = {name: revision or None for name, _, revision in named}
        self._refusing |= _names(options, "refuse")
        self._breaking |= _names(options, "break")
        self._refusing -= _names(options, "accept")
        self._breaking -= _names(options, "accept")

    def callbacks(self) -> dict[str, Any]:
        asked: dict[str, Any] = {"preflight": self._preflight}
        return asked if self._targets is None else asked | {"targets": self._target}

    def _target(self, name: str) -> Target | None:
        assert self._targets is not None
        return Target(name, self._targets[name], {"at": "pinned"}) if name in self._targets else None

    def _preflight(self, invocation: Invocation) -> str | None:
        if invocation.schedule_id in self._breaking:
            raise RuntimeError("the preflight broke")
        return "refused, as the timeline says" if invocation.schedule_id in self._refusing else None


@dataclass
class Evidence:
    """What the host knows of its runs, as lists of run ids."""

    completed: list[int] = field(default_factory=list[int])
    failed: list[int] = field(default_factory=list[int])
    interrupted: list[int] = field(default_factory=list[int])
    running: list[int] = field(default_factory=list[int])
    breaks: list[int] = field(default_factory=list[int])
    attempts: dict[int, int | None] = field(default_factory=dict[int, int | None])
    stray: list[str] = field(default_factory=list[str])

    @classmethod
    def of_line(cls, line: Line, world: World) -> Evidence:
        told: dict[str, list[int]] = {}
        for name in ("completed", "failed", "interrupted", "running", "breaks"):
            named = expand(line.options.get(name, ""), line.now.date())
            told[name] = [world.run_id(run) for run in named.split(",") if run]
        known = [run_id for runs in told.values() for run_id in runs]
        attempts = {run_id: world.attempt_of(line, run_id) for run_id in known}
        return cls(**told, attempts=attempts, stray=sorted(_names(line.options, "stray")))

    def of(self, run: Run) -> Completed | Failed | Interrupted | StillRunning | None:
        attempt_id = self.attempts.get(run.id)
        if run.id in self.breaks:
            raise RuntimeError("the host's own store is broken")
        if run.id in self.completed:
            return Completed(run.id, attempt_id=attempt_id)
        if run.id in self.failed:
            return Failed(run.id, attempt_id=attempt_id, error="it did not work")
        if run.id in self.interrupted:
            return Interrupted(run.id, attempt_id=attempt_id)
        return StillRunning(run.id) if run.id in self.running else None

    def runs(self) -> Iterable[tuple[int, str]]:
        return [(900_000 + position, schedule_id) for position, schedule_id in enumerate(self.stray)]


def _names(options: dict[str, str], option: str) -> set[str]:
    return {name for name in options.get(option, "").split(",") if name}
