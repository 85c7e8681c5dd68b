"""The fold of what becomes of a run: from its start to its last result, and out of memory.

Rules: the table of transitions says what is legal; what is not is an anomaly and changes nothing else; a run that has
ended frees its schedule's slot at once, and leaves memory after a bounded number of others.
"""

from __future__ import annotations

from duly.projections.facts import RECENT_RUNS, Facts
from duly.projections.runs import ENDED, Run, RunEntry, advanced, contradiction


def fold_run(state: Facts, sequence: int, entry: RunEntry) -> None:
    """Folds one entry about a run into the state."""
    run_id = entry.run_id
    run = state.runs_open.get(run_id)
    if run is None:
        text = f"run {run_id} is not open"
        state.mark_anomaly(sequence, entry, text, schedule_id=entry.schedule_id)
        return
    text = contradiction(run, entry)
    if text:
        state.mark_anomaly(sequence, entry, text, schedule_id=run.schedule_id)
        return
    after = advanced(run, sequence, entry)
    step = after.state
    ended = step in ENDED
    if step != run.state:
        state.pending.pop(run_id, None)
        state.started.pop(run_id, None)
        if step == "started":
            state.started[run_id] = None
        if ended:
            _free_slot(state, run)
    if ended and after.attempt_id is None:
        del state.runs_open[run_id]
        _remember(state, after)
    else:
        state.runs_open[run_id] = after


def _free_slot(state: Facts, run: Run) -> None:
    schedule = state.by_id.get(run.schedule_id) if run.schedule_id is not None else None
    if schedule is None or run.manual:
        return
    active = schedule.active
    schedule.active = () if active == (run.id,) else tuple(other for other in active if other != run.id)


def _remember(state: Facts, run: Run) -> None:
    state.runs_recent[run.id] = run
    if len(state.runs_recent) > RECENT_RUNS:
        state.runs_recent.popitem(last=False)
