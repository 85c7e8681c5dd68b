"""A history as a timeline: lines for `tests.scheduler.timeline.check`, as far as its language goes.

What it cannot say (threads, faults of the disk) stands as remarks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from duly import Completed, Failed, Interrupted, ManualClock
from duly.journal.entries import Entry, JournalClosed, JournalOpened
from tests.scheduler.timeline_text import OWN
from tests.scheduler.timeline_words import Words
from tests.simulation.host import Host
from tests.simulation.operations import Operation


class Settings(NamedTuple):
    """What an owner of the journal settles."""

    slots: int
    batch: int
    tolerance: timedelta


class Story:
    """What happened, line by line."""

    def __init__(self, seed: int, clock: ManualClock) -> None:
        self.seed = seed
        self.lines: list[str] = []
        self._clock = clock
        self._words = Words()
        self._own: list[str] = []

    def __str__(self) -> str:
        lines = [self._named(line) for line in self.lines]
        return "\n".join([f"# seed {self.seed}: python -m tests.simulation.campaign {self.seed}", *lines])

    def say(self, text: str) -> None:
        """One line, at this time."""
        self._own = []
        self.lines.append(text if text.startswith("#") else f"{self._now()}  {text}")

    def opened(self, settings: Settings) -> None:
        """The first line."""
        self.say(f"open {_set(settings)}")

    def works(self, works: Sequence[Operation]) -> None:
        """The calls that begin now, all at once."""
        if len(works) > 1:
            self.lines.append("# at once:")
        for work in works:
            self.say(work.words)
        self._own = [work.words for work in works]

    def reopening(self, verb: str, host: Host, settings: Settings) -> None:
        """The journal is opened again, with what the host knows at best."""
        named: dict[str, list[str]] = {"completed": [], "failed": [], "interrupted": [], "running": []}
        for run_id, result in host.finished.items():
            kind = {Completed: "completed", Failed: "failed", Interrupted: "interrupted"}[type(result)]
            named[kind].append(f"<{run_id}>")
        named["running"] = [f"<{run_id}>" for run_id in host.executing]
        told = " ".join(f"{name}={','.join(runs)}" for name, runs in named.items() if runs)
        self.say(f"{verb} {told} {_set(settings)}")

    def told(self, entries: Sequence[Entry], first: int) -> None:
        """These entries followed on the line above."""
        decided: list[str] = []
        for sequence, entry in enumerate(entries, first):
            self._words.learn(sequence, entry)
            if isinstance(entry, JournalOpened | JournalClosed):
                continue
            text = self._words.decision(entry, sequence).text
            if all(self._named(self._owns(words)) != text for words in self._own):
                decided.append(text)
        polled = any(words.startswith("poll") for words in self._own)
        if decided or polled:
            self.lines[-1] += f"  -> {', '.join(decided) or 'nothing'}"

    def _owns(self, words: str) -> str:
        verb, _, rest = words.partition(" ")
        return OWN[verb].format(rest.split(" ")[0]) if verb in OWN else ""

    def _named(self, text: str) -> str:
        return re.sub(r"<(\d+)>", lambda run: self._words.name(int(run[1])), text)

    def _now(self) -> str:
        return f"{self._clock.now():%Y-%m-%dT%H:%M:%S.%fZ}".replace(".000000Z", "Z")


def _set(settings: Settings) -> str:
    return f"slots={settings.slots} batch={settings.batch} tolerance={settings.tolerance.seconds}s"
