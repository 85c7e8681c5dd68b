"""The pages about APScheduler are true: their examples run with the real one, and each fact has its test."""

import re
from pathlib import Path

import pytest

from tests.documents import parse_blocks
from tests.test_docs import DOCS, execute, name_of
from tests.tree import ROOT

pytestmark = pytest.mark.evidence

WITH_APSCHEDULER = [
    path for path in DOCS if any(block.evidence for block in parse_blocks(path.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("path", WITH_APSCHEDULER, ids=name_of)
def test_what_a_document_shows_happens_with_the_real_apscheduler(path: Path, namespace: dict[str, object]):
    execute(parse_blocks(path.read_text(encoding="utf-8")), namespace, path)


def test_every_measurement_is_told_with_its_test():
    measured = {
        name
        for module in ("test_triggers.py", "test_missed.py")
        for name in re.findall(
            r"^def (test_\w+)", (ROOT / "tests" / "evidence" / module).read_text("utf-8"), re.MULTILINE
        )
    }
    told = (ROOT / "docs" / "explanation" / "apscheduler.md").read_text(encoding="utf-8")
    assert {name for name in measured if f"`{name}`" not in told} == set()
