"""Faults in checkpoints and archiving, each with the tests that must notice it.

This module imports nothing of duly: a mutant is put in place before anything of it is loaded.
"""

from __future__ import annotations

from tests.mutation import Mutant

CHECKPOINTS = "tests/projections/test_checkpoints.py"
ARCHIVING = "tests/projections/test_archiving.py"
CRASHES = "tests/projections/test_archive_crashes.py"
MOVING_CRASHES = (
    f"{CRASHES}::test_a_crash_at_any_moment_of_archiving_leaves_a_journal_that_opens_and_can_be_archived",
)

REPLAY = "tests/projections/test_replay.py"

MUTANTS = (
    Mutant(
        "a state goes on after an interrupt as if nothing had happened",
        "duly.projections.replay",
        (("        if self.unconfirmed or self._broken_off:\n", "        if self.unconfirmed:\n"),),
        (f"{REPLAY}::test_a_reading_that_was_interrupted_is_made_good_by_the_next",),
    ),
    Mutant(
        "what became durable meanwhile is folded in beyond the end",
        "duly.projections.replay",
        (
            (
                "            self._fold(waiting.popleft(), through)\n",
                "            self._fold(waiting.popleft(), None)\n",
            ),
        ),
        (
            f"{REPLAY}::test_a_replay_of_what_is_durable_ends_where_it_is_told_to_also_if_that_becomes_durable_meanwhile",
        ),
    ),
    Mutant(
        "the checkpoint's hash is not compared with the journal's",
        "duly.journal.recovery",
        (
            (
                "if place_after(line_before(read, place.offset), seed(header.journal_id), place.offset) != place:\n",
                "if not place.offset:\n",
            ),
        ),
        (f"{CHECKPOINTS}::test_a_checkpoint_of_something_else_is_ignored_and_said_so",),
    ),
    Mutant(
        "the checkpoint's SHA-256 is not checked",
        "duly.journal.checkpoint",
        (("        if digest.hexdigest() != self._sum:\n", "        if not self._sum:\n"),),
        (f"{CHECKPOINTS}::test_a_checkpoint_with_any_byte_changed_is_ignored_and_said_so",),
    ),
    Mutant(
        "what the checkpoint was made of may be missing",
        "duly.journal.recovery",
        (("        self._durable = place.next - 1\n", ""),),
        (f"{CHECKPOINTS}::test_a_journal_that_lacks_what_its_checkpoint_was_made_of_is_refused",),
    ),
    Mutant(
        "a checkpoint is made of what is not durable",
        "duly.projections.checkpoints",
        (("        if not line.confirmed:\n", "        if not line.entries:\n"),),
        (f"{CHECKPOINTS}::test_a_checkpoint_is_made_of_what_is_durable_alone",),
    ),
    Mutant(
        "a checkpoint is renamed before it is synced",
        "duly.journal.checkpointing",
        (("        disk.sync(file)\n", ""),),
        (f"{CRASHES}::test_a_crash_at_any_moment_of_a_checkpoint_leaves_the_old_one_or_the_new_one",),
    ),
    Mutant(
        "a state is used although parts of it are missing",
        "duly.projections.snapshot",
        (("    if entry.part < entry.parts:\n        return\n", ""),),
        (f"{ARCHIVING}::test_a_state_of_which_a_part_is_missing_is_not_used",),
    ),
    Mutant(
        "parts of a state are taken in any order",
        "duly.projections.snapshot",
        (
            (
                "    elif not state.founding or entry.part != len(state.founding) + 1:\n",
                "    elif not state.founding:\n",
            ),
        ),
        (f"{ARCHIVING}::test_a_state_of_which_a_part_is_missing_is_not_used",),
    ),
    Mutant(
        "a missing segment is taken for an archived one",
        "duly.journal.archived",
        (("        if begins_with_state(disk, folder / segment.name, segment):\n", "        if segment.number:\n"),),
        (f"{ARCHIVING}::test_a_segment_that_is_missing_is_not_taken_for_an_archived_one",),
    ),
    Mutant(
        "segments leave the journal before their names in the archive are synced",
        "duly.journal.moving",
        (("    disk.sync_folder(archive)\n    for", "    for"),),
        MOVING_CRASHES,
    ),
    Mutant(
        "segments leave the journal without a sync after each",
        "duly.journal.moving",
        (
            (
                "        disk.remove(folder / segment.name)\n        disk.sync_folder(folder)\n",
                "        disk.remove(folder / segment.name)\n",
            ),
        ),
        MOVING_CRASHES,
    ),
    Mutant(
        "a copy in the archive is not synced",
        "duly.journal.moving",
        (("            disk.sync(file)\n        finally:\n", "        finally:\n"),),
        MOVING_CRASHES,
    ),
    Mutant(
        "a run that is archived counts as one that the journal never admitted",
        "duly.scheduler.reconciling",
        (("        if not 0 < run_id < first and (", "        if ("),),
        ("tests/scheduler/test_checkpoints.py::test_a_run_that_is_archived_is_no_stranger",),
    ),
)
