"""What a bad line means: damage to what was acknowledged, or a torn tail.

Rules kept here (section 4.3.4 of the specification):
- Only the last segment can have a torn tail: rotation happens when nothing is unsynced.
- A bad line at or below what is known to be durable is damage. So is one after which a valid line says that it was
  durable, and a tail longer than what may ever be unsynced.
- Everything else is a torn tail, even if valid lines follow it: unsynced pages reach a disk in any order.
- Nothing here reads or changes anything.
"""

from __future__ import annotations

from typing import NamedTuple

from duly.journal.format import APPEND_WINDOW
from duly.journal.scanning import Proof

SALVAGE = "Bring the journal back from a backup, or copy what is valid with duly salvage"


class Stop(NamedTuple):
    """Where a scan of a segment ended."""

    sequence: int
    """The sequence that the next line must have."""
    offset: int
    size: int
    """The segment's size."""
    fault: str
    """Why the line there is bad; empty at a clean end."""


def damage_at(  # noqa: PLR0911  # one return for each rule
    stop: Stop, *, last: bool, durable: int, proof: Proof | None
) -> str:
    """Why this stop means damage; empty if it is a clean end or a torn tail.

    `durable` is the highest sequence known to be durable; `proof` a valid later line that says so of this one.
    """
    acknowledged = f"entries up to {durable} were acknowledged"
    if not stop.fault:
        if last and stop.sequence <= durable:
            return f"the journal ends before sequence {stop.sequence}, but {acknowledged}"
        return ""
    if not last:
        return f"{stop.fault}, and a later segment exists"
    if stop.sequence <= durable:
        return f"{stop.fault}, and {acknowledged}"
    if proof is not None:
        return f"{stop.fault}, and the line at offset {proof.offset} says that {proof.durable} was acknowledged"
    if stop.size - stop.offset > APPEND_WINDOW:
        return f"{stop.fault}, and the {stop.size - stop.offset:,} bytes from there on are more than a torn tail can be"
    return ""
