"""Where a service is: addresses, sockets, and what a client says of a service that is not there, or none."""

from __future__ import annotations

import errno
import os
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest

from duly import DefinitionError, Scheduler
from duly.service import Client, Server, ServiceRefused, ServiceUnreachable, Unauthorized
from duly.service.api.addresses import Address, Listener, parse_address
from tests.service.serving import Served, serving


@pytest.mark.parametrize(
    ("text", "address", "local"),
    [
        ("127.0.0.1:80", Address("127.0.0.1", 80), True),
        (":8080", Address("127.0.0.1", 8080), True),
        ("http://localhost:8080/", Address("localhost", 8080), True),
        ("[::1]:1", Address("::1", 1), True),
        ("192.0.2.7:80", Address("192.0.2.7", 80), False),
        ("unix:/run/d.sock", Address(socket="/run/d.sock"), True),
    ],
)
def test_an_address_is_read(text: str, address: Address, local: bool):
    assert (parse_address(text), parse_address(text).is_local) == (address, local)
    assert parse_address(str(address)) == address


@pytest.mark.parametrize("text", ["", "localhost", "unix:", "a:b", "a:99999", "a:-1", "a:\u0661"])
def test_what_is_no_address_is_refused(text: str):
    with pytest.raises(DefinitionError):
        parse_address(text)


@pytest.mark.skipif(os.name != "posix", reason="sockets in the file system")
def test_a_socket_is_its_owners_alone_and_a_dead_one_gives_way(scheduler: Scheduler, tmp_path: Path):
    path = tmp_path / "d.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with serving(scheduler, tmp_path, f"unix:{path}") as served:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with served.client() as client:
            assert client.schedule("a").id == "a"
        with pytest.raises(OSError, match="somebody listens") as caught:
            Server.open(scheduler, f"unix:{path}")
        assert (caught.value.errno, caught.value.filename) == (errno.EADDRINUSE, str(path))
    assert not path.exists()
    path.write_text("a file", encoding="ascii")
    with pytest.raises(FileExistsError):
        Server.open(scheduler, f"unix:{path}")


def test_an_address_that_is_taken_is_named(scheduler: Scheduler):
    with Listener.open("127.0.0.1:0") as listener, pytest.raises(OSError, match="in use") as caught:
        Server.open(scheduler, str(listener.address))
    assert (caught.value.errno, caught.value.filename) == (errno.EADDRINUSE, str(listener.address))


@pytest.mark.skipif(os.name != "posix", reason="sockets in the file system")
def test_a_socket_of_somebody_who_lets_nobody_in_any_more_is_not_removed(tmp_path: Path):
    path = tmp_path / "d.sock"
    with socket.socket(socket.AF_UNIX) as stopped, socket.socket(socket.AF_UNIX) as first:
        stopped.bind(str(path))
        stopped.listen(0)
        first.connect(str(path))  # now it is full
        with pytest.raises(OSError, match="somebody listens"):
            Listener.open(f"unix:{path}")
    assert path.exists()


@pytest.mark.skipif(os.name != "posix", reason="sockets in the file system")
def test_a_listener_that_ends_leaves_the_socket_of_the_next_one(tmp_path: Path):
    path = tmp_path / "d.sock"
    first = Listener.open(f"unix:{path}")
    first.socket.close()  # it ends: nobody listens, and its file is still there
    with Listener.open(f"unix:{path}"):
        first.close()
        assert path.exists()
    assert not path.exists()


def test_what_connects_before_it_is_served_is_answered_then(scheduler: Scheduler):
    listener = Listener.open("127.0.0.1:0")
    with Client(str(listener.address)) as client, ThreadPoolExecutor() as others:
        asked = others.submit(client.digest)
        with pytest.raises(TimeoutError):
            asked.result(0.2)
        with Server.open(scheduler, listener), pytest.raises(Unauthorized):
            asked.result(30)


def test_a_client_says_what_is_wrong_with_the_service(served: Served):
    soon = timedelta(seconds=0.2)
    with Client(served.address) as client, pytest.raises(Unauthorized, match="token"):
        client.digest()
    with Client("127.0.0.1:9", patience=soon) as client, pytest.raises(ServiceUnreachable) as caught:
        client.pause("a")
    assert caught.value.indeterminate is False
    with socket.create_server(("127.0.0.1", 0)) as listener:
        speak_nonsense = Thread(target=_say, args=(listener, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"))
        speak_nonsense.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with Client(address, patience=soon) as client, pytest.raises(ServiceRefused, match="no service of duly"):
            client.digest()
        speak_nonsense.join()


def _say(listener: socket.socket, words: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.sendall(words)
