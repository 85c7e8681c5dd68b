"""Every kind of entry has its sentence."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from duly.journal.entries import (
    ENTRY_CLASSES,
    AttemptCleared,
    CalendarChanged,
    CandidateHeld,
    Checkpoint,
    ClockJumped,
    ClockRegressed,
    CronRule,
    Definition,
    Entry,
    EntryLost,
    ErrorInfo,
    EveryRule,
    ExternalRunRecorded,
    IntervalSkipped,
    JournalClosed,
    JournalOpened,
    OccurrenceAdmitted,
    OccurrenceSkipped,
    OccurrenceSuperseded,
    OncePerRule,
    OneShotRule,
    ResumeMarked,
    RunAbandoned,
    RunAdmittedManually,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunNoted,
    RunStarted,
    ScheduleBlocked,
    ScheduleCreated,
    ScheduleDeleted,
    ScheduleDisabled,
    ScheduleEdited,
    ScheduleEnabled,
    SchedulePaused,
    ScheduleRebaselined,
    ScheduleUnblocked,
    ScheduleUnpaused,
    SourceRule,
    TornTail,
    TriggerRule,
)
from duly.tools.describe import describe_definition, describe_entry, describe_trigger

AT = datetime(2026, 3, 29, 1, 0, 5, tzinfo=UTC)
DUE = AT - timedelta(seconds=5)
NEWER = DUE + timedelta(hours=1)
NIGHTLY = Definition(trigger=CronRule("30 2 * * *", "Europe/Berlin"), target="command")
PARALLEL = Definition(
    trigger=CronRule("0 * * * *", "UTC", "first"),
    target="metrics",
    target_revision="r7",
    overlap="parallel",
    max_active_runs=2,
    misfire="skip",
    lateness=timedelta(minutes=5),
)

SENTENCES: list[tuple[Entry, str]] = [
    (
        ScheduleCreated(at=AT, schedule_id="a", covers_through=AT, definition=NIGHTLY, actor="ann", note="moved"),
        "created: 30 2 * * * Europe/Berlin -> command (by ann: moved)",
    ),
    (
        ScheduleEdited(
            at=AT, schedule_id="a", covers_through=AT, revision=2, definition=PARALLEL, changed=("overlap", "misfire")
        ),
        "edited to revision 2 (overlap, misfire): 0 * * * * UTC fold=first -> metrics revision=r7 "
        "overlap=parallel max=2 misfire=skip lateness=5m",
    ),
    (SchedulePaused(at=AT, schedule_id="a", covers_after=AT, covers_through=AT, actor="ann"), "paused (by ann)"),
    (
        ScheduleUnpaused(at=AT, schedule_id="a", covers_after=DUE, covers_through=AT),
        "unpaused; what lay after 2026-03-29T01:00:00Z through 2026-03-29T01:00:05Z does not run",
    ),
    (ScheduleDisabled(at=AT, schedule_id="a", covers_through=AT), "disabled"),
    (ScheduleEnabled(at=AT, schedule_id="a", covers_after=AT, covers_through=AT), "enabled"),
    (ScheduleDeleted(at=AT, schedule_id="a", covers_through=AT, note="moved"), "deleted (moved)"),
    (ScheduleBlocked(at=AT, schedule_id="a", cause="trigger", reason="no zone"), "BLOCKED (trigger): no zone"),
    (ScheduleUnblocked(at=AT, schedule_id="a", actor="ann"), "unblocked (by ann)"),
    (
        ScheduleRebaselined(at=AT, schedule_id="a", through=DUE, regressed=True),
        "watermark moved back to 2026-03-29T01:00:00Z",
    ),
    (
        ExternalRunRecorded(at=AT, schedule_id="a", started_at=DUE),
        "external run recorded, started 2026-03-29T01:00:00Z",
    ),
    (
        CalendarChanged(at=AT, schedule_id="a", was=DUE),
        "calendar changed: 2026-03-29T01:00:00Z is no longer an occurrence; the next one: never",
    ),
    (
        OccurrenceAdmitted(at=AT, schedule_id="a", scheduled_at=DUE, target="command", exhausts=True),
        "admitted 2026-03-29T01:00:00Z, 5s late; there are no more",
    ),
    (
        OccurrenceSkipped(at=AT, schedule_id="a", scheduled_at=DUE, reason="overlap", blocking_run=7),
        "skipped 2026-03-29T01:00:00Z: run 7 is not over",
    ),
    (
        OccurrenceSuperseded(at=AT, schedule_id="a", scheduled_at=DUE, by=NEWER),
        "superseded 2026-03-29T01:00:00Z by 2026-03-29T02:00:00Z",
    ),
    (
        IntervalSkipped(at=AT, schedule_id="a", after=DUE, before=NEWER, at_least=100, reason="backlog"),
        "at least 100 occurrences between 2026-03-29T01:00:00Z and 2026-03-29T02:00:00Z skipped: backlog",
    ),
    (
        CandidateHeld(at=AT, schedule_id="a", scheduled_at=DUE),
        "held 2026-03-29T01:00:00Z until a task slot is free",
    ),
    (RunAdmittedManually(at=AT, target="command", actor="ann"), "manual run of command admitted (by ann)"),
    (RunStarted(at=AT, run_id=7), "run 7 started"),
    (RunNoted(at=AT, run_id=7, data={"pgid": 12}), 'run 7 noted: {"pgid": 12}'),
    (RunCompleted(at=AT, run_id=7, attempt_id=9, result=0), "run 7 completed in attempt 9: 0"),
    (
        RunFailed(at=AT, run_id=7, error=ErrorInfo("ValueError", "no disk")),
        "run 7 failed: ValueError: no disk",
    ),
    (RunInterrupted(at=AT, run_id=7), "run 7 interrupted, can be resumed"),
    (ResumeMarked(at=AT, run_id=7), "run 7 resumed by a new attempt"),
    (AttemptCleared(at=AT, run_id=7, attempt_id=9), "attempt 9 of run 7 is done"),
    (
        RunAbandoned(at=AT, run_id=7, cause="crash"),
        "run 7 abandoned: its process died; external effects may have happened; it is never retried",
    ),
    (
        JournalOpened(
            at=AT,
            host="shop-01",
            pid=12,
            duly="0.1",
            croniter="7",
            tzdata="2026",
            python="3.11",
            task_slots=8,
            batch=1000,
            clock_tolerance=timedelta(minutes=5),
            torn=(TornTail("1.jsonl", 100, 20, "torn/1-100.bin"),),
            actor="ann",
        ),
        "journal opened by ann on shop-01, process 12, duly 0.1, 8 task slots; "
        "torn tail of 20 bytes kept in torn/1-100.bin",
    ),
    (JournalClosed(at=AT), "journal closed"),
    (
        ClockRegressed(at=DUE, tolerance=timedelta(minutes=5), highest=NEWER),
        "CLOCK went back 1h from 2026-03-29T02:00:00Z (tolerance 5m)",
    ),
    (ClockJumped(at=AT, ahead=timedelta(minutes=7)), "CLOCK ran ahead by 7m"),
    (
        Checkpoint(at=AT, part=1, parts=3, through=7, state=""),
        "checkpoint of everything through entry 7, part 1 of 3",
    ),
    (EntryLost(at=AT), "LOST: an entry stood here that salvage could not read"),
]


@pytest.mark.parametrize(("entry", "sentence"), SENTENCES, ids=[type(entry).__name__ for entry, _ in SENTENCES])
def test_an_entry_is_described(entry: Entry, sentence: str):
    assert describe_entry(entry) == sentence


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ErrorInfo("", "exit status 1"), "exit status 1"),
        (ErrorInfo("KeyError", ""), "KeyError"),
        (ErrorInfo("", ""), "no reason was given"),
    ],
)
def test_an_error_is_told_by_what_it_has(error: ErrorInfo, text: str):
    assert describe_entry(RunFailed(at=AT, run_id=7, error=error)) == f"run 7 failed: {text}"


def test_every_kind_of_entry_is_described():
    assert [type(entry) for entry, _ in SENTENCES] == list(ENTRY_CLASSES)


@pytest.mark.parametrize(
    ("reason", "more", "said"),
    [
        ("misfire", {}, "too late, 5s late"),
        ("capacity", {}, "no free task slot, 5s late"),
        ("spent", {"by": 12}, "its period is spent, by entry 12"),
        ("preflight", {"detail": "no such target"}, "refused by preflight, no such target"),
    ],
)
def test_a_skip_says_why(reason: str, more: dict[str, object], said: str):
    skipped = OccurrenceSkipped(at=AT, schedule_id="a", scheduled_at=DUE, reason=reason, **more)  # type: ignore[arg-type]  # from a table
    assert describe_entry(skipped) == f"skipped 2026-03-29T01:00:00Z: {said}"


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (OneShotRule(DUE), "once at 2026-03-29T01:00:00Z"),
        (OncePerRule("day", "Asia/Tokyo"), "once per day Asia/Tokyo"),
        (EveryRule(2, "week", "2026-01-05", "UTC", "09:30"), "every 2 weeks at 09:30 UTC from 2026-01-05"),
        (EveryRule(1, "hour", "2026-01-05T00:00:00Z"), "every 1 hour from 2026-01-05T00:00:00Z"),
        (SourceRule("tides"), "source tides"),
    ],
)
def test_a_rule_is_described_as_it_would_be_written_down(rule: TriggerRule, said: str):
    assert describe_trigger(rule) == said


@pytest.mark.parametrize(
    ("abandoned", "said"),
    [
        (
            RunAbandoned(at=AT, run_id=7, cause="ambiguous", attempt_id=9),
            "run 7 abandoned in attempt 9: the outcome of its attempt cannot be told; it is never retried",
        ),
        (
            RunAbandoned(at=AT, run_id=7, cause="operator", actor="ann", note="hung"),
            "run 7 abandoned: by an operator (by ann: hung)",
        ),
        (RunAbandoned(at=AT, run_id=7, cause="crash", detail="power cut"), "run 7 abandoned: power cut"),
    ],
)
def test_an_abandoned_run_says_why(abandoned: RunAbandoned, said: str):
    assert describe_entry(abandoned) == said


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (SchedulePaused, "paused"),
        (ScheduleUnpaused, "unpaused"),
        (ScheduleDisabled, "disabled"),
        (ScheduleEnabled, "enabled"),
        (ScheduleDeleted, "deleted"),
        (
            partial(ScheduleEdited, revision=2, definition=NIGHTLY),
            f"edited to revision 2: {describe_definition(NIGHTLY)}",
        ),
    ],
)
def test_whatever_moves_the_watermark_says_what_it_covered_and_whether_it_was_the_last(
    kind: Callable[..., Entry], said: str
):
    covering = kind(at=AT, schedule_id="a", covers_after=DUE, covers_through=AT, exhausts=True, actor="ann")
    assert describe_entry(covering) == (
        f"{said}; what lay after 2026-03-29T01:00:00Z through 2026-03-29T01:00:05Z does not run; "
        "there are no more (by ann)"
    )


def test_a_moved_watermark_says_what_it_covered():
    moved = ScheduleRebaselined(at=AT, schedule_id="a", covers_after=DUE, through=NEWER, exhausts=True)
    assert describe_entry(moved) == (
        "watermark moved to 2026-03-29T02:00:00Z; what lay after 2026-03-29T01:00:00Z through 2026-03-29T02:00:00Z "
        "does not run; there are no more"
    )


def test_a_long_result_is_cut_short():
    assert len(describe_entry(RunCompleted(at=AT, run_id=7, result="x" * 1000))) < 120


def test_default_policies_are_left_out():
    assert describe_definition(NIGHTLY) == "30 2 * * * Europe/Berlin -> command"
