"""Whatever is sent to the service, the answer is a reply: nothing breaks, and without the token nothing is done."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duly import Scheduler
from duly.service import Host
from duly.service.api.methods import METHODS
from tests.service.hosting import running, until
from tests.service.serving import GENEROUS, HOURLY, SECRET, Reply, Served, call, post, serving

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = sorted({field for method in METHODS.values() for field in method.parameters.__struct_fields__})
VALUES = JSON | st.sampled_from(
    ["a", 1, 2, "2026-03-02T09:00:00Z", "PT5M", {"kind": "one_shot", "at": "2090-01-01T00:00:00Z"}]
)
CALLS = st.fixed_dictionaries(
    {
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
        "method": st.sampled_from([*METHODS, "rpc.discover", "service.status"]) | st.text(max_size=12),
        "params": st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5) | st.lists(VALUES, max_size=5) | JSON,
    },
    optional={"id": JSON},
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(CALLS, st.lists(CALLS | JSON, max_size=6), JSON))
def test_whatever_json_is_sent_the_answer_is_a_reply(served: Served, scheduler: Scheduler, sent: Any):
    reply = post(served.address, sent)
    assert reply.status in (200, 204)
    for one in answers_of(reply):
        assert set(one) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
        assert one.get("error", {}).get("code") != -32603, one
        assert SECRET not in json.dumps(one)
    assert scheduler.schedules() is not None


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(CALLS, st.lists(CALLS, max_size=6)))
def test_whatever_json_is_sent_the_host_lives_on(hosted: tuple[Host, Served], sent: Any):
    host, served = hosted
    for one in answers_of(post(served.address, sent)):
        assert one.get("error", {}).get("code") != -32603, one
    assert (host.state, host.failure) == ("admitting", None)


@pytest.fixture
def hosted(tmp_path: Path) -> Generator[tuple[Host, Served]]:
    with (
        Host.open(tmp_path / "hosted", {"t": lambda work: work.run.input, "a": lambda _work: 1}) as host,
        serving(host, tmp_path, bounds=GENEROUS) as served,
        running(host),
    ):
        until(lambda: host.state == "admitting")
        host.scheduler.create("a", HOURLY, target="t")
        yield host, served


def answers_of(reply: Reply) -> list[dict[str, Any]]:
    if reply.status == 204:
        return []
    found: list[dict[str, Any]] = reply.json if reply.body.startswith(b"[") else [reply.json]
    return found


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8")))
def test_whatever_bytes_are_sent_the_answer_is_a_reply(served: Served, sent: bytes):
    reply = post(served.address, sent)
    assert (reply.status, "error" in reply.json) == (200, True) if not _is_json(sent) else reply.status in (200, 204)


def _is_json(sent: bytes) -> bool:
    try:
        json.loads(sent)
    except (ValueError, RecursionError):
        return False
    return True


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CALLS, st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=40))
def test_whatever_is_sent_without_the_token_takes_no_effect(
    scheduler: Scheduler, served: Served, sent: Any, secret: str
):
    before = scheduler.digest()
    assert post(served.address, sent, secret).status in (401, 429)
    assert scheduler.digest() == before


NO_HTTP = [b"POST /rpc HTTP/9.9\r\n\r\n", b"GET " + b"/" * 100_000, b"\r\n" * 50]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400) | st.sampled_from(NO_HTTP))
def test_whoever_speaks_no_http_harms_nobody_else_and_fills_no_log(
    served: Served, caplog: pytest.LogCaptureFixture, sent: bytes
):
    host, _, port = served.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as raw:
        with suppress(OSError):
            raw.sendall(sent)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # and leaves without a word
    assert post(served.address, call("find", ["a"])).json["result"]["id"] == "a"
    assert caplog.text == ""


def test_many_at_once_each_get_their_own_answer(served: Served):
    found: list[list[Any]] = [[] for _ in range(12)]

    def ask(mine: list[Any], number: int) -> None:
        for turn in range(15):
            sent = [call("find", ["a"], f"{number}-{turn}"), call("run_now", ["a"], turn), b"["][turn % 3]
            mine.append(post(served.address, sent).json.get("id"))

    threads = [Thread(target=ask, args=(mine, number)) for number, mine in enumerate(found)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, mine in enumerate(found):
        assert mine == [[f"{number}-{turn}", turn, None][turn % 3] for turn in range(15)]
    with served.client() as client:
        assert len(client.runs()) == 12 * 5
