"""Runs: starting, reporting, interrupting, resuming and abandoning (SPEC section 7)."""

from __future__ import annotations

import pytest

from tests.scheduler.timeline import check


def test_start_is_all_or_none() -> None:
    check("""
        09:00  open slots=2
        09:00  create report cron="*/15 * * * *" overlap=parallel lateness=1h
        09:30  poll                  -> admit report@09:15, admit report@09:30
        09:30  run_now report        -> admit report#1
        09:31  start report@09:15 report@09:30 report#1  raises=NoTaskSlot
        09:31  run report@09:15 state=pending
        09:31  start report@09:15
        09:32  start report@09:30 report@09:15  raises=WrongRunState
        09:32  run report@09:30 state=pending
        09:32  start report@12:00    raises=UnknownRun
    """)


def test_a_run_that_was_offered_and_not_started_is_offered_again() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:16  poll                  -> offer report@09:15
        09:17  poll                  -> offer report@09:15
        09:17  start report@09:15
        09:18  poll                  -> nothing
    """)


@pytest.mark.parametrize(
    ("verb", "state"), [("complete", "completed"), ("fail", "failed"), ("interrupt", "interrupted")]
)
def test_a_result_is_recorded_once(verb: str, state: str) -> None:
    check(f"""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  {verb} report@09:15 value='"word"'
        09:16  run report@09:15 state={state}
        09:17  complete report@09:15  raises=WrongRunState
        09:17  fail report@09:15     raises=WrongRunState
        09:17  interrupt report@09:15  raises=WrongRunState
        09:17  start report@09:15    raises=WrongRunState
    """)


def test_a_pending_run_may_fail_and_nothing_else() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  complete report@09:15  raises=WrongRunState
        09:15  interrupt report@09:15  raises=WrongRunState
        09:15  resume report@09:15   raises=WrongRunState
        09:15  fail report@09:15
        09:15  run report@09:15 state=failed
        09:16  poll                  -> nothing
    """)


def test_a_run_may_be_interrupted_and_resumed_any_number_of_times() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  interrupt report@09:15 value='{"page":1}'
        09:17  resume report@09:15
        09:18  interrupt report@09:15 value='{"page":2}'  -> clear report@09:15
        09:19  resume report@09:15
        09:20  resume report@09:15   raises=WrongRunState
        09:21  complete report@09:15  -> clear report@09:15
        09:22  resume report@09:15   raises=WrongRunState
    """)


def test_a_result_of_an_attempt_must_carry_the_active_attempt() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  interrupt report@09:15
        09:17  resume report@09:15
        09:18  complete report@09:15 attempt=none  raises=StaleAttempt
        09:18  interrupt report@09:15  -> clear report@09:15
        09:19  resume report@09:15
        09:20  complete report@09:15 attempt=1  raises=StaleAttempt
        09:20  fail report@09:15 attempt=1  raises=StaleAttempt
        09:21  complete report@09:15 attempt=2  -> clear report@09:15
        09:22  complete report@09:15 attempt=2  raises=WrongRunState
    """)


def test_a_result_for_an_attempt_that_never_was_is_stale() -> None:
    check("""
        09:00  create a cron="*/15 * * * *"
        09:00  create b cron="*/15 * * * *"
        09:15  poll                  -> admit a@09:15, admit b@09:15
        09:15  start a@09:15 b@09:15
        09:16  interrupt a@09:15
        09:17  resume a@09:15
        09:18  interrupt a@09:15     -> clear a@09:15
        09:19  resume a@09:15
        09:20  complete a@09:15 attempt=1  raises=StaleAttempt
        09:21  complete b@09:15
    """)


def test_resume_needs_a_free_task_slot() -> None:
    check("""
        09:00  open slots=1
        09:00  create a cron="15 9 * * *"
        09:00  create b cron="20 9 * * *"
        09:15  poll                  -> admit a@09:15
        09:15  start a@09:15
        09:16  interrupt a@09:15
        09:20  poll                  -> admit b@09:20
        09:20  start b@09:20
        09:21  resume a@09:15        raises=NoTaskSlot
        09:22  complete b@09:20
        09:22  resume a@09:15
    """)


def test_a_resumed_run_takes_its_task_slot_again() -> None:
    check("""
        09:00  open slots=1
        09:00  create a cron="15 9 * * *"
        09:00  create b cron="20 9 * * *"
        09:15  poll                  -> admit a@09:15
        09:15  start a@09:15
        09:16  interrupt a@09:15
        09:17  resume a@09:15
        09:20  poll                  -> hold b@09:20
        09:21  interrupt a@09:15     -> clear a@09:15
        09:21  poll                  -> admit b@09:20
    """)


def test_a_run_is_abandoned_by_an_operators_word_in_any_open_state() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel lateness=1h
        10:00  poll                  -> admit report@09:15, admit report@09:30, admit report@09:45, admit report@10:00
        10:00  start report@09:30 report@09:45 report@10:00
        10:01  interrupt report@09:45
        10:01  interrupt report@10:00
        10:02  resume report@10:00
        10:03  abandon report@09:15 actor=eve note=enough
        10:03  abandon report@09:30
        10:03  abandon report@09:45
        10:03  abandon report@10:00  -> clear report@10:00
        10:04  abandon report@10:00  raises=WrongRunState
        10:04  complete report@09:30  raises=WrongRunState
        10:04  run report@09:15 state=abandoned
    """)


def test_a_note_on_a_run_changes_nothing_else() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  note report@09:15 value='{"process_group":42}'
        09:15  start report@09:15
        09:15  note report@09:15 value='{"process_group":43}'
        09:16  run report@09:15 state=started
    """)


def test_after_stop_admitting_resume_raises_and_results_are_recorded() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  interrupt report@09:15
        09:17  stop
        09:18  resume report@09:15   raises=SchedulerClosed
        09:19  reopen
        09:20  resume report@09:15
        09:21  stop
        09:22  complete report@09:15  -> clear report@09:15
    """)
