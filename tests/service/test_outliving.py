"""Commands that outlive their host: recognised by the next one, watched, and never mistaken for finished."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from duly import Completed, Run, Scheduler, StillRunning
from duly.projections import replay
from duly.service import Command, Host, Outputs, outliving
from duly.service.keeper import Keeper
from duly.service.outliving import AdoptedActivity, note_of
from duly.service.processes import Process, end_group_after, process_of
from duly.service.work import Work
from tests.service.hosting import outcomes, running, until

ROOT = Path(__file__).parent.parent.parent
WAITING = "while [ ! -e go ]; do sleep 0.01; done; echo over"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="commands need process groups")

KILLED = """
    import sys
    from pathlib import Path
    from duly.service import Command, Host
    from tests.service.hosting import due

    folder = Path(sys.argv[1])
    host = Host.open(folder / "j", {"c": Command(sys.argv[2], cwd=folder)})
    due(host, "c", limits={"timeout": 3600})
    host.run()
"""


@contextmanager
def left_behind(folder: Path, line: str = WAITING) -> Generator[Process]:
    """A command whose host was killed while it ran."""
    program = [sys.executable, "-P", "-c", textwrap.dedent(KILLED), str(folder), f"echo > begun; {line}"]
    with subprocess.Popen(program, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}) as host:
        until((folder / "begun").exists)
        host.kill()
    [run] = replay(folder / "j").runs()
    process = process_of(cast("dict[str, Any]", run.notes[-1])["process"])
    assert process is not None
    try:
        yield process
    finally:
        if process_of(process.pid) == process:
            os.killpg(process.pid, signal.SIGKILL)


def the_run(host: Host) -> Run:
    [run] = host.scheduler.runs()
    return run


def test_it_stays_started_while_it_runs_and_has_failed_openly_when_it_has_ended(tmp_path: Path):
    with left_behind(tmp_path), running(Host.open(tmp_path / "j", {"c": Command("true")})) as host:
        assert [run.id for run in host.scheduler.recovery.running] == [the_run(host).id]
        until(lambda: host.at_work)
        assert the_run(host).state == "started"
        (tmp_path / "go").touch()
        until(lambda: the_run(host).ended)
        error = the_run(host).error
    assert error is not None
    assert (error.type, error.message) == (
        "OutlivedItsHost",
        "it outlived its host, and has ended; nobody saw its exit code",
    )
    [log] = (tmp_path / "j-output" / "c").iterdir()  # and nothing else is left of it
    assert log.read_text(encoding="utf-8") == "over\n"


def test_it_keeps_its_slot_and_the_schedule_does_not_run_beside_it(tmp_path: Path):
    with left_behind(tmp_path), running(Host.open(tmp_path / "j", {"c": Command("true")}, task_slots=1)) as host:
        until(lambda: host.at_work)
        manual = host.scheduler.run_now("c")
        until(lambda: host.last_poll)
        assert host.scheduler.run(manual.id).state == "pending"
        (tmp_path / "go").touch()
        until(lambda: host.scheduler.run(manual.id).ended)


def test_one_that_has_ended_before_the_next_host_is_abandoned(tmp_path: Path):
    with left_behind(tmp_path) as process:
        (tmp_path / "go").touch()
        until(lambda: process_of(process.pid) is None)
        with Host.open(tmp_path / "j", {}) as host:
            assert the_run(host).state == "abandoned"


def test_another_process_with_its_id_is_not_mistaken_for_it(tmp_path: Path):
    with Scheduler.open(tmp_path / "j") as scheduler:
        run = scheduler.run_now(target="c")
        scheduler.start(run.id)
        reused = Process(os.getpid(), "what was here before 1")
        scheduler.note_run(run.id, note_of(os.getpid(), reused, None, tmp_path / "log"))
    with Host.open(tmp_path / "j", {}) as host:
        assert the_run(host).state == "abandoned"


def test_the_note_of_an_attempt_before_is_no_evidence_about_this_one(tmp_path: Path):
    with Scheduler.open(tmp_path / "j") as scheduler:
        run = scheduler.run_now(target="c")
        scheduler.start(run.id)
        scheduler.note_run(run.id, note_of(os.getpid(), process_of(os.getpid()), None, tmp_path / "log"))
        scheduler.interrupt(run.id)
        scheduler.resume(run.id)
    with Host.open(tmp_path / "j", {}) as host:
        assert (the_run(host).state, the_run(host).abandoned) == ("abandoned", "ambiguous")


def test_it_is_ended_with_the_host_that_adopted_it(tmp_path: Path):
    with left_behind(tmp_path) as process:
        grace = timedelta(seconds=0.1)
        with running(Host.open(tmp_path / "j", {}, drain_grace=grace, kill_grace=grace)) as host:
            until(lambda: host.at_work)
        assert outcomes(tmp_path / "j") == {"c": "Cancelled"}
        until(lambda: process_of(process.pid) is None)


def test_one_that_hears_nothing_is_killed(tmp_path: Path):
    with left_behind(tmp_path, f"trap '' TERM; {WAITING}") as process:
        grace = timedelta(seconds=0.1)
        with running(Host.open(tmp_path / "j", {}, drain_grace=grace, kill_grace=grace)) as host:
            until(lambda: host.at_work)
        until(lambda: process_of(process.pid) is None)


def test_what_it_has_started_is_ended_with_it(tmp_path: Path):
    line = "(trap '' TERM; sleep 60) & echo $! > child; while :; do sleep 0.01; done"
    with left_behind(tmp_path, line):
        child = int(until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text(encoding="ascii")))
        with running(Host.open(tmp_path / "j", {}, drain_grace=timedelta(0))) as host:
            until(lambda: host.at_work)
        assert outcomes(tmp_path / "j") == {"c": "Cancelled"}
        until(lambda: process_of(child) is None)


def test_no_number_of_notes_makes_it_unknown(tmp_path: Path):
    with left_behind(tmp_path):
        for others in ([{"process": "step 1"}, {"process": 1, "started": "somebody's"}], [{"process": 2}, *range(20)]):
            with Host.open(tmp_path / "j", {}) as host:
                for data in others:
                    host.scheduler.note_run(the_run(host).id, data)
            with Host.open(tmp_path / "j", {}) as host:
                assert the_run(host).state == "started"


def test_a_note_without_a_start_is_no_evidence(tmp_path: Path):
    with Scheduler.open(tmp_path / "j") as scheduler:
        run = scheduler.run_now(target="c")
        scheduler.start(run.id)
        scheduler.note_run(run.id, note_of(os.getpid(), None, None, tmp_path / "log"))
    with Host.open(tmp_path / "j", {}) as host:
        assert the_run(host).state == "abandoned"


def long_ago(_process: Process) -> float:
    """What the machine says of a process that began an hour ago."""
    return 3600.0


def test_its_time_counts_from_its_own_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outliving, "age_of", long_ago)
    with left_behind(tmp_path) as process:
        with running(Host.open(tmp_path / "j", {}, drain_grace=timedelta(0))) as host:
            until(lambda: the_run(host).ended)
        assert outcomes(tmp_path / "j") == {"c": "TimedOut"}
        assert process_of(process.pid) is None


def test_once_ends_one_whose_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outliving, "age_of", long_ago)
    with left_behind(tmp_path) as process, Host.open(tmp_path / "j", {}) as host:
        assert [run.state for run in host.once()] == ["failed"]
        assert outcomes(tmp_path / "j") == {"c": "TimedOut"}
        assert process_of(process.pid) is None


def stranger() -> subprocess.Popen[bytes]:
    """A process that leads a group, and answers while it lives."""
    return subprocess.Popen(
        ["/bin/sh", "-c", "exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )


def test_another_process_with_its_id_is_sent_nothing(tmp_path: Path):
    with Scheduler.open(tmp_path / "j") as scheduler:
        run = scheduler.run_now(target="c")
    with stranger() as process:
        reused = Process(process.pid, "what was here before 1")
        activity = AdoptedActivity(Work(run), print, reused, None, Keeper(Outputs(tmp_path)))
        activity.ask_to_stop()
        activity.kill()
        end_group_after(reused)
        assert process.communicate(b"alive")[0] == b"alive"


def test_one_that_cannot_be_watched_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse() -> NoReturn:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(outliving, "socketpair", refuse)
    grace = timedelta(0)
    with left_behind(tmp_path), running(Host.open(tmp_path / "j", {}, drain_grace=grace, kill_grace=grace)) as host:
        until(lambda: host.last_poll)
        assert (host.at_work, the_run(host).state) == ((the_run(host).id,), "started")


def test_a_note_cannot_have_another_file_cut(tmp_path: Path):
    precious = tmp_path / "precious.log"
    precious.write_bytes(b"0123456789")
    with stranger() as process:
        with Scheduler.open(tmp_path / "j") as scheduler:
            run = scheduler.run_now(target="c")
            scheduler.start(run.id)
            scheduler.note_run(run.id, note_of(process.pid, process_of(process.pid), None, precious))
        with running(Host.open(tmp_path / "j", {}, outputs=Outputs(tmp_path / "out", size=1))) as host:
            until(lambda: host.at_work)
            process.communicate(b"")
            until(lambda: the_run(host).ended)
    assert precious.read_bytes() == b"0123456789"


def test_once_leaves_it_alone(tmp_path: Path):
    with left_behind(tmp_path) as process:
        for _ in range(2):
            with Host.open(tmp_path / "j", {}) as host:
                assert host.once() == ()
        until(lambda: not any(thread.name.startswith("duly run") for thread in threading.enumerate()))
        assert process_of(process.pid) == process
        assert replay(tmp_path / "j").runs()[0].state == "started"


def test_evidence_of_the_host_is_asked_about_what_it_alone_knows(tmp_path: Path):
    class Workers:
        def of(self, run: Run, /) -> Completed | StillRunning | None:
            return Completed(run.id, result="done elsewhere") if run.target == "a" else StillRunning(run.id)

        def runs(self) -> list[tuple[int, str]]:
            return []

    with Scheduler.open(tmp_path / "j") as scheduler:
        for target in "ab":
            scheduler.start(scheduler.run_now(target=target).id)
    with Host.open(tmp_path / "j", {}, evidence=Workers()) as host:
        assert {run.target: run.state for run in host.scheduler.runs()} == {"a": "completed", "b": "started"}
