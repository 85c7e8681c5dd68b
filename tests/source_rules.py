"""The rules of the source: who may import whom, who reads a clock, how large a module grows.

Each rule is a function from source to findings, so that tests/test_architecture.py can show it a violation as well as
the tree: a rule that finds nothing anywhere would hold for ever.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

MAY_IMPORT: dict[str, set[str]] = {
    "duly": set(),
    "duly.journal": set(),
    "duly.projections": {"duly.journal"},
    "duly.scheduler": {"duly.journal", "duly.projections"},
    "duly.service": {"duly.journal", "duly.projections", "duly.scheduler"},
    "duly.tools": {"duly", "duly.journal", "duly.projections", "duly.scheduler", "duly.service"},
}
FREE_FOR_ALL = {"duly.__version__"}  # loaded before any other package can be
FACADE_EXCEPTIONS: dict[str, set[str]] = {"duly.__main__": {"duly.tools"}}  # `python -m duly` is the command line

CORE = ("duly.journal", "duly.projections", "duly.scheduler")
BANNED_IN_CORE: dict[str, str] = {
    **dict.fromkeys(("asyncio", "subprocess", "concurrent", "multiprocessing"), "the core executes nothing"),
    **dict.fromkeys(("socket", "socketserver", "ssl", "select", "selectors"), "the core has no network"),
    **dict.fromkeys(("http", "httpx", "urllib", "xmlrpc", "ftplib", "smtplib"), "the core has no network"),
    **dict.fromkeys(("click", "jinja2", "rich"), "these come with an extra"),
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
SLACK = 25


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
    """Work left to do, and checks that are switched off without a code and a reason, behind it or above it."""
    left = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    switch = re.compile(r"#\s*(noqa|type:\s*ignore|pyright:\s*ignore)\b")
    coded = r"#\s*(noqa:\s*[A-Z]+[0-9]+(,\s*[A-Z]+[0-9]+)*|(type|pyright):\s*ignore\[[\w, -]+\])"
    lines = source.splitlines()

    def reasoned(line: int, comment: str) -> bool:
        above = lines[line - 2].lstrip() if line > 1 else ""
        behind = re.search(rf"{coded}\s*[-#:]+\s*\S+ \S+", comment)
        return bool(behind or (re.search(coded, comment) and above.startswith("# ")))

    return [
        f"{line}: {comment}"
        for line, comment in comments(source)
        if left.search(comment) or (switch.search(comment) and not reasoned(line, comment))
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
