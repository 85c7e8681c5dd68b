"""What must hold for the journal of every timeline, however it came about.

A further proof is one more function in `PROOFS`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from duly.journal import verify
from duly.projections import replay


def prove(path: Path, digest: str) -> None:
    """The journal at `path`, whose owner is alive, gives the state of this digest and passes every proof."""
    assert replay(path).digest() == digest, "the replayed state is not the live one"
    for proof in PROOFS:
        proof(path)


def intact(path: Path) -> None:
    """The record is whole and contradicts itself nowhere."""
    verification = verify(path)
    assert verification.intact, verification
    assert replay(path).anomalies == []


# The place to plug in the engine check and the accounting check.
PROOFS: Final[tuple[Callable[[Path], None], ...]] = (intact,)
