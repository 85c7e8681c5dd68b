"""The HTTP of the service: who may ask, how much, and where.

Rules: `/rpc` answers to the token alone, and is off without one; it is checked before a byte of the body is read; every
bound is an HTTP status with a reason; blocking calls are made on threads. What watches the service (`/healthz`,
`/readyz`, `/metrics`) needs no token and tells no schedule's content; the page at `/` holds no data, and asks for them
with the token that its reader gives it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Final

import anyio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from duly.service.api import refusals
from duly.service.api.bounds import Bounds, Bucket
from duly.service.api.rpc import Dispatcher, TooMany
from duly.service.api.tokens import Token

Endpoint = Callable[[Request], Awaitable[Response]]
JSON: Final = "application/json"
HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Gate:
    """`POST /rpc`: the token, the bounds, and then the call."""

    def __init__(self, dispatcher: Dispatcher, token: Token | None, bounds: Bounds) -> None:
        self._dispatcher = dispatcher
        self._token = token
        self._bounds = bounds
        self._guesses = Bucket(bounds.guesses, bounds.guesses)
        self._threads: anyio.CapacityLimiter | None = None
        self._pending = 0

    async def __call__(self, request: Request) -> Response:
        """Answers a request."""
        try:
            self._admit(request)
            with self._place():
                reply = await self._reply(await self._arrived(request))
        except _TurnedAway as turned:
            return turned.response
        except ClientDisconnect:
            return Response(status_code=400)
        return Response(status_code=204) if reply is None else Response(reply, media_type=JSON, headers=HEADERS)

    @contextmanager
    def _place(self) -> Generator[None]:
        """A place among the requests that are being answered. Raises _TurnedAway if there is none."""
        if self._pending >= self._bounds.pending:
            raise _TurnedAway(503, f"{self._pending} requests are being answered: nothing was done", 1.0)
        self._pending += 1
        try:
            yield
        finally:
            self._pending -= 1

    def _admit(self, request: Request) -> None:
        """Checks who asks. Raises _TurnedAway."""
        if self._token is None:
            raise _TurnedAway(403, "the administration is off: start the service with a token file")
        given = request.headers.get("authorization", "")
        if not self._token.opens(given):
            wait = self._guesses.take()
            if wait:
                raise _TurnedAway(429, "too many requests without the token", wait)
            if given:
                raise _TurnedAway(401, "the token is not this service's")
            raise _TurnedAway(401, "this needs the header Authorization: Bearer …, with the service's token")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise _TurnedAway(415, f"send {JSON}")

    async def _arrived(self, request: Request) -> bytes:
        """The body. Raises _TurnedAway if it is too long, or too slow."""
        length = request.headers.get("content-length", "")
        if length.isdecimal() and len(length) < 20 and int(length) > self._bounds.body:
            raise self._too_long()
        body = bytearray()
        try:
            async with asyncio.timeout(self._bounds.arrival):
                async for part in request.stream():
                    body += part
                    if len(body) > self._bounds.body:
                        raise self._too_long()
        except TimeoutError:
            raise _TurnedAway(408, f"the request did not arrive within {self._bounds.arrival:g} s") from None
        return bytes(body)

    def _too_long(self) -> _TurnedAway:
        return _TurnedAway(413, f"a request has at most {self._bounds.body:,} bytes")

    async def _reply(self, body: bytes) -> bytes | None:
        """Makes the call, on a thread. Raises _TurnedAway."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(self._bounds.threads)
        try:
            return await anyio.to_thread.run_sync(self._dispatcher.reply, body, limiter=self._threads)
        except TooMany as error:
            raise _TurnedAway(429, str(error), error.seconds) from None


class _TurnedAway(Exception):
    def __init__(self, status: int, words: str, wait: float = 0.0) -> None:
        super().__init__(words)
        headers = dict(HEADERS)
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if wait:
            headers["Retry-After"] = str(math.ceil(wait))
        error = {"code": refusals.NOT_LET_IN if wait else refusals.INVALID_REQUEST, "message": words}
        content = {"jsonrpc": "2.0", "error": error, "id": None}
        self.response = JSONResponse(content, status_code=status, headers=headers)


def make_app(gate: Gate, watching: dict[str, Endpoint]) -> Starlette:
    """The application: the gate, and what is watched without a token."""
    routes = [Route(path, endpoint, methods=["GET"]) for path, endpoint in watching.items()]
    return Starlette(routes=[Route("/rpc", _through(gate), methods=["POST"]), *routes])


def _through(gate: Gate) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await gate(request)

    return endpoint
