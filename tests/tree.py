"""The checkout as the tests see it: its root, its packages by name, and the files that belong to it."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NOT_OURS = {".git", "build", "dist", "htmlcov", "__pycache__"}


def package_folders() -> dict[str, Path]:
    """Each package in the tree with its folder: `duly.X` for a top-level code folder X/, `duly` for facade/."""
    folders = [init.parent for init in ROOT.glob("*/**/__init__.py")]
    ours = [folder for folder in folders if belongs(folder) and folder.relative_to(ROOT).parts[0] != "tests"]
    return {package_name(folder): folder for folder in ours}


def package_name(folder: Path) -> str:
    parts = folder.relative_to(ROOT).parts
    return ".".join(("duly", *parts)) if parts[0] != "facade" else ".".join(("duly", *parts[1:]))


def module_name(file: Path) -> str:
    package = package_name(file.parent)
    return package if file.stem == "__init__" else f"{package}.{file.stem}"


def modules() -> dict[str, Path]:
    """Each module of the packages with its file."""
    files = [file for folder in package_folders().values() for file in folder.glob("*.py")]
    return {module_name(file): file for file in sorted(files)}


def belongs(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return not any(part in NOT_OURS or part.startswith(".venv") or part.endswith("_cache") for part in parts)


def files() -> list[Path]:
    """The files of the checkout, tracked or about to be; in an unpacked source archive, all there are."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - git is found on PATH
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if (ROOT / ".git").exists() and listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if belongs(path) and not path.parts[-2].endswith(".egg-info")]
    return sorted(path for path in paths if path.is_file())
