"""The journal as its owner holds it: append, and know that it is durable.

Rules kept here:
- A line is encoded, chained and queued by `enqueue`, and becomes durable by `sync`: one waiting thread leads, writes
  and syncs all that queued, the others find theirs done. `append` is both.
- Any failure of a write or sync, an interruption included, poisons the journal for good; a failed append is
  *indeterminate*: close, reopen, and see. Nothing is written after a failure, and no sync is ever repeated.
- Interruptions (KeyboardInterrupt) may come between any two bytecodes. What is queued changes by one store of a whole
  new value. While the leader works, `_committing` is set; whoever takes the commit lock and finds it set knows that a
  leader never came to its end, and poisons. No rule rests on an except clause being reached.
- Who leads is settled at a gate, a lock of its own for each commit: the first of those whose lines will go together
  holds it, waits for the commit before, and takes along all that queued meanwhile; the others wait at it. So nobody
  whose line is durable ever waits for a later commit.
- Locks are taken in this order: the caller's own, gate, commit, queue. Ours are plain locks, held by `with`.
- Nothing here reads a clock.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType

from duly.journal.chain import Encoded, Rule, chain_from, drained, queued, rotated
from duly.journal.checkpoint import Folding, Position
from duly.journal.codec import encode_batch
from duly.journal.describing import describe_owner
from duly.journal.disk import Disk
from duly.journal.entries import Entry
from duly.journal.errors import JournalError, JournalPoisoned
from duly.journal.format import APPEND_WINDOW, SEGMENT_BYTES, microseconds, seed
from duly.journal.opening import Taken, opening, take
from duly.journal.ownership import CLAIMS, Ownership, canonical, own
from duly.journal.real_disk import RealDisk
from duly.journal.recovered import recovered_entries
from duly.journal.recovery import Recovery

_FORKED = "this handle came through a fork: the journal belongs to the parent"


class Journal:
    """An owned journal. Thread-safe; use it as a context manager, or close it."""

    def __init__(self, disk: Disk, ownership: Ownership, taken: Taken, segment_bytes: int) -> None:
        """Not for users: `Journal.open` is."""
        recovered = taken.recovered
        self.path: Path = ownership.folder
        self.journal_id: str = recovered.journal_id
        self.recovery: Recovery = recovered.recovery
        self._disk = disk
        self._ownership = ownership
        self._output = taken.output
        self._recovered = recovered
        self._rule = Rule(recovered.journal_id, seed(recovered.journal_id), segment_bytes)
        self._chain = chain_from(recovered.segments[-1], recovered.place)
        self._queue_lock = threading.Lock()
        self._commit_lock = threading.Lock()
        self._new_gate: Callable[[], threading.Lock] = threading.Lock
        self._gate = self._new_gate()
        self._committing = False
        self._closed = False
        self._released = False
        self._poison: BaseException | str | None = None
        self._pid = os.getpid()
        _OPEN.add(self)

    @classmethod
    def open(  # noqa: PLR0913  # each is a choice of its own, by keyword
        cls,
        path: str | os.PathLike[str],
        *,
        now: datetime | None = None,
        create: bool = True,
        lock_timeout: timedelta | None = None,
        disk: Disk | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        sleep: Callable[[float], None] = time.sleep,
        folding: Folding | None = None,
    ) -> Journal:
        """Takes the journal in the folder `path`, creating or recovering it.

        What opening records is the owner's to append; its clock reading `now` may be left out, and is refused here if
        it is naive, before anything was changed. `lock_timeout` is how long to wait for another owner to leave; the
        wait is counted in pauses of `sleep`, as nothing here reads a clock. `folding` gets what the journal holds while
        that is verified: the state of the checkpoint, where there is a good one, and every line after it.
        """
        if now is not None:
            microseconds(now)
        disk = RealDisk() if disk is None else disk
        folder = canonical(path)
        with opening(folder):
            ownership = own(
                disk,
                folder,
                create=create,
                lock_timeout=lock_timeout,
                sleep=sleep,
                owner=lambda: describe_owner(disk, folder),
            )
            try:
                return cls(disk, ownership, take(disk, ownership, folding), segment_bytes)
            except BaseException:
                ownership.release()
                raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def last_sequence(self) -> int:
        """The highest queued sequence."""
        return self._chain.last

    @property
    def durable_sequence(self) -> int:
        """The highest sequence whose sync has returned."""
        return self._output.durable

    @property
    def position(self) -> Position:
        """Where what is durable ends."""
        return self._output.position

    @property
    def poisoned(self) -> bool:
        """Whether the journal is finished for good."""
        return self._poison is not None

    def entries(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        """(sequence, entry) for what was in the journal when it was opened, above `after`; read as it is asked for."""
        return recovered_entries(self._disk, self.path, self._recovered.segments, self._recovered.place, after)

    def append(self, entries: Sequence[Entry], now: datetime) -> int:
        """Writes the entries as one atomic batch; durable when this returns. Returns the first one's sequence."""
        first = self.enqueue(entries, now)
        self.sync(first + len(entries) - 1)
        return first

    def enqueue(self, entries: Sequence[Entry], now: datetime) -> int:
        """Encodes, chains and queues the entries as one line; returns the first one's sequence.

        The owner calls this under the one lock under which it decides, so that the order of decisions is the order of
        the journal; without such a lock it is safe too. If it is interrupted, the line may be queued or not: the owner
        that cannot tell poisons.
        """
        batch = tuple(entries)
        return self.enqueue_encoded(encode_batch(batch), len(batch), now)

    def enqueue_encoded(self, data: bytes, count: int, now: datetime) -> int:
        """Queues `count` entries that are encoded already, as one array. For salvage, which copies kinds it may not
        know."""
        batch = Encoded(data, count, microseconds(now))
        while True:
            self.check()
            with self._queue_lock:
                if self._chain.waiting + len(data) < APPEND_WINDOW - 1024:
                    first = self._chain.last + 1
                    self._chain = queued(self._chain, self._rule, batch, self._output.durable)
                    return first
            self.sync()

    def rotate(self) -> None:
        """The next line begins a new segment."""
        self.check()
        with self._queue_lock:
            if self._chain.last >= self._chain.segment.first:
                self._chain = rotated(self._chain, self._rule)

    def sync(self, through: int | None = None) -> None:
        """Returns when everything up to `through` (or all that is queued) is durable."""
        if through is None:
            through = self._chain.last
        elif through > self._chain.last:
            raise ValueError(f"sequence {through} was never queued; the last one is {self._chain.last}")
        if self._output.durable >= through:
            return
        self.check()
        with self._gate:
            if self._output.durable >= through:
                return
            self.check()
            with self._commit_lock:
                if self._output.durable >= through:
                    return
                self._refuse_interrupted()
                self.check()
                self._commit()
                self._output.write_head()

    def _commit(self) -> None:
        self._committing = True
        try:
            with self._queue_lock:
                # The gate first: whoever queues after this commit took its lines has to find the next one.
                self._gate = self._new_gate()
                items, self._chain = drained(self._chain)
            self._output.commit(items)
        except BaseException as error:
            self.poison(error)
            if isinstance(error, Exception):
                raise self._poisoned_error() from error
            raise
        self._committing = False

    def _refuse_interrupted(self) -> None:
        """With the commit lock held, nobody is committing: a flag that is set was left behind."""
        if self._committing:
            self.poison("a commit was interrupted")

    def check(self) -> None:
        """Raises JournalPoisoned if the journal is finished, JournalError if it is closed."""
        if self._pid != os.getpid():
            self.poison(_FORKED)
        if self._committing and self._poison is None and not self._commit_lock.locked():
            with self._commit_lock:
                self._refuse_interrupted()
        if self._poison is not None:
            raise self._poisoned_error()
        if self._closed:
            raise JournalError("the journal is closed", path=self.path, hint="Open it again")

    def poison(self, reason: BaseException | str) -> None:
        """Finishes the journal for good. The first reason stays."""
        if self._poison is None:
            self._poison = reason

    def _poisoned_error(self) -> JournalPoisoned:
        reason = self._poison
        text = reason if isinstance(reason, str) else f"{type(reason).__name__}: {reason}"
        error = JournalPoisoned(
            f"the journal is poisoned ({text}); what was being appended is indeterminate",
            path=self.path,
            sequence=self._output.durable + 1,
            hint="Close it and open it again to learn what it holds",
        )
        error.__cause__ = reason if isinstance(reason, BaseException) else None
        return error

    def close(self) -> None:
        """Makes what is queued durable, unless the journal is poisoned, and gives the journal up. Raises nothing.

        When it was interrupted it may be called again, and goes on.
        """
        if self._released:
            return
        if self._pid != os.getpid():
            self.leave_to_parent()
            return
        try:
            if self._chain.queue is not None and self._poison is None:
                self.sync()
        except JournalError:
            pass  # it is poisoned now; there is nobody to tell but the next owner, who finds out
        finally:
            with self._commit_lock:
                self._closed = True
                self._ownership.release()
                _OPEN.discard(self)
                self._released = True

    def leave_to_parent(self) -> None:
        """In a forked child: its copies of the descriptors are closed, and no lock of ours is touched."""
        self.poison(_FORKED)
        self._closed = True
        self._ownership.handles.close_all()
        self._released = True


_OPEN: weakref.WeakSet[Journal] = weakref.WeakSet()
"""Weakly: a journal that was lost in an interrupted opening, and that nobody can append to, gives up its lock."""


def _after_fork_in_child() -> None:
    CLAIMS.forget()
    for journal in list(_OPEN):
        journal.leave_to_parent()
    _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
