"""The reference is complete and true: it is compared with the classes and methods that it is about."""

import inspect
import re
from pathlib import Path

import msgspec
import pytest

import duly
from duly.journal.codec import encode_batch
from duly.journal.entries import ENTRY_CLASSES, Entry
from duly.projections import State
from duly.projections.replay import ReplayedState
from tests.documents import parse_blocks
from tests.test_docs import code_in
from tests.tree import ROOT

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
    assert members - told == {"by_id", "mark_anomaly", "read_on", "shared"}  # these are the fold's own


def test_the_tests_that_a_document_names_are_there():
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    documents = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    named = set(re.findall(r"`(test_\w+)`", documents))
    assert named
    assert {name for name in named if f"def {name}(" not in tests} == set()
