"""JSON-RPC over HTTP, as a stranger speaks it: who may ask, within which bounds, and what is answered to nonsense."""

from __future__ import annotations

import json
import logging
import re
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from duly import DefinitionError, Error, ManualClock, Scheduler
from duly.journal import read
from duly.journal.entries import kind_of
from duly.service import Bounds, Client, Server
from duly.service.api.bounds import Bucket
from duly.service.api.methods import METHODS
from duly.service.api.tokens import Token
from tests.service.serving import GENEROUS, HOURLY, SECRET, Served, call, post, request, serving, write_token

BEARER = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}


# Who may ask


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {SECRET}",
        f"Bearer {SECRET}x",
        f"Bearer {SECRET[:-1]}",
        SECRET,
        "Bearer ü",
    ],
)
def test_without_the_token_nothing_takes_effect(served: Served, scheduler: Scheduler, header: str | None):
    before = scheduler.digest()
    headers = {"Content-Type": "application/json"} | ({} if header is None else {"Authorization": header})
    encoded = {name: value.encode("utf-8").decode("latin-1") for name, value in headers.items()}
    reply = request(served.address, "POST", "/rpc", json.dumps(call("pause", ["a"])).encode(), encoded)
    assert (reply.status, reply.headers["www-authenticate"], scheduler.digest()) == (401, "Bearer", before)
    assert SECRET not in reply.body.decode()


def test_a_service_without_a_token_administers_nothing_and_is_watched_all_the_same(scheduler: Scheduler):
    with Server.open(scheduler, "127.0.0.1:0") as server:
        address = str(server.address)
        assert post(address, call("pause", ["a"])).status == 403
        assert request(address, "GET", "/readyz").status == 200
    assert not scheduler.schedule("a").paused


def test_guessing_is_slow_and_does_not_keep_out_who_has_the_token(scheduler: Scheduler, tmp_path: Path):
    with serving(scheduler, tmp_path, bounds=Bounds(guesses=0.01)) as served:
        guesses = [post(served.address, call("find", ["a"]), "not-the-token-at-all").status for _ in range(3)]
        assert guesses == [401, 429, 429]
        assert post(served.address, call("find", ["a"])).status == 200


def test_who_has_no_token_is_answered_before_his_request_has_arrived(served: Served):
    host, _, port = served.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as raw:
        raw.sendall(b"POST /rpc HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        began = time.monotonic()
        assert raw.recv(1 << 16).startswith(b"HTTP/1.1 401")
        assert time.monotonic() < began + GENEROUS.arrival / 2


def test_a_wrong_token_and_none_are_told_apart(served: Served):
    told = [post(served.address, call("digest"), secret).json["error"]["message"] for secret in ("wrong" * 5, None)]
    assert told == [
        "the token is not this service's",
        "this needs the header Authorization: Bearer …, with the service's token",
    ]


@pytest.mark.parametrize("secret", ["", "short", "x" * 5_000, "with a space in the middle", "übermäßig-lang-genug"])
def test_what_is_no_token_is_refused_and_not_repeated(secret: str):
    with pytest.raises(DefinitionError) as caught:
        Token(secret)
    assert not secret or secret not in str(caught.value)
    assert SECRET not in repr(Token(SECRET))


def test_no_token_in_any_log_error_or_representation(
    served: Served, scheduler: Scheduler, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    wrong = write_token(tmp_path / "wrong", "wrong-token-wrong-token")
    seen = [str(served.server.address)]
    with (
        served.client() as client,
        Client(served.address, token_file=wrong) as stranger,
        Client("127.0.0.1:9", token_file=wrong, patience=timedelta()) as lost,
    ):
        for one in (client, stranger, lost):
            seen += [repr(one), *(told_by(step, one) for step in REFUSED)]
        scheduler.close()
        seen.append(told_by(REFUSED[0], client))
    seen += [caplog.text, *(str(vars(record)) for record in caplog.records)]
    assert not [text for text in seen if SECRET in text or "wrong-token" in text]


REFUSED: list[Callable[[Client], object]] = [
    lambda client: client.pause("zz"),
    lambda client: client.edit("a", expected_revision=5),
    lambda client: client.complete(99),
]


def told_by(step: Callable[[Client], object], client: Client) -> str:
    with pytest.raises(Error) as caught:
        step(client)
    return f"{caught.value!r} {caught.value} {vars(caught.value)}"


# Bounds


def test_a_body_has_a_bound_told_or_not(served: Served, scheduler: Scheduler):
    huge = json.dumps(call("pause", {"schedule_id": "a", "note": "x" * (1 << 20)})).encode()
    assert post(served.address, huge).status == 413
    host, _, port = served.address.rpartition(":")
    with socket.create_connection((host, int(port))) as raw:  # in chunks, so that nothing says how long it is
        head = "".join(f"{name}: {value}\r\n" for name, value in BEARER.items())
        raw.sendall(f"POST /rpc HTTP/1.1\r\nHost: x\r\n{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        answer = b""
        for _ in range(20):
            try:
                raw.sendall(chunk)
            except OSError:
                break
        answer = raw.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.1 413")
    assert not scheduler.schedule("a").paused


def test_a_request_that_does_not_arrive_is_given_up(scheduler: Scheduler, tmp_path: Path):
    with serving(scheduler, tmp_path, bounds=Bounds(arrival=0.2)) as served:
        host, _, port = served.address.rpartition(":")
        with socket.create_connection((host, int(port))) as raw:
            head = "".join(f"{name}: {value}\r\n" for name, value in BEARER.items())
            raw.sendall(f"POST /rpc HTTP/1.1\r\nHost: x\r\n{head}Content-Length: 100\r\n\r\n{{".encode())
            assert raw.recv(1 << 16).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("body", [b"[" * 200_000, b"[" * 500 + b"]" * 500, b'{"a":' * 70 + b"1" + b"}" * 70])
def test_a_request_has_a_depth(served: Served, body: bytes):
    reply = post(served.address, body)
    assert (reply.status, reply.json["error"]["code"]) == (200, -32600)
    assert "nested deeper than 64" in reply.json["error"]["message"]


def test_too_many_calls_are_told_to_wait_and_a_client_does(scheduler: Scheduler, tmp_path: Path):
    with serving(scheduler, tmp_path, bounds=Bounds(rate=20, burst=5)) as served:
        replies = [post(served.address, call("find", ["a"])) for _ in range(8)]
        refused = [reply for reply in replies if reply.status == 429]
        assert refused
        assert refused[0].headers["retry-after"] == "1"
        batch = [call("pause", ["a"], n) for n in range(6)]
        assert post(served.address, batch).status == 429  # all or nothing
        assert not scheduler.schedule("a").paused
        with served.client() as client:
            assert [client.schedule("a").id for _ in range(7)] == ["a"] * 7


def test_a_list_of_long_items_is_cut_and_goes_on(scheduler: Scheduler, tmp_path: Path):
    runs = [scheduler.run_now("a", input={"x": "y" * 10_000}).id for _ in range(10)]
    with serving(scheduler, tmp_path, bounds=Bounds(reply=35_000)) as served:
        replies = [post(served.address, call("runs"))]
        while (after := replies[-1].json["result"]["next"]) is not None:
            replies.append(post(served.address, call("runs", {"after": after})))
        assert [[run["id"] for run in reply.json["result"]["items"]] for reply in replies] == [
            runs[:3],
            runs[3:6],
            runs[6:9],
            runs[9:],
        ]
        assert max(len(reply.body) for reply in replies) < 36_000
        with served.client() as client:
            assert [run.id for run in client.runs()] == runs
            assert [run.id for run in client.runs(limit=5)] == runs[:5]
    with serving(scheduler, tmp_path, bounds=Bounds(reply=5)) as served, served.client() as client:
        assert [run.id for run in client.runs()] == runs  # one at a time


def test_a_page_of_long_items_is_cut_and_goes_on(tmp_path: Path):
    clock = ManualClock(datetime(2026, 3, 2, 9, tzinfo=UTC))
    with Scheduler.open(tmp_path / "j", clock=clock) as scheduler:
        scheduler.create("a", HOURLY, target="t")
        for _ in range(10):
            clock.advance(timedelta(hours=1))
            scheduler.fail(scheduler.poll(start=True).offered[0].id, error="y" * 10_000)
        whole = scheduler.occurrences("a")
        with (
            serving(scheduler, tmp_path, bounds=Bounds(reply=35_000)) as served,
            served.client() as client,
        ):
            pages = [client.occurrences("a")]
            while pages[-1].next is not None:
                pages.append(client.occurrences("a", after=pages[-1].next))
            assert [row for page in pages for row in page.items] == list(whole.items)
            assert max(sum(row.error is not None for row in page.items) for page in pages) == 3
            (shortened, *_) = client.status().runs
    assert shortened.error is not None
    assert shortened.error.message == "y" * 2_000 + "…"


@pytest.mark.parametrize("wrong", [{"body": -1}, {"threads": 0}, {"arrival": timedelta(seconds=1)}, {"rate": True}])
def test_what_is_no_bound_is_refused(wrong: dict[str, Any]):
    with pytest.raises(DefinitionError, match="Give a number greater than 0"):
        Bounds(**wrong)


def test_a_bucket_fills_again():
    now = [0.0]
    bucket = Bucket(10, 5, lambda: now[0])
    assert [bucket.take() for _ in range(6)] == [0, 0, 0, 0, 0, 0.1]
    now[0] = 0.3
    assert [bucket.take(3), round(bucket.take(2), 3)] == [0, 0.2]
    now[0] = 100
    assert [bucket.take(5), bucket.take()] == [0, 0.1]


def test_a_batch_has_a_length_and_its_reply_a_size(scheduler: Scheduler, tmp_path: Path):
    with serving(scheduler, tmp_path, bounds=Bounds(batch=3, reply=700)) as served:
        assert post(served.address, [call("find", ["a"])] * 4).json["error"]["code"] == -32600
        calls = [call("find", ["a"], 1), call("find", ["a"], 2), call("pause", ["a"], 3)]
        answers = post(served.address, calls).json
    assert [("result" in one) or one["error"]["code"] for one in answers] == [True, True, -32001]
    assert not scheduler.schedule("a").paused


# JSON-RPC


def test_a_batch_is_answered_in_order_and_notifications_are_not(served: Served, scheduler: Scheduler):
    calls: list[Any] = [
        call(
            "create",
            {"schedule_id": "b", "trigger": {"kind": "cron", "expression": "@daily", "zone": "UTC"}, "target": "t"},
            "x",
        ),
        {"jsonrpc": "2.0", "method": "pause", "params": ["b"]},
        call("schedule", ["b"], 2.5),
        call("nothing", [], None),
        17,
    ]
    answers = post(served.address, calls).json
    assert [one["id"] for one in answers] == ["x", 2.5, None, None]
    assert answers[1]["result"]["paused"] is True
    assert [answers[n]["error"]["code"] for n in (2, 3)] == [-32601, -32600]
    assert post(served.address, {"jsonrpc": "2.0", "method": "unpause", "params": ["b"]}).status == 204
    assert not scheduler.schedule("b").paused


@pytest.mark.parametrize(
    ("sent", "code", "field"),
    [
        (call("pause", {}), -32602, "schedule_id"),
        (call("pause", {"schedule_id": 3}), -32602, "schedule_id"),
        (call("pause", {"schedule_id": "a", "surprise": 1}), -32602, "surprise"),
        (call("rebaseline", ["a", "yesterday"]), -32602, "through"),
        (call("create", ["b", {"kind": "lunar"}, "t"]), -32602, "trigger"),
        (call("create", ["b", {"kind": "cron", "expression": "* * * *", "zone": "UTC"}, "t"]), 1001, "expression"),
        (call("create", ["b", {"kind": "cron", "expression": "@daily", "zone": "Mars"}, "t"]), 1001, "zone"),
        (call("create", ["b b", {"kind": "cron", "expression": "@daily", "zone": "UTC"}, "t"]), 1001, "schedule_id"),
        (call("upcoming", [5_000]), 1001, "limit"),
        (call("explain", ["a", "9999-12-31T23:59:59-23:59"]), 1001, "instant"),
        (call("explain", ["a", "0001-01-01T00:00:00+23:59"]), 1001, "instant"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_field(served: Served, sent: dict[str, Any], code: int, field: str):
    error = post(served.address, sent).json["error"]
    assert (error["code"], error["data"]["error"], error["data"]["field"]) == (code, "DefinitionError", field)
    assert error["data"]["remedy"]


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (
            call("edit", {"schedule_id": "a"}),
            "expected_revision is missing. edit takes: schedule_id, expected_revision,",
        ),
        (
            call("edit", {"schedule_id": "a", "expected_revision": None}),
            "expected_revision: None is refused: Expected `int`, got `null`. edit takes: ",
        ),
        (call("digest", {"surprise": 1}), "surprise is no parameter of digest. digest takes: nothing."),
        ({"method": "digest", "id": 1}, 'jsonrpc is not "2.0": a call is {"jsonrpc": "2.0", '),
        ({**call("digest"), "more": 1}, "the member 'more' is unknown: a call is "),
        ({**call("digest"), "params": None}, "params is neither an object nor an array: a call is "),
        ({**call("digest"), "id": True}, "id is neither a string nor a number: a call is "),
        (call(3), "method is no string: a call is "),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - it is refused
        (17, "this is no object: a call is "),
    ],
)
def test_a_refusal_says_what_is_wrong(served: Served, sent: Any, words: str):
    assert post(served.address, sent).json["error"]["message"].startswith(words)


def test_who_does_not_say_who_he_is_is_named_after_the_way_he_came(served: Served, scheduler: Scheduler):
    post(served.address, call("pause", ["a"]))
    with served.client(actor="ann") as client:
        client.unpause("a", note="done")
    said = [(kind_of(one.entry), getattr(one.entry, "actor", "")) for one in read(scheduler.path)]
    assert said[-2:] == [("SchedulePaused", "api"), ("ScheduleUnpaused", "ann")]


def test_other_paths_methods_and_types_are_refused(served: Served):
    assert request(served.address, "GET", "/rpc", headers=BEARER).status == 405
    assert request(served.address, "POST", "/healthz", headers=BEARER).status == 405
    assert request(served.address, "GET", "/../../etc/passwd").status == 404
    assert request(served.address, "POST", "/rpc", b"{}", {**BEARER, "Content-Type": "text/plain"}).status == 415


def test_the_description_has_every_method_as_it_is(served: Served):
    document = post(served.address, call("rpc.discover")).json["result"]
    shown = {one["name"]: one for one in document["methods"]}
    assert set(shown) == {*METHODS, "rpc.discover", "service.status"}
    for name, method in METHODS.items():
        fields = method.parameters.__struct_fields__
        assert [one["name"] for one in shown[name]["params"]] == list(fields)
        required = {one.name for one in method.signature.parameters.values() if one.default is one.empty}
        told = {one["name"] for one in shown[name]["params"] if one["required"]}
        assert told == (required & set(fields)) - {method.spread}
    names = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    errors = {f"#/components/errors/{name}" for name in document["components"]["errors"]}
    assert references(document) - names - errors == set()


def references(document: Any) -> set[str]:
    return set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(document)))


def test_a_fault_of_the_servers_own_is_logged_and_not_told(
    served: Served, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fail(*_args: object) -> None:
        raise ZeroDivisionError("an inner secret")

    monkeypatch.setattr(scheduler, "digest", fail)
    reply = post(served.address, call("digest"))
    assert reply.json["error"]["code"] == -32603
    assert "secret" not in reply.body.decode()
    assert "an inner secret" in caplog.text
