"""The chain as it will stand once all that is queued is written: a value, and pure functions of it.

Rules kept here:
- Queueing computes a new value; the journal swaps it in with one store, so that an interruption between two bytecodes
  leaves either the old one or the new one.
- Sequences, hashes, offsets and the headers of the segments to come are fixed when a line is queued, never later.
- Nothing here touches a disk or a clock.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from duly.journal.format import batch_body, header_line, seal
from duly.journal.scanning import Place
from duly.journal.segments import Segment


class Batch(NamedTuple):
    """A queued line, newline included. `last` is its last sequence, `h` the chain at it."""

    line: bytes
    last: int
    h: bytes


class Rotation(NamedTuple):
    """Here the next segment begins. `header` is its first line, newline included."""

    segment: Segment
    header: bytes
    h: bytes


Item: TypeAlias = Batch | Rotation


class Queue(NamedTuple):
    """The newest queued item, and those before it."""

    item: Item
    before: Queue | None


class Chain(NamedTuple):
    """The end of the chain, and what of it is not yet handed to the disk."""

    last: int
    """The highest queued sequence."""
    h: bytes
    segment: Segment
    offset: int
    queue: Queue | None = None
    waiting: int = 0
    """How many bytes the queue holds."""


class Rule(NamedTuple):
    """What is the same for every line of a journal."""

    journal_id: str
    crc_seed: int
    segment_bytes: int


def chain_from(segment: Segment, place: Place) -> Chain:
    """The chain of a journal of which nothing is queued."""
    return Chain(place.next - 1, place.h, segment, place.offset)


class Encoded(NamedTuple):
    """A batch that is ready to be chained: `size` entries as one encoded array, and the time in microseconds."""

    entries: bytes
    size: int
    at: int


def queued(chain: Chain, rule: Rule, batch: Encoded, durable: int) -> Chain:
    """The chain with one more line, and before it a new segment if it is time for one."""
    body = batch_body(chain.last + 1, durable, batch.at, batch.entries)
    sealed = seal(chain.h, rule.crc_seed, body)
    size = len(sealed.line) + 1
    if chain.offset + size > rule.segment_bytes and chain.last >= chain.segment.first:
        chain = rotated(chain, rule)
        sealed = seal(chain.h, rule.crc_seed, body)
    last = chain.last + batch.size
    line = Batch(sealed.line + b"\n", last, sealed.h)
    return Chain(last, sealed.h, chain.segment, chain.offset + size, Queue(line, chain.queue), chain.waiting + size)


def rotated(chain: Chain, rule: Rule) -> Chain:
    """The chain with a new segment begun, which nothing stands in yet."""
    segment = Segment(chain.segment.number + 1, chain.last + 1)
    sealed = header_line(rule.journal_id, segment.number, segment.first, chain.h, chain.offset)
    header = sealed.line + b"\n"
    queue = Queue(Rotation(segment, header, sealed.h), chain.queue)
    return Chain(chain.last, sealed.h, segment, len(header), queue, chain.waiting + len(header))


def drained(chain: Chain) -> tuple[list[Item], Chain]:
    """What is queued, oldest first, and the chain without it."""
    items: list[Item] = []
    queue = chain.queue
    while queue is not None:
        items.append(queue.item)
        queue = queue.before
    items.reverse()
    return items, chain._replace(queue=None, waiting=0)
