"""Recovery: section 8's table, each row with and without evidence."""

from __future__ import annotations

import pytest

from tests.scheduler.timeline import check


def test_admitted_and_not_started_stays_pending_and_is_offered_once_by_the_next_poll() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15:10  crash
        09:15:20  run report@09:15 state=pending
        09:15:20  poll               -> offer report@09:15
        09:15:20  start report@09:15
        09:15:21  poll               -> nothing
    """)


def test_a_pending_run_holds_its_schedule_slot_and_no_task_slot_after_a_crash() -> None:
    check("""
        09:00  open slots=1
        09:00  create report cron="*/15 * * * *"
        09:00  create other cron="20 9 * * *"
        09:15  poll                  -> admit report@09:15
        09:16  crash
        09:16  run_now other         -> admit other#1
        09:16  start other#1
        09:30  poll                  -> hold other@09:20, skip report@09:30 overlap blocked_by=report@09:15
    """)


@pytest.mark.parametrize(
    ("evidence", "decision", "state"),
    [
        ("completed", "complete", "completed"),
        ("failed", "fail", "failed"),
        ("interrupted", "interrupt", "interrupted"),
    ],
)
def test_a_started_run_gets_the_result_that_the_host_knows(evidence: str, decision: str, state: str) -> None:
    check(f"""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  crash {evidence}=report@09:15  -> {decision} report@09:15
        09:16  run report@09:15 state={state}
        09:17  poll                  -> nothing
    """)


def test_a_started_run_that_still_runs_stays_as_it_is_slots_and_all() -> None:
    check("""
        09:00  open slots=1
        09:00  create report cron="*/15 * * * *"
        09:00  create other cron="20 9 * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  crash running=report@09:15
        09:20  poll                  -> hold other@09:20
        09:30  poll                  -> skip report@09:30 overlap
        09:31  complete report@09:15
        09:31  poll                  -> admit other@09:20
    """)


def test_a_started_run_without_evidence_is_abandoned_and_never_retried() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  crash                 -> abandon report@09:15 crash
        09:16  run report@09:15 state=abandoned
        09:17  poll                  -> nothing
        09:17  start report@09:15    raises=WrongRunState
        09:30  poll                  -> admit report@09:30
    """)


def test_a_clean_close_leaves_a_started_run_to_the_same_rule() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  reopen                -> abandon report@09:15 crash
    """)


def test_an_interrupted_run_stays_resumable_over_crashes() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  interrupt report@09:15 value='{"page":3}'
        09:17  crash
        09:18  crash
        09:18  run report@09:15 state=interrupted
        09:19  resume report@09:15
        09:20  complete report@09:15  -> clear report@09:15
    """)


@pytest.mark.parametrize(
    ("evidence", "decision", "state"),
    [
        ("completed", "complete", "completed"),
        ("failed", "fail", "failed"),
        ("interrupted", "interrupt", "interrupted"),
    ],
)
def test_an_active_attempt_gets_the_result_that_echoes_it(evidence: str, decision: str, state: str) -> None:
    check(f"""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  interrupt report@09:15
        09:17  resume report@09:15
        09:18  crash {evidence}=report@09:15  -> {decision} report@09:15, clear report@09:15
        09:18  run report@09:15 state={state} attempt_id=none
    """)


def test_an_active_attempt_that_still_runs_stays_active() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  interrupt report@09:15
        09:17  resume report@09:15
        09:18  crash running=report@09:15
        09:19  complete report@09:15 attempt=1  -> clear report@09:15
    """)


@pytest.mark.parametrize("evidence", ["", "completed=report@09:15 attempt=none", "completed=report@09:15 attempt=1"])
def test_an_active_attempt_without_its_own_evidence_is_ambiguous_and_never_retried(evidence: str) -> None:
    check(f"""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  interrupt report@09:15
        09:17  resume report@09:15
        09:18  interrupt report@09:15  -> clear report@09:15
        09:19  resume report@09:15
        09:20  crash {evidence}      -> abandon report@09:15 ambiguous, clear report@09:15
        09:21  poll                  -> nothing
        09:21  resume report@09:15   raises=WrongRunState
    """)


def test_a_run_that_the_journal_never_admitted_blocks_its_schedule() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:00  create other cron="*/15 * * * *"
        09:10  crash stray=report    -> block report evidence
        09:15  poll                  -> admit other@09:15
        09:16  unblock report
        09:16  poll                  -> admit report@09:15, offer other@09:15
    """)


def test_evidence_that_raises_leaves_the_run_and_blocks_its_schedule() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:00  create other cron="*/15 * * * *"
        09:15  poll                  -> admit other@09:15, admit report@09:15
        09:15  start other@09:15 report@09:15
        09:16  crash breaks=report@09:15 completed=other@09:15  -> complete other@09:15, block report evidence
        09:16  run report@09:15 state=started
        09:17  complete report@09:15
        09:30  poll                  -> admit other@09:30
    """)


def test_reconciling_a_second_time_appends_nothing() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  crash                 -> abandon report@09:15 crash
        09:16  crash
        09:16  reopen
        09:16  crash
    """)


def test_manual_runs_recover_like_any_other() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:01  run_now report        -> admit report#1
        09:01  run_now target=loose  -> admit #1
        09:02  start report#1
        09:03  crash                 -> abandon report#1 crash
        09:04  poll                  -> offer #1
        09:04  start #1
        09:05  crash completed=#1    -> complete #1
    """)


def test_open_runs_are_decided_oldest_first() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel lateness=1h
        09:45  poll                  -> admit report@09:15, admit report@09:30, admit report@09:45
        09:45  start report@09:45 report@09:15 report@09:30
        09:46  crash failed=report@09:30  -> abandon report@09:15 crash, fail report@09:30
                                     -> abandon report@09:45 crash
    """)
