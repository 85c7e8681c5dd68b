"""A scheduler that is served, for the tests that ask it over HTTP."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from duly import Scheduler
from tests.service.serving import GENEROUS, HOURLY, Served, serving


@pytest.fixture
def scheduler(tmp_path: Path) -> Generator[Scheduler]:
    with Scheduler.open(tmp_path / "j") as scheduler:
        scheduler.create("a", HOURLY, target="t")
        yield scheduler


@pytest.fixture
def served(scheduler: Scheduler, tmp_path: Path) -> Generator[Served]:
    with serving(scheduler, tmp_path, bounds=GENEROUS) as served:
        yield served
