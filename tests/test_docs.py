"""The documents are true: what they show is executed, what they link to exists, and what is not in them is red.

tests/documents.py says what is executed and how a block is left out.
"""

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest
from _pytest.mark import ParameterSet

import duly
from duly.journal.entries import ENTRY_CLASSES
from tests.documents import Block, agrees, parse_blocks, parse_commands
from tests.tree import ROOT, modules

DOCS = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [ROOT / "README.md", *DOCS]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture
def namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What one document's Python blocks share: a module of its own, in an empty working directory."""
    module = ModuleType("document")  # registered, as dataclasses and pickles look up where they were defined
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("DULY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    return vars(module)


def execute_python(block: Block, namespace: dict[str, object], path: Path) -> None:
    for text, line in ((block.before, 0), (block.text, block.line - 1)):
        # Empty lines in front, so that a traceback names the line of the document.
        exec(compile("\n" * line + text, str(path), "exec", dont_inherit=True), namespace)  # noqa: S102 - it is the test


def execute_console(block: Block, path: Path) -> None:
    for command in parse_commands(block):
        done = subprocess.run(  # noqa: S602 - through the shell, as a reader would type it
            command.text,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        place = f"{name_of(path)}:{command.line}: $ {command.text}"
        if command.expected is None:
            assert done.returncode == 0, f"{place}\nended with {done.returncode}:\n{done.stdout}"
        else:
            assert agrees(done.stdout, command.expected), f"{place}\nprints:\n{done.stdout}\nnot:\n{command.expected}"


def executable(path: Path) -> ParameterSet:
    """The document, marked where it needs packages that only the extra brings."""
    needs = "<!-- needs the extra: examples -->" in path.read_text(encoding="utf-8")
    return pytest.param(path, marks=[pytest.mark.examples] if needs else [], id=name_of(path))


@pytest.mark.parametrize("path", [executable(path) for path in DOCUMENTS])
def test_what_a_document_shows_happens(path: Path, namespace: dict[str, object]):
    execute([block for block in parse_blocks(path.read_text(encoding="utf-8")) if not block.evidence], namespace, path)


def test_each_program_of_the_tutorial_stands_alone(tmp_path: Path):
    programs = [
        block
        for block in parse_blocks((ROOT / "docs" / "tutorial.md").read_text("utf-8"))
        if block.language == "python"
    ]
    assert len(programs) == 2
    for program in programs:
        done = subprocess.run(
            [sys.executable, "-P", "-"], check=False, input=program.text, cwd=tmp_path, text=True, capture_output=True
        )
        assert done.returncode == 0, done.stderr


def execute(blocks: list[Block], namespace: dict[str, object], path: Path) -> None:
    for block in blocks:
        if block.excused:
            continue
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        if block.language == "python":
            execute_python(block, namespace, path)
        elif block.language == "console":
            execute_console(block, path)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_a_link_leads_somewhere(path: Path):
    links = [link.partition("#") for link in LINK.findall(path.read_text(encoding="utf-8")) if "://" not in link]
    missing = [target for target, _, _ in links if target and not (path.parent / target).exists()]
    anchors = [
        f"{target}#{anchor}"
        for target, _, anchor in links
        if anchor and anchor not in headings((path.parent / target) if target else path)
    ]
    assert missing + anchors == []


def test_the_index_leads_to_every_page_and_every_page_says_what_it_is_for():
    index = ROOT / "docs" / "README.md"
    linked = {
        (index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(index.read_text(encoding="utf-8"))
    }
    assert {name_of(path) for path in DOCS if path != index and path.resolve() not in linked} == set()
    openings = {path: path.read_text(encoding="utf-8").split("\n\n", 2) for path in DOCUMENTS}
    assert {name_of(path) for path, (title, *_) in openings.items() if not re.fullmatch(r"# .+", title)} == set()
    assert {
        name_of(path) for path, (_, text, *_) in openings.items() if not text[0].isalnum() and text[0] not in "`*["
    } == set()


def test_every_example_in_a_docstring_holds():
    # By name: pytest's own collection of doctests does not follow the mapping of folders to packages.
    results = {module: doctest.testmod(importlib.import_module(module)) for module in modules()}
    assert [module for module, result in results.items() if result.failed] == []


def headings(path: Path) -> set[str]:
    """The anchors that a renderer makes of a document's headings."""
    titles = (
        re.findall(r"^#+ +(.*?) *$", path.read_text(encoding="utf-8"), re.MULTILINE) if path.suffix == ".md" else []
    )
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


# Undocumented means red.


def code_in(document: str) -> str:
    """What a document says in code: its blocks and the spans in its prose, where "every" is no `Every`."""
    return "\n".join([*(block.text for block in parse_blocks(document)), *re.findall(r"`([^`\n]+)`", document)])


def undocumented(names: list[str], documents: list[str] | None = None) -> list[str]:
    read = documents if documents is not None else [path.read_text(encoding="utf-8") for path in DOCS]
    text = "\n".join(code_in(document) for document in read)
    return [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]


def verbs() -> list[str]:
    """Every command of the command line, as it is typed: `duly verify`, `duly ctl pause`."""
    # By name: the module is not there for type checkers without the extra.
    groups = [
        value for value in vars(importlib.import_module("duly.tools.cli")).values() if isinstance(value, click.Group)
    ]
    inner = {id(command) for group in groups for command in group.commands.values()}
    return [verb for group in groups if id(group) not in inner for verb in verbs_of(group, "duly")]


def verbs_of(group: click.Group, prefix: str) -> list[str]:
    own = [f"{prefix} {name}" for name in group.commands]
    return own + [
        verb
        for name, command in group.commands.items()
        if isinstance(command, click.Group)
        for verb in verbs_of(command, f"{prefix} {name}")
    ]


def test_every_public_name_is_documented():
    assert undocumented(list(duly.PUBLIC)) == []


def test_every_kind_of_entry_is_documented():
    assert undocumented([entry.__name__ for entry in ENTRY_CLASSES]) == []


def test_every_command_is_documented():
    assert len(verbs()) > 5
    assert undocumented(verbs()) == []


# The reading of documents, shown what it must not let pass.


def test_a_name_is_documented_as_code_or_not_at_all():
    document = "Every day. `Cron(...)` and\n\n```console\n$ duly verify-all\n```\n\n`duly log`"
    assert undocumented(["Every", "Cron", "duly verify", "duly log"], [document]) == ["Every", "duly verify"]


def test_a_block_knows_its_language_its_line_and_its_excuse():
    document = """Text.

<!-- not executed: it never ends -->
```python
while True: ...
```

- in a list:

  ```console
  $ duly --version
  duly ...
  ```

<!-- executed before: a stand-in
answer = 42
-->
```python
assert answer == 42
```
"""
    assert parse_blocks(document) == [
        Block("python", 5, "while True: ...\n", excused="it never ends"),
        Block("console", 11, "$ duly --version\nduly ...\n"),
        Block("python", 19, "assert answer == 42\n", before="answer = 42"),
    ]


def test_a_block_may_be_a_file_that_the_next_ones_read():
    [block] = parse_blocks('<!-- written to: a.toml -->\n```toml\nzone = "UTC"\n```\n')
    assert block == Block("toml", 3, 'zone = "UTC"\n', file="a.toml")


def test_an_excuse_needs_a_reason_and_holds_for_one_block():
    first, second = parse_blocks("<!-- not executed: why -->\n```python\n1/0\n```\n\n```python\n1/0\n```\n")
    assert (first.excused, second.excused) == ("why", "")
    [bare] = parse_blocks("<!-- not executed: -->\n```python\n1/0\n```\n")
    assert bare.excused == ""


def test_a_failing_block_fails_at_its_line_of_the_document(namespace: dict[str, object]):
    [block] = parse_blocks("# Title\n\n```python\nx = 1\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        execute_python(block, namespace, Path("some.md"))
    assert (str(caught.traceback[-1].path).endswith("some.md"), caught.traceback[-1].lineno + 1) == (True, 5)


def test_a_command_that_fails_or_prints_something_else_is_red(namespace: dict[str, object]):
    ok, wrong, failing = parse_blocks(
        "```console\n$ python -c 'print(1)'\n1\n```\n```console\n$ python -c 'print(1)'\n2\n```\n"
        "```console\n$ python -c 'raise SystemExit(3)'\n```\n"
    )
    execute_console(ok, ROOT / "some.md")
    with pytest.raises(AssertionError, match=r"prints:\s+1\s+not:\s+2"):
        execute_console(wrong, ROOT / "some.md")
    with pytest.raises(AssertionError, match="ended with 3"):
        execute_console(failing, ROOT / "some.md")


def test_a_console_block_begins_with_a_command():
    with pytest.raises(ValueError, match="line 1: a console block begins"):
        parse_commands(Block("console", 1, "output\n"))


def test_commands_continue_over_lines():
    block = Block("console", 1, "$ duly verify \\\n>   state\nverified\n$ duly head state\n")
    assert [(command.text, command.expected) for command in parse_commands(block)] == [
        ("duly verify \\\n  state", "verified"),
        ("duly head state", None),
    ]


@pytest.mark.parametrize(
    ("output", "shown", "same"),
    [
        ("a\nb\n", "a\nb", True),
        ("a\nx\ny\nb\n", "a\n...\nb", True),
        ("a\nb\n", "a\n...\nb", True),
        ("a\n1\n2\n", "a\n...", True),
        ("took 12 ms\n", "took ... ms", True),
        ("a\nc\n", "a\nb", False),
        ("a\nzz\n", "a\n...\nz", False),
        ("took 12\n3 ms\n", "took ... ms", False),
        ("a.b\n", "axb", False),
    ],
)
def test_shown_output_agrees_with_what_is_printed(output: str, shown: str, same: bool):
    assert agrees(output, shown) is same
