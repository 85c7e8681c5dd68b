"""What commands print: bounded in size, in number and in all, whoever writes it and for how long."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from duly.scheduler.errors import DefinitionError
from duly.service import Command, Host, Outputs, keeper
from duly.service.keeper import Keeper, rotate
from duly.service.output import NoFile, RunFiles, opened
from duly.service.processes import is_group_alive
from tests.service.hosting import due, ended, running, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="commands need process groups")


def test_output_is_bounded_while_the_command_runs_and_after_it(tmp_path: Path):
    outputs = Outputs(tmp_path / "out", size=10_000)
    line = "i=0; while [ $i -lt 40 ]; do printf '%0999d\\n' $i; i=$((i + 1)); sleep 0.02; done"
    with running(Host.open(tmp_path / "j", {"c": Command(line)}, outputs=outputs)) as host:
        due(host, "c")
        until(ended(host))
        [run] = host.scheduler.runs()
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


def test_two_that_cut_a_log_at_once_keep_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = tmp_path / "1.log"
    log.write_bytes(b"x" * 1000 + b"the end")
    its = Keeper(Outputs(tmp_path, size=7))
    leaving = threading.Thread(target=its.leave, args=(log,))
    keep = keeper._keep  # pyright: ignore[reportPrivateUsage] # where the first is, while the second comes

    def kept(file: BinaryIO, start: int, target: Path) -> None:
        if leaving.ident is None:
            leaving.start()
            leaving.join(0.3)
        keep(file, start, target)

    monkeypatch.setattr(keeper, "_keep", kept)
    its.watch(log)
    until(lambda: leaving.ident)
    leaving.join(30)
    until(lambda: log.read_bytes() == b"")
    assert (tmp_path / "1.log.1").read_bytes() == b"the end"


def content(path: Path) -> bytes:
    """What is in a file, which may just be made anew."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def test_what_a_command_leaves_in_the_background_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(keeper, "LOOK_AT_LEFT", 0.01)
    outputs = Outputs(tmp_path / "out", size=100, keep=1)
    loop = "i=0; while [ ! -e go ] && [ $i -lt 30000 ]; do i=$((i + 1)); echo 0123456789; sleep 0.001; done"
    line = f"({loop}; printf %0500d 7) & echo $! > group$DULY_RUN_ID"
    with running(Host.open(tmp_path / "j", {"c": Command(line, cwd=tmp_path)}, outputs=outputs)) as host:
        due(host, "c")
        until(ended(host))
        [first] = host.scheduler.runs()
        log = tmp_path / "out" / "c" / f"{first.id}.log"
        kept = log.with_name(f"{log.name}.1")
        until(kept.exists)
        run_again(host, "c")
        assert log.exists()  # although one run alone is kept: it is being written
        (tmp_path / "go").touch()
        until(lambda: content(kept) == b"0" * 99 + b"7")
        until(lambda: not any(thread.name == "duly output" for thread in threading.enumerate()))
        last = run_again(host, "c")
    assert {int(path.name.partition(".")[0]) for path in log.parent.iterdir()} == {last}


def test_a_host_that_is_closed_looks_at_nothing(tmp_path: Path):
    with running(Host.open(tmp_path / "j", {"c": Command("echo $$; sleep 60 &")})) as host:
        due(host, "c")
        until(ended(host))
        [log] = (tmp_path / "j-output" / "c").iterdir()
        group = int(log.read_text(encoding="ascii"))
        assert is_group_alive(group)
    until(lambda: not any(thread.name == "duly output" for thread in threading.enumerate()))
    os.killpg(group, signal.SIGKILL)


def test_all_output_together_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(keeper, "SWEEP_AGAIN", 0.0)
    outputs = Outputs(tmp_path / "out", total=2000)
    handlers = dict.fromkeys("abcd", Command("printf %0800d 1"))
    with running(Host.open(tmp_path / "j", handlers, outputs=outputs)) as host:
        for name in "abcd":
            due(host, name)
            until(ended(host))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["c", "d"]


def test_a_sweep_removes_the_oldest_and_nothing_else(tmp_path: Path):
    outputs = Outputs(tmp_path, size=10, total=12)
    lengths = {"a/1.log": 3, "a/2.log": 3, "b/3.log": 30, "b/3.log.1": 1, "b/4.stdin": 4, "_manual/5.log": 4}
    others = ["a/1.txt", "c/notes.log", "6.log", "b/3.log.2"]
    for name, length in lengths.items() | {(other, 100) for other in others}:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * length)
    (tmp_path / "d").mkdir()
    shortened: list[Path] = []
    outputs.sweep({2}, shortened.append)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"a/2.log", "b/4.stdin", "_manual/5.log", *others}
    assert shortened == [tmp_path / "b" / "3.log"]
    assert (tmp_path / "d").exists()


def test_a_folder_that_is_empty_by_a_sweep_is_gone(tmp_path: Path):
    outputs = Outputs(tmp_path, total=1)
    for name in ("old/1.log", "new/2.log"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"x")
    outputs.sweep(set(), print)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


REFUSED: dict[str, dict[str, Any]] = {
    "size: 0": {"size": 0},
    "size: -1": {"size": -1},
    "keep: 0": {"keep": 0},
    "keep: True": {"keep": True},
    "total: 1.5": {"total": 1.5},
    "folder: 'out'": {"folder": "out"},
}


@pytest.mark.parametrize("problem", REFUSED)
def test_bounds_that_cannot_be_meant_are_refused(problem: str):
    settings: dict[str, Any] = {"folder": Path("out"), **REFUSED[problem]}
    with pytest.raises(DefinitionError) as refusal:
        Outputs(**settings)
    assert str(refusal.value).startswith(f"{problem} ")


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT | os.O_APPEND])
def test_nothing_but_a_file_is_opened(tmp_path: Path, flags: int):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for path in (tmp_path / "pipe", tmp_path / "link", Path("/dev/null")):
        with pytest.raises(NoFile, match="is no file"):
            opened(path, flags)
    descriptor = opened(tmp_path / "file", flags)
    assert os.get_blocking(descriptor)
    os.close(descriptor)


def test_a_log_in_whose_place_is_a_pipe_is_left_alone_and_not_printed_to(tmp_path: Path):
    files = RunFiles(tmp_path, "1")
    os.mkfifo(files.log)
    assert not rotate(files.log, 1)
    with pytest.raises(NoFile):
        files.open_log()


def test_the_end_of_a_log_is_kept_in_a_file_whatever_was_in_its_place(tmp_path: Path):
    log = tmp_path / "1.log"
    log.write_bytes(b"0123456789")
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "1.log.1").symlink_to(tmp_path / "precious")
    assert rotate(log, 4)
    assert (tmp_path / "1.log.1").read_bytes() == b"6789"
    assert (tmp_path / "precious").read_bytes() == b"precious"
