"""How the command starts: in odd environments, with streams that are closed, and when it is interrupted at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.conftest import Duly

DULY = f"{sys.executable} -P -m duly"


def in_shell(command: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        ["/bin/sh", "-c", command], check=False, capture_output=True, text=True, env={**os.environ, **environment}
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("columns", ["abc", "-5", "0", "1.5"])
def test_columns_that_say_no_width_are_no_width(journal: Path, columns: str):
    told = in_shell(f"{DULY} schedules {journal}", COLUMNS=columns)
    assert told == in_shell(f"{DULY} schedules {journal}", COLUMNS="")
    assert told[0] == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_changes_nothing_of_the_answer(journal: Path, closed: str):
    code, out, err = in_shell(f"{DULY} verify {journal} {closed}")
    whole = in_shell(f"{DULY} verify {journal}")
    assert (code, err) == (0, "")
    assert out == ("" if ">&- " in f"{closed} ".replace("2>&-", "") else whole[1])


def test_standard_input_that_is_closed_is_no_schedule_file(tmp_path: Path):
    code, out, err = in_shell(f"{DULY} import - --journal {tmp_path / 'j'} --dry-run <&-")
    assert (code, out) == (2, "")
    assert err.startswith("duly: standard input is closed: name a file")


def test_ctrl_c_while_the_command_is_imported_ends_it_without_a_word():
    script = (
        "import sys, duly.tools.entry as entry\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'duly.tools.cli': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.argv = ['duly', 'head']\n"
        "sys.exit(entry.main())\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("instant", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2101-06-01T00:00:00Z"])
def test_an_instant_beyond_all_years_is_a_matter_of_usage(journal: Path, instant: str, duly: Duly):
    answer = duly("explain", "often", instant, "--journal", journal)
    assert (answer.code, answer.out) == (2, "")
    assert "1972 … 2100" in answer.err
