"""The suite is worth what it notices: each way to break the journal makes named, quick tests of it fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journal.mutants import MUTANTS, Mutant, mutated

ROOT = Path(__file__).parents[2]


def run(package: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs the tests against the copy of the package in `package`."""
    pytest_options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line"]
    check = "import duly.journal, sys; sys.exit(not duly.journal.__file__.startswith(sys.argv[1]))"
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG", "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    subprocess.run([sys.executable, "-P", "-c", check, str(package)], env=environment, check=True)
    return subprocess.run(
        [sys.executable, "-P", "-m", "pytest", *pytest_options, *tests],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
    )


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_the_suite_kills_the_mutant(mutant: Mutant, tmp_path: Path) -> None:
    done = run(mutated(mutant, tmp_path / "package"), list(mutant.killers))
    assert done.returncode == 1, f"{mutant.name} survived:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    assert " failed" in done.stdout.splitlines()[-1]


def test_the_killers_pass_where_nothing_is_mutated(tmp_path: Path) -> None:
    killers = sorted({killer for mutant in MUTANTS for killer in mutant.killers})
    done = run(mutated(None, tmp_path / "package"), killers)
    assert done.returncode == 0, done.stdout[-4000:]


def test_every_mutant_has_its_own_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 14
