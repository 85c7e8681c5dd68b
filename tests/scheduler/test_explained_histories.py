"""Every occurrence of generated histories is explained, with the disposition that the record gives by the model."""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random

import pytest

from duly.journal import Reader
from duly.journal.entries import Entry
from duly.scheduler.accounting import account_of
from duly.scheduler.explaining import explain_all
from duly.scheduler.explanations import Explanation
from tests.scheduler.histories import History
from tests.scheduler.reference_calendar import CADENCES, one_shot
from tests.scheduler.reference_dispositions import Dispositions

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
MOST = 400
POLICIES: tuple[dict[str, str], ...] = (
    {},
    {"misfire": "skip"},
    {"misfire": "skip", "lateness": "10m"},
    {"overlap": "parallel", "limit": "2", "misfire": "skip", "lateness": "1h"},
    {"overlap": "parallel", "limit": "3", "misfire": "latest", "lateness": "1h"},
)
PASSING = (MINUTE, 7 * MINUTE, 15 * MINUTE, 45 * MINUTE, HOUR, 3 * HOUR, DAY, 3 * DAY, -6 * MINUTE, -HOUR, -9 * HOUR)
Calendars = dict[tuple[str, int], Sequence[datetime]]


def live(seed: int, length: int = 60) -> tuple[History, Calendars]:
    """A history by the seed, and the calendar of each revision in it."""
    choose = Random(seed)  # noqa: S311 - a seed that can be repeated is the point
    history = History(slots=choose.choice((1, 1, 2, 8)), batch=choose.choice((1000, 1000, 5)))
    calendars: Calendars = {}
    for schedule_id in ("a", "b"):
        history.create(schedule_id, choose.choice(CADENCES), choose.choice(POLICIES))
    for _ in range(length):
        _remember(history, calendars)
        _do_something(history, choose)
    _remember(history, calendars)
    return history, calendars


def _remember(history: History, calendars: Calendars) -> None:
    for schedule_id, schedule in history.model.schedules.items():
        calendars[schedule_id, schedule.revision] = schedule.rule.instants


def _do_something(history: History, choose: Random) -> None:
    model = history.model
    living = [schedule_id for schedule_id, one in model.schedules.items() if not one.deleted]
    open_runs = [run_id for run_id, run in model.runs.items() if run.state in {"pending", "started"}]
    chance = choose.random()
    if chance < 0.55 or not living:
        history.now += choose.choice(PASSING)
        history.poll(start=choose.random() < 0.7)
    elif chance < 0.72 and open_runs:
        run_id = choose.choice(open_runs)
        verb = "complete" if model.runs[run_id].state == "started" else "fail"
        history.report(verb, run_id)
    elif chance < 0.75:
        at = history.now.replace(microsecond=0) + choose.choice((10, 180)) * MINUTE
        history.create(choose.choice("cd"), one_shot(at), choose.choice(POLICIES))
    elif chance < 0.80:
        schedule_id = choose.choice(living)
        history.edit(schedule_id, choose.choice(CADENCES), choose.choice(POLICIES[1:3]))
    elif chance < 0.88:
        history.administer(choose.choice(("pause", "unpause", "disable", "enable")), choose.choice(living))
    elif chance < 0.90:
        history.rebaseline(choose.choice(living), choose.choice((0, 10, 300)) * MINUTE)
    elif chance < 0.92:
        history.administer("run_now", choose.choice(living))
    elif chance < 0.94:
        schedule_id = choose.choice(living)
        history.administer("unblock" if schedule_id in model.blocked_schedules else "block", schedule_id)
    elif chance < 0.95:
        schedule_id = choose.choice(living)
        verb = "pause" if model.schedules[schedule_id].rule.cadence == "once_per" else "delete"
        history.administer(verb, schedule_id)
    elif chance < 0.97:
        history.external(choose.choice(living), choose.choice((-DAY, DAY, 9 * DAY)))
    else:
        history.crash({})


def record_of(history: History) -> list[tuple[int, Entry]]:
    return [(one.sequence, one.entry) for one in Reader(history.world.path, disk=history.world.memory).records()]


def asked_about(instants: Sequence[datetime], begin: datetime, end: datetime) -> list[datetime]:
    """The occurrences in a span, evenly thinned out where they are too many."""
    found = list(instants[bisect_left(instants, begin) : bisect_right(instants, end)])
    return found[:: max(1, len(found) // MOST)]


def said(explanation: Explanation) -> str:
    if explanation.disposition == "skipped":
        return f"skipped:{explanation.reason}"
    return explanation.disposition


@pytest.mark.parametrize("seed", range(24))
def test_every_occurrence_of_a_generated_history_is_explained_as_the_model_has_it(
    seed: int, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.ERROR, logger="duly")
    history, calendars = live(seed)
    record = record_of(history)
    begin, end = min(entry.at for _, entry in record) - DAY, max(entry.at for _, entry in record) + DAY
    for schedule_id in history.model.schedules:
        told = Dispositions(schedule_id).tell(entry for _, entry in record)
        mine = {revision: found for (one, revision), found in calendars.items() if one == schedule_id}
        asked = sorted({one for found in mine.values() for one in asked_about(found, begin, end)} | set(told.decided))
        explained = explain_all(record, schedule_id, asked, now=history.now)
        expected = {instant: told.of(instant, history.now, mine) for instant in asked}
        found = {one.scheduled_at: said(one) for one in explained}
        wrong = {str(at): (found[at], became) for at, became in expected.items() if became and found[at] != became}
        assert wrong == {}, history.story(f"{schedule_id} is explained otherwise", str(wrong))
        assert [one for one in explained if one.disposition in {"unaccounted", "unknown"}] == []
        assert all(one.rule and one.revision is not None for one in explained)
    assert account_of(record).balanced
    history.close()


def test_the_generated_histories_hold_every_disposition():
    seen: Counter[str] = Counter()
    voided = 0
    for seed in range(24):
        history, calendars = live(seed)
        record = record_of(history)
        for schedule_id, revision in calendars:
            begin, end = record[0][1].at - DAY, max(entry.at for _, entry in record) + DAY
            asked = asked_about(calendars[schedule_id, revision], begin, end)
            for explanation in explain_all(record, schedule_id, asked, now=history.now):
                seen[explanation.disposition] += 1
                voided += bool(explanation.voided)
        history.close()
    wanted = {"admitted", "skipped", "superseded", "waiting", "covered", "projected", "ended", "none"}
    assert wanted - set(seen) == set()
    assert voided > 0
