"""The suite is trusted because it notices: each fault of the lists turns one of its killers red."""

from __future__ import annotations

import pytest

from tests.mutation import Mutant, trial
from tests.service import mutants_api, mutants_commands, mutants_host

MUTANTS = (*mutants_host.MUTANTS, *mutants_commands.MUTANTS, *mutants_api.MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_fault_is_noticed(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_TESTS_PATIENCE", "8")
    verdict = trial(mutant)
    assert verdict.code == 1, f"{mutant.name} survives {mutant.killers}:\n{verdict.output[-3000:]}"
    assert "1 failed" in verdict.output, verdict.output[-3000:]


def test_every_fault_has_its_own_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
