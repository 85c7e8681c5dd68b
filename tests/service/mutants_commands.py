"""Mutants of what executes: commands, their processes, output and evidence; each with tests that must notice it."""

from __future__ import annotations

from tests.mutation import Mutant

COMMANDS = "tests/service/test_commands.py"
OUTPUT = "tests/service/test_output.py"
OUTLIVING = "tests/service/test_outliving.py"
PROCESSES = "tests/service/test_processes.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a note without a start is evidence",
        "duly.service.outliving",
        (
            (
                "        if not names_a_process(note):\n",
                '        if not isinstance(note, dict) or "process" not in note:\n',
            ),
            (
                'cast("str", told["started"]))\n',
                'cast("str", told["started"] or getattr(process_of(told["process"]), "started", "")))\n',
            ),
            ("import Process, age_of,", "import Process, process_of, age_of,"),
        ),
        (f"{OUTLIVING}::test_a_note_without_a_start_is_no_evidence",),
    ),
    Mutant(
        "the note of another attempt is evidence",
        "duly.service.outliving",
        (('told.get("attempt") == attempt_id and ', ""),),
        (f"{OUTLIVING}::test_the_note_of_an_attempt_before_is_no_evidence_about_this_one",),
    ),
    Mutant(
        "the note of a process that is another's by now is evidence",
        "duly.service.outliving",
        ((" and is_alive(process):", ":"),),
        (f"{OUTLIVING}::test_another_process_with_its_id_is_not_mistaken_for_it",),
    ),
    Mutant(
        "later notes push the process out of memory",
        "duly.projections.runs",
        (
            (
                "    return (*older[-MOST_NOTES:], *notes[-MOST_NOTES:])",
                "    return notes[-MOST_NOTES:]",
            ),
        ),
        (f"{OUTLIVING}::test_no_number_of_notes_makes_it_unknown",),
    ),
    Mutant(
        "a group is sent a signal without asking whose it is",
        "duly.service.processes",
        (("    if is_alive(process):\n        signal_group(", "    if True:\n        signal_group("),),
        (f"{OUTLIVING}::test_another_process_with_its_id_is_sent_nothing",),
    ),
    Mutant(
        "what is left of a group is killed without asking whose it is",
        "duly.service.processes",
        (("    if process_of(process.pid) is None:\n        signal_group(", "    if True:\n        signal_group("),),
        (f"{OUTLIVING}::test_another_process_with_its_id_is_sent_nothing",),
    ),
    Mutant(
        "the end is not asked again after the descriptor",
        "duly.service.processes",
        (("        while _seems_alive(process):", "        while True:"),),
        (f"{PROCESSES}::test_the_end_of_another_process_with_its_id_is_not_waited_for",),
    ),
    Mutant(
        "a failure to look is taken for an end",
        "duly.service.processes",
        (("has not said no\n        return True", "has not said no\n        return False"),),
        (f"{PROCESSES}::test_a_machine_that_is_short_of_files_claims_no_end",),
    ),
    Mutant(
        "the group of an adopted command is left alive after its end",
        "duly.service.outliving",
        (("        if ended and self.work.stopping:\n            end_group_after(self._process)\n", ""),),
        (f"{OUTLIVING}::test_what_it_has_started_is_ended_with_it",),
    ),
    Mutant(
        "the time of an adopted command begins anew",
        "duly.service.outliving",
        (("        self.elapsed = age_of(process)\n", ""),),
        (f"{OUTLIVING}::test_its_time_counts_from_its_own_beginning",),
    ),
    Mutant(
        "once leaves a thread behind",
        "duly.service.outliving",
        (("            self._leaving.close()\n", "            pass\n"),),
        (f"{OUTLIVING}::test_once_leaves_it_alone",),
    ),
    Mutant(
        "any file that a note names is cut",
        "duly.service.outliving",
        ((' and log.name == f"{work.run.id}.log" else None', " else None"),),
        (f"{OUTLIVING}::test_a_note_cannot_have_another_file_cut",),
    ),
    Mutant(
        "the gate is opened before the note is durable",
        "duly.service.commands",
        (
            (
                "            process = process_of(gate.pid)\n",
                "            process = process_of(gate.pid)\n            OPEN\n",
            ),
            (
                "            if not self.work.stopping:\n"
                "                with suppress(BrokenPipeError):\n"
                '                    gate.stdin.write(b"go\\n")\n'
                "                    gate.stdin.flush()\n",
                "",
            ),
            ("            OPEN\n", '            gate.stdin.write(b"go\\n")\n            gate.stdin.flush()\n'),
        ),
        (f"{COMMANDS}::test_the_command_is_not_executed_before_its_note_is_durable",),
    ),
    Mutant(
        "the gate is opened for a command that was asked to end",
        "duly.service.commands",
        (("            if not self.work.stopping:\n", "            if True:\n"),),
        (f"{COMMANDS}::test_a_command_that_was_asked_to_end_before_it_began_is_not_executed",),
    ),
    Mutant(
        "the group of a command is left alive after its end",
        "duly.service.commands",
        (("            if self.work.stopping:\n                signal_group(gate.pid, signal.SIGKILL)\n", ""),),
        (f"{COMMANDS}::test_what_a_command_leaves_running_dies_with_it_only_if_it_was_asked_to_end",),
    ),
    Mutant(
        "whatever is in the place of a checkpoint is read",
        "duly.service.output",
        (("    if not stat.S_ISREG(os.fstat(descriptor).st_mode):", "    if False:"),),
        (f"{COMMANDS}::test_an_exit_code_is_a_result",),
    ),
    Mutant(
        "a checkpoint is read from where a link leads",
        "duly.service.output",
        (("os.O_NOFOLLOW | ", ""),),
        (f"{COMMANDS}::test_an_exit_code_is_a_result",),
    ),
    Mutant(
        "two cut a log at once",
        "duly.service.keeper",
        (("        with self.arranging:\n            rotate(log, ", "        if True:\n            rotate(log, "),),
        (f"{OUTPUT}::test_two_that_cut_a_log_at_once_keep_its_end",),
    ),
    Mutant(
        "what a command leaves in the background prints without bound",
        "duly.service.keeper",
        (("            if group is not None and is_group_alive(group):\n", "            if False:\n"),),
        (f"{OUTPUT}::test_what_a_command_leaves_in_the_background_is_bounded_too",),
    ),
    Mutant(
        "a log that is being written is removed",
        "duly.service.handlers",
        (("self.outputs.prune(files, at_work | self.keeper.runs)", "self.outputs.prune(files, at_work)"),),
        (f"{OUTPUT}::test_what_a_command_leaves_in_the_background_is_bounded_too",),
    ),
    Mutant(
        "files of runs at work are removed",
        "duly.service.output",
        (("            if left < 0 and run_id not in at_work:", "            if left < 0:"),),
        (f"{OUTPUT}::test_a_sweep_removes_the_oldest_and_nothing_else",),
    ),
    Mutant(
        "all output together has no bound",
        "duly.service.keeper",
        (("        self._rotate(log)\n        self._sweep()\n", "        self._rotate(log)\n"),),
        (f"{OUTPUT}::test_all_output_together_is_bounded",),
    ),
)
