"""`duly run --serve`: the host's service, for as long as the host runs.

Rule kept here: what speaks HTTP is loaded only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from duly.service import Host, Server, TimedDisk
from duly.tools.describe import describe_entry
from duly.tools.run_log import RunLog
from duly.tools.run_settings import Settings


@contextmanager
def served(settings: Settings, host: Host, log: RunLog, disk: TimedDisk) -> Generator[None]:
    """Serves the host while the block runs. Raises OSError, DefinitionError."""
    with Server.open(
        host,
        settings.serve or "",
        token_file=settings.token_file,
        words=describe_entry,
        schedule_labels=settings.schedule_labels,
        disk=disk,
    ) as server:
        log.say("serving", f"{server.address}{'' if settings.token_file else ', without administration'}")
        yield
