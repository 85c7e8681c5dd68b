"""What must hold for the journal of every timeline, however it came about.

A further proof is one more function in `PROOFS`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from duly.journal import verify
from duly.projections import replay
from duly.scheduler.accounting import account
from duly.scheduler.engine import engine_check


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


def decided_by_the_engine(path: Path) -> None:
    """Every recorded poll, decided anew from the state before it, gives what is recorded."""
    checked = engine_check(path)
    assert (checked.divergences, checked.incomparable) == ((), 0)


def accounted_for(path: Path) -> None:
    """Every occurrence that came due has exactly one disposition, and nothing else has one."""
    schedules = account(path).schedules
    assert [one for one in schedules if not one.balanced] == []


PROOFS: Final[tuple[Callable[[Path], None], ...]] = (intact, decided_by_the_engine, accounted_for)
