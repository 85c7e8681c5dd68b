"""`Client` and `AsyncClient`: a Scheduler in another process.

Rules: the methods, their types and their errors are the Scheduler's own; a call that was not answered is repeated only
if it cannot take effect twice. A client may be used by many threads, or many tasks, at once.
"""

from __future__ import annotations

import asyncio
import functools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2
import msgspec

from duly.scheduler.embedded import Scheduler
from duly.scheduler.sources import SourceFactory
from duly.service.api.addresses import parse_address
from duly.service.api.calls import (
    Answer,
    Conversation,
    Lost,
    Patience,
    Pause,
    Received,
    Send,
    ServiceError,
    arguments_of,
    conversation,
    exchange,
)
from duly.service.api.status import Status
from duly.service.api.tokens import Token, read_token
from duly.service.settings import check_duration

P = ParamSpec("P")
R = TypeVar("R")
IDLE = 5.0
"""Seconds for which an idle connection is kept: less than the server keeps it."""


def _remote(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Client, P], R]:
    @functools.wraps(method)
    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> R:
        outcome: R = self.ask(method.__name__, args, kwargs)
        return outcome

    return call


def _awaited(
    method: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, R]]:
    @functools.wraps(method)
    async def call(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        outcome: R = await self.ask(method.__name__, args, kwargs)
        return outcome

    return call


class _Connection(ABC):
    """What both clients know: where the service is, the token, and how long to try."""

    def __init__(  # noqa: PLR0913 - what a client may settle
        self,
        address: str,
        *,
        token_file: Path | str | None = None,
        token: str | None = None,
        timeout: timedelta = timedelta(seconds=10),
        patience: timedelta = timedelta(seconds=30),
        actor: str = "",
        sources: Mapping[str, SourceFactory] | None = None,
    ) -> None:
        """`address` is `HOST:PORT` or `unix:PATH`. The token comes from `token_file`, which only its owner may read,
        or from `token`. One attempt of a call takes up to `timeout`, and is repeated, where it may be, for up to
        `patience`. `actor` is who the record names, where a call does not; `sources` are the factories of triggers of
        the host's own. Raises DefinitionError, OSError."""
        self._address = parse_address(address)
        chosen = read_token(token_file) if token_file is not None else None if token is None else Token(token)
        self._patience = Patience(_seconds("patience", patience), time.monotonic)
        self._actor = actor
        self._sources = dict(sources or {})
        self._options: dict[str, Any] = {
            "base_url": self._address.url,
            "timeout": _seconds("timeout", timeout),
            "headers": {} if chosen is None else {"Authorization": chosen.header},
        }
        self._limits = httpx2.Limits(keepalive_expiry=IDLE)
        self._connect()

    @abstractmethod
    def _connect(self) -> None:
        """Makes the connection, from `_address`, `_options` and `_limits`."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._address)!r})"

    def _begin(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Conversation:
        method, arguments = arguments_of(name, args, kwargs)
        return conversation(method, arguments, self._patience, self._sources, self._actor)

    def _asked(self) -> Conversation:
        raw = yield from exchange("service.status", {}, self._patience, repeatable=True)
        return msgspec.json.decode(raw, type=Status)


class Client(_Connection):
    """A Scheduler in another process. Its methods return and raise what the Scheduler's do, and ServiceError."""

    def _connect(self) -> None:
        transport = httpx2.HTTPTransport(uds=self._address.socket or None, limits=self._limits)
        self._http = httpx2.Client(transport=transport, trust_env=False, **self._options)

    create = _remote(Scheduler.create)
    create_many = _remote(Scheduler.create_many)
    declare = _remote(Scheduler.declare)
    edit = _remote(Scheduler.edit)
    pause = _remote(Scheduler.pause)
    unpause = _remote(Scheduler.unpause)
    disable = _remote(Scheduler.disable)
    enable = _remote(Scheduler.enable)
    delete = _remote(Scheduler.delete)
    block = _remote(Scheduler.block)
    unblock = _remote(Scheduler.unblock)
    rebaseline = _remote(Scheduler.rebaseline)
    record_external_run = _remote(Scheduler.record_external_run)
    run_now = _remote(Scheduler.run_now)
    start = _remote(Scheduler.start)
    complete = _remote(Scheduler.complete)
    fail = _remote(Scheduler.fail)
    interrupt = _remote(Scheduler.interrupt)
    report = _remote(Scheduler.report)
    resume = _remote(Scheduler.resume)
    abandon = _remote(Scheduler.abandon)
    note_run = _remote(Scheduler.note_run)
    find = _remote(Scheduler.find)
    schedule = _remote(Scheduler.schedule)
    schedules = _remote(Scheduler.schedules)
    run = _remote(Scheduler.run)
    runs = _remote(Scheduler.runs)
    upcoming = _remote(Scheduler.upcoming)
    next_due = _remote(Scheduler.next_due)
    occurrences = _remote(Scheduler.occurrences)
    explain = _remote(Scheduler.explain)
    digest = _remote(Scheduler.digest)

    def status(self) -> Status:
        """How the service is, and its last decisions. Raises ServiceError."""
        status: Status = self._drive(self._asked())
        return status

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the method of this name."""
        return self._drive(self._begin(name, args, kwargs))

    def _drive(self, steps: Conversation) -> Any:
        answer: Answer = None
        try:
            while True:
                step = steps.send(answer)
                if isinstance(step, Pause):
                    time.sleep(step.seconds)  # before the call is made again; bounded by the patience
                    answer = None
                else:
                    answer = self._post(step)
        except StopIteration as done:
            return done.value

    def _post(self, step: Send) -> Answer:
        _check_open(self._http)
        try:
            return _received(self._http.post("/rpc", content=step.body, headers=_HEADERS))
        except httpx2.TransportError as error:
            return _lost(error)


class AsyncClient(_Connection):
    """As `Client`, for programs on asyncio: every method is a coroutine."""

    def _connect(self) -> None:
        transport = httpx2.AsyncHTTPTransport(uds=self._address.socket or None, limits=self._limits)
        self._http = httpx2.AsyncClient(transport=transport, trust_env=False, **self._options)

    create = _awaited(Scheduler.create)
    create_many = _awaited(Scheduler.create_many)
    declare = _awaited(Scheduler.declare)
    edit = _awaited(Scheduler.edit)
    pause = _awaited(Scheduler.pause)
    unpause = _awaited(Scheduler.unpause)
    disable = _awaited(Scheduler.disable)
    enable = _awaited(Scheduler.enable)
    delete = _awaited(Scheduler.delete)
    block = _awaited(Scheduler.block)
    unblock = _awaited(Scheduler.unblock)
    rebaseline = _awaited(Scheduler.rebaseline)
    record_external_run = _awaited(Scheduler.record_external_run)
    run_now = _awaited(Scheduler.run_now)
    start = _awaited(Scheduler.start)
    complete = _awaited(Scheduler.complete)
    fail = _awaited(Scheduler.fail)
    interrupt = _awaited(Scheduler.interrupt)
    report = _awaited(Scheduler.report)
    resume = _awaited(Scheduler.resume)
    abandon = _awaited(Scheduler.abandon)
    note_run = _awaited(Scheduler.note_run)
    find = _awaited(Scheduler.find)
    schedule = _awaited(Scheduler.schedule)
    schedules = _awaited(Scheduler.schedules)
    run = _awaited(Scheduler.run)
    runs = _awaited(Scheduler.runs)
    upcoming = _awaited(Scheduler.upcoming)
    next_due = _awaited(Scheduler.next_due)
    occurrences = _awaited(Scheduler.occurrences)
    explain = _awaited(Scheduler.explain)
    digest = _awaited(Scheduler.digest)

    async def status(self) -> Status:
        """How the service is, and its last decisions. Raises ServiceError."""
        status: Status = await self._drive(self._asked())
        return status

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def ask(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the method of this name."""
        return await self._drive(self._begin(name, args, kwargs))

    async def _drive(self, steps: Conversation) -> Any:
        answer: Answer = None
        try:
            while True:
                step = steps.send(answer)
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                    answer = None
                else:
                    answer = await self._post(step)
        except StopIteration as done:
            return done.value

    async def _post(self, step: Send) -> Answer:
        _check_open(self._http)
        try:
            return _received(await self._http.post("/rpc", content=step.body, headers=_HEADERS))
        except httpx2.TransportError as error:
            return _lost(error)


_HEADERS = {"Content-Type": "application/json"}


def _check_open(http: httpx2.Client | httpx2.AsyncClient) -> None:
    if http.is_closed:
        raise ServiceError("the client is closed", hint="Make another one")


def _seconds(field: str, duration: timedelta) -> float:
    check_duration(field, duration)
    return duration.total_seconds()


def _received(response: httpx2.Response) -> Received:
    wait = response.headers.get("retry-after", "")
    return Received(response.status_code, response.content, float(wait) if wait.isdecimal() else 0.0)


def _lost(error: httpx2.TransportError) -> Lost:
    never = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
    return Lost(str(error) or type(error).__name__, made=not isinstance(error, never))
