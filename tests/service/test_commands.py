"""Commands: what they are told, what their exit codes mean, what they print, and how they are ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from duly import Failed, OneShot, Scheduler
from duly.journal import Json, read
from duly.journal.entries import RunNoted
from duly.projections import Run
from duly.scheduler.decisions.runs import Result
from duly.scheduler.errors import DefinitionError
from duly.service import Command, CommandOf, Host, Outputs, Work
from duly.service.commands import GATE, CommandActivity, describe_exit
from duly.service.keeper import Keeper
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
        ("rm $DULY_CHECKPOINT_FILE; mkfifo $DULY_CHECKPOINT_FILE; exit 75", "CommandFailed"),
        ("rm $DULY_CHECKPOINT_FILE; mkdir $DULY_CHECKPOINT_FILE; exit 75", "CommandFailed"),
        ("ln -sf /etc/passwd $DULY_CHECKPOINT_FILE; exit 75", "CommandFailed"),
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


def test_a_failure_names_what_output_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    outputs = Outputs(Path("out"), size=10)
    noisy = "i=0; while [ $i -lt 9 ]; do echo $i$i; i=$((i + 1)); done; exit 1"
    lines = {"none": "exit 1", "some": "echo some; exit 1", "much": noisy}
    with running(Host.open("j", {name: Command(line) for name, line in lines.items()}, outputs=outputs)) as host:
        due(host, *lines)
        until(ended(host))
        runs = {run.target: run for run in host.scheduler.runs()}
    said = {name: run.error.message.removeprefix("exit code 1; ") for name, run in runs.items() if run.error}
    assert said == {
        "none": "it printed nothing",
        "some": f"its output is in {tmp_path}/out/some/{runs['some'].id}.log",
        "much": f"its output is in {tmp_path}/out/much/{runs['much'].id}.log.1",
    }


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


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may run commands as others")
def test_a_home_that_does_not_exist_is_named(tmp_path: Path):
    run = executed(tmp_path, Command("true", user="nobody"))
    assert run.error is not None
    assert run.error.message == "the home of nobody, /nonexistent, does not exist; give the command another cwd"


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


def test_the_process_is_noted_with_its_group_and_its_output(tmp_path: Path):
    line = "import os; print(os.getpid(), os.getpgid(0), os.getsid(0))"
    run = executed(tmp_path, Command((sys.executable, "-c", line)))
    [data] = [one.entry.data for one in read(tmp_path / "j") if isinstance(one.entry, RunNoted)]
    note = cast("dict[str, Any]", data)
    assert printed(tmp_path, run).split() == [str(note["process"])] * 3
    assert note["group"] == note["process"]
    assert (note["attempt"], note["output"]) == (None, str(tmp_path / "j-output" / "c" / f"{run.id}.log"))


def always(command: Command) -> Callable[[Work], Command]:
    def build(_work: Work) -> Command:
        return command

    return build


def begun(tmp_path: Path, command: Command, note: Callable[[int, Json], None], *, stopped: bool = False) -> Result:
    """The result of a command that is executed without a host, and was asked to end before it began if `stopped`."""
    with Scheduler.open(tmp_path / "j") as scheduler:
        run = scheduler.run_now(target="c")
    outputs, results = Outputs(tmp_path / "out"), list[Result]()
    files, keeper = outputs.files_of(run), Keeper(outputs)
    activity = CommandActivity(Work(run), results.append, always(command), files, keeper, note)
    if stopped:
        activity.ask_to_stop()
    activity.begin()
    return until(lambda: results)[0]


def test_the_command_is_not_executed_before_its_note_is_durable(tmp_path: Path):
    seen: list[bool] = []

    def note(_run_id: int, _data: Json) -> None:
        time.sleep(0.3)
        seen.append((tmp_path / "ran").exists())

    begun(tmp_path, Command(("touch", str(tmp_path / "ran"))), note)
    assert [*seen, (tmp_path / "ran").exists()] == [False, True]


def test_a_command_that_was_asked_to_end_before_it_began_is_not_executed(tmp_path: Path):
    notes: list[Json] = []
    result = begun(
        tmp_path, Command(("touch", str(tmp_path / "ran"))), lambda _run_id, data: notes.append(data), stopped=True
    )
    assert isinstance(result, Failed)
    assert (len(notes), (tmp_path / "ran").exists()) == (1, False)


def test_whatever_a_builder_raises_is_how_its_run_ended(tmp_path: Path):
    def build(_work: Work) -> Command:
        raise SystemExit(3)

    with running(Host.open(tmp_path / "j", {"c": CommandOf(build)})) as host:
        due(host, "c")
        until(ended(host))
    assert outcomes(tmp_path / "j") == {"c": "SystemExit"}


SHOWN: dict[str, dict[str, Any]] = {
    "line: () has no word that names a program": {"line": ()},
    "line: ('', 'a') has no word that names a program": {"line": ("", "a")},
    "line: [] has no word that names a program": {"line": []},
    "line: ' \\n' has nothing to execute": {"line": " \n"},
    "line: 3 is no command line": {"line": 3},
    "line: ['a', 1] has a word that is no text, 1": {"line": ["a", 1]},
    "line: 'a\\x00' has the character 0, which no command can be given": {"line": "a\0"},
    "line: ('a', '\\x00') has the character 0, which no command can be given": {"line": ("a", "\0")},
    "environment: 'A' is no mapping": {"line": "a", "environment": "A"},
    "environment: 'a.b' is no name that the shell in front of every command passes on": {
        "line": "a",
        "environment": {"a.b": "1"},
    },
    "environment: 'A' is a variable whose value is no text, or has the character 0": {
        "line": "a",
        "environment": {"A": 1},
    },
    "stdin: b'' is no text": {"line": "a", "stdin": b""},
    "user: 0 is no text": {"line": "a", "user": 0},
    "shell: None is no text": {"line": "a", "shell": None},
    "shell: '' is no program": {"line": "a", "shell": ""},
    "cwd: 3 is no path": {"line": "a", "cwd": 3},
}


@pytest.mark.parametrize("problem", SHOWN)
def test_a_command_that_cannot_be_meant_is_refused_when_it_is_made(problem: str):
    with pytest.raises(DefinitionError) as refusal:
        Command(**SHOWN[problem])
    assert str(refusal.value).startswith(problem)


def test_words_may_be_a_list(tmp_path: Path):
    words: Any = ["echo", "a list"]
    assert printed(tmp_path, executed(tmp_path, Command(words))) == "a list\n"


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
