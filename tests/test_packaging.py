"""What is shipped: built, installed into an empty environment and used from there, as a user gets it.

Everything happens once, offline, in a copy of the checkout: the source archive is built from the copy, the wheel from
the source archive, and the environment gets the wheel and exactly what its metadata asks for.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.tree import ROOT, files, modules


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user with a bare environment would."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "SYSTEMROOT", "TEMP", "TMPDIR") if name in os.environ}
    arguments = [str(part) for part in command]
    return subprocess.run(arguments, cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False)


def succeed(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = run(*command, cwd=cwd, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def required(distribution: importlib.metadata.Distribution, extras: tuple[str, ...] = ("",)) -> set[str]:
    """The names of the distributions that one needs, directly or through others."""
    found: set[str] = set()
    for requirement in map(Requirement, distribution.requires or []):
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            needed = importlib.metadata.distribution(requirement.name)
            found |= {requirement.name} | required(needed, ("", *requirement.extras))
    return found


def metadata_of(wheel: Path) -> importlib.metadata.Distribution:
    [folder] = [entry for entry in zipfile.Path(wheel).iterdir() if entry.name.endswith(".dist-info")]
    return importlib.metadata.PathDistribution(folder)


def copy_installed(distributions: set[str], target: Path) -> Path:
    """Copy installed distributions as they are: the index that they came from may be out of reach."""
    for name in distributions:
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or []:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (target / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(str(distribution.locate_file(file)), target / file)
    return target


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("a checkout")  # with a space, which any path may have
    for file in files():
        (copy / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy / file.relative_to(ROOT))
    succeed(sys.executable, "-P", "-m", "build", "--no-isolation", cwd=copy)
    return copy / "dist"


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    [found] = dist.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the wheel and its dependencies, without any extra."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, symlinks=os.name != "nt", with_pip=False)
    found = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    site = succeed(found, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip()
    copy_installed(required(metadata_of(wheel)), Path(site))
    pip = (sys.executable, "-m", "pip", "--python", found)
    succeed(*pip, "install", "--no-index", wheel, cwd=home)  # without an index: fails if a dependency is missing
    return found


def loaded_after(statement: str, python: Path, cwd: Path) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    return set(succeed(python, "-W", "error", "-c", code, cwd=cwd).split())


def test_the_wheel_holds_every_module_under_its_installed_name_and_nothing_else(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        f"{name.replace('.', '/')}/__init__.py" if path.stem == "__init__" else f"{name.replace('.', '/')}.py"
        for name, path in modules().items()
    }
    assert {name for name in shipped if name.endswith(".py")} == expected
    assert "duly/py.typed" in shipped
    assert {name.split("/")[0] for name in shipped} == {"duly"}


def test_the_source_archive_holds_what_is_needed_to_test_and_to_build(dist: Path):
    [archive] = dist.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        shipped = {name.partition("/")[2] for name in source.getnames()}
    ours = {path.relative_to(ROOT).as_posix() for path in files()}
    assert ours - shipped == set()


def test_the_metadata_says_what_the_licence_is(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = archive.read(metadata).decode().splitlines()
    assert [line for line in lines if line.startswith("License")] == [
        "License-Expression: MIT",
        "License-File: LICENSE",
    ]


def test_the_installed_package_tells_its_version(python: Path, tmp_path: Path):
    import duly

    expected = f"duly {duly.__version__}\n"
    script = python.with_name("duly.exe" if os.name == "nt" else "duly")
    assert succeed(python, "-m", "duly", "--version", cwd=tmp_path) == expected
    assert succeed(script, "--version", cwd=tmp_path) == expected


def test_without_the_extra_the_command_says_which_one_to_install(python: Path, tmp_path: Path):
    done = run(python, "-m", "duly", "demo", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "duly: the command line needs click, jinja2 and rich, which come with an extra: pip install 'duly[cli]'\n"
    )


def test_with_the_extra_the_demo_runs_from_the_wheel(python: Path, wheel: Path, tmp_path: Path):
    shipped = metadata_of(wheel)
    extra = copy_installed(required(shipped, ("", "cli")) - required(shipped), tmp_path / "extra")
    assert succeed(python, "-m", "duly", "demo", cwd=tmp_path, PYTHONPATH=str(extra)) != ""


def test_every_public_name_can_be_imported_from_the_wheel(python: Path, tmp_path: Path):
    succeed(python, "-W", "error", "-c", "from duly import *", cwd=tmp_path)


def test_the_journal_loads_neither_the_calendar_nor_the_scheduler(python: Path, tmp_path: Path):
    loaded = loaded_after("import duly.journal", python, tmp_path)
    assert "duly.journal" in loaded
    assert {
        name for name in loaded if name.startswith(("croniter", "duly.scheduler", "duly.projections", "duly.tools"))
    } == set()


def test_the_projections_load_neither_the_calendar_nor_the_scheduler(python: Path, tmp_path: Path):
    loaded = loaded_after("import duly.projections", python, tmp_path)
    assert {name for name in loaded if name.startswith(("croniter", "duly.scheduler", "duly.tools"))} == set()


def test_the_scheduler_loads_croniter_with_the_first_cron_expression(python: Path, tmp_path: Path):
    imported = "from duly import Cron, OncePer, Scheduler, ManualClock; OncePer('day', zone='UTC')"
    loaded = loaded_after(imported, python, tmp_path)
    assert {name for name in loaded if name in {"croniter", "duly.scheduler.embedded"}} == {"duly.scheduler.embedded"}
    assert "croniter" in loaded_after(f"{imported}; Cron('0 9 * * *', zone='UTC')", python, tmp_path)


def test_the_service_needs_no_extra(python: Path, tmp_path: Path):
    loaded = loaded_after("import duly.service", python, tmp_path)
    assert {name for name in loaded if name.startswith(("click", "rich", "duly.tools"))} == set()


def test_the_facade_alone_loads_nothing_of_duly(python: Path, tmp_path: Path):
    loaded = loaded_after("import duly", python, tmp_path)
    assert {name for name in loaded if name.startswith(("duly", "msgspec", "croniter"))} == {"duly"}


def test_a_checkout_on_the_path_does_not_lend_its_folders_as_modules(python: Path):
    done = run(python, "-c", "import journal", cwd=ROOT)
    assert re.search(r"^ImportError: .*duly\.journal", done.stderr, re.MULTILINE), done.stderr


def test_a_folder_named_duly_beside_the_program_does_not_shadow_the_package(python: Path, tmp_path: Path):
    (tmp_path / "duly").mkdir()
    assert succeed(python, "-c", "import duly; print(duly.__version__)", cwd=tmp_path) != ""
