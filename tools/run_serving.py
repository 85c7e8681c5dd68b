"""`duly run --serve`: the host's service, for as long as the host runs.

Rules kept here: what speaks HTTP is loaded only when it is asked for; what is wrong with an address or a token is told
before the journal is opened, and so is an address that somebody has.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from duly.service import Host, Listener, Server, TimedDisk
from duly.service.api.tokens import ensure_token
from duly.tools.describe import describe_entry
from duly.tools.run_log import RunLog
from duly.tools.run_settings import Settings


class Serving:
    """A service that listens already, and is to serve a host."""

    def __init__(self, settings: Settings, listener: Listener) -> None:
        self._settings = settings
        self._listener = listener
        self.disk = TimedDisk()
        """What the host is to be opened with: a disk that measures itself."""

    @contextmanager
    def of(self, host: Host, log: RunLog) -> Generator[None]:
        """Serves the host while the block runs."""
        settings = self._settings
        with Server.open(
            host,
            self._listener,
            token_file=settings.token_file,
            words=describe_entry,
            schedule_labels=settings.schedule_labels,
            disk=self.disk,
        ) as server:
            log.say("serving", f"{server.address}{'' if settings.token_file else ', without administration'}")
            yield


@contextmanager
def listening(settings: Settings, address: str) -> Generator[Serving]:
    """Listens at the address while the block runs. Raises OSError, DefinitionError."""
    if settings.token_file is not None:
        ensure_token(settings.token_file)
    with Listener.open(address) as listener:
        yield Serving(settings, listener)
