"""A command that duly prints works as it is printed, also for an id that begins like an option."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duly import Cron, ManualClock, Scheduler
from tests.tools.conftest import Duly

BEGIN = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
IDS = ("-n", "--help", "-", "job")


def made(path: Path, schedule_id: str, *, blocked: bool) -> Path:
    clock = ManualClock(BEGIN)
    with Scheduler.open(path, clock=clock) as scheduler:
        scheduler.create(schedule_id, Cron("0 * * * *", zone="UTC"), target="work")
        clock.advance(HOUR)
        scheduler.poll()
        if blocked:
            scheduler.block(schedule_id, "the disk is full")
    return path


@pytest.mark.parametrize("schedule_id", IDS)
@pytest.mark.parametrize("code", ["blocked", "starving"])
def test_a_remedy_works_as_it_is_printed(code: str, schedule_id: str, duly: Duly, tmp_path: Path):
    path = made(tmp_path / "a journal", schedule_id, blocked=code == "blocked")
    at = ("--now", (BEGIN + 9 * HOUR).isoformat())
    [trouble] = [one for one in duly("doctor", path, *at, "--json").document["troubles"] if one["code"] == code]
    program, *words = shlex.split(trouble["remedy"])
    assert (program, duly(*words).code) == ("duly", 0)
    assert code not in {one["code"] for one in duly("doctor", path, *at, "--json").document["troubles"]}


@pytest.mark.parametrize("schedule_id", IDS)
@pytest.mark.parametrize("instant", ["2026-03-02T10:00:00Z", "2026-03-02T10:30:00Z"])
def test_what_an_explanation_points_to_can_be_asked(instant: str, schedule_id: str, duly: Duly, tmp_path: Path):
    path = made(tmp_path / "a journal", schedule_id, blocked=False)
    answer = duly("explain", "-j", path, "--", schedule_id, instant)
    [printed] = [line for line in answer.out.splitlines() if "duly " in line]
    program, *words = shlex.split(printed[printed.index("duly ") :])
    assert (program, duly(*words).code) == ("duly", 0)
