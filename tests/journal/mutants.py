"""Ways to break the journal, each with the tests that must notice.

Rules:
- A mutant is one replacement in the source of `duly.journal`; the text it replaces must be there exactly once, so that
  a changed source makes the mutant fail and not vanish.
- Its killers are few and quick, and belong to the normal suite. A mutant that survives shows a hole in the suite: close
  the hole, never the mutant.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import duly
import duly.journal

CRASHES = "tests/journal/test_crashes.py"
FAULTS = "tests/journal/test_faults.py"
DAMAGE = "tests/journal/test_damage.py"
READERS = "tests/journal/test_readers_live.py"
SCRIPTED = f"{CRASHES}::test_no_crash_loses_or_invents_an_entry"


class Mutant(NamedTuple):
    """One way to break the journal."""

    name: str
    module: str
    old: str
    new: str
    killers: tuple[str, ...]


HEAD_OF_LINE = (
    " " * 16
    + """if line[:BODY] != b'{"c":"%08x","h":"%b"' % (crc32(line[CHECKED:], crc_seed), hexlify(digest)):
"""
)

MUTANTS = (
    Mutant(
        "an opening that mends nothing syncs nothing",
        "recovery",
        """        self._disk.sync(self._file)
        self._disk.sync_folder(self._folder)
        if survey.durable == 0:
""",
        """        if tail or survey.fault:
            self._disk.sync(self._file)
        self._disk.sync_folder(self._folder)
        if survey.durable == 0:
""",
        (f"{CRASHES}::test_what_a_dead_opening_left_unsynced_is_synced_before_the_journal_goes_on_in_another_segment",),
    ),
    Mutant(
        "fsync of a line removed",
        "output",
        """        self._disk.sync(self._file)
        self._offset += len(data)
""",
        """        self._offset += len(data)
""",
        (f"{SCRIPTED}[batches and a rotation]",),
    ),
    Mutant(
        "fsync of a new segment's header removed",
        "output",
        """        self._disk.sync(file)
        self._disk.sync_folder(self._folder)
""",
        """        self._disk.sync_folder(self._folder)
""",
        (f"{SCRIPTED}[batches and a rotation]",),
    ),
    Mutant(
        "directory fsync of a rotation removed",
        "output",
        """        self._disk.sync(file)
        self._disk.sync_folder(self._folder)
""",
        """        self._disk.sync(file)
""",
        (f"{SCRIPTED}[batches and a rotation]",),
    ),
    Mutant(
        "directory fsync of a creation removed",
        "opening",
        """    disk.sync_folder(folder)
""",
        "",
        (f"{SCRIPTED}[a clean close between two owners]",),
    ),
    Mutant(
        "the name of the side file is not synced",
        "recovery",
        """        self._disk.replace(fresh, path)
        self._disk.sync_folder(self._folder)
""",
        """        self._disk.replace(fresh, path)
""",
        (f"{CRASHES}::test_a_rewrite_that_was_torn_again_and_again_loses_nothing",),
    ),
    Mutant(
        "the name of the journal's own folder is not synced",
        "recovery",
        """    disk.sync_folder(folder.parent)
    for ancestor in folder.parent.parents:
""",
        """    for ancestor in ():
""",
        (f"{CRASHES}::test_the_name_of_a_folder_that_a_dead_process_made_is_synced_before_anything_is_acknowledged",),
    ),
    Mutant(
        "HEAD before fsync",
        "output",
        """        self._disk.sync(self._file)
        self._offset += len(data)
        self._h = batches[-1].h
        self.durable = batches[-1].last
""",
        """        self._offset += len(data)
        self._h = batches[-1].h
        before, self.durable = self.durable, batches[-1].last
        self.write_head()
        self.durable = before
        self._disk.sync(self._file)
        self.durable = batches[-1].last
""",
        (f"{SCRIPTED}[batches and a rotation]",),
    ),
    Mutant(
        "wrong d: a line says that all before it is durable",
        "chain",
        """    body = batch_body(chain.last + 1, durable, batch.at, batch.entries)
""",
        """    body = batch_body(chain.last + 1, chain.last, batch.at, batch.entries)
""",
        (f"{SCRIPTED}[batches and a rotation]",),
    ),
    Mutant(
        "wrong d: no line says that anything is durable",
        "chain",
        """    body = batch_body(chain.last + 1, durable, batch.at, batch.entries)
""",
        """    body = batch_body(chain.last + 1, 0, batch.at, batch.entries)
""",
        ("tests/journal/test_recovery.py::test_damage_to_what_a_later_line_vouches_for_is_refused_without_head",),
    ),
    Mutant(
        "no truncation of a torn tail",
        "recovery",
        """            self._disk.truncate(self._file, end)
""",
        """            pass
""",
        (f"{SCRIPTED}[batches and a rotation]",),
    ),
    Mutant(
        "no copy of a torn tail",
        "recovery",
        """            self._keep(tail, survey.place.offset)
""",
        """            del tail
""",
        (f"{DAMAGE}::test_what_is_written_behind_the_end_is_a_torn_tail_and_kept",),
    ),
    Mutant(
        "no rewrite of an unproved tail",
        "recovery",
        """            tail = self._overlaid(saved)(start, end - start)
""",
        """            tail = b""
""",
        (f"{SCRIPTED}[a failed fsync, and memory pressure after it]",),
    ),
    Mutant(
        "an unproved tail is synced but not written again",
        "recovery",
        """            write_all(self._disk, self._file, start, tail)
""",
        """            pass
""",
        (f"{FAULTS}::test_what_a_failed_sync_left_in_the_cache_is_written_again_before_it_is_trusted",),
    ),
    Mutant(
        "no side file",
        "recovery",
        """            self._save(Saved(survey.journal_id, self._segment.number, start, tail))
""",
        """            self._disk.close(self._disk.create(self._folder / REWRITE))
""",
        (f"{CRASHES}::test_a_rewrite_that_was_torn_again_and_again_loses_nothing",),
    ),
    Mutant(
        "the side file is not synced",
        "recovery",
        """            write_all(self._disk, file, 0, data)
            self._disk.sync(file)
        finally:
            self._disk.close(file)
        self._disk.replace(fresh, path)
""",
        """            write_all(self._disk, file, 0, data)
        finally:
            self._disk.close(file)
        self._disk.replace(fresh, path)
""",
        (f"{CRASHES}::test_a_rewrite_that_was_torn_again_and_again_loses_nothing",),
    ),
    Mutant(
        "chain unchecked",
        "scanning",
        HEAD_OF_LINE,
        """                if not crc_fits(line, crc_seed):
""",
        (f"{DAMAGE}::test_an_edited_line_with_a_repaired_checksum_is_refused_by_the_chain",),
    ),
    Mutant(
        "checksum unchecked",
        "scanning",
        HEAD_OF_LINE,
        """                if line[21:85] != hexlify(digest):
""",
        (f"{DAMAGE}::test_every_flipped_byte_is_refused_or_torn_by_the_rule",),
    ),
    Mutant(
        "crc unseeded",
        "format",
        """    return zlib.crc32(bytes.fromhex(journal_id))
""",
        """    return 0
""",
        (f"{DAMAGE}::test_what_is_written_behind_the_end_is_a_torn_tail_and_kept",),
    ),
    Mutant(
        "acknowledged before fsync",
        "writer",
        """        first = self.enqueue(entries, now)
        self.sync(first + len(entries) - 1)
        return first
""",
        """        return self.enqueue(entries, now)
""",
        (f"{SCRIPTED}[batches and a rotation]",),
    ),
    Mutant(
        "durable before fsync",
        "output",
        """        self._disk.sync(self._file)
        self._offset += len(data)
        self._h = batches[-1].h
        self.durable = batches[-1].last
""",
        """        self.durable = batches[-1].last
        self._disk.sync(self._file)
        self._offset += len(data)
        self._h = batches[-1].h
""",
        (f"{FAULTS}::test_every_waiter_gets_the_error_of_the_sync_that_it_waited_for",),
    ),
    Mutant(
        "visible before fsync",
        "writer",
        """        return self._output.durable

""",
        """        return self._chain.last

""",
        (f"{SCRIPTED}[batches and a rotation]",),
    ),
    Mutant(
        "rotation with unsynced lines",
        "output",
        """                self._write(batches)
                self._rotate(item)
""",
        """                for each in batches:
                    write_all(self._disk, self._file, self._offset, each.line)
                    self._offset += len(each.line)
                self._rotate(item)
""",
        (f"{SCRIPTED}[batches and a rotation]",),
    ),
    Mutant(
        "poison ignored",
        "writer",
        """        if self._poison is not None:
            raise self._poisoned_error()
        if self._closed:
""",
        """        if self._closed:
""",
        (f"{FAULTS}::test_errors_of_every_kind_at_every_kind_of_call_are_survived",),
    ),
    Mutant(
        "a failed sync is tried again",
        "output",
        """        self._disk.sync(self._file)
        self._offset += len(data)
""",
        """        try:
            self._disk.sync(self._file)
        except OSError:
            self._disk.sync(self._file)
        self._offset += len(data)
""",
        (f"{FAULTS}::test_a_failed_write_or_sync_of_a_segment_always_poisons",),
    ),
    Mutant(
        "a short write is taken for a whole one",
        "recovery",
        """    if written == len(data):
        return
""",
        """    if written:
        return
""",
        (f"{FAULTS}::test_errors_of_every_kind_at_every_kind_of_call_are_survived",),
    ),
    Mutant(
        "lock on LOCK only",
        "ownership",
        """        if self.locks_segments and not self._disk.lock(file):
""",
        """        if not self.locks_segments and not self._disk.lock(file):
""",
        (
            "tests/journal/test_ownership.py::"
            "test_after_lock_was_deleted_there_is_still_no_second_owner_and_the_first_goes_on",
        ),
    ),
    Mutant(
        "HEAD proves nothing to an owner",
        "survey",
        """        self._durable = max(last.first - 1, mark.sequence if mark else 0, durable)
""",
        """        self._durable = max(last.first - 1, durable)
""",
        ("tests/journal/test_recovery.py::test_damage_to_what_head_vouches_for_is_refused",),
    ),
    Mutant(
        "a later line proves nothing",
        "survey",
        """        proof = later_proof(read, scan.offset, self._seed, scan.next) if scan.fault else None
""",
        """        proof = None
""",
        ("tests/journal/test_recovery.py::test_damage_to_what_a_later_line_vouches_for_is_refused_without_head",),
    ),
    Mutant(
        "any valid line after a bad one is called damage",
        "scanning",
        """                if found is not None and found.s >= bad and found.d >= bad:
""",
        """                if found is not None and found.s >= bad:
""",
        (
            "tests/journal/test_recovery.py::test_a_torn_line_with_whole_lines_after_it_is_torn_if_none_of_them_proves_it",
        ),
    ),
    Mutant(
        "a reader calls everything confirmed",
        "reader",
        """                yield Line(line.s, line.e, last <= scan.durable, name, offset)
""",
        """                yield Line(line.s, line.e, True, name, offset)
""",
        (f"{READERS}::test_what_was_confirmed_survives_every_power_cut",),
    ),
)


def mutated(mutant: Mutant | None, folder: Path) -> Path:
    """A copy of the package with the mutation, under its installed name; the folder goes on PYTHONPATH."""
    package = folder / "duly"
    package.mkdir(parents=True)
    for source in Path(str(duly.__file__)).parent.glob("*.py"):
        shutil.copy(source, package)
    origin = Path(str(duly.journal.__file__)).parent
    shutil.copytree(origin, package / "journal", ignore=shutil.ignore_patterns("__pycache__"))
    if mutant is not None:
        path = package / "journal" / f"{mutant.module}.py"
        text = path.read_text(encoding="utf-8")
        count = text.count(mutant.old)
        assert count == 1, (
            f"{mutant.name}: what it replaces is {count} times in {path.name}: bring the mutant up to date"
        )
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    return folder
