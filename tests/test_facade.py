"""The public names: each is where the table says, known to type checkers, and loaded only when asked for."""

import ast
import importlib
import inspect
from typing import get_args, get_origin, get_type_hints

import pytest

import duly
from tests.tree import ROOT


def names_for_type_checkers() -> dict[str, str]:
    tree = ast.parse((ROOT / "facade" / "__init__.py").read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or "": node.module or "" for node in imports for alias in node.names}


def test_type_checkers_see_every_public_name_and_no_other():
    assert names_for_type_checkers() == dict(duly.PUBLIC)


@pytest.mark.parametrize(("name", "module"), duly.PUBLIC.items())
def test_a_public_name_is_the_object_of_its_module(name: str, module: str):
    assert getattr(duly, name) is getattr(importlib.import_module(module), name)


def test_dir_and_star_import_offer_the_public_names():
    namespace: dict[str, object] = {}
    exec("from duly import *", namespace)  # noqa: S102 - a star import is only legal at module level
    assert set(namespace) - {"__builtins__"} == set(duly.PUBLIC)
    assert {name for name in dir(duly) if not name.startswith("__")} == set(duly.PUBLIC)


def test_an_unknown_name_is_an_attribute_error():
    misspelt = "Schedular"
    with pytest.raises(AttributeError, match="module 'duly' has no attribute 'Schedular'"):
        getattr(duly, misspelt)


NOT_HANDED_OUT = {"DefinitionFields", "PolicyFields", "Disk"}
"""What a method of the Scheduler takes, and never returns."""


def our_classes(hint: object) -> set[type]:
    found = set[type]().union(*map(our_classes, get_args(hint)))
    for one in (hint, get_origin(hint)):
        if isinstance(one, type) and one.__module__.startswith("duly."):
            found.add(one)
    return found


def test_what_a_method_of_the_scheduler_takes_and_returns_is_public():
    seen: set[str] = set()
    for name in [name for name in dir(duly.Scheduler) if not name.startswith("_")]:
        member = inspect.getattr_static(duly.Scheduler, name)
        call = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        hints = get_type_hints(call) if callable(call) else {}
        seen |= {one.__name__ for hint in hints.values() for one in our_classes(hint)}
    assert "Explanation" in seen
    assert seen - set(duly.PUBLIC) == NOT_HANDED_OUT


def test_what_a_public_answer_is_made_of_is_public():
    answers = [duly.Explanation, duly.Page, duly.Row, duly.Run, duly.Attempt, duly.Upcoming]
    parts = {one for answer in answers for hint in get_type_hints(answer).values() for one in our_classes(hint)}
    assert {one.__name__ for one in parts} - set(duly.PUBLIC) == set()


def test_every_public_error_has_the_one_base():
    public = [getattr(duly, name) for name in duly.PUBLIC]
    errors = [value for value in public if isinstance(value, type) and issubclass(value, Exception)]
    assert [error for error in errors if not issubclass(error, duly.Error)] == []
