"""The type checkers see every package: an error planted in any of them is found under the project's own configuration.

A checker that quietly checks nothing says "no errors", too. So the links of `make check`, and pyproject.toml, are
tried on a small tree of the same shape, with one error in each folder and nothing else.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tree import ROOT, package_folders

PLANTED = 'answer: int = "forty-two"\n'
CLEAN = "answer: int = 42\n"


@pytest.fixture(scope="module")
def shape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders, links and configuration as in the checkout; in each folder one planted and one clean module."""
    root = tmp_path_factory.mktemp("shape")
    for folder in [*package_folders().values(), ROOT / "tests"]:
        twin = root / folder.relative_to(ROOT)
        twin.mkdir(parents=True, exist_ok=True)
        for name, text in (("__init__", ""), ("planted", PLANTED), ("clean", CLEAN)):
            (twin / f"{name}.py").write_text(text, encoding="utf-8")
    (root / "facade" / "py.typed").touch()
    for name in ("pyproject.toml", ".ci/typed"):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy2(ROOT / name, root / name)
    subprocess.run(["sh", ".ci/typed"], cwd=root, check=True)  # noqa: S607 - sh is found on PATH
    return root


def planted_files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.glob("*/**/planted.py") if "build" not in path.parts}


def as_in_the_tree(found: set[Path], root: Path) -> set[str]:
    """The files behind the links under build/typed."""
    return {str((root / path).resolve().relative_to(root.resolve())) for path in found}


def test_mypy_finds_the_planted_error_in_every_package_and_none_beside_it(shape: Path):
    command = [sys.executable, "-P", "-m", "mypy", "--no-error-summary"]
    done = subprocess.run(command, cwd=shape, capture_output=True, text=True, check=False)
    found = {Path(file) for file in re.findall(r"^(.*?):\d+: error: .*\[assignment\]$", done.stdout, re.MULTILINE)}
    assert as_in_the_tree(found, shape) == planted_files(shape), done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == len(planted_files(shape)), done.stdout


def test_pyright_finds_the_planted_error_in_every_package_and_none_beside_it(shape: Path):
    # The copied configuration names an environment that the small tree does not have.
    command = [sys.executable, "-P", "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=shape, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert {error["rule"] for error in report["generalDiagnostics"]} == {"reportAssignmentType"}, done.stdout
    found = {Path(error["file"]) for error in report["generalDiagnostics"]}
    assert as_in_the_tree(found, shape) == planted_files(shape)
