"""A history as a timeline: lines for `tests.scheduler.timeline.check`, as far as its language goes.

What it cannot say (which threads were beside each other, faults of the disk, a host that refuses at random) stands as
remarks. Calls that were made at once are told one after the other, in the order in which the journal has them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from math import inf
from typing import NamedTuple

from duly import Completed, Error, Failed, Interrupted, ManualClock, Poll, StillRunning
from duly.journal.entries import (
    AttemptCleared,
    ClockJumped,
    ClockRegressed,
    Entry,
    JournalClosed,
    JournalOpened,
    OccurrenceSkipped,
)
from tests.scheduler.timeline_text import MUST_SAY, OWN
from tests.scheduler.timeline_words import Words
from tests.simulation.evidence import BrokenStore, Memory
from tests.simulation.operations import Operation

TARGETS = ("loose", *(f"s{number}" for number in range(1, 30)))


class Settings(NamedTuple):
    """What an owner of the journal settles."""

    slots: int
    batch: int
    tolerance: timedelta

    def __str__(self) -> str:
        return f"slots={self.slots} batch={self.batch} tolerance={self.tolerance.seconds}s"


class Story:
    """What happened, line by line."""

    def __init__(self, seed: int, clock: ManualClock) -> None:
        self.seed = seed
        self.lines: list[str] = []
        self._clock = clock
        self._words = Words()

    def __str__(self) -> str:
        return "\n".join([f"# seed {self.seed}: python -m tests.simulation.campaign {self.seed}", *self.lines])

    def say(self, text: str) -> None:
        """One line, at this time."""
        self.lines.append(text if text.startswith("#") else f"{self._now()}  {self._named(text)}")

    def answers(self, verb: str, revision: str) -> None:
        """What the host's targets are from here on; `verb` is `host`, or the rest of the first line."""
        self.say(f"{verb} targets={','.join(f'{name}@{revision}' for name in TARGETS)}")

    def performed(self, works: Sequence[Operation], fresh: Sequence[Entry], first: int) -> None:
        """These calls were made, all at once, and the journal has these entries of them."""
        entries = dict(enumerate(fresh, first))
        for sequence, entry in entries.items():
            self._words.learn(sequence, entry)
        shares = self._shares(works, entries)
        if len(works) > 1:
            self.lines.append("# at once:")
        order = sorted(range(len(works)), key=lambda place: min(shares[place], default=inf))
        for place in order:
            self._tell(works[place], [(one, entries[one]) for one in sorted(shares[place])])

    def reopened(self, verb: str, memory: Memory | None, settings: Settings, entries: Sequence[Entry]) -> None:
        """The journal was opened again, with this evidence. `entries` are those that nobody had heard of before."""
        mark = max(place for place, entry in enumerate(entries) if isinstance(entry, JournalOpened))
        survived = [self._words.decision(entry, 0).text for entry in entries[:mark] if _is_told(entry)]
        if survived:
            self.lines.append(f"# had become durable: {', '.join(survived)}")
        self.say(f"{verb} {self._evidence(memory)} {settings}")

    def recovered(self, entries: Sequence[Entry], first: int) -> None:
        """What the opening decided, behind its line; what comes before its mark is only learnt."""
        for sequence, entry in enumerate(entries, first):
            self._words.learn(sequence, entry)
        mark = max(place for place, entry in enumerate(entries) if isinstance(entry, JournalOpened))
        decided = [self._words.decision(entry, 0).text for entry in entries[mark + 1 :]]
        if decided:
            self.lines[-1] += f"  -> {', '.join(decided)}"

    def _evidence(self, memory: Memory | None) -> str:
        if memory is None:
            return ""
        named: dict[str, list[str]] = {}
        for run_id, answer in memory.given.items():
            word = _word_of(answer, memory.asked[run_id])
            if word:
                named.setdefault(word, []).append(f"<{run_id}>")
        if memory.strangers:
            named["stray"] = [schedule_id for _, schedule_id in memory.strangers]
        return " ".join(f"{name}={','.join(runs)}" for name, runs in named.items())

    def _shares(self, works: Sequence[Operation], entries: dict[int, Entry]) -> list[set[int]]:
        """Which entries each call made: a poll knows its own, the others by what they say."""
        shares: list[set[int]] = [set() for _ in works]
        free = {one: entry for one, entry in entries.items() if _is_told(entry)}
        for share, work in zip(shares, works, strict=True):
            if isinstance(work.outcome, Poll):
                share.update(one for one, _ in work.outcome.decisions if free.pop(one, None) is not None)
        for share, work in zip(shares, works, strict=True):
            wanted = self._own(work.words)
            for one, entry in list(free.items()):
                if work.error is None and (self._text(one, entry) in wanted or _says(entry, work.token)):
                    share.add(one)
                    del free[one]
        for one, entry in free.items():
            beside = one + 1 if isinstance(entry, OccurrenceSkipped) else one - 1
            owner = next((share for share in shares if beside in share), shares[-1])
            owner.add(one)
        return shares

    def _tell(self, work: Operation, mine: Sequence[tuple[int, Entry]]) -> None:
        verb = work.words.partition(" ")[0]
        if isinstance(work.error, Error):
            self.say(f"{work.words}  raises={type(work.error).__name__}")
            return
        own = self._own(work.words)
        others = [self._text(one, entry) for one, entry in mine if self._text(one, entry) not in own]
        if isinstance(work.outcome, Poll):
            others += self._aside(work.outcome)
        silent = verb in OWN and not mine
        arrow = f"  -> {', '.join(others) or 'nothing'}" if others or silent or verb in MUST_SAY else ""
        self.say(f"{work.words}{arrow}")

    def _aside(self, poll: Poll) -> list[str]:
        """What a poll says beyond its entries."""
        admitted = {run.id for run in poll.admitted}
        loud = any(isinstance(entry, ClockRegressed | ClockJumped) for _, entry in poll.decisions)
        aside = [f"offer <{run.id}>" for run in poll.offered if run.id not in admitted]
        return aside + ["more"] * poll.more + ["warn"] * (bool(poll.warnings) and not loud)

    def _own(self, words: str) -> list[str]:
        """How the entries read that a call itself makes."""
        verb, _, rest = self._named(words).partition(" ")
        subjects = [word for word in rest.split() if "=" not in word]
        return (
            [OWN[verb].format(subject) for subject in subjects[: None if verb == "start" else 1]] if verb in OWN else []
        )

    def _text(self, sequence: int, entry: Entry) -> str:
        return self._words.decision(entry, sequence).text

    def _named(self, text: str) -> str:
        text = re.sub(r"<(\d+)>", lambda run: self._words.name(int(run[1])), text)
        return re.sub(r"\[(\d+)\]", lambda attempt: self._attempt(int(attempt[1])), text)

    def _attempt(self, attempt_id: int) -> str:
        numbers = [one.index(attempt_id) + 1 for one in self._words.attempts.values() if attempt_id in one]
        return str(numbers[0] if numbers else 99)

    def _now(self) -> str:
        return f"{self._clock.now():%Y-%m-%dT%H:%M:%S.%fZ}".replace(".000000Z", "Z")


def _is_told(entry: Entry) -> bool:
    return not isinstance(entry, JournalOpened | JournalClosed)


def _says(entry: Entry, token: str) -> bool:
    return bool(token) and not isinstance(entry, AttemptCleared) and getattr(entry, "note", None) == token


def _word_of(answer: object, attempt_id: int | None) -> str:
    """How a timeline calls the answer; what names another attempt is worth nothing, and is left out."""
    match answer:
        case BrokenStore():
            return "breaks"
        case StillRunning():
            return "running"
        case Completed() if answer.attempt_id == attempt_id:
            return "completed"
        case Failed() if answer.attempt_id == attempt_id:
            return "failed"
        case Interrupted() if answer.attempt_id == attempt_id:
            return "interrupted"
        case _:
            return ""
