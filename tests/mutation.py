"""Mutants: faults put into the source on purpose, to see which tests notice.

Rules: a mutant changes the text of one module while it is imported, in a process of its own; the tree stays as it is.
Each text to be replaced occurs exactly once, so that a mutant that no longer fits the source is an error and never a
mutant that is survived. This module imports nothing of duly.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SECONDS = 120


class Mutant(NamedTuple):
    """A fault: in `module`, each first text of `edits` becomes the second; `killers` are tests that must notice."""

    name: str
    module: str
    edits: tuple[tuple[str, str], ...]
    killers: tuple[str, ...]


class Verdict(NamedTuple):
    """How the killers ended: pytest's exit code (1: a test failed) and what it printed."""

    code: int
    output: str


def trial(mutant: Mutant) -> Verdict:
    """Runs the mutant's killers on the mutated source, up to the first that fails."""
    return run_killers(mutant.killers, mutant)


def run_killers(killers: Sequence[str], mutant: Mutant | None = None) -> Verdict:
    """Runs these tests in a process of their own, on the source as it is or mutated."""
    told = "null" if mutant is None else json.dumps([mutant.module, mutant.edits])
    command = [sys.executable, "-P", "-c", "from tests.mutation import main; main()", told, *killers]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Verdict(done.returncode, done.stdout + done.stderr)


def main() -> None:
    """`JSON TEST …`: puts the fault in place, and runs the tests up to the first failure."""
    told = json.loads(sys.argv[1])
    if told is not None:
        module, edits = told
        sys.meta_path.insert(0, _Finder(module, [(old, new) for old, new in edits]))
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:hypothesispytest", "--tb=line"]
    sys.exit(pytest.main([*options, *sys.argv[2:]]))


class _Finder(MetaPathFinder):
    """Finds the one module, with its text changed."""

    def __init__(self, module: str, edits: Sequence[tuple[str, str]]) -> None:
        self._module = module
        self._edits = edits

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        sys.meta_path.remove(self)
        try:
            found = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        assert found is not None, f"there is no module {fullname}"
        assert found.origin is not None, fullname
        return importlib.util.spec_from_file_location(
            fullname,
            found.origin,
            loader=_Loader(fullname, found.origin, self._edits),
            submodule_search_locations=found.submodule_search_locations,
        )


class _Loader(SourceFileLoader):
    """Compiles the changed text, and neither reads nor writes a cache."""

    def __init__(self, fullname: str, path: str, edits: Sequence[tuple[str, str]]) -> None:
        super().__init__(fullname, path)
        self._edits = edits

    def get_code(self, fullname: str) -> CodeType:
        text = Path(self.path).read_text(encoding="utf-8")
        for old, new in self._edits:
            if text.count(old) != 1:
                sys.stderr.write(f"the text of the mutant occurs {text.count(old)} times in {fullname}: {old!r}\n")
                os._exit(70)
            text = text.replace(old, new)
        return compile(text, self.path, "exec")
