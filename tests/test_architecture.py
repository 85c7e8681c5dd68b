"""The shape of the source, held by tests: who may import whom, who reads a clock, how large a module grows.

Each rule is a function from source to findings, so that it can be shown a violation as well as the tree.
"""

import ast
import io
import re
import runpy
import tempfile
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tree import PROJECT, ROOT, files, modules, package_folders

MAY_IMPORT: dict[str, set[str]] = {
    "duly": set(),
    "duly.journal": set(),
    "duly.projections": {"duly.journal"},
    "duly.scheduler": {"duly.journal", "duly.projections"},
    "duly.tools": {"duly", "duly.journal", "duly.projections", "duly.scheduler"},
}
FREE_FOR_ALL = {"duly.__version__"}  # loaded before any other package can be
FACADE_EXCEPTIONS: dict[str, set[str]] = {"duly.__main__": {"duly.tools"}}  # `python -m duly` is the command line

CORE = ("duly.journal", "duly.projections", "duly.scheduler")
BANNED_IN_CORE: dict[str, str] = {
    **dict.fromkeys(("asyncio", "subprocess", "concurrent", "multiprocessing"), "the core executes nothing"),
    **dict.fromkeys(("socket", "socketserver", "ssl", "select", "selectors"), "the core has no network"),
    **dict.fromkeys(("http", "httpx", "urllib", "xmlrpc", "ftplib", "smtplib"), "the core has no network"),
    **dict.fromkeys(("click", "rich"), "these come with an extra"),
    "importlib.metadata": "a frozen application has none",
}
BANNED_IN_DECISIONS: dict[str, str] = dict.fromkeys(
    ("io", "os", "pathlib", "tempfile", "threading", "time", "random", "logging"), "a decision is a pure function"
)

THE_CLOCK = "duly.scheduler.clock"
CLOCK_READINGS = {
    *(f"time.{name}" for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime")),
    *(f"time.{name}_ns" for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time")),
    *(f"time.{name}" for name in ("clock_gettime_ns", "localtime", "gmtime", "ctime", "asctime")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "datetime.date.today",
    "uuid.uuid1",
}

LINES = 400
# A module over the limit, with the number of lines it may have and the reason it is one module. Numbers only go down.
RATCHET: dict[str, tuple[int, str]] = {
    "journal/entries.py": (485, "the closed union: one short class per kind of entry, read and changed as one list"),
}
SLACK = 25

WORDS_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "misc", "common", "manager"}


class Import(NamedTuple):
    target: str
    line: int


def imports(source: str) -> Iterator[Import]:
    """Every absolute module or member that the source imports, wherever in it. `from a import b` is `a.b`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            prefix = "." * node.level + (f"{node.module}." if node.module else "")
            yield from (Import(f"{prefix}{alias.name}", node.lineno) for alias in node.names)


def layer(target: str) -> str:
    """The top-level package of ours that a dotted name belongs to; `duly.Cron` belongs to the facade."""
    top = ".".join(target.split(".")[:2])
    return top if top in MAY_IMPORT else "duly"


def forbidden_imports(module: str, source: str) -> list[str]:
    home = layer(module)
    allowed = MAY_IMPORT[home] | FACADE_EXCEPTIONS.get(module, set()) | ({home} - {"duly"})
    return [
        f"{module}:{line} imports {target}"
        for target, line in imports(source)
        if (target == "duly" or target.startswith("duly."))
        and target not in FREE_FOR_ALL
        and layer(target) not in allowed
    ]


def without_type_checking_blocks(source: str) -> str:
    tree = ast.parse(source)
    tree.body = [n for n in tree.body if not (isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")]
    return ast.unparse(tree)


def banned_imports(module: str, source: str, banned: dict[str, str]) -> list[str]:
    return [
        f"{module}:{line} imports {target}: {banned[name]}"
        for target, line in imports(source)
        for name in banned
        if target == name or target.startswith(f"{name}.")
    ]


def clock_readings(module: str, source: str) -> list[str]:
    """Every place that names a function which reads a clock: a call, or a reference that could be called later."""
    tree = ast.parse(source)
    origins: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            origins |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origins |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    named = [
        (re.sub(r"^\w+", lambda first: origins.get(first.group(), first.group()), ast.unparse(node)), node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Name)
    ]
    return [f"{module}:{line} reads a clock: {name}" for name, line in named if name in CLOCK_READINGS]


def comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def unreasoned_comments(source: str) -> list[str]:
    """Work left to do, and checks that are switched off without a code and a reason."""
    left = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    switch = re.compile(r"#\s*(noqa|type:\s*ignore|pyright:\s*ignore)\b")
    reasoned = re.compile(
        r"#\s*(noqa:\s*[A-Z]+[0-9]+(,\s*[A-Z]+[0-9]+)*|(type|pyright):\s*ignore\[[\w, -]+\])\s*[-#:]+\s*\S+ \S+"
    )
    return [
        f"{line}: {comment}"
        for line, comment in comments(source)
        if left.search(comment) or (switch.search(comment) and not reasoned.search(comment))
    ]


def switched_off_tests(source: str) -> list[str]:
    """Tests that never run. A `skipif` may stand: it names its condition and, by pytest's rule, a reason."""
    off = {
        "pytest.skip",
        "pytest.xfail",
        "pytest.importorskip",
        "pytest.mark.skip",
        "pytest.mark.xfail",
        "unittest.skip",
    }
    named = [
        (ast.unparse(node), node.lineno) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)
    ]
    return [f"{line}: {name}" for name, line in named if name in off]


def oversized(lines: dict[str, int], ratchet: dict[str, tuple[int, str]]) -> list[str]:
    grown = [
        f"{name} has {count} lines, over {ratchet.get(name, (LINES, ''))[0]}: split it by reason to change"
        for name, count in lines.items()
        if count > ratchet.get(name, (LINES, ""))[0]
    ]
    slack = [
        f"{name} is listed with {limit} lines and has {lines.get(name, 0)}: lower the number or remove the line"
        for name, (limit, reason) in ratchet.items()
        if lines.get(name, 0) < limit - SLACK or limit <= LINES or not reason
    ]
    return grown + slack


def traces_of_a_machine(text: str, folders: list[str]) -> list[str]:
    """Absolute paths of somebody's machine, and addresses of package registries."""
    paths = re.findall(r"(?<![\w.])/(?:home|Users)/\w+/|(?<![\w.])/[r]oot/", text)
    hosts = re.findall(r"pypi\.org|pythonhosted\.org|registry\.npmjs|index[-]url|find[-]links *=", text)
    return [*paths, *hosts, *(folder for folder in folders if folder in text)]


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
