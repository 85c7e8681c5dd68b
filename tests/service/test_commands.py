"""Commands: what they are told, what their exit codes mean, what they print, and how they are ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from duly import OneShot
from duly.journal import read
from duly.journal.entries import RunNoted
from duly.projections import Run
from duly.service import Command, Host, Outputs
from duly.service.commands import GATE, describe_exit
from duly.service.output import rotate
from duly.service.processes import Process, is_alive, process_of
from tests.service.hosting import due, ended, just_now, outcomes, running, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="commands need process groups")

SHORT = timedelta(seconds=0.3)


def executed(tmp_path: Path, command: Command, *, outputs: Outputs | None = None, **policy: Any) -> Run:
    """The one run of a schedule `c` with this command, when it has ended."""
    host = Host.open(tmp_path / "j", {"c": command}, kill_grace=SHORT, outputs=outputs)
    with running(host):
        due(host, "c", **policy)
        until(ended(host))
        [run] = host.scheduler.runs()
    return run


def printed(tmp_path: Path, run: Run) -> str:
    return (tmp_path / "j-output" / "c" / f"{run.id}.log").read_text(encoding="utf-8")


def test_a_command_is_told_what_it_runs_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DULY_ATTEMPT_ID", "of somebody else")
    monkeypatch.setenv("INHERITED", "yes")
    show = "import json, os; print(json.dumps(dict(os.environ)))"
    command = Command((sys.executable, "-c", show), environment={"OWN": "yes", "DULY_RUN_ID": "0"})
    run = executed(tmp_path, command, input={"a": [1, "ü"]})
    told = json.loads(printed(tmp_path, run))
    assert {name: value for name, value in told.items() if name.startswith("DULY_")} == {
        "DULY_SCHEDULE_ID": "c",
        "DULY_OCCURRENCE_ID": run.occurrence_id,
        "DULY_SCHEDULED_AT": f"{run.scheduled_at:%Y-%m-%dT%H:%M:%SZ}",
        "DULY_RUN_ID": str(run.id),
        "DULY_INPUT": '{"a":[1,"ü"]}',
        "DULY_CHECKPOINT_FILE": str(tmp_path / "j-output" / "c" / f"{run.id}.checkpoint"),
    }
    assert (told["OWN"], told["INHERITED"]) == ("yes", "yes")


def test_a_manual_run_is_told_no_occurrence(tmp_path: Path):
    with running(Host.open(tmp_path / "j", {"c": Command("env | grep ^DULY_ | cut -d= -f1 | sort")})) as host:
        run = host.scheduler.run_now(target="c")
        until(ended(host))
    shown = (tmp_path / "j-output" / "_manual" / f"{run.id}.log").read_text(encoding="utf-8").split()
    assert shown == ["DULY_CHECKPOINT_FILE", "DULY_INPUT", "DULY_RUN_ID"]


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("exit 0", {"exit_code": 0}),
        ("exit 3", "CommandFailed"),
        ("kill -9 $$", "CommandFailed"),
        ("exit 75", ("interrupted", None)),
        ('printf "page 7" > "$DULY_CHECKPOINT_FILE"; exit 75', ("interrupted", "page 7")),
        ("printf '\\377' > $DULY_CHECKPOINT_FILE; exit 75", "CommandFailed"),
        ("head -c 300000 /dev/zero | tr '\\0' x > $DULY_CHECKPOINT_FILE; exit 75", "CommandFailed"),
        ("rm $DULY_CHECKPOINT_FILE; exit 75", ("interrupted", None)),
        (("no-such-program",), "CommandFailed"),
    ],
)
def test_an_exit_code_is_a_result(tmp_path: Path, line: str | tuple[str, ...], outcome: object):
    executed(tmp_path, Command(line))
    assert outcomes(tmp_path / "j") == {"c": outcome}


def test_a_failure_says_how_it_ended_and_where_its_output_is(tmp_path: Path):
    run = executed(tmp_path, Command("echo on my way >&2; kill -TERM $$"))
    assert run.error is not None
    assert run.error.message == f"killed by SIGTERM; its output is in {tmp_path}/j-output/c/{run.id}.log"
    assert printed(tmp_path, run) == "on my way\n"
    assert (describe_exit(3), describe_exit(-200)) == ("exit code 3", "killed by signal 200")


def test_a_command_that_cannot_be_begun_fails_openly(tmp_path: Path):
    run = executed(tmp_path, Command("true", cwd=tmp_path / "nowhere"))
    assert run.error is not None
    assert run.error.type == "FileNotFoundError"


def test_a_user_that_does_not_exist_is_a_failure(tmp_path: Path):
    executed(tmp_path, Command("true", user="nobody-of-this-name"))
    assert outcomes(tmp_path / "j") == {"c": "NoSuchAccount"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may run commands as others")
def test_a_command_of_another_user_is_that_users(tmp_path: Path):
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)  # as it would be where users share a machine
    line = 'id -un; echo "$HOME $USER"; pwd; cat; echo half > "$DULY_CHECKPOINT_FILE"; exit 75'
    run = executed(tmp_path, Command(line, user="nobody", stdin="read\n", cwd=Path("/")))
    assert printed(tmp_path, run).splitlines() == ["nobody", "/nonexistent nobody", "/", "read"]
    assert run.checkpoint == "half\n"


def test_a_command_reads_what_it_is_given_and_nothing_else(tmp_path: Path):
    large = "line\n" * 100_000
    run = executed(tmp_path, Command(("wc", "-c"), stdin=large))
    assert printed(tmp_path, run).strip() == str(len(large))


def test_a_command_that_is_given_nothing_reads_nothing(tmp_path: Path):
    assert printed(tmp_path, executed(tmp_path, Command("cat; echo end"))) == "end\n"


def test_a_resumed_command_finds_its_checkpoint_where_it_left_it(tmp_path: Path):
    line = "file=$DULY_CHECKPOINT_FILE; cat $file; echo $DULY_ATTEMPT_ID; printf %s $DULY_RUN_ID > $file; "
    line += '[ -n "$DULY_ATTEMPT_ID" ] || exit 75'
    with running(Host.open(tmp_path / "j", {"c": Command(line)})) as host:
        due(host, "c")
        until(ended(host))
        [run] = host.scheduler.runs()
        attempt = host.resume(run.id)
        until(ended(host))
    assert printed(tmp_path, run) == f"\n{run.id}{attempt.attempt_id}\n"
    assert sorted(path.name for path in (tmp_path / "j-output" / "c").iterdir()) == [f"{run.id}.log"]


def test_the_process_is_noted_before_the_command_runs(tmp_path: Path):
    line = "import os; print(os.getpid(), os.getpgid(0), os.getsid(0))"
    run = executed(tmp_path, Command((sys.executable, "-c", line)))
    [data] = [one.entry.data for one in read(tmp_path / "j") if isinstance(one.entry, RunNoted)]
    note = cast("dict[str, Any]", data)
    assert printed(tmp_path, run).split() == [str(note["process"])] * 3
    assert note["group"] == note["process"]
    assert (note["attempt"], note["output"]) == (None, str(tmp_path / "j-output" / "c" / f"{run.id}.log"))


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path):
    line = "trap '' TERM; sleep 60 & echo $! > child; wait; sleep 60"
    run = executed(tmp_path, Command(line, cwd=tmp_path), limits={"timeout": 0.2})
    assert run.error is not None
    assert (run.error.type, run.error.message) == ("TimedOut", "timed out after 0.2 s")
    child = int((tmp_path / "child").read_text(encoding="ascii"))
    until(lambda: process_of(child) is None)


def test_what_a_command_leaves_running_dies_with_it_only_if_it_was_asked_to_end(tmp_path: Path):
    run = executed(tmp_path, Command("sleep 60 & echo $!"))
    left = int(printed(tmp_path, run))
    assert process_of(left) is not None
    os.kill(left, signal.SIGKILL)
    line = "trap 'exit 0' TERM; (trap '' TERM; sleep 60) & echo $! > child; wait"
    with running(Host.open(tmp_path / "k", {"c": Command(line, cwd=tmp_path)}, drain_grace=timedelta(0))) as host:
        due(host, "c")
        child = int(until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text(encoding="ascii")))
    assert outcomes(tmp_path / "k") == {"c": "Cancelled"}
    until(lambda: process_of(child) is None)


def test_a_command_may_answer_the_shutdown_with_a_checkpoint(tmp_path: Path):
    line = "trap 'echo saved > $DULY_CHECKPOINT_FILE; exit 75' TERM; echo > ready; while :; do sleep 0.01; done"
    with running(Host.open(tmp_path / "j", {"c": Command(line, cwd=tmp_path)}, drain_grace=timedelta(0))) as host:
        due(host, "c")
        until((tmp_path / "ready").exists)
    assert outcomes(tmp_path / "j") == {"c": ("interrupted", "saved\n")}


def test_output_is_bounded_while_the_command_runs_and_after_it(tmp_path: Path):
    outputs = Outputs(tmp_path / "out", size=10_000)
    line = "i=0; while [ $i -lt 40 ]; do printf '%0999d\\n' $i; i=$((i + 1)); sleep 0.02; done"
    run = executed(tmp_path, Command(line), outputs=outputs)
    log, kept = tmp_path / "out" / "c" / f"{run.id}.log", tmp_path / "out" / "c" / f"{run.id}.log.1"
    assert kept.stat().st_size == 10_000
    assert log.stat().st_size <= 10_000
    assert (kept.read_bytes() + log.read_bytes()).endswith(b"39\n")
    assert log.stat().st_mode & 0o077 == kept.stat().st_mode & 0o077 == 0


def test_a_log_is_cut_only_when_it_is_too_long(tmp_path: Path):
    log = tmp_path / "1.log"
    log.write_bytes(b"0123456789")
    assert (rotate(log, 10), rotate(log, 4), rotate(tmp_path / "gone", 1)) == (False, True, False)
    assert (log.read_bytes(), (tmp_path / "1.log.1").read_bytes()) == (b"", b"6789")


def run_again(host: Host, schedule_id: str) -> int:
    run = host.scheduler.run_now(schedule_id)
    until(lambda: host.scheduler.run(run.id).ended)
    return run.id


def test_only_the_newest_runs_of_a_schedule_keep_their_output(tmp_path: Path):
    outputs = Outputs(tmp_path / "out", keep=2)
    with running(Host.open(tmp_path / "j", {"c": Command("echo $DULY_RUN_ID")}, outputs=outputs)) as host:
        due(host, "c")
        until(ended(host))
        ids = [run_again(host, "c") for _ in range(3)]
    logs = sorted(int(path.stem) for path in (tmp_path / "out" / "c").iterdir())
    assert logs == ids[-2:]


@pytest.mark.parametrize("schedule_id", [".", "..", ".hidden", "a:b"])
def test_no_id_of_a_schedule_leads_out_of_the_folder(tmp_path: Path, schedule_id: str):
    host = Host.open(tmp_path / "j", {"c": Command("echo here")})
    with running(host):
        host.scheduler.create(schedule_id, OneShot(just_now()), target="c")
        until(ended(host))
    [log] = (tmp_path / "j-output").rglob("*.log")
    assert log.parent.parent == tmp_path / "j-output"


def test_a_process_is_known_by_its_id_and_its_start():
    mine = process_of(os.getpid())
    assert mine is not None
    assert is_alive(mine)
    assert not is_alive(Process(mine.pid, "another boot 1"))
    assert process_of(2**22 + 1) is None


def test_a_host_that_dies_before_the_note_leaves_a_command_that_never_runs(tmp_path: Path):
    """The gate is shut: its input ends before the line that opens it."""
    gate = ["/bin/sh", "-c", GATE, "duly", os.devnull, "touch", str(tmp_path / "ran")]
    for given, ran in ((b"", False), (b"stop\n", False), (b"go\n", True)):
        subprocess.run(gate, input=given, check=False)
        assert (tmp_path / "ran").exists() is ran
