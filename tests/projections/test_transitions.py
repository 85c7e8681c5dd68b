"""The life of a run: every situation meets every kind of entry, and what is not in the table is an anomaly."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from duly import Block, State
from duly.journal.entries import (
    AttemptCleared,
    Entry,
    Json,
    ResumeMarked,
    RunAbandoned,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunNoted,
    RunStarted,
)
from duly.projections import dump
from duly.projections.runs import TRANSITIONS, RunEntry, recorded_run
from tests.projections.samples import (
    abandoned,
    admitted,
    at,
    cleared,
    completed,
    created,
    failed,
    fold,
    folded,
    interrupted,
    resumed,
    started,
)

RUN = 2
ATTEMPT = 5

BEGUN: list[Entry] = [created(), admitted("09:15")]
INTERRUPTED: list[Entry] = [*BEGUN, started(RUN), interrupted(RUN, checkpoint={"page": 1})]
RESUMED: list[Entry] = [*INTERRUPTED, resumed(RUN)]

SITUATIONS: dict[str, list[Entry]] = {
    "pending": BEGUN,
    "started": [*BEGUN, started(RUN)],
    "interrupted": INTERRUPTED,
    "resumed": RESUMED,
    "interrupted again, not cleared": [*RESUMED, interrupted(RUN, attempt_id=ATTEMPT, checkpoint={"page": 2})],
    "completed, not cleared": [*RESUMED, completed(RUN, attempt_id=ATTEMPT)],
    "failed, not cleared": [*RESUMED, failed(RUN, attempt_id=ATTEMPT)],
    "abandoned, not cleared": [*RESUMED, abandoned(RUN, attempt_id=ATTEMPT)],
    "completed": [*BEGUN, started(RUN), completed(RUN)],
    "failed": [*BEGUN, failed(RUN)],
    "abandoned": [*BEGUN, abandoned(RUN)],
}

ENTRIES: dict[str, Callable[[], RunEntry]] = {
    "start": lambda: started(RUN),
    "note": lambda: RunNoted(at=at("10:00"), run_id=RUN, schedule_id="report", data=7),
    "complete": lambda: completed(RUN, result=1),
    "complete of the attempt": lambda: completed(RUN, attempt_id=ATTEMPT, result=1),
    "fail": lambda: failed(RUN),
    "fail of the attempt": lambda: failed(RUN, attempt_id=ATTEMPT),
    "interrupt": lambda: interrupted(RUN),
    "interrupt of the attempt": lambda: interrupted(RUN, attempt_id=ATTEMPT),
    "resume": lambda: resumed(RUN),
    "clear": lambda: cleared(RUN, ATTEMPT),
    "clear of another attempt": lambda: cleared(RUN, 3),
    "abandon": lambda: abandoned(RUN),
}

LEGAL: dict[str, dict[str, str]] = {
    "pending": {"start": "started", "note": "pending", "fail": "failed", "abandon": "abandoned"},
    "started": {
        "note": "started",
        "complete": "completed",
        "fail": "failed",
        "interrupt": "interrupted",
        "abandon": "abandoned",
    },
    "interrupted": {"note": "interrupted", "resume": "started", "abandon": "abandoned"},
    "resumed": {
        "note": "started",
        "complete of the attempt": "completed",
        "fail of the attempt": "failed",
        "interrupt of the attempt": "interrupted",
        "abandon": "abandoned",
    },
    "interrupted again, not cleared": {"note": "interrupted", "clear": "interrupted", "abandon": "abandoned"},
    "completed, not cleared": {"clear": "completed"},
    "failed, not cleared": {"clear": "failed"},
    "abandoned, not cleared": {"clear": "abandoned"},
    "completed": {},
    "failed": {},
    "abandoned": {},
}

PAIRS = [(situation, kind) for situation in SITUATIONS for kind in ENTRIES]
ALLOWED = [(situation, kind) for situation, kind in PAIRS if kind in LEGAL[situation]]
FORBIDDEN = [(situation, kind) for situation, kind in PAIRS if kind not in LEGAL[situation]]


def block_of(state: State, schedule_id: str) -> Block | None:
    schedule = state.find(schedule_id)
    assert schedule is not None
    return schedule.blocked


def what_is(state: State) -> object:
    """Everything that the fold holds, but for the anomalies, the block that they bring, and the clock."""
    schedules = [
        {name: value for name, value in row.items() if name != "blocked"}
        for row in dump(state, "schedules")["schedules"]
    ]
    others = {name: rows for name, rows in dump(state).items() if name not in {"schedules", "anomalies"}}
    return schedules, others, list(state.requests.items()), list(state.started), state.newest_admission


@pytest.mark.parametrize(("situation", "kind"), ALLOWED)
def test_what_is_legal_leads_on(situation: str, kind: str):
    state = folded(*SITUATIONS[situation])
    fold(state, [ENTRIES[kind]()])
    assert (state.run(RUN).state, state.anomalies) == (LEGAL[situation][kind], [])
    assert block_of(state, "report") is None


@pytest.mark.parametrize(("situation", "kind"), FORBIDDEN)
def test_what_is_not_legal_is_an_anomaly_that_blocks_the_schedule_and_changes_nothing_else(situation: str, kind: str):
    state = folded(*SITUATIONS[situation])
    before = what_is(state)
    sequence = state.sequence + 1
    fold(state, [ENTRIES[kind]()])
    assert what_is(state) == before
    assert [(one.sequence, one.schedule_id) for one in state.anomalies] == [(sequence, "report")]
    block = block_of(state, "report")
    assert block is not None
    assert (block.sequence, block.cause) == (sequence, "anomaly")


def test_the_shared_table_knows_exactly_the_pairs_that_are_legal_in_some_situation():
    kinds = {name: type(make()) for name, make in ENTRIES.items()}
    states = {"resumed": "started"} | {
        name: name.split(",")[0].split(" ")[0] for name in SITUATIONS if name != "resumed"
    }
    legal = {(states[situation], kinds[kind], LEGAL[situation][kind]) for situation, kind in ALLOWED}
    assert {(state, kind, after) for state, row in TRANSITIONS.items() for kind, after in row.items()} == legal


@pytest.mark.parametrize("kind", ENTRIES)
def test_an_entry_about_a_run_that_was_never_admitted_is_an_anomaly(kind: str):
    state = folded(created(), created("other"))
    before = what_is(state)
    fold(state, [ENTRIES[kind]()])
    assert what_is(state) == before
    assert [one.sequence for one in state.anomalies] == [3]
    assert block_of(state, "report") is not None
    assert block_of(state, "other") is None


def test_an_entry_that_names_another_schedule_than_the_runs_own_blocks_the_runs_own():
    state = folded(created(), admitted("09:15"), created("other"), started(RUN, schedule_id="other"))
    assert [(one.sequence, one.schedule_id) for one in state.anomalies] == [(4, "report")]
    assert block_of(state, "report") is not None
    assert block_of(state, "other") is None
    assert list(state.pending) == [RUN]


def test_whoever_reads_the_run_alone_passes_over_an_entry_that_names_another_schedule_too():
    entries: list[Entry] = [created(), created("other"), admitted("09:15"), started(3)]
    entries.append(RunCompleted(at=at("09:16"), run_id=3, schedule_id="other"))
    entries.append(RunCompleted(at=at("09:17"), run_id=3, schedule_id=None))
    run = recorded_run(enumerate(entries, 1), 3)
    assert run is not None
    assert (run.state, run.schedule_id) == ("started", "report")


def test_slots_follow_the_life_of_the_run():
    state = folded(*BEGUN)
    seen: list[tuple[list[int], list[int], tuple[int, ...]]] = []
    for entry in (
        started(RUN),
        interrupted(RUN),
        resumed(RUN),
        completed(RUN, attempt_id=ATTEMPT),
        cleared(RUN, ATTEMPT),
    ):
        fold(state, [entry])
        seen.append((list(state.pending), list(state.started), state.schedule("report").active_runs))
    assert seen == [
        ([], [RUN], (RUN,)),
        ([], [], (RUN,)),
        ([], [RUN], (RUN,)),
        ([], [], ()),
        ([], [], ()),
    ]


def test_the_newest_notes_are_kept_and_older_ones_that_name_a_process():
    no_process: list[Json] = [
        {"process": "step 1", "started": "a"},
        {"process": 3},
        {"process": True, "started": "b"},
        7,
    ]
    processes: list[Json] = [{"process": number, "started": "c", "more": None} for number in range(20)]
    noted = [*no_process, processes[0], *range(20), *processes[1:], *range(20)]
    state, seen = folded(*BEGUN, started(RUN)), list[object]()
    for data in noted:
        fold(state, [RunNoted(at=at("10:00"), run_id=RUN, schedule_id="report", data=data)])
        seen.append(state.runs_open[RUN].notes)
    assert seen[:16] == [tuple(noted[: count + 1]) for count in range(16)]
    assert seen[16:20] == [tuple(noted[count - 15 : count + 1]) for count in range(16, 20)]
    assert seen[20:25] == [(processes[0], *noted[count - 15 : count + 1]) for count in range(20, 25)]
    assert seen[-1] == (*processes[-16:], *range(4, 20))


def test_every_kind_about_a_run_is_tried_here():
    assert {type(make()) for make in ENTRIES.values()} == {
        RunStarted,
        RunNoted,
        RunCompleted,
        RunFailed,
        RunInterrupted,
        ResumeMarked,
        AttemptCleared,
        RunAbandoned,
    }
