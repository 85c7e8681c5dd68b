"""The reference model on its own: small histories whose right answer anybody can tell, rule by rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.scheduler.reference_kept import MOST_RANGES, Kept, keep
from tests.scheduler.reference_model import Model, Rule
from tests.scheduler.reference_runs import Refused, Told

DAY = datetime(2026, 3, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
QUARTERS = [DAY + 15 * MINUTE * count for count in range(4 * 24 * 30)]
MINUTES = [DAY + MINUTE * count for count in range(60 * 24 * 3)]
DAYS = [DAY + timedelta(days=count) for count in range(-40, 4000)]


def at(hour: int, minute: int = 0, day: int = 0) -> datetime:
    return DAY + timedelta(days=day, hours=hour, minutes=minute)


def told(entries: list[Told]) -> list[str]:
    """Kind, time of day and reason: enough to tell entries apart here."""
    return [" ".join(_words(entry)) for entry in entries]


def _words(entry: Told) -> list[str]:
    instant = entry.get("scheduled_at")
    moment = [] if instant is None else [f"{instant:%H:%M}"]
    return [str(entry["kind"]), *moment, *([str(entry["reason"])] if "reason" in entry else [])]


def opened(rule: Rule, *, task_slots: int = 8, batch: int = 1000) -> Model:
    model = Model(task_slots=task_slots, batch=batch)
    model.reopen(at(9), {})
    model.create(at(9), "report", rule)
    return model


def test_a_busy_schedule_skips_and_names_the_run_that_blocks() -> None:
    model = opened(Rule(QUARTERS, misfire="skip"))
    admitted = model.poll(at(9, 15))
    assert told(admitted.entries) == ["OccurrenceAdmitted 09:15"]
    model.start(at(9, 15), *admitted.offered)
    skipped = model.poll(at(9, 30)).entries
    assert told(skipped) == ["OccurrenceSkipped 09:30 overlap"]
    assert skipped[0]["blocking_run"] == admitted.offered[0]
    assert model.poll(at(9, 32)).entries == []


def test_latest_makes_up_for_the_newest_missed_instant_alone() -> None:
    model = opened(Rule(QUARTERS))
    assert told(model.poll(at(10, 5)).entries) == [
        *[f"OccurrenceSuperseded {moment}" for moment in ("09:15", "09:30", "09:45")],
        "OccurrenceAdmitted 10:00",
    ]


def test_without_a_slot_latest_holds_and_skip_waits_until_it_is_missed() -> None:
    model = opened(Rule(QUARTERS), task_slots=1)
    model.create(at(9), "second", Rule(QUARTERS, misfire="skip"))
    model.create(at(9), "a-blocker", Rule([at(9, 5)], cadence="one_shot"))
    model.start(at(9, 5), *model.poll(at(9, 5)).offered)
    assert told(model.poll(at(9, 15)).entries) == ["CandidateHeld 09:15"]
    assert model.poll(at(9, 16)).entries == []
    assert told(model.poll(at(9, 17)).entries) == ["OccurrenceSkipped 09:15 capacity"]
    assert told(model.poll(at(9, 30)).entries) == ["OccurrenceSuperseded 09:15", "CandidateHeld 09:30"]


@pytest.mark.parametrize(("misfire", "reason"), [("latest", "superseded"), ("skip", "backlog")])
def test_the_hundredth_due_instant_ends_the_search(misfire: str, reason: str) -> None:
    model = opened(Rule(MINUTES, misfire=misfire))
    entries = model.poll(at(9) + 99 * MINUTE).entries
    assert "IntervalSkipped" not in told(entries)
    model = opened(Rule(MINUTES, misfire=misfire))
    interval, newest = model.poll(at(9) + 100 * MINUTE).entries
    assert (interval["reason"], interval["at_least"]) == (reason, 99)
    assert (interval["after"], interval["before"]) == (at(9), at(9) + 100 * MINUTE)
    assert told([newest]) == ["OccurrenceAdmitted 10:40"]


def test_turns_go_on_after_the_schedule_that_was_admitted_last() -> None:
    model = Model(task_slots=1)
    for schedule_id in ("a", "b", "c"):
        model.create(at(9), schedule_id, Rule(QUARTERS))
    order: list[str] = []
    for minute in (15, 16, 17, 18):
        polled = model.poll(at(9, minute))
        order += [entry["schedule_id"] for entry in polled.entries if entry["kind"] == "OccurrenceAdmitted"]
        for run_id in polled.offered:
            model.start(at(9, minute), run_id)
            model.report(at(9, minute), "RunCompleted", run_id, None)
    assert order == ["a", "b", "c"]


def test_a_batch_is_cut_and_the_rest_is_more() -> None:
    model = opened(Rule(QUARTERS), batch=2)
    polls = [model.poll(at(10, 5)) for _ in range(3)]
    assert [(told(poll.entries), poll.more) for poll in polls] == [
        (["OccurrenceSuperseded 09:15", "OccurrenceSuperseded 09:30"], True),
        (["OccurrenceSuperseded 09:45", "OccurrenceAdmitted 10:00"], False),
        ([], False),
    ]


def test_a_regression_keeps_what_was_admitted_and_undoes_what_was_passed_over() -> None:
    model = opened(Rule(QUARTERS, misfire="skip"))
    model.start(at(9, 15), *model.poll(at(9, 15)).offered)
    model.report(at(9, 16), "RunCompleted", 3, None)
    assert told(model.poll(at(9, 33)).entries) == ["OccurrenceSkipped 09:30 misfire"]
    assert told(model.poll(at(9, 10)).entries) == ["ClockRegressed"]
    assert model.poll(at(9, 15)).entries == []
    assert told(model.poll(at(9, 30)).entries) == ["OccurrenceAdmitted 09:30"]


def test_a_period_is_spent_once_however_it_was_spent() -> None:
    model = opened(Rule(DAYS, cadence="once_per"))
    model.external(at(9), "report", at(0, day=3650))
    polls = [model.poll(at(9, minute)) for minute in range(1, 11)]
    assert told([entry for poll in polls for entry in poll.entries]) == ["OccurrenceAdmitted 00:00"]
    model.run_now(at(8, day=1), "report")
    (spent,) = model.poll(at(9, day=1)).entries
    assert (spent["kind"], spent["reason"], spent["by"]) == ("OccurrenceSkipped", "spent", model.sequence - 1)


def test_recovery_decides_by_the_evidence() -> None:
    model = opened(Rule(QUARTERS, overlap="parallel", limit=5))
    for minute in (15, 30, 45):
        model.poll(at(9, minute))
    pending = model.pending_runs()
    model.start(at(9, 45), *pending[:2])
    entries = model.reopen(at(9, 50), {pending[0]: ("StillRunning", None)})
    assert told(entries) == ["JournalOpened", "RunAbandoned"]
    assert [model.runs[run_id].state for run_id in pending] == ["started", "abandoned", "pending"]


def test_a_result_must_carry_the_active_attempt() -> None:
    model = opened(Rule(QUARTERS))
    (run_id,) = model.poll(at(9, 15)).offered
    model.start(at(9, 15), run_id)
    model.report(at(9, 16), "RunInterrupted", run_id, None)
    model.resume(at(9, 17), run_id)
    with pytest.raises(Refused, match="StaleAttempt"):
        model.report(at(9, 18), "RunCompleted", run_id, None)
    attempt = model.runs[run_id].attempt
    assert told(model.report(at(9, 18), "RunCompleted", run_id, attempt)) == ["RunCompleted", "AttemptCleared"]


def test_kept_ranges_grow_merge_and_never_exceed_their_number() -> None:
    ranges = keep([], None, at(9))
    assert keep(ranges, at(9), at(10)) == [Kept(at(9), at(10))]
    apart = keep(ranges, at(9, 30), at(10))
    assert apart == [Kept(at(9), at(9)), Kept(at(10), at(10))]
    assert keep(apart, at(9), at(11)) == [Kept(at(9), at(11))]
    many: list[Kept] = []
    for day in range(MOST_RANGES):
        many = keep(many, None, at(9, day=2 * day))
    assert keep(many, None, at(10, day=2))[1] == Kept(at(9, day=2), at(10, day=2))
    assert keep(many, None, at(9, day=60))[:2] == [Kept(at(9), at(9, day=2)), Kept(at(9, day=4), at(9, day=4))]
