"""What the tests of the embedded scheduler start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scheduler.embedding import Program


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.close()
