"""Facts: everything the record says, folded, as plain data.

Rules: only the fold changes it. What has ended leaves memory, but for a bounded window of the newest. Equal records
give equal digests, live or replayed.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from datetime import datetime

import msgspec

from duly.journal.entries import Definition, Entry, JournalOpened, kind_of
from duly.projections.runs import Run
from duly.projections.schedules import Block, ScheduleState, may_block

RECENT_RUNS = 1_000
"""How many ended runs stay in memory."""
RECENT_REQUESTS = 10_000
"""How many idempotency keys are remembered; an older one counts as new, but for that of a schedule's creation."""
RECENT_ANOMALIES = 1_000


class Anomaly(msgspec.Struct, frozen=True):
    """An entry that contradicts what came before it."""

    sequence: int
    kind: str
    schedule_id: str | None
    text: str


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an idempotency key was used for: the entry's sequence, its kind and its schedule, and for an edit the
    revision that it made."""

    sequence: int
    kind: str
    schedule_id: str | None
    revision: int = 0


class Facts:
    """What is known after the entry `sequence`."""

    def __init__(self) -> None:
        self.sequence = 0
        self.by_id: dict[str, ScheduleState] = {}
        self.runs_open: dict[int, Run] = {}
        self.runs_recent: OrderedDict[int, Run] = OrderedDict()
        self.pending: dict[int, None] = {}
        self.started: dict[int, None] = {}
        self.requests: dict[str, Request] = {}
        self.creations: dict[str, int] = {}
        """By schedule: the hash of the idempotency key that it was created with, if it was with one."""
        self.anomalies: list[Anomaly] = []
        self.anomaly_count = 0
        self.highest_at: datetime | None = None
        self.last_at: datetime | None = None
        self.newest_admission: str | None = None
        self.opened: JournalOpened | None = None
        self.opened_sequence = 0
        self.lost = 0
        self.founding: list[str] = []
        """The parts of a state that a journal begins with, as long as some are missing."""
        self._definitions: dict[bytes, Definition] = {}

    def digest(self) -> str:
        """SHA-256 over all that was folded, hex; equal for equal records, live or replayed."""
        fingerprint = hashlib.sha256()
        encode = msgspec.json.Encoder(order="deterministic").encode
        for part in self._parts():
            fingerprint.update(encode(part))
            fingerprint.update(b"\n")
        return fingerprint.hexdigest()

    def _parts(self) -> Iterator[object]:
        yield self.sequence, self.highest_at, self.last_at, self.newest_admission, self.opened_sequence, self.lost
        for schedule_id in sorted(self.by_id):
            yield self.by_id[schedule_id]
        for run_id in sorted(self.runs_open):
            yield self.runs_open[run_id]
        yield list(self.runs_recent.values())
        yield list(self.pending), list(self.started)
        yield list(self.requests.items())
        if self.creations:
            yield list(self.creations.items())
        yield self.anomaly_count, self.anomalies

    def shared(self, definition: Definition) -> Definition:
        """One object for equal definitions, so that many equal schedules cost one."""
        return self._definitions.setdefault(msgspec.json.encode(definition), definition)

    def mark_anomaly(self, sequence: int, entry: Entry, text: str, *, schedule_id: str | None) -> None:
        """Records a contradiction and blocks the schedule it is about."""
        anomaly = Anomaly(sequence, kind_of(entry), schedule_id, text)
        self.anomaly_count += 1
        if len(self.anomalies) < RECENT_ANOMALIES:
            self.anomalies.append(anomaly)
        found = self.by_id.get(schedule_id) if schedule_id is not None else None
        if found is not None and may_block(found.block):
            found.block = Block(sequence, "anomaly", f"{anomaly.kind} at {sequence} contradicts the record: {text}")

    def note_request(self, key: str, request: Request) -> None:
        """Remembers what an idempotency key was used for first; the oldest of too many is forgotten."""
        if not key:
            return
        self.requests.setdefault(key, request)
        if len(self.requests) > RECENT_REQUESTS:
            del self.requests[next(iter(self.requests))]


def key_hash(key: str) -> int:
    """Stands for an idempotency key where there may be millions of them."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=7).digest())
