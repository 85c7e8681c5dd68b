"""The connections of a server: how many there are, and how long each may make it wait.

Rules: nobody holds a connection for nothing, whoever he is: a request arrives in time, and its reply is taken in time;
the bound on open connections holds at every moment, so that the host keeps its file descriptors; a newcomer takes the
place of the one that has been without a request for the longest, so that whoever watches gets in.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, cast

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from duly.service.api.bounds import Bounds

_log: Final = logging.getLogger("duly.service.http")
_log.setLevel(logging.ERROR)
UNREAD: Final = 30.0
"""Seconds in which a client takes something of a reply that waits for it."""


class Connection(H11Protocol):
    """One connection. A class of its own for each server: it has the server's bounds."""

    bounds: Bounds

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.logger = _log  # so that nobody fills the log of the program with what is no request
        self.waiting_since = self.loop.time()
        """When it began to be without a request."""
        self._arrival: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is being answered."""
        cycle = getattr(self, "cycle", None)  # it is None before the first request, whatever its type says
        return cycle is None or bool(cycle.response_complete)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Lets it in, in the place of another if there are too many."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # `pause_writing` tells of every byte that is not taken
        self._expect()
        if len(self.connections) > self.bounds.connections:
            self._leaver().leave()

    def leave(self) -> None:
        """Ends it at once."""
        self.connections.discard(self)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets it."""
        super().connection_lost(exc)
        self._arrived()
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Goes on with the request."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._expect()
        else:
            self._arrived()

    def pause_writing(self) -> None:
        """The client does not take what it asked for."""
        super().pause_writing()
        if self._taking is None:
            self._watch()

    def resume_writing(self) -> None:
        """It takes something."""
        super().resume_writing()
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def on_response_complete(self) -> None:
        """It waits for the next request."""
        self.waiting_since = self.loop.time()
        super().on_response_complete()
        if self.conn.trailing_data[0]:  # the next one has begun
            self._expect()

    def _leaver(self) -> Connection:
        there = cast("set[Connection]", self.connections)
        others = [one for one in there if one is not self and one.is_idle]
        return min(others, key=lambda one: one.waiting_since, default=self)

    def _watch(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._taking = self.loop.call_later(UNREAD, self._taken, left)

    def _taken(self, left: int) -> None:
        if self.transport.get_write_buffer_size() < left:
            self._watch()
        else:
            self.transport.abort()

    def _expect(self) -> None:
        """From its first byte on, a request has so long to arrive; more bytes win no time."""
        if self._arrival is None:
            self._arrival = self.loop.call_later(self.bounds.arrival, self._late)

    def _arrived(self) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _late(self) -> None:
        self._arrival = None
        if self.is_idle:
            self.transport.abort()
        else:  # its body has the same time, counted by who reads it, and gets an answer
            self._expect()
