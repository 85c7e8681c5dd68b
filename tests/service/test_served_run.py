"""`duly run --serve` as a process of its own: what it serves, to whom, and what becomes of it when it is killed."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from duly import UnknownSchedule
from duly.service import Client, Unauthorized
from tests.service.hosting import until
from tests.service.serving import request
from tests.tools.test_run_foreground import Running, World

pytestmark = pytest.mark.skipif(os.name != "posix", reason="commands need process groups")


@pytest.fixture
def world(tmp_path: Path) -> Generator[World]:
    world = World(tmp_path)
    yield world
    for one in world.started:
        if one.process.poll() is None:
            one.process.kill()
        one.ends()


def address_of(running: Running) -> str:
    found = re.search(r"serving: (\S+?)(,|$)", running.says("serving: ").strip())
    assert found is not None
    return found.group(1)


def serve(world: World, address: str = "127.0.0.1:0", *options: str) -> Running:
    world.run("--serve", address, *options)
    return world.started[-1]


def test_a_host_is_administered_and_watched_until_it_ends(world: World, tmp_path: Path):
    world.write(quick="echo hello", slow="sleep 60")
    more = ["--drain-grace", "0s", "--schedule-labels", "5"]
    running = serve(world, "127.0.0.1:0", "--token-file", str(tmp_path / "token"), *more)
    address = address_of(running)
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    with Client(address, token_file=tmp_path / "token", actor="ann") as client:
        until(lambda: [run.state for run in client.runs(schedule_id="quick")] == ["completed"])
        client.pause("slow", note="why")
        again = client.run_now("quick", request="once more")
        assert client.run_now("quick", request="once more").id == again.id
        until(lambda: client.run(again.id).state == "completed")
        until(lambda: client.status().at_work)
        assert any(one.text.startswith("paused") for one in client.status().decisions)
        assert request(address, "GET", "/readyz").status == 200
        assert (
            b'duly_runs_ended_total{schedule="quick",state="completed"} 2.0' in request(address, "GET", "/metrics").body
        )
        assert b"duly_journal_fsync_seconds_count" in request(address, "GET", "/metrics").body
        running.says("paused", "ann", "why")
        with Client(address) as stranger, pytest.raises(Unauthorized):
            stranger.schedules()
    running.signal(signal.SIGTERM)
    assert running.ends() == 0
    secret = (tmp_path / "token").read_text(encoding="ascii").strip()
    assert not [line for line in running.lines if secret in line]


def test_without_a_token_it_is_only_watched_also_through_a_socket(world: World, tmp_path: Path):
    world.write(quick="echo hello")
    path = tmp_path / "duly.sock"
    running = serve(world, f"unix:{path}")
    assert running.says("serving: ", "without administration")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with Client(f"unix:{path}") as client, pytest.raises(Unauthorized, match="administration is off"):
        client.schedules()
    running.signal(signal.SIGTERM)
    assert running.ends() == 0
    assert not path.exists()


def test_a_killed_host_comes_back_at_the_same_socket_and_a_key_holds(world: World, tmp_path: Path):
    world.write(quick="echo hello")
    address = f"unix:{tmp_path / 'duly.sock'}"
    running = serve(world, address, "--token-file", str(tmp_path / "token"))
    running.says("serving: ")
    with Client(address, token_file=tmp_path / "token") as client:
        first = client.run_now("quick", request="order 7")
        running.signal(signal.SIGKILL)
        running.ends()
        serve(world, address, "--token-file", str(tmp_path / "token")).says("serving: ")
        assert client.run_now("quick", request="order 7").id == first.id
        with pytest.raises(UnknownSchedule):
            client.pause("nobody")


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--serve", "nonsense"], 2, "is no address"),
        (["--serve", "127.0.0.1:0", "--once"], 2, "--serve is for a host that stays"),
        (["--token-file", "t"], 2, "go with --serve"),
        (["--serve", "127.0.0.1:0", "--token-file", "open"], 2, "chmod 600"),
    ],
)
def test_what_cannot_be_served_is_refused(options: list[str], code: int, words: str, world: World, tmp_path: Path):
    world.write(quick="echo hello")
    (tmp_path / "open").write_text("a-token-that-all-can-read", encoding="ascii")
    (tmp_path / "open").chmod(0o644)
    world.run(*options)
    assert (world.started[-1].ends(), bool(world.started[-1].said(words))) == (code, True)
    assert not (world.folder / "j").exists()


def test_an_address_that_is_taken_is_refused_before_anything_runs(world: World):
    world.write(quick="echo hello")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        running = serve(world, f"127.0.0.1:{taken.getsockname()[1]}")
        assert running.ends() == 3
    assert not running.said("run", "started")
    assert not (world.folder / "j").exists()
