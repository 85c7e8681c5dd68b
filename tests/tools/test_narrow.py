"""Tables on narrow screens: nothing is cut off, no instant is broken, and what says nothing is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tools.conftest import Duly
from tests.tools.recorded import make_recorded

INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+Z")
COMMANDS = {
    "blame": ["blame", "nightly"],
    "history": ["history", "hourly"],
    "schedules": ["schedules"],
    "runs": ["runs"],
    "whatif": ["whatif", "--set", "*.lateness=2h"],
    "dump": ["dump"],
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal in which everything happens. It is only read."""
    return make_recorded(tmp_path_factory.mktemp("recorded") / "journal")


@pytest.mark.parametrize("command", COMMANDS)
def test_no_instant_is_broken_however_narrow_the_screen(
    command: str, recorded: Path, duly: Duly, monkeypatch: pytest.MonkeyPatch
):
    [name, *more] = COMMANDS[command]
    words = [name, recorded, *more] if command == "whatif" else [name, *more, "-j", recorded]
    monkeypatch.setenv("COLUMNS", "1000")
    told = sorted(INSTANT.findall(duly(*words).out))
    assert told != []
    for width in (60, 80, 100, 120, 160):
        monkeypatch.setenv("COLUMNS", str(width))
        assert sorted(INSTANT.findall(duly(*words).out)) == told, width


def test_a_narrow_account_leaves_out_what_is_zero_everywhere_and_says_the_same(
    recorded: Path, duly: Duly, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "200")
    wide = duly("account", recorded).out.splitlines()
    monkeypatch.setenv("COLUMNS", "80")
    narrow = duly("account", recorded).out.splitlines()
    header = {name: at for at, name in enumerate(wide[0].split())}
    assert (narrow[-1], len(narrow[0].split()) < len(header)) == (wide[-1], True)
    for line, full in zip(narrow[2:], wide[2:], strict=True):
        if not full.strip() or full == wide[-1]:
            continue
        kept = [header[name] for name in narrow[0].split()]
        assert line.split() == [full.split()[at] for at in kept]
        assert {word for at, word in enumerate(full.split()) if at not in kept} <= {"0"}
