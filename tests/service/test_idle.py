"""An idle host costs next to nothing: it is measured as the share of a processor that its whole process used."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.service.hosting import until

SECONDS = 90
MOST = 0.001

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the time of a process is read from /proc")


def processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.torture
@pytest.mark.parametrize("serving", [[], ["--serve", "127.0.0.1:0", "--token-file", "token"]], ids=["alone", "served"])
def test_an_idle_host_of_a_thousand_schedules_uses_a_thousandth_of_a_processor(tmp_path: Path, serving: list[str]):
    lines = (f'[schedules.s{number}]\ncron = "0 0 29 2 *"\ncommand = "true"\n' for number in range(1000))
    (tmp_path / "s.toml").write_text("".join(lines), encoding="utf-8")
    command = [sys.executable, "-P", "-m", "duly", "run", "s.toml", "-j", "j", "--zone", "UTC", *serving]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        until(lambda: "ready" in (host.stdout.readline() if host.stdout else ""))
        time.sleep(2)
        before = processor_time(host.pid)
        time.sleep(SECONDS)
        used = (processor_time(host.pid) - before) / SECONDS
        host.send_signal(signal.SIGTERM)
        assert host.wait(60) == 0
    assert used <= MOST
