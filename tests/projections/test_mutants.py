"""The tests of checkpoints and archiving are trusted because they notice: each fault turns one of its killers red."""

from __future__ import annotations

import pytest

from tests.mutation import Mutant, trial
from tests.projections.mutants import MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_fault_is_noticed(mutant: Mutant) -> None:
    verdict = trial(mutant)
    assert verdict.code == 1, f"{mutant.name} survives {mutant.killers}:\n{verdict.output[-3000:]}"
    assert "1 failed" in verdict.output, verdict.output[-3000:]
