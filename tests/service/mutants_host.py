"""Mutants of the host: its loop, results, ending, and the journal that comes back; each with tests that notice it."""

from __future__ import annotations

from tests.mutation import Mutant

MUTANTS: tuple[Mutant, ...] = ()
