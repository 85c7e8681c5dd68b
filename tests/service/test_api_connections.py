"""Connections: whoever holds one for nothing loses it, keeps out nobody, and takes no file descriptor of the host's."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from duly import Scheduler
from duly.service import Bounds, Host, Server
from duly.service.api import connections
from tests.service.hosting import due, ended, outcomes, running, until
from tests.service.serving import Reply, Served, call, post, request, serving

PATHS = ("/healthz", "/readyz", "/metrics", "/")
HALF = b"POST /rpc HTTP/1.1\r\nHost: x\r\nX-Half: "


def connect(served: Served, sent: bytes = b"") -> socket.socket:
    host, _, port = served.address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.sendall(sent)
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side ends it, within the test's patience."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("sent", [b"", HALF, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + HALF])
def test_a_connection_without_a_whole_request_is_ended(scheduler: Scheduler, tmp_path: Path, sent: bytes):
    with serving(scheduler, tmp_path, bounds=Bounds(arrival=0.3)) as served, connect(served, sent) as idle:
        began = time.monotonic()
        assert is_closed(idle)
        assert time.monotonic() < began + 10


def test_a_head_that_comes_byte_by_byte_has_no_more_time_than_one_that_comes_at_once(
    scheduler: Scheduler, tmp_path: Path
):
    with serving(scheduler, tmp_path, bounds=Bounds(arrival=0.5)) as served, connect(served, HALF) as slow:
        began = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() < began + 20:
                slow.sendall(b"x")
                time.sleep(0.05)
        assert time.monotonic() < began + 10


def test_a_body_that_nobody_reads_any_more_has_no_more_time(scheduler: Scheduler, tmp_path: Path):
    """It is answered before its body is read, as it has no token."""
    head = b"POST /rpc HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    with serving(scheduler, tmp_path, bounds=Bounds(arrival=0.5)) as served, connect(served, head) as slow:
        assert slow.recv(1 << 16).startswith(b"HTTP/1.1 401")
        began = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() < began + 20:
                slow.sendall(b"x")
                time.sleep(0.05)
        assert time.monotonic() < began + 10


def test_a_reply_that_is_not_taken_is_given_up(scheduler: Scheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connections, "UNREAD", 0.3)
    many = b"GET /status.js HTTP/1.1\r\nHost: x\r\n\r\n" * 2_000
    with serving(scheduler, tmp_path) as served, connect(served) as deaf:
        until(lambda: open_connections(served) == 1)
        with suppress(ConnectionError, TimeoutError):
            deaf.settimeout(5)
            deaf.sendall(many)
        until(lambda: open_connections(served) == 0)


def open_connections(served: Served) -> int:
    return len(served.server._uvicorn.server_state.connections)  # pyright: ignore[reportPrivateUsage] - there is no other way to see it


@pytest.mark.parametrize("sent", [b"", HALF])
def test_connections_that_ask_for_nothing_keep_out_nobody(scheduler: Scheduler, tmp_path: Path, sent: bytes):
    with ExitStack() as held, serving(scheduler, tmp_path, bounds=Bounds(connections=20)) as served:
        for _ in range(60):
            held.enter_context(connect(served, sent))
        assert [request(served.address, "GET", path).status for path in PATHS] == [200] * 4
        assert post(served.address, call("find", ["a"])).json["result"]["id"] == "a"
        assert open_connections(served) <= 20


def test_whoever_watches_is_answered_while_the_administration_is_at_its_limit(scheduler: Scheduler, tmp_path: Path):
    going = Event()
    bounds = Bounds(connections=12, pending=6, threads=2)
    with serving(scheduler, tmp_path, bounds=bounds) as served, stuck(scheduler, going):
        replies: list[Reply] = []
        threads = [Thread(target=lambda: replies.append(post(served.address, call("digest")))) for _ in range(7)]
        for thread in threads:
            thread.start()
        (refused,) = until(lambda: tuple(replies))  # six are being answered, and this one is not
        assert (refused.status, refused.json["error"]["code"], refused.headers["retry-after"]) == (503, -32002, "1")
        assert [request(served.address, "GET", path).status for path in ("/healthz", "/")] == [200, 200]
        going.set()
        for thread in threads:
            thread.join()
        assert sorted(reply.status for reply in replies) == [200] * 6 + [503]


@contextmanager
def stuck(scheduler: Scheduler, going: Event) -> Generator[None]:
    """Every digest waits until it may go on."""
    found = scheduler.digest

    def digest() -> str:
        going.wait(30)
        return found()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "digest", digest)
        try:
            yield
        finally:
            going.set()


FLOOD = """
import socket, sys
held = []
for _ in range(600):
    try:
        held.append(socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5))
    except OSError:
        pass
print("here", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
def test_a_flood_of_connections_takes_no_run_its_files(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 300, limits[1]))
    try:
        with (
            Host.open(tmp_path / "j", {"t": lambda _work: (tmp_path / "out").write_text("it ran")}) as host,
            running(host),
            serving(host, tmp_path) as served,
        ):
            host_name, _, port = served.address.rpartition(":")
            flood = [sys.executable, "-c", FLOOD, host_name, port]
            with subprocess.Popen(flood, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as attacker:
                assert attacker.stdout is not None
                assert attacker.stdout.readline() == b"here\n"
                due(host, "t")
                until(ended(host))
                assert request(served.address, "GET", "/healthz").status == 200
                attacker.kill()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (outcomes(tmp_path / "j"), "resource" in caplog.text) == ({"t": 6}, False)


def test_a_server_that_does_not_come_up_is_no_server(
    scheduler: Scheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def fail(*_args: object) -> None:
        raise RuntimeError("no loop today")

    monkeypatch.setattr("uvicorn.Server.startup", fail)
    path = tmp_path / "d.sock"
    with pytest.raises(OSError, match=r"d\.sock is not served: no loop today"):
        Server.open(scheduler, f"unix:{path}")
    assert not path.exists()
