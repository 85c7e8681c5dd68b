"""The server: a service on a thread of its own, beside the host that it serves.

Rules: it serves from `open` to `close`, whatever becomes of the host meanwhile; it installs no signal handlers, writes
no access log, and its failure stops no run.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import anyio
import msgspec
import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from duly import __version__
from duly.journal.entries import kind_of
from duly.journal.errors import Error
from duly.scheduler.embedded import Scheduler
from duly.scheduler.errors import SchedulerClosed, SchedulerError, TriggerError, UnknownSchedule
from duly.scheduler.execution import Attempt
from duly.scheduler.explanations import RunFacts, facts_of
from duly.service.api.addresses import BACKLOG, Listener
from duly.service.api.app import HEADERS, JSON, Endpoint, Gate, make_app
from duly.service.api.bounds import Bounds, Bucket
from duly.service.api.connections import Connection
from duly.service.api.openrpc import description
from duly.service.api.rpc import Dispatcher
from duly.service.api.status import Status
from duly.service.api.tokens import Token, ensure_token
from duly.service.loop import HostState
from duly.service.watching.metrics import Metrics, TimedDisk
from duly.service.watching.record import Growing, Words
from duly.service.watching.watched import Alone, Watched, health_of

T = TypeVar("T")
PAGES: Final = {
    "/": ("status.html", "text/html"),
    "/status.css": ("status.css", "text/css"),
    "/status.js": ("status.js", "text/javascript"),
    "/theme.css": ("theme.css", "text/css"),
    "/theme.js": ("theme.js", "text/javascript"),
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SHOWN: Final = 100
"""How many runs a status tells of."""
LONGEST: Final = 2_000
"""How many characters of the error of each of them."""
LISTED: Final = 200
"""Of how many schedules it tells when they are due."""
AT_ONCE: Final = 16
"""How many connections are let in before the next look at those that are there."""
COMING_UP: Final = 30
"""Seconds for a server to come up."""
GRACE: Final = 5
"""Seconds in which calls that are being made may end when the server closes."""
_log: Final = logging.getLogger("duly.service.api")


class Server:
    """Serves a host, or a scheduler, to clients and to those who watch. Open it with `Server.open`."""

    def __init__(self, service: Service, listener: Listener) -> None:
        self.address: Final = listener.address
        """Where it listens, in the notation that a `Client` takes: `str(address)`."""
        self._listener = listener
        self._uvicorn = _Uvicorn(service, listener.socket)
        self._thread = threading.Thread(target=self._uvicorn.serve_here, name="duly service", daemon=True)

    @classmethod
    def open(  # noqa: PLR0913 - what a service may settle
        cls,
        served: Watched | Scheduler,
        address: str | Listener,
        *,
        token_file: Path | str | None = None,
        bounds: Bounds | None = None,
        words: Words = kind_of,
        schedule_labels: int = 0,
        disk: TimedDisk | None = None,
    ) -> Self:
        """Serves at `address` (`HOST:PORT`, `:PORT` or `unix:PATH`, or a listener that was opened before) until it is
        closed, the listener with it.

        Clients need the token in `token_file`, which is made if it is not there; without one there is no
        administration, only health and metrics. `words` says entries in words, for the status page; `schedule_labels`
        is how many schedules have metrics of their own; `disk`, which the scheduler was opened with, measures fsyncs.
        Raises OSError, DefinitionError.
        """
        token = None if token_file is None else ensure_token(token_file)
        watched = Alone(served) if isinstance(served, Scheduler) else served
        service = Service(watched, token, bounds or Bounds(), words=words, schedule_labels=schedule_labels, disk=disk)
        server = cls(service, Listener.open(address) if isinstance(address, str) else address)
        server._begin()
        return server

    def close(self) -> None:
        """Ends the service; calls that are being made have five seconds to end. Closing again does nothing."""
        if self._thread.is_alive():
            self._uvicorn.leave()
            self._thread.join(GRACE + 5)
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self) -> None:
        if not self.address.is_local:
            _log.warning(
                "%s is reached from other machines, without encryption: put a proxy with TLS before it", self.address
            )
        self._thread.start()
        self._uvicorn.is_up.wait(COMING_UP)
        if not self._uvicorn.started or self._uvicorn.fault is not None:
            self.close()
            raise OSError(f"{self.address} is not served: {self._uvicorn.fault or 'it did not come up'}")


class Service:
    """What a server serves."""

    def __init__(  # noqa: PLR0913 - the parts of a service
        self,
        watched: Watched,
        token: Token | None,
        bounds: Bounds,
        *,
        words: Words,
        schedule_labels: int,
        disk: TimedDisk | None,
    ) -> None:
        self.bounds: Final = bounds
        self._watched = watched
        self._resuming = threading.BoundedSemaphore(max(bounds.threads // 2, 1))
        recovery = watched.scheduler.recovery
        self._growing = Growing(watched.scheduler.path, after=recovery.replayed, words=words)
        self._metrics = Metrics(watched, schedules=schedule_labels, disk=disk)
        self._growing.listen(self._metrics.count)
        own = {"rpc.discover": self.description, "service.status": self.status}
        rate = Bucket(bounds.rate, bounds.burst)
        gate = Gate(Dispatcher(self, own, bounds, rate), token, bounds)
        self._scrapes = Bucket(bounds.scrapes, bounds.scrapes)
        self.app: Final = make_app(
            gate, {"/healthz": _alive, "/readyz": self._ready, "/metrics": self._measured, **_pages(token is not None)}
        )

    @property
    def state(self) -> HostState:
        """Where in its life the host is."""
        return self._watched.state

    @property
    def at_work(self) -> tuple[int, ...]:
        """The runs that the host is executing."""
        return self._watched.at_work

    def ask(self, question: Callable[[Scheduler], T]) -> T:
        """Asks, or tells, the scheduler something."""
        return self._watched.ask(question)

    def resume(self, run_id: int) -> Attempt:
        """Resumes an interrupted run. Raises at once where the host could not do it soon, as this waits for it."""
        if self._watched.failure is not None:
            raise self._watched.failure
        if self._watched.state == "ready":
            raise SchedulerClosed("the host does not run yet", run_id=run_id, hint="Try again when it does")
        if not self._resuming.acquire(blocking=False):  # or they would take the threads of all other calls
            raise SchedulerError("others wait already, to resume runs", run_id=run_id, hint="Try again soon")
        try:
            return self._watched.resume(run_id)
        finally:
            self._resuming.release()

    def description(self) -> object:
        """The OpenRPC document."""
        words = {"rpc.discover": "This document.", "service.status": " ".join((Status.__doc__ or "").split())}
        types = {"rpc.discover": dict[str, Any], "service.status": Status}
        return description({name: (words[name], types[name]) for name in words})

    def status(self) -> Status:
        """How the service is."""
        health, last = health_of(self._watched), self._watched.last_poll
        return Status(
            version=__version__,
            journal=str(self._watched.scheduler.path),
            state=health.state,
            ready=health.ready,
            problem=health.problem,
            at_work=self._watched.at_work,
            poll_age=health.poll_age,
            now=None if last is None else last[0].now,
            next_due=None if last is None else last[0].next_due,
            due=self._due(),
            runs=self._newest_runs(),
            decisions=self._growing.newest(),
        )

    def _newest_runs(self) -> tuple[RunFacts, ...]:
        with suppress(Error, OSError):  # a status is told also while the journal is out of reach
            runs = self._watched.ask(lambda scheduler: scheduler.runs())
            return tuple(_shortened(facts_of(run)) for run in reversed(runs[-SHOWN:]))
        return ()

    def _due(self) -> dict[str, datetime]:
        def look(scheduler: Scheduler) -> dict[str, datetime]:
            found: dict[str, datetime] = {}
            for schedule in scheduler.schedules(limit=LISTED):
                with suppress(TriggerError, UnknownSchedule):
                    due = scheduler.next_due(schedule.id)
                    if due is not None:
                        found[schedule.id] = due
            return found

        with suppress(Error, OSError):
            return self._watched.ask(look)
        return {}

    async def _ready(self, _request: Request) -> Response:
        health = await anyio.to_thread.run_sync(health_of, self._watched)
        body = msgspec.json.encode(health)
        return Response(body, status_code=200 if health.ready else 503, media_type=JSON, headers=HEADERS)

    async def _measured(self, _request: Request) -> Response:
        if self._scrapes.take():
            return Response(status_code=429, headers=HEADERS | {"Retry-After": "1"})

        def measure() -> bytes:
            self._growing.look()
            return self._metrics.text()

        return Response(await anyio.to_thread.run_sync(measure), media_type=CONTENT_TYPE_LATEST, headers=HEADERS)


def _shortened(run: RunFacts) -> RunFacts:
    if run.error is None or len(run.error.message) <= LONGEST:
        return run
    error = msgspec.structs.replace(run.error, message=f"{run.error.message[:LONGEST]}…")
    return msgspec.structs.replace(run, error=error)


async def _alive(_request: Request) -> Response:
    return Response(b"ok\n", media_type="text/plain", headers=HEADERS)


def _pages(administered: bool) -> dict[str, Endpoint]:
    folder = files("duly.service") / "watching" / "pages"
    found = {path: (folder / name).read_bytes() for path, (name, _) in PAGES.items()}
    if not administered:
        found["/"] = found["/"].replace(b"<html ", b"<html data-watched-only ", 1)
    return {path: _page(found[path], kind) for path, (_, kind) in PAGES.items()}


def _page(content: bytes, kind: str) -> Endpoint:
    headers = {
        **HEADERS,
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Frame-Options": "DENY",
    }

    async def endpoint(_request: Request) -> Response:
        return Response(content, media_type=kind, headers=headers)

    return endpoint


class _Uvicorn(uvicorn.Server):
    """uvicorn on a thread, on a socket that listens already."""

    def __init__(self, service: Service, listener: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                service.app,
                http=type("Connection", (Connection,), {"bounds": service.bounds}),
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=AT_ONCE,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=GRACE,
            )
        )
        self.is_up = threading.Event()
        self.fault: Exception | None = None
        """What it failed of."""
        self._socket = listener
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves from here on."""
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_Faults())
        await super().startup(sockets)
        self._socket.listen(BACKLOG)  # as many wait as before: uvicorn does not tell them from those it lets in at once
        self.is_up.set()

    async def main_loop(self) -> None:
        """Waits for `leave`, and otherwise looks at the clock once a second: uvicorn's own loop does ten times."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), 1.0)

    def leave(self) -> None:
        """Ends the service. Any thread may call it."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._leaving.set)

    def serve_here(self) -> None:
        """Serves on the calling thread until `should_exit`."""
        try:
            asyncio.run(self.serve([self._socket]))
        except Exception as error:
            self.fault = error
            if self.started:
                _log.exception("the service ended; the host goes on")
        finally:
            self.is_up.set()


class _Faults:
    """Logs what asyncio has to say; where it could let in nobody, for want of file descriptors, once a minute."""

    def __init__(self) -> None:
        self._quiet_until = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "system resource" in str(context.get("message")):
            if loop.time() < self._quiet_until:
                return
            self._quiet_until = loop.time() + 60
        loop.default_exception_handler(context)
