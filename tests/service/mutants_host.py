"""Mutants of the host: its loop, results, ending, and the journal that comes back; each with tests that notice it."""

from __future__ import annotations

from tests.mutation import Mutant

HOST = "tests/service/test_host.py"
ENDING = "tests/service/test_ending.py"
GIVEN_UP = "tests/service/test_given_up.py"
LOST = "tests/service/test_lost_journal.py"
UNFORESEEN = "tests/service/test_unforeseen.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a start is recorded after its work has begun",
        "duly.service.loop",
        (
            ("poll = self.scheduler.poll(start=True)", "poll = self.scheduler.poll()"),
            (
                "            self._prepare(Work(run))\n",
                "            self._prepare(Work(run))\n"
                "            self._begin_all()\n"
                "            self.scheduler.start(run.id)\n",
            ),
            (
                "    def _begin(self) -> None:\n",
                "    def _begin_all(self) -> None:\n"
                "        self.at_work.begin(self._cannot_begin)\n\n"
                "    def _begin(self) -> None:\n",
            ),
        ),
        (f"{HOST}::test_a_run_is_recorded_as_started_before_it_is_executed",),
    ),
    Mutant(
        "the end of a command that lives is recorded",
        "duly.service.loop",
        (("if current.activity.killable and self._lives(current.run.id):", "if False:"),),
        (f"{ENDING}::test_a_command_that_lives_on_is_not_called_ended",),
    ),
    Mutant(
        "what has ended during a sync is judged before it is seen",
        "duly.service.loop",
        (("        self.inbox.collect()  # what has ended during the sync has ended in time\n", ""),),
        (f"{UNFORESEEN}::test_what_ends_while_others_are_recorded_has_ended_in_time",),
    ),
    Mutant(
        "a host that stops waits for the next attempt to reopen",
        "duly.service.tenure",
        (("        self._retry_at = time.monotonic()\n", "        pass\n"),),
        ("tests/service/test_second_look.py::test_a_host_that_stops_between_two_attempts_tries_at_once",),
    ),
    Mutant(
        "a long time is waited for in one piece",
        "duly.scheduler.clock",
        (("queue.get(timeout=min(left, MOMENT))", "queue.get(timeout=left)"),),
        (f"{UNFORESEEN}::test_times_that_never_come_are_waited_for",),
    ),
    Mutant(
        "a run is resumed while its work goes on",
        "duly.service.loop",
        (("        if run_id in self.at_work:\n", "        if not run_id:\n"),),
        (f"{GIVEN_UP}::test_a_run_is_not_resumed_while_its_work_goes_on",),
    ),
    Mutant(
        "a resume takes the slot of work that was given up",
        "duly.service.loop",
        (("        if self.at_work.full:\n", "        if not run_id:\n"),),
        (f"{GIVEN_UP}::test_nothing_is_resumed_where_work_that_was_given_up_takes_the_slot",),
    ),
    Mutant(
        "a result is looked at where it is recorded",
        "duly.service.loop",
        (("self.post(recordable(result))", "self.post(result)"),),
        (f"{LOST}::test_a_result_that_cannot_be_recorded_blocks_no_schedule",),
    ),
    Mutant(
        "abandoned work is not ended",
        "duly.service.at_work",
        (
            (
                "        elif current.reason is None:\n            self._ask(current, reason, time.monotonic())\n",
                "        else:\n            current.reason = reason\n",
            ),
        ),
        (f"{GIVEN_UP}::test_an_abandoned_coroutine_is_cancelled",),
    ),
    Mutant(
        "the slot of abandoned work is given away",
        "duly.service.at_work",
        (("        if len(self.ids) >= self._task_slots:\n            return False\n", ""),),
        (f"{GIVEN_UP}::test_no_more_is_at_work_than_there_are_task_slots_whatever_the_record_says",),
    ),
    Mutant(
        "a schedule runs beside its run that was given up",
        "duly.service.at_work",
        (("return not any(one.given_up and", "return not any(not one.begun and"),),
        (f"{GIVEN_UP}::test_a_schedule_does_not_run_beside_its_run_that_was_given_up",),
    ),
    Mutant(
        "a late result of an attempt before is taken for this one's",
        "duly.service.at_work",
        ((" or current.activity.work.attempt_id != result.attempt_id", ""),),
        (f"{GIVEN_UP}::test_a_late_result_of_an_attempt_before_is_no_result",),
    ),
    Mutant(
        "what is at work here is no evidence",
        "duly.service.knowledge",
        (("        if run.id in self._at_work:\n            return StillRunning(run.id)\n", ""),),
        (f"{LOST}::test_a_thread_at_work_stays_started_over_a_reopening_and_its_end_is_told_once",),
    ),
    Mutant(
        "what the journal took as evidence is not told",
        "duly.service.results",
        (
            (
                "            if run.state == STATE_AFTER[type(result)]:\n                self._recorded(run, result)\n",
                "            if run.state == STATE_AFTER[type(result)]:\n                del self.unrecorded[run.id]\n",
            ),
        ),
        (f"{LOST}::test_a_thread_at_work_stays_started_over_a_reopening_and_its_end_is_told_once",),
    ),
    Mutant(
        "a fault that nobody thought of ends the host",
        "duly.service.results",
        (("            if again:\n", "            if True:\n"),),
        (f"{UNFORESEEN}::test_a_fault_in_the_bookkeeping_of_one_run_fails_that_run_and_no_other",),
    ),
    Mutant(
        "a reopening makes a journal where there is none",
        "duly.service.host",
        (('                told["create"] = False\n', '                told["batch"] = 1000\n'),),
        (f"{LOST}::test_what_lies_in_its_place_is_not_taken_for_the_journal",),
    ),
    Mutant(
        "another journal is taken for the one that is gone",
        "duly.service.tenure",
        (("            self._check_identity()\n", ""),),
        (f"{LOST}::test_what_lies_in_its_place_is_not_taken_for_the_journal",),
    ),
    Mutant(
        "the pauses begin anew with each reopening",
        "duly.service.tenure",
        (("self._opened_at >= HELD", "self._opened_at >= 0"),),
        (f"{LOST}::test_a_journal_that_opens_and_takes_nothing_is_tried_less_and_less_often",),
    ),
    Mutant(
        "a call is made that its caller has cancelled",
        "duly.service.inbox",
        (("if future.set_running_or_notify_cancel():", "if True:"),),
        (f"{UNFORESEEN}::test_a_call_that_its_caller_has_cancelled_is_not_made",),
    ),
    Mutant(
        "a coroutine that never began tells nothing",
        "duly.service.callables",
        (
            (
                'self.report(self.work.failed("cancelled") if task.cancelled() else task.result())',
                "task.cancelled() or self.report(task.result())",
            ),
        ),
        (f"{UNFORESEEN}::test_a_coroutine_that_is_asked_to_end_before_its_first_step_has_ended",),
    ),
    Mutant(
        "a close on the host's own thread throws work away",
        "duly.service.host",
        (
            (
                '        if loop.state == "ready":\n            loop.end()\n',
                "        if loop.thread in (None, get_ident()):\n            loop.end()\n",
            ),
        ),
        (f"{UNFORESEEN}::test_closing_on_the_hosts_own_thread_lets_it_end_first",),
    ),
    Mutant(
        "once leaves what it was to resume",
        "duly.service.host",
        (("wanted=bool(left or loop.to_resume)", "wanted=bool(left)"),),
        (f"{UNFORESEEN}::test_once_goes_on_while_there_is_something_to_resume",),
    ),
)
