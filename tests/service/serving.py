"""What the tests of the service share: a scheduler or a host that is served, clients, and bare requests."""

from __future__ import annotations

import http.client
import json
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from duly import Cron, Scheduler
from duly.service import Bounds, Client, Server
from duly.service.watching.watched import Watched

HOURLY = Cron("0 * * * *", zone="UTC")
SECRET = "a-token-that-nobody-guesses"  # noqa: S105 - it opens what tests serve


SOON = timedelta(seconds=5)
"""How long a client of a test repeats what is not answered."""


class Served(NamedTuple):
    server: Server
    token_file: Path

    @property
    def address(self) -> str:
        return str(self.server.address)

    def client(self, **options: Any) -> Client:
        chosen: dict[str, Any] = {"patience": SOON, **options}
        return Client(self.address, token_file=self.token_file, **chosen)


@contextmanager
def serving(
    served: Watched | Scheduler, folder: Path, address: str = "127.0.0.1:0", **options: Any
) -> Generator[Served]:
    token_file = write_token(folder / "token")
    with Server.open(served, address, token_file=token_file, **options) as server:
        yield Served(server, token_file)


def write_token(path: Path, secret: str = SECRET) -> Path:
    if not path.exists():
        path.touch(mode=0o600)
    path.write_text(f"{secret}\n", encoding="ascii")
    return path


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    address: str, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> Reply:
    """One request, without a client of ours."""
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        told = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, told, response.read())
    finally:
        connection.close()


def post(address: str, body: bytes | Any, secret: str | None = SECRET) -> Reply:
    headers = {"Content-Type": "application/json"}
    if secret is not None:
        headers["Authorization"] = f"Bearer {secret}"
    return request(address, "POST", "/rpc", body if isinstance(body, bytes) else json.dumps(body).encode(), headers)


def call(name: str, params: Any = None, call_id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": name, "params": {} if params is None else params, "id": call_id}


GENEROUS = Bounds(rate=100_000, burst=100_000)
