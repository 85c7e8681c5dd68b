"""What makes or changes something: its golden outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools import golden_made


@pytest.mark.parametrize("name", golden_made.COMMANDS)
def test_the_output_is_the_golden_one(name: str, tmp_path: Path):
    wanted = (golden_made.FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert golden_made.printed(name, tmp_path) == wanted


def test_every_golden_file_belongs_to_a_command():
    assert {path.name for path in golden_made.FOLDER.iterdir()} == {f"{name}.txt" for name in golden_made.COMMANDS}
