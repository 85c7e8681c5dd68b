"""What the service's reference says is complete: every public name, member and field is in it, as code."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from typing import get_args

import msgspec

import duly.service
from duly.service import Bounds, Client, Command, Decision, Event, Host, HostState, Outputs, Server, Status, Work
from duly.service.api.methods import METHODS
from duly.service.api.refusals import CODES
from tests.test_docs import code_in
from tests.test_docs_reference import names_in
from tests.tree import ROOT

PAGE = (ROOT / "docs" / "reference" / "service.md").read_text(encoding="utf-8")
API = (ROOT / "docs" / "reference" / "service-api.md").read_text(encoding="utf-8")


def members(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


def test_every_public_name_is_told():
    titles = set(re.findall(r"^## (\w+)$", PAGE + API, re.MULTILINE))
    assert set(duly.service.__all__) - names_in(PAGE) - names_in(API) - titles == set()


def test_every_method_code_bound_and_field_of_the_api_is_told():
    told = names_in(API)
    shapes = (Bounds, Status, Decision)
    assert {*METHODS, *(name for shape in shapes for name in shape.__struct_fields__)} - told == set()
    shown = {name: int(code) for code, name in re.findall(r"^\| (\d+) \| `(\w+)`", API, re.MULTILINE)}
    assert shown == {kind.__name__: code for kind, code in CODES.items()}
    for taken in (Client.__init__, Server.open):
        assert set(inspect.signature(taken).parameters) - told == {"self"} & set(inspect.signature(taken).parameters)


def test_every_member_of_a_host_and_its_arguments_are_told():
    told = names_in(PAGE)
    assert members(Host) - told == set()
    arguments = {*inspect.signature(Host.open).parameters, *inspect.signature(Host.once).parameters}
    assert arguments - told == {"self"}
    assert set(get_args(HostState)) - told == set()


def test_every_field_of_an_event_is_told():
    fields = {name for kind in get_args(Event) for name in kind.__struct_fields__}
    assert fields - names_in(PAGE) == set()


def test_every_part_of_work_commands_and_outputs_is_told():
    own = {"ask_to_stop", "completed", "failed", "interrupted", "ended_by"}  # the host's side of it
    assert members(Work) - own - names_in(PAGE) == set()
    parts: list[type[msgspec.Struct]] = [Command, Outputs]
    assert {name for kind in parts for name in kind.__struct_fields__} - names_in(PAGE) == set()


def test_the_command_line_loads_the_service_only_to_run_something():
    code = "import sys, duly.tools.cli; print([n for n in sys.modules if n.startswith(('duly.service', 'asyncio'))])"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_is_told_is_told_as_code():
    assert "DULY_CHECKPOINT_FILE" in code_in(PAGE)
