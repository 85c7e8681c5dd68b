"""Work that takes more than a second shows a bar on a terminal, in every command, and nothing anywhere else."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from duly.tools import output
from tests.tools.circumstances import sound
from tests.tools.conftest import Duly
from tests.tools.every_command import ENDLESS, READING
from tests.tools.test_terminal import on_posix

SLOW = """
import sys, time
from duly.journal import RealDisk
read = RealDisk.read
def slowly(*arguments):
    time.sleep({pause})
    return read(*arguments)
RealDisk.read = slowly
from duly.tools.cli import main
sys.exit(main(sys.argv[1:]))
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_every_command_has_a_bar_ready_while_it_reads(
    journal: Path, duly: Duly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ready: list[float] = []

    class Waiting:
        """A timer that never comes to its end."""

        def __init__(self, after: float, _: Callable[[], None]) -> None:
            self.daemon = False
            self.after = after

        def start(self) -> None:
            ready.append(self.after)

        def cancel(self) -> None: ...

        def join(self) -> None: ...

    monkeypatch.setattr(output, "Timer", Waiting)
    monkeypatch.setattr(sys, "stderr", Terminal())
    (tmp_path / "made").mkdir()
    (tmp_path / "crontab").write_text("0 3 * * * backup\n")
    without: list[str] = []
    for verb in READING.values():
        if verb.name in ENDLESS:
            continue
        ready.clear()
        path = sound(journal, tmp_path / verb.name.replace(" ", "-"))
        duly(*verb.words(path, tmp_path / "made", tmp_path / "crontab"))
        if not ready:
            without.append(verb.name)
        assert set(ready) <= {output.PROGRESS_AFTER}
    assert without == []


@on_posix
@pytest.mark.parametrize(("pause", "shown"), [(0.4, True), (0.0, False)])
def test_a_bar_is_seen_on_a_terminal_for_work_over_a_second_and_is_gone_after_it(
    pause: float, shown: bool, journal: Path
):
    import pty

    master, slave = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", SLOW.format(pause=pause), "verify", str(journal)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**plain, "TERM": "xterm-256color"},
    )
    os.close(slave)
    seen = b""
    while piece := read_some(master):
        seen += piece
    os.close(master)
    answer, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert answer.startswith(b"journal verified")
    assert (b"verifying" in seen, b"\x1b[2K" in seen) == (shown, shown)


def read_some(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # Linux ends a terminal with EIO
        return b""


def test_nothing_is_drawn_where_no_terminal_is(journal: Path):
    done = subprocess.run(
        [sys.executable, "-P", "-c", SLOW.format(pause=0.4), "verify", str(journal)], capture_output=True, check=True
    )
    assert done.stderr == b""
    assert b"\x1b" not in done.stdout
