"""The harness itself: `check` passes what is right and fails for every way of being wrong."""

from __future__ import annotations

import pytest

from duly import Scheduler
from tests.scheduler import timeline_proofs
from tests.scheduler.timeline import check
from tests.scheduler.timeline_text import parse_timeline
from tests.scheduler.timeline_world import COMMANDS

RIGHT = """
    09:00  create report cron="*/15 * * * *"
    09:15  poll next=09:30   -> admit report@09:15
    09:15  start report@09:15
    09:30  poll              -> skip report@09:30 overlap blocked_by=report@09:15
    09:31  complete report@09:15
    09:31  start report@09:15  raises=WrongRunState
    09:31  run report@09:15 state=completed
    09:32  poll              -> nothing
"""


def test_a_right_timeline_passes() -> None:
    check(RIGHT)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("admit report@09:15", "admit report@09:00"),
        ("admit report@09:15", "hold report@09:15"),
        ("-> admit report@09:15", "-> nothing"),
        ("-> nothing", "-> admit report@09:30"),
        ("-> skip report@09:30 overlap", "-> skip report@09:30 misfire"),
        ("blocked_by=report@09:15", "blocked_by=report@09:00"),
        ("blocked_by=report@09:15", "unheard_of=report@09:00"),
        ("-> admit report@09:15", "-> admit report@09:15, more"),
        ("-> admit report@09:15", "-> admit report@09:15, admit report@09:15"),
        ("next=09:30", "next=09:45"),
        ("raises=WrongRunState", "raises=UnknownRun"),
        ("  raises=WrongRunState", ""),
        ("complete report@09:15", "complete report@09:15 raises=Blocked"),
        ("complete report@09:15", "complete report@09:15 -> clear report@09:15"),
        ("complete report@09:15", "complete report@09:15 -> nothing"),
        ("complete report@09:15", "complete report@09:00"),
        ("state=completed", "state=failed"),
        ("    09:15  start report@09:15\n", ""),
    ],
)
def test_a_wrong_missing_or_surplus_decision_fails(right: str, wrong: str) -> None:
    assert right in RIGHT
    with pytest.raises(AssertionError, match="as it stands"):
        check(RIGHT.replace(right, wrong, 1))


def test_a_difference_that_only_a_crash_makes_fails_too() -> None:
    """Without an entry at 10:50 the record's highest reading is 10:00; every reopening records its own."""
    with pytest.raises(AssertionError, match="with a crash after every line"):
        check("""
            10:00  create report cron="0 12 * * *"
            10:50  poll  -> nothing
            10:20  poll  -> nothing
        """)


def test_a_failure_tells_what_happened_as_a_timeline_that_passes() -> None:
    wrong = RIGHT.replace("-> admit report@09:15", "-> nothing").replace("next=09:30", "next=11:00")
    wrong = wrong.replace("  raises=WrongRunState", "").replace("state=completed", "state=failed")
    wrong = wrong.replace("complete report@09:15", "complete report@09:15 -> nothing").replace("-> nothing", "-> more")
    with pytest.raises(AssertionError) as failure:
        check(wrong)
    heading, _, told = str(failure.value).partition("\n")
    assert (heading, told.count("# expected: ")) == ("as it stands:", 5)
    check(told)


def test_every_proof_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(timeline_proofs, "PROOFS", (asked.append,))
    check(RIGHT)
    assert len(asked) == 2


def test_the_replayed_state_must_be_the_live_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def another(_: Scheduler) -> str:
        return "another"

    monkeypatch.setattr(Scheduler, "digest", another)
    with pytest.raises(AssertionError, match="the replayed state is not the live one"):
        check(RIGHT)


def test_every_command_of_the_grammar_is_carried_out() -> None:
    verbs = {line.verb for line in parse_timeline(RIGHT)}
    assert verbs <= set(COMMANDS)
