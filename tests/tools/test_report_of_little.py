"""The page of `duly report` where there is little to report."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from duly import Cron, ManualClock, Scheduler
from duly.scheduler.reporting import report_data
from duly.tools.report_page import render_page
from tests.tools.conftest import Duly
from tests.tools.recorded import make_recorded
from tests.tools.test_report import Page


def test_where_nothing_is_wrong_the_page_says_what_was_looked_for(tmp_path: Path):
    with Scheduler.open(tmp_path / "j", clock=ManualClock(datetime(2026, 3, 2, tzinfo=UTC))) as scheduler:
        scheduler.create("job", Cron("0 * * * *", zone="UTC"), target="work")
    texts = Page(render_page(report_data(tmp_path / "j"), "j")).texts
    assert any(text.startswith("Nothing: no anomaly, no run that failed or was abandoned, ") for text in texts)


def test_a_window_that_holds_nothing_says_so(duly: Duly, tmp_path: Path):
    answer = duly(
        "report", make_recorded(tmp_path / "journal"), "-o", tmp_path / "report.html", "--since", "2027-05-01T00:00:00Z"
    )
    told = "no occurrence lies in this window, as of 2026-03-29T10:12:00Z"
    assert answer.out.splitlines()[0] == told
    assert "no occurrence lies in it, as of 2026-03-29T10:12:00Z" in (tmp_path / "report.html").read_text("utf-8")
