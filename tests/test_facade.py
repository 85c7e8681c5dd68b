"""The public names: each is where the table says, known to type checkers, and loaded only when asked for."""

import ast
import importlib

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


def test_every_public_error_has_the_one_base():
    public = [getattr(duly, name) for name in duly.PUBLIC]
    errors = [value for value in public if isinstance(value, type) and issubclass(value, Exception)]
    assert [error for error in errors if not issubclass(error, duly.Error)] == []
