"""Mutants of what executes: commands, their processes, output and evidence; each with tests that must notice it."""

from __future__ import annotations

from tests.mutation import Mutant

MUTANTS: tuple[Mutant, ...] = ()
