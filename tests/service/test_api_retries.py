"""When a client makes a call again: only if it cannot take effect twice, and what it says if it gives up."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from duly import DefinitionError, Error, JournalError, JournalPoisoned, Scheduler, UnreadableJournal
from duly.service import AsyncClient, Client, Host, ServiceError, ServiceRefused, ServiceUnreachable
from duly.service.api.calls import Answer, Lost, Patience, Pause, Received, Send, conversation, exchange
from duly.service.api.methods import METHODS
from duly.service.api.refusals import NOT_LET_IN, Refusal, refusal_of
from tests.service.hosting import running, until
from tests.service.serving import Served, serving
from tests.service.test_failing_journal import FailingDisk

DONE = Received(200, b'{"jsonrpc": "2.0", "result": 7, "id": 1}')
NOT_SENT = Lost("no connection", made=False)
SENT = Lost("no answer", made=True)


def refused(error: Refusal, status: int = 200, wait: float = 0.0) -> Received:
    return Received(status, msgspec.json.encode({"jsonrpc": "2.0", "error": error, "id": 1}), wait)


GONE = refused(refusal_of(JournalError("it is gone")))
REOPENING = refused(Refusal(1106, "it cannot be opened", {"error": "UnreadableJournal", "reopening": True}))
POISONED = refused(refusal_of(JournalPoisoned("an fsync failed")))
FULL = refused(Refusal(NOT_LET_IN, "too many"), 503, 1.0)
FAST = refused(Refusal(NOT_LET_IN, "too many"), 429, 1.0)
PROXY = Received(503, b"<html>no upstream</html>")


def called(answers: list[Answer], *, repeatable: bool, seconds: float = 30.0) -> tuple[int, object]:
    """How often it is sent if it is answered so, and then for ever like the last one; what it returns or raises."""
    now = [0.0]
    steps = exchange("m", {}, Patience(seconds, lambda: now[0]), repeatable=repeatable)
    sent = 0
    step = next(steps)
    try:
        while True:
            if isinstance(step, Pause):
                now[0] += step.seconds
                step = steps.send(None)
            else:
                sent += 1
                step = steps.send(answers[min(sent, len(answers)) - 1])
    except StopIteration as done:
        return sent, msgspec.json.decode(done.value)
    except Error as error:
        return sent, error


@pytest.mark.parametrize(
    "first", [NOT_SENT, SENT, REOPENING, POISONED, FULL, FAST, PROXY, Received(500, b""), Received(502, b"")]
)
def test_what_cannot_take_effect_twice_is_repeated_until_it_is_answered(first: Answer):
    assert called([first, first, DONE], repeatable=True) == (3, 7)


@pytest.mark.parametrize("first", [NOT_SENT, FULL, FAST])
def test_what_was_certainly_not_made_is_repeated(first: Answer):
    assert called([first, DONE], repeatable=False) == (2, 7)


@pytest.mark.parametrize(
    ("first", "kind", "indeterminate"),
    [
        (SENT, ServiceUnreachable, True),
        (PROXY, ServiceUnreachable, True),
        (Received(500, b"Internal Server Error"), ServiceUnreachable, True),
        (Received(502, b""), ServiceUnreachable, True),
        (Received(504, b""), ServiceUnreachable, True),
        (REOPENING, UnreadableJournal, None),
        (POISONED, JournalPoisoned, None),
        (Received(404, b""), ServiceRefused, None),
    ],
)
def test_what_may_have_been_made_is_not_repeated(first: Answer, kind: type[Error], indeterminate: bool | None):
    sent, error = called([first, DONE], repeatable=False)
    assert (sent, type(error), getattr(error, "indeterminate", None)) == (1, kind, indeterminate)


@pytest.mark.parametrize(
    ("answers", "kind", "indeterminate"),
    [
        ([SENT, NOT_SENT], ServiceUnreachable, True),
        ([SENT, REOPENING], ServiceUnreachable, True),
        ([SENT, FAST], ServiceUnreachable, True),
        ([POISONED, REOPENING], JournalPoisoned, None),
        ([POISONED, NOT_SENT], JournalPoisoned, None),
        ([NOT_SENT], ServiceUnreachable, False),
        ([REOPENING], UnreadableJournal, None),
        ([FAST], ServiceRefused, None),
    ],
)
def test_who_gives_up_says_whether_it_may_have_been_made(
    answers: list[Answer], kind: type[Error], indeterminate: bool | None
):
    sent, error = called(answers, repeatable=True)
    assert (sent > 5, type(error), getattr(error, "indeterminate", None)) == (True, kind, indeterminate)


def test_a_journal_that_is_not_opened_again_is_not_waited_for():
    sent, error = called([GONE, DONE], repeatable=True)
    assert (sent, type(error)) == (1, JournalError)


def test_every_repetition_has_the_same_key():
    method = METHODS["run_now"]
    steps = conversation(method, {"schedule_id": "a"}, Patience(30.0, lambda: 0.0), {}, "")
    bodies: list[dict[str, Any]] = []
    step = next(steps)
    while len(bodies) < 3:
        if isinstance(step, Send):
            bodies.append(msgspec.json.decode(step.body))
        step = steps.send(SENT if isinstance(step, Send) else None)
    keys = [body["params"]["request"] for body in bodies]
    assert (len(set(keys)), len(keys[0])) == (1, 32)


def test_a_client_waits_for_a_journal_that_is_being_opened_again(tmp_path: Path):
    disk = FailingDisk()
    with (
        Host.open(tmp_path / "j", {"t": lambda _work: 1}, disk=disk) as host,
        serving(host, tmp_path) as served,
        served.client(patience=timedelta(seconds=30)) as client,
        running(host),
        ThreadPoolExecutor(1) as threads,
    ):
        disk.failing = True
        with served.client(patience=timedelta()) as hasty, pytest.raises(JournalError):
            hasty.run_now(target="t")
        until(lambda: host.failure is not None)
        with pytest.raises(JournalError):
            client.pause("a")  # it has no key
        asked = threads.submit(client.run_now, target="t", request="once")
        with pytest.raises(TimeoutError):
            asked.result(0.3)
        disk.failing = False
        assert client.run_now(target="t", request="once").id == asked.result(30).id


def test_a_duration_is_a_timedelta(served: Served):
    for name in ("timeout", "patience"):
        wrong: dict[str, Any] = {name: 2}
        negative: dict[str, Any] = {name: timedelta(seconds=-1)}
        for kind in (Client, AsyncClient):
            with pytest.raises(DefinitionError, match=rf"{name}: 2 is no timedelta. Write timedelta\(seconds=2\)"):
                kind(served.address, **wrong)
            with pytest.raises(DefinitionError, match="is negative"):
                kind(served.address, **negative)


def test_a_closed_client_says_so(served: Served, scheduler: Scheduler):
    client = served.client()
    client.close()
    with pytest.raises(ServiceError, match="the client is closed"):
        client.pause("a")

    async def ask() -> None:
        other = AsyncClient(served.address, token_file=served.token_file)
        await other.close()
        await other.pause("a")

    with pytest.raises(ServiceError, match="the client is closed"):
        asyncio.run(ask())
    assert not scheduler.schedule("a").paused
