"""The reference is complete and true: it is compared with the classes and methods that it is about."""

import importlib
import inspect
import re
from pathlib import Path
from typing import get_args

import click
import msgspec
import pytest

import duly
from duly.journal.codec import encode_batch
from duly.journal.entries import ENTRY_CLASSES, Entry
from duly.projections import State
from duly.projections.replay import ReplayedState
from tests.documents import parse_blocks
from tests.test_docs import code_in, verbs
from tests.tree import ROOT, modules

REFERENCE = ROOT / "docs" / "reference"
SHARED_FIELDS = "Fields that many kinds share"
INTERNAL = {"Poll": {"changes"}}


def sections(path: Path) -> dict[str, str]:
    """The text under each heading, by its title without code marks; a section ends at the next heading of any level."""
    parts = re.split(r"^#+ +(.*?) *$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {title.replace("`", ""): text for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\w+", code_in(text)))


@pytest.mark.parametrize("kind", ENTRY_CLASSES, ids=lambda kind: kind.__name__)
def test_the_example_of_a_kind_is_one_and_every_field_is_told(kind: type[Entry]):
    found = sections(REFERENCE / "entries.md")
    section = found[kind.__name__]
    [example] = [block.text.strip() for block in parse_blocks(section) if block.language == "json"]
    entry = msgspec.json.decode(example, type=Entry)
    assert (type(entry), encode_batch((entry,)).decode()) == (kind, f"[{example}]")
    told = re.sub(r"```json.*?```", "", section, flags=re.DOTALL)
    assert set(kind.__struct_fields__) - names_in(told) - names_in(found[SHARED_FIELDS]) == set()


def test_every_public_name_has_a_place_in_the_reference():
    pages = "\n".join((REFERENCE / page).read_text(encoding="utf-8") for page in ("api.md", "errors.md"))
    titles = {word for title in re.findall(r"^#+ +(.*)$", pages, re.MULTILINE) for word in re.findall(r"\w+", title)}
    assert set(duly.PUBLIC) - titles == set()


def section_about(name: str) -> str:
    """The sections of the reference whose title has the name in it."""
    pages = [sections(REFERENCE / page) for page in ("api.md", "projections.md")]
    return "\n".join(text for page in pages for title, text in page.items() if name in re.findall(r"\w+", title))


def test_every_method_of_the_scheduler_is_told_with_its_arguments():
    untold: dict[str, set[str]] = {}
    for name, member in inspect.getmembers(duly.Scheduler):
        if name.startswith("_"):
            continue
        section = sections(REFERENCE / "api.md").get(f"Scheduler.{name}")
        arguments = set(inspect.signature(member).parameters) if callable(member) else set[str]()
        missing = arguments - names_in(section or "") - {"self", "policy", "changes"}
        if section is None or missing:
            untold[name] = missing
    assert untold == {}


@pytest.mark.parametrize("name", sorted(duly.PUBLIC))
def test_every_field_of_a_public_value_is_told(name: str):
    value: object = getattr(duly, name)
    if isinstance(value, type) and issubclass(value, msgspec.Struct):
        assert set(value.__struct_fields__) - names_in(section_about(name)) == INTERNAL.get(name, set())


def test_every_member_of_a_state_is_told():
    members = {name for name in {*dir(State()), *dir(ReplayedState(Path("state")))} if not name.startswith("_")}
    told = names_in((REFERENCE / "projections.md").read_text(encoding="utf-8"))
    assert members - told == {"by_id", "founding", "mark_anomaly", "read_on", "shared"}  # these are the fold's own


def test_the_tests_that_a_document_names_are_there():
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    documents = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    named = set(re.findall(r"`(test_\w+)`", documents))
    assert named
    assert {name for name in named if f"def {name}(" not in tests} == set()


# The command line.

SHARED = "What all commands share"


def command_of(verb: str) -> click.Command:
    found: click.Command = importlib.import_module("duly.tools.cli").cli
    for name in verb.split()[1:]:
        assert isinstance(found, click.Group)
        found = found.commands[name]
    return found


def options_of(command: click.Command) -> set[tuple[str, ...]]:
    """Each option in all its spellings."""
    options = [
        parameter for parameter in command.params if isinstance(parameter, click.Option) and not parameter.hidden
    ]
    return {(*option.opts, *option.secondary_opts) for option in options}


@pytest.mark.parametrize("verb", [verb for verb in verbs() if verb.count(" ") == 1])
def test_every_command_has_a_section_that_tells_each_option(verb: str):
    found = sections(REFERENCE / "command-line.md")
    assert verb in found
    told = code_in(found[verb]) + code_in(found[SHARED])
    command = command_of(verb)
    inner = list(command.commands.values()) if isinstance(command, click.Group) else []
    options = set[tuple[str, ...]]().union(*(options_of(one) for one in [command, *inner]))
    words = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", told))
    assert {option for option in options if not words.intersection(option)} == set()


def test_every_exit_code_is_told():
    codes = vars(importlib.import_module("duly.tools.exit_codes"))
    numbers = {value for name, value in codes.items() if name.isupper()}
    text = sections(REFERENCE / "command-line.md")[SHARED]
    assert len(numbers) > 5
    assert {number for number in numbers if not re.search(rf"(?<!\d){number}(?!\d)", text)} == set()


def test_every_schema_of_a_json_document_is_told():
    code = "\n".join(
        path.read_text(encoding="utf-8") for name, path in modules().items() if name.startswith("duly.tools")
    )
    schemas = set(re.findall(r'"(duly\.[\w-]+/\d+)"', code))
    told = code_in((REFERENCE / "command-line.md").read_text(encoding="utf-8"))
    assert len(schemas) > 10
    assert {schema for schema in schemas if schema not in told} == set()


def test_every_trouble_of_the_doctor_is_told():
    code = inspect.getsource(importlib.import_module("duly.tools.doctoring"))
    codes = set(re.findall(r'code="([\w-]+)"', code))
    told = code_in(sections(REFERENCE / "command-line.md")["duly doctor"])
    assert len(codes) > 5
    assert {code for code in codes if code not in told} == set()


ACTING = {"completion", "ctl", "demo", "import", "run"}
"""Commands that tell nothing of a journal."""
ASKING_A_CALENDAR = {"next"}


def rows_of_checks() -> list[list[str]]:
    """The table of the functions behind the commands, cell by cell."""
    lines = sections(REFERENCE / "api.md")["Checks"].splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]


def test_every_command_about_a_journal_is_a_function_too():
    told = {command for row in rows_of_checks() for command in re.findall(r"`(\w+)", row[0])}
    commands = importlib.import_module("duly.tools.cli").cli.commands
    assert told == set(commands) - ACTING - ASKING_A_CALENDAR


@pytest.mark.parametrize("row", rows_of_checks(), ids=lambda row: row[0])
def test_the_function_behind_a_command_returns_what_is_told(row: list[str]):
    names = re.findall(r"`([\w.]+\.\w+)`", row[1])
    returned = re.findall(r"`(\w+)`", row[2])
    assert names
    for name in names:
        module, _, function = name.rpartition(".")
        annotation = inspect.signature(getattr(importlib.import_module(module), function)).return_annotation
        assert re.search(rf"\b{returned[0]}\b", str(annotation)), (name, annotation)


# Errors, reasons, projections.


def errors_to_meet() -> set[str]:
    """Those that a package offers by name; the others never leave duly."""
    offered = [
        value
        for package in ("duly", "duly.journal", "duly.projections")
        for module in [importlib.import_module(package)]
        for value in (getattr(module, name) for name in getattr(module, "__all__", None) or duly.PUBLIC)
    ]
    return {value.__name__ for value in offered if isinstance(value, type) and issubclass(value, duly.Error)}


def test_every_error_has_a_section_and_a_place_in_the_tree():
    page = REFERENCE / "errors.md"
    [tree] = [block.text for block in parse_blocks(page.read_text(encoding="utf-8")) if block.language == "text"]
    assert len(errors_to_meet()) > 20
    assert errors_to_meet() - set(sections(page)) == set()
    assert errors_to_meet() - set(re.findall(r"\w+", tree)) == set()


@pytest.mark.parametrize(
    "union", ["SkipReason", "AbandonCause", "BlockCause", "Overlap", "Misfire", "Fold", "Period", "Unit"]
)
def test_every_word_of_a_closed_list_is_told(union: str):
    words = set(get_args(getattr(importlib.import_module("duly.journal.entries"), union)))
    told = "\n".join(code_in(path.read_text(encoding="utf-8")) for path in sorted(REFERENCE.glob("*.md")))
    assert len(words) > 1
    assert {word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", told)} == set()


def test_every_projection_that_can_be_dumped_is_told():
    names = set(importlib.import_module("duly.projections.dump").PROJECTIONS)
    for text in (
        (REFERENCE / "projections.md").read_text(encoding="utf-8"),
        sections(REFERENCE / "command-line.md")["duly dump"],
    ):
        assert {name for name in names if name not in names_in(text)} == set()
