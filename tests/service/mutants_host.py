"""Mutants of the host: its loop, its results, its ending, and the journal that comes back; each with tests that must notice it."""

from __future__ import annotations

from tests.mutation import Mutant

MUTANTS: tuple[Mutant, ...] = ()
