"""The shape of the source: each rule of tests/source_rules.py finds nothing in the tree, and what it must find."""

import ast
import re
import runpy
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_rules import (
    BANNED_IN_CORE,
    BANNED_IN_DECISIONS,
    CORE,
    THE_CLOCK,
    banned_imports,
    clock_readings,
    forbidden_imports,
    imports,
    layer,
    oversized,
    switched_off_tests,
    traces_of_a_machine,
    unreasoned_comments,
    without_type_checking_blocks,
)
from tests.tree import PROJECT, ROOT, files, modules, package_folders

# A module over the limit, with the number of lines it may have and the reason it is one module. Numbers only go down.
RATCHET: dict[str, tuple[int, str]] = {
    "tests/journal/simulated_disk.py": (600, "one disk: what a power cut leaves follows from every call it knows"),
    "tests/journal/test_damage.py": (490, "one sweep: each kind of damage through the same three readers"),
    "tests/journal/test_faults.py": (410, "one sweep: each kind of failure at each call"),
    "tests/journal/test_reader.py": (430, "one reader, beside every kind of owner"),
    "journal/entries.py": (485, "the closed union: one short class per kind of entry, read and changed as one list"),
}

WORDS_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "misc", "common", "manager"}


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def our_python() -> dict[str, str]:
    return {path.relative_to(ROOT).as_posix(): read(path) for path in files() if path.suffix == ".py"}


def all_of(findings: Iterator[list[str]]) -> list[str]:
    return [finding for some in findings for finding in some]


# The tree.


def test_imports_follow_the_arrows():
    sources = {name: read(path) for name, path in modules().items()}
    sources["duly"] = without_type_checking_blocks(sources["duly"])
    assert all_of(forbidden_imports(name, source) for name, source in sources.items()) == []


def test_the_core_imports_nothing_that_executes_or_speaks_to_a_network():
    core = {name: path for name, path in modules().items() if layer(name) in CORE}
    assert all_of(banned_imports(name, read(path), BANNED_IN_CORE) for name, path in core.items()) == []


def test_a_decision_has_nothing_at_hand_to_be_impure_with():
    decisions = {name: path for name, path in modules().items() if name.startswith("duly.scheduler.decisions")}
    assert all_of(banned_imports(name, read(path), BANNED_IN_DECISIONS) for name, path in decisions.items()) == []


def test_only_the_clock_reads_a_clock():
    core = {name: path for name, path in modules().items() if layer(name) in CORE and name != THE_CLOCK}
    assert all_of(clock_readings(name, read(path)) for name, path in core.items()) == []


def test_croniter_is_imported_by_exactly_one_module():
    importers = [
        name
        for name, path in modules().items()
        if any(target.split(".")[0] == "croniter" for target, _ in imports(read(path)))
    ]
    assert len(importers) == 1, importers


def test_no_import_is_relative():
    found = [
        f"{name}:{line}" for name, text in our_python().items() for target, line in imports(text) if target[0] == "."
    ]
    assert found == []


def test_no_module_outgrows_the_limit():
    assert oversized({name: len(text.splitlines()) for name, text in our_python().items()}, RATCHET) == []


def test_nothing_is_left_to_do_or_switched_off_without_a_reason():
    found = [f"{name}:{place}" for name, text in our_python().items() for place in unreasoned_comments(text)]
    assert found == []


def test_every_test_runs():
    found = [f"{name}:{place}" for name, text in our_python().items() for place in switched_off_tests(text)]
    assert found == []


def test_a_module_is_named_after_what_it_is_for():
    assert [name for name in our_python() if Path(name).stem in WORDS_THAT_SAY_NOTHING] == []


def test_every_module_opens_with_what_it_is_for():
    assert [
        name for name, text in our_python().items() if text.strip() and not ast.get_docstring(ast.parse(text))
    ] == []


def test_every_package_refuses_another_name():
    for name, folder in package_folders().items():
        with pytest.raises(ImportError, match=rf"{re.escape(name)}\b") as refusal:
            runpy.run_path(str(folder / "__init__.py"), run_name="stranger")
        assert refusal.type is ImportError  # a module that is missing is no refusal


def test_pyproject_lists_the_packages_of_the_tree():
    tops = {name: folder.name for name, folder in package_folders().items() if name.count(".") < 2}
    code = set(tops.values())
    setuptools = PROJECT["tool"]["setuptools"]
    assert sorted(setuptools["packages"]) == sorted(package_folders())
    assert setuptools["package-dir"] == tops
    assert set(PROJECT["tool"]["coverage"]["run"]["source_dirs"]) == code
    assert set(PROJECT["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]) == code
    listed = {Path(entry).name for entry in PROJECT["tool"]["pyright"]["include"]}
    assert listed == code - {"facade"} | {"duly", "tests"}
    linked = re.search(r"for source in (.*); do", read(ROOT / ".ci" / "typed"))
    assert linked is not None
    assert set(linked.group(1).split()) == code - {"facade"} | {"facade/*.py", "facade/py.typed"}


def test_no_file_bears_traces_of_a_machine():
    machine = [ROOT, Path.home()] if Path.home() != Path("/") else [ROOT]
    if not ROOT.is_relative_to(Path(tempfile.gettempdir()).resolve()):
        machine.append(ROOT.parent)
    folders = [f"{folder}/" for folder in machine if folder != Path("/")]
    found = {
        str(path.relative_to(ROOT)): traces
        for path in files()
        if (traces := traces_of_a_machine(path.read_text(encoding="utf-8", errors="replace"), folders))
    }
    assert found == {}


# The rules, shown a violation: a rule that finds nothing anywhere would hold for ever.


def test_the_import_rule_knows_every_form_and_every_arrow():
    assert forbidden_imports("duly.journal.x", "from duly import projections") == [
        "duly.journal.x:1 imports duly.projections"
    ]
    assert forbidden_imports("duly.projections.x", "def f():\n    import duly.scheduler.clock") == [
        "duly.projections.x:2 imports duly.scheduler.clock"
    ]
    assert forbidden_imports("duly.scheduler.decisions.x", "from duly import Cron") == [
        "duly.scheduler.decisions.x:1 imports duly.Cron"
    ]
    assert forbidden_imports("duly", "from duly.journal.errors import Error") == [
        "duly:1 imports duly.journal.errors.Error"
    ]
    assert (
        forbidden_imports("duly.scheduler.x", "from duly.scheduler.decisions import y\nfrom duly import __version__")
        == []
    )


def test_the_ban_reaches_submodules_but_not_namesakes():
    source = "from concurrent.futures import ThreadPoolExecutor\nimport socketless\nfrom importlib import metadata"
    assert banned_imports("m", source, BANNED_IN_CORE) == [
        "m:1 imports concurrent.futures.ThreadPoolExecutor: the core executes nothing",
        "m:3 imports importlib.metadata: a frozen application has none",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.time()",
        "import time as t\nx = t.monotonic",
        "from time import time_ns\ntime_ns()",
        "from datetime import datetime\ndatetime.now(UTC)",
        "import datetime as dt\ndt.datetime.utcnow()",
        "from datetime import date as day\nday.today()",
    ],
)
def test_the_clock_rule_sees_through_aliases(source: str):
    assert len(clock_readings("m", source)) == 1


def test_the_clock_rule_lets_a_clock_be_asked():
    assert clock_readings("m", "import time\nself.clock.now()\ntime.sleep(1)\ndatetime.fromisoformat(text)") == []


def test_the_comment_rule_wants_a_code_and_a_reason():
    assert unreasoned_comments("x = 1  # TO" + "DO later") == ["1: # TO" + "DO later"]
    for bare in ("# no" + "qa", "# no" + "qa: S101", "# type: ig" + "nore", "# type: ig" + "nore[misc]"):
        assert unreasoned_comments(f"x = 1  {bare}") == [f"1: {bare}"]
    assert unreasoned_comments("x = 1  # type: ig" + "nore[misc]  # the stub is wrong") == []
    assert unreasoned_comments("x = 1  # no" + "qa: S101, B018 - the lookup is the test") == []
    assert unreasoned_comments("# The stub is wrong.\nx = 1  # type: ig" + "nore[misc]") == []


def test_the_switch_rule_lets_only_a_condition_stand():
    assert switched_off_tests("@pytest.mark.skip\ndef test_x(): pytest.skip('no')") == [
        "1: pytest.mark.skip",
        "2: pytest.skip",
    ]
    assert switched_off_tests("@pytest.mark.skipif(os.name == 'nt', reason='no fork')\ndef test_x(): ...") == []


def test_the_ratchet_only_goes_down():
    assert oversized({"a": 400, "b": 401}, {}) == ["b has 401 lines, over 400: split it by reason to change"]
    assert oversized({"a": 500}, {"a": (500, "one table")}) == []
    assert oversized({"a": 501}, {"a": (500, "one table")}) != []
    assert oversized({"a": 470}, {"a": (500, "one table")}) != []
    assert oversized({"a": 500}, {"a": (500, "")}) != []
    assert oversized({}, {"gone": (500, "one table")}) != []


def test_traces_of_a_machine_are_found():
    assert traces_of_a_machine("see /ho" + "me/ann/duly and .venv/bin", []) == ["/ho" + "me/ann/"]
    assert traces_of_a_machine("https://py" + "pi.org/simple", []) == ["py" + "pi.org"]
    assert traces_of_a_machine("cd /srv/check/out", ["/srv/check/"]) == ["/srv/check/"]
    assert traces_of_a_machine("https://example.org/home/ann/ and .venv", []) == []
