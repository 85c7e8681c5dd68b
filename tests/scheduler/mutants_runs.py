"""Faults in runs, recovery and the shell, each with the tests that must notice it.

This module imports nothing of duly: a mutant is put in place before anything of it is loaded.
"""

from __future__ import annotations

from tests.mutation import Mutant

FOLDING_RUNS = "duly.projections.folding_runs"
RECOVERY = "duly.scheduler.decisions.recovery"
EXECUTION = "duly.scheduler.execution"
SHELL = "duly.scheduler.shell"
RECOVERING = "tests/scheduler/test_recovery_timelines.py"
BOUNDARIES = "tests/scheduler/test_recovery_boundaries.py"
OWN = "tests/scheduler/test_own_indexes.py"
ALIKE = "tests/scheduler/test_opening_much.py::test_schedules_of_one_rule_go_on_each_from_where_it_was"
HISTORIES = tuple(f"tests/simulation/test_simulation.py::test_no_promise_is_broken[{shard}]" for shard in (0, 1))

START = (
    "        return self._about_runs(run_ids, lambda: decide_start(self._state, run_ids, slots, self._clock.now()))\n"
)
RESUME = "        (run,) = self._about_runs((run_id,), decide)\n        return Attempt("
UNSYNCED = """        synced = self._journal.sync
        self._journal.sync = lambda through=None: None
        try:
    {0}        finally:
            self._journal.sync = synced
"""
NOT_STARTED = '    if run.state != "started":\n'
STILL_RUNNING = "    if isinstance(evidence, StillRunning):\n        return ()\n"
SYNC = "            self._journal.sync(through)\n"

MUTANTS = (
    Mutant(
        "start recorded after dispatch",
        EXECUTION,
        ((START, UNSYNCED.format(START)),),
        HISTORIES,
    ),
    Mutant(
        "resume-mark after return",
        EXECUTION,
        (
            (
                RESUME,
                UNSYNCED.format("        (run,) = self._about_runs((run_id,), decide)\n") + "        return Attempt(",
            ),
        ),
        HISTORIES,
    ),
    Mutant(
        "attempt id not compared",
        "duly.scheduler.decisions.runs",
        (("        if result.attempt_id != run.attempt_id:\n", "        if result is None:\n"),),
        ("tests/scheduler/test_run_timelines.py::test_a_result_of_an_attempt_must_carry_the_active_attempt",),
    ),
    Mutant(
        "recovery retries an abandoned run",
        RECOVERY,
        (
            (
                "    abandoned = RunAbandoned(\n",
                "    from duly.journal.entries import RunInterrupted\n"
                "    abandoned = (lambda *, cause, detail, **rest: RunInterrupted(**rest))(\n",
            ),
        ),
        (f"{RECOVERING}::test_a_started_run_without_evidence_is_abandoned_and_never_retried",),
    ),
    Mutant(
        "recovery offers by itself",
        RECOVERY,
        (
            (
                NOT_STARTED,
                '    if run.state == "pending":\n'
                "        from duly.journal.entries import RunStarted\n"
                "        return (RunStarted(at=now, run_id=run.id, schedule_id=run.schedule_id),)\n" + NOT_STARTED,
            ),
        ),
        (f"{RECOVERING}::test_admitted_and_not_started_stays_pending_and_is_offered_once_by_the_next_poll",),
    ),
    Mutant(
        "pending run forgotten",
        "duly.scheduler.decisions.admission",
        (("        for run_id in self.state.pending:\n", "        for run_id in tuple(self.state.pending)[1:]:\n"),),
        (f"{RECOVERING}::test_admitted_and_not_started_stays_pending_and_is_offered_once_by_the_next_poll",),
    ),
    Mutant(
        "slot freed twice",
        FOLDING_RUNS,
        (
            (
                "() if active == (run.id,) else tuple(other for other in active if other != run.id)",
                "tuple(other for other in active if other != run.id)[1:]",
            ),
        ),
        ("tests/scheduler/test_policy_pairs.py::test_lowering_the_limit_stops_new_admissions_and_touches_no_run",),
    ),
    Mutant(
        "evidence trusted without its attempt",
        RECOVERY,
        ((" and evidence.attempt_id == run.attempt_id:", ":"),),
        (f"{RECOVERING}::test_an_active_attempt_without_its_own_evidence_is_ambiguous_and_never_retried",),
    ),
    Mutant(
        "StillRunning abandoned",
        RECOVERY,
        ((STILL_RUNNING, ""),),
        (f"{RECOVERING}::test_a_started_run_that_still_runs_stays_as_it_is_slots_and_all",),
    ),
    Mutant(
        "anomaly ignored",
        "duly.projections.facts",
        (('found.block = Block(sequence, "anomaly"', 'self.ignored = Block(sequence, "anomaly"'),),
        (f"{BOUNDARIES}::test_a_contradiction_blocks_its_schedule_and_no_other",),
    ),
    Mutant(
        "an ambiguous attempt is not cleared",
        RECOVERY,
        (("    return (abandoned, *", "    return (abandoned,) or (abandoned, *"),),
        (f"{RECOVERING}::test_an_active_attempt_without_its_own_evidence_is_ambiguous_and_never_retried",),
    ),
    Mutant(
        "dispatch before append",
        SHELL,
        ((SYNC, ""),),
        HISTORIES,
    ),
    Mutant(
        "append after dispatch",
        SHELL,
        (
            (
                SYNC,
                '            through, self._late = getattr(self, "_late", 0), through\n' + SYNC,
            ),
        ),
        HISTORIES,
    ),
    Mutant(
        "a refusal tells what is not durable",
        SHELL,
        ((SYNC, "            if not isinstance(outcome, _Refused):\n    " + SYNC),),
        tuple(f"tests/simulation/test_simulation.py::test_no_promise_is_broken[{shard}]" for shard in range(4)),
    ),
    Mutant(
        "another schedule's history is gone on with",
        "duly.scheduler.own_indexes",
        (("kept.history.schedule_id != schedule_id or ", ""),),
        (f"{OWN}::test_a_kept_history_answers_as_the_whole_record_does",),
    ),
    Mutant(
        "a fold that was interrupted is gone on with",
        "duly.scheduler.own_indexes",
        (("            kept, self._kept = self._kept, None\n", "            kept = self._kept\n"),),
        (f"{OWN}::test_a_fold_that_is_interrupted_is_begun_anew",),
    ),
    Mutant(
        "a row that was handed out changes afterwards",
        "duly.projections.history",
        (("shown=lambda row: copy(self._named(row))", "shown=self._named"),),
        ("tests/scheduler/test_questions.py",),
    ),
    Mutant(
        "what comes next is taken from a schedule that is decided up to another instant",
        "duly.scheduler.agenda",
        (("            if like == through:\n", "            if like:\n"),),
        (ALIKE,),
    ),
    Mutant(
        "what comes next is taken from a schedule that has something decided ahead",
        "duly.scheduler.agenda",
        (("if schedule.kept and schedule.kept[-1][1] > schedule.consumed_through:", "if not schedule.id:"),),
        (ALIKE,),
    ),
)
