"""Faults in admission, baselines and clocks, each with the tests that must notice it.

This module imports nothing of duly: a mutant is put in place before anything of it is loaded.
"""

from __future__ import annotations

from tests.mutation import Mutant

ADMISSION = "duly.scheduler.decisions.admission"
FOLD = "duly.projections.fold"
TABLE = "tests/scheduler/test_admission_table.py"
CLOCKS = "tests/scheduler/test_clock_timelines.py"
INDEX = "tests/scheduler/test_index.py"
BASELINES = "tests/scheduler/test_baselines.py"

OVERLAP = "        elif turn.active >= turn.limit:\n"
SUPERSEDE = "            self._consume(turn, instant, self.batch.supersede(turn, instant, newest))\n"
LAST = "        return due.upcoming is None and not others_due and (deciding_candidate or turn.candidate is None)\n"
BASELINE = "    through = _baseline(rule, schedule.consumed_through, command.at, once=False)\n"
ADVANCE = "    if instant > through:\n"
ROUND_ROBIN = (
    "    yield from _merged(due, queued, newest_admission, None, slot_is_free)\n"
    "    yield from _merged(due, queued, None, newest_admission, slot_is_free)\n"
)

MUTANTS = (
    Mutant(
        "overlap after capacity",
        ADMISSION,
        ((OVERLAP, "        elif turn.active >= turn.limit and self._free > 0:\n"),),
        (f"{TABLE}::test_the_overlap_comes_before_the_capacity",),
    ),
    Mutant(
        "watermark not advanced on a skip",
        FOLD,
        ((ADVANCE, "    if instant > through and not isinstance(entry, OccurrenceSkipped):\n"),),
        ("tests/scheduler/test_policy_pairs.py::test_skip_and_skip_after_a_long_downtime",),
    ),
    Mutant(
        "candidate not cleared",
        FOLD,
        (("        if held:\n            schedule.candidate = None\n", ""),),
        (f"{TABLE}::test_without_a_slot_latest_holds_one_candidate_until_a_slot_is_free",),
    ),
    Mutant(
        "two candidates",
        ADMISSION,
        (
            (
                "turn.candidate is not None and (not self._settle_candidate(turn, newest) or turn.due is None):\n",
                "turn.due is None:\n",
            ),
        ),
        (f"{TABLE}::test_an_older_candidate_gives_way_as_soon_as_a_newer_instant_is_due",),
    ),
    Mutant(
        "supersession forgotten",
        ADMISSION,
        ((SUPERSEDE, "            self._consume(turn, instant, True)\n"),),
        (f"{TABLE}::test_what_is_missed_under_latest_gives_way_to_the_newest_due_instant",),
    ),
    Mutant(
        "exhaustion forgotten",
        ADMISSION,
        ((LAST, f"{LAST[:-1]} and not turn.through\n"),),
        (f"{BASELINES}::test_a_one_shot_is_decided_once_whatever_the_outcome",),
    ),
    Mutant(
        "baseline at pause only",
        "duly.scheduler.decisions.administration",
        ((BASELINE, f'{BASELINE}    through = through if switch == "pause" else schedule.consumed_through\n'),),
        (f"{BASELINES}::test_a_switch_covers_its_interval_and_skips_the_candidate",),
    ),
    Mutant(
        "timely bound off by one",
        "duly.scheduler.decisions.turns",
        (("schedule.definition.lateness + TICK", "schedule.definition.lateness"),),
        (f"{TABLE}::test_the_last_timely_moment_is_the_allowance_itself",),
    ),
    Mutant(
        "round robin restarting at the first schedule",
        "duly.scheduler.roster",
        ((ROUND_ROBIN, "    yield from _merged(due, queued, None, None, slot_is_free)\n"),),
        (f"{TABLE}::test_schedules_take_turns_after_the_one_that_was_admitted_last",),
    ),
    Mutant(
        "clock step ignored",
        ADMISSION,
        (("    if state.highest_at is None or now >= state.highest_at - tolerance:", "    if state is not None:"),),
        (f"{CLOCKS}::test_an_hour_back_keeps_what_was_admitted_and_decides_the_rest_anew",),
    ),
    Mutant(
        "regression voiding an admitted instant",
        FOLD,
        (("    return type(entry) is OccurrenceAdmitted or (type", "    return (type"),),
        (f"{CLOCKS}::test_two_regressions_in_a_row_keep_every_admission",),
    ),
    Mutant(
        "regression keeping an interval",
        FOLD,
        (
            (
                "    schedule.consumed_through = entry.before - datetime.resolution\n",
                "    schedule.kept = (*schedule.kept, (entry.after, entry.before - datetime.resolution))\n"
                "    schedule.consumed_through = entry.before - datetime.resolution\n",
            ),
        ),
        (f"{CLOCKS}::test_an_interval_that_straddles_the_regression_is_clipped",),
    ),
    Mutant(
        "slot counted twice",
        ADMISSION,
        (("        self._free -= 1\n", "        self._free -= 2\n"),),
        (f"{TABLE}::test_each_round_admits_one_of_every_schedule_before_the_next",),
    ),
    Mutant(
        "a pending run takes a task slot",
        ADMISSION,
        (
            (
                "request.task_slots - len(state.started)\n",
                "request.task_slots - len(state.started) - len(state.pending)\n",
            ),
        ),
        (
            "tests/scheduler/test_run_timelines.py::test_a_run_that_was_offered_and_not_started_is_offered_again",
            "tests/simulation/test_simulation.py::test_no_promise_is_broken[0]",
        ),
    ),
    Mutant(
        "a decision that did not fit counts as a look",
        ADMISSION,
        (
            (
                "        if turn.due is not None and not turn.due.instants and not self.batch.cut:\n",
                "        if turn.due is not None and not turn.due.instants:\n",
            ),
        ),
        (f"{INDEX}::test_a_candidate_whose_period_was_spent_is_skipped_by_the_next_poll_where_this_one_was_cut",),
    ),
    Mutant(
        "what waits is not served when a slot is free",
        "duly.scheduler.roster",
        (
            (
                "    served = takewhile(lambda _: slot_is_free(), ",
                "    served = takewhile(lambda _: not slot_is_free(), ",
            ),
        ),
        (f"{INDEX}::test_a_thousand_that_wait_for_a_slot_are_not_looked_at_until_there_is_one",),
    ),
    Mutant(
        "what waits is looked at in every poll",
        "duly.scheduler.polls",
        (("looking=self._answers.has_targets)", "looking=True)"),),
        (f"{INDEX}::test_a_thousand_that_wait_for_a_slot_are_not_looked_at_until_there_is_one",),
    ),
    Mutant(
        "what is due is taken from a schedule that is decided up to another instant",
        ADMISSION,
        (("like = (id(schedule.definition.trigger), turn.through)", "like = (0, self.now)"),),
        (f"{INDEX}::test_of_schedules_of_one_rule_each_is_decided_from_where_it_was",),
    ),
    Mutant(
        "what is due is taken from a schedule that has something decided ahead",
        ADMISSION,
        (("ahead = bool(turn.kept) and turn.kept[-1][1] > turn.through", "ahead = False"),),
        (f"{INDEX}::test_of_schedules_of_one_rule_each_is_decided_from_where_it_was",),
    ),
    Mutant(
        "an instant is forgotten with one of its schedules",
        "duly.scheduler.agenda",
        (("                line.pop()\n                self._standing -= 1\n", "                break\n"),),
        (f"{INDEX}::test_an_instant_stays_while_any_schedule_has_it",),
    ),
    Mutant(
        "a line that grew counts as in order",
        "duly.scheduler.agenda",
        (
            (
                "                self._ordered.discard(instant)\n            line.append",
                "                pass\n            line.append",
            ),
        ),
        (f"{INDEX}::test_of_many_at_one_instant_those_that_are_first_by_id_come_first",),
    ),
    Mutant(
        "what is due leaves the queue before it was looked at",
        "duly.scheduler.agenda",
        (
            (
                "                    yield schedule_id, instant\n                    instants.pop(schedule_id, None)\n",
                "                    instants.pop(schedule_id, None)\n                    yield schedule_id, instant\n",
            ),
        ),
        (f"{INDEX}::test_whoever_is_interrupted_finds_in_the_queue_what_he_did_not_come_to",),
    ),
    Mutant(
        "what waits is forgotten when its time is up",
        "duly.scheduler.agenda",
        (("        if self._deadlines.is_due(now):\n", "        if self._deadlines is None:\n"),),
        (f"{INDEX}::test_what_waits_is_looked_at_when_its_time_is_up",),
    ),
    Mutant(
        "a gone target is not noticed while it waits",
        "duly.scheduler.polls",
        (("looking=self._answers.has_targets)", "looking=False)"),),
        (f"{INDEX}::test_where_the_host_answers_for_targets_what_waits_is_asked_about_again",),
    ),
    Mutant(
        "a one-shot that was decided for good comes back",
        FOLD,
        (
            (
                "    last = rule.at if isinstance(rule, OneShotRule) else schedule.exhausted_through\n",
                "    last = schedule.exhausted_through\n",
            ),
        ),
        (
            "tests/scheduler/test_clock_timelines.py::test_a_one_shot_whose_candidate_an_operator_passed_over_stays_decided",
        ),
    ),
)
