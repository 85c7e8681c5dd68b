"""What the tests of the command line share: an eventful journal, made once, and commands run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from duly.tools.cli import main
from tests.tools.eventful import make_eventful


@dataclass(frozen=True)
class Answer:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.out)
        return loaded

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.err)
        return loaded


Duly: TypeAlias = Callable[..., Answer]


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The eventful journal. It is only read."""
    return make_eventful(tmp_path_factory.mktemp("eventful") / "journal")


@pytest.fixture
def duly(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Duly:
    """Runs a command line in this process."""
    monkeypatch.delenv("DULY_JOURNAL", raising=False)
    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments: object) -> Answer:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run
