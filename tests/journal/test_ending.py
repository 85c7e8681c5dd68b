"""A program that ends without closing its journal: nothing is printed, and all that was durable is found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from duly.journal import Journal
from duly.journal.handles import Handles
from tests.journal.samples import fill, notes

BEGINNING = """
    import sys, threading
    from datetime import UTC, datetime
    from duly.journal import Journal, Reader, read
    from duly.journal.entries import RunNoted

    NOW = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)

    def note(number):
        return RunNoted(at=NOW, run_id=number)

"""
ENDINGS = {
    "a global": """
        journal = Journal.open(sys.argv[1])
        journal.append([note(2)], NOW)
    """,
    "a cycle of references": """
        class Host:
            pass

        host = Host()
        host.itself, host.journal = host, Journal.open(sys.argv[1])
        host.journal.append([note(2)], NOW)
        del host
    """,
    "a class attribute and a default": """
        class Host:
            journal = Journal.open(sys.argv[1])

        def append(journal=Host.journal):
            journal.append([note(2)], NOW)

        append()
    """,
    "a thread that still appends": """
        journal = Journal.open(sys.argv[1])
        journal.append([note(2)], NOW)
        appended = threading.Event()

        def append():
            for number in range(3, 1_000_000):
                journal.append([note(number)], NOW)
                appended.set()

        threading.Thread(target=append, daemon=True).start()
        appended.wait()
    """,
    "readers that were left in the middle": """
        journal = Journal.open(sys.argv[1])
        journal.append([note(2)], NOW)
        left = [iter(Reader(sys.argv[1]).lines()), read(sys.argv[1]), journal.entries()]
        for each in left:
            next(each)
    """,
    "an exit from within": """
        def run():
            journal = Journal.open(sys.argv[1])
            journal.append([note(2)], NOW)
            sys.exit(0)

        run()
    """,
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_journal_that_is_left_open_at_the_end_of_a_program_prints_nothing(ending: str, tmp_path: Path):
    fill(tmp_path, 1)
    program = dedent(BEGINNING) + dedent(ENDINGS[ending])
    command = [sys.executable, "-X", "dev", "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with Journal.open(tmp_path) as journal:
        assert [entry for _, entry in journal.entries()][:2] == notes(1, 2)


def test_handles_whose_construction_was_interrupted_are_given_up_in_silence(capfd: pytest.CaptureFixture[str]):
    handles = Handles.__new__(Handles)
    del handles
    assert capfd.readouterr().err == ""
