"""duly.service: the part that acts. A host executes what the scheduler offers, and reports how it ended.

Rules kept here:
- nothing runs unless it is asked for; the core knows nothing of this package;
- the host decides nothing: what it does is recorded through the Scheduler's own calls, a start before the execution;
- one thread polls; everything else reaches it through its inbox;
- what needs the libraries for HTTP and metrics is loaded when it is first asked for.
"""

from __future__ import annotations

if __name__ != "duly.service":
    raise ImportError(f"this is the package duly.service, not {__name__}: import duly.service")

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from duly.service.commands import Command, CommandOf
from duly.service.events import (
    Began,
    Closed,
    Draining,
    Ended,
    Event,
    JournalFailed,
    Opened,
    Polled,
    Warned,
)
from duly.service.host import Host
from duly.service.loop import HostState
from duly.service.output import Outputs
from duly.service.signals import stopped_by_signals
from duly.service.work import Interruption, Work

if TYPE_CHECKING:
    from duly.service.api.addresses import Listener
    from duly.service.api.bounds import Bounds
    from duly.service.api.calls import ServiceError, ServiceRefused, ServiceUnreachable, Unauthorized
    from duly.service.api.client import AsyncClient, Client
    from duly.service.api.server import Server
    from duly.service.api.status import Status
    from duly.service.watching.logs import DecisionLog, JsonFormatter
    from duly.service.watching.metrics import Metrics, TimedDisk
    from duly.service.watching.record import Decision

LATER = MappingProxyType(
    {
        name: f"duly.service.{module}"
        for module, names in {
            "api.addresses": "Listener",
            "api.bounds": "Bounds",
            "api.calls": "ServiceError ServiceRefused ServiceUnreachable Unauthorized",
            "api.client": "AsyncClient Client",
            "api.server": "Server",
            "api.status": "Status",
            "watching.logs": "DecisionLog JsonFormatter",
            "watching.metrics": "Metrics TimedDisk",
            "watching.record": "Decision",
        }.items()
        for name in names.split()
    }
)
"""The names that are loaded when they are first asked for, each with its module."""

if not TYPE_CHECKING:  # a checker that saw it would take any name for a public one

    def __getattr__(name: str) -> object:
        module = LATER.get(name)
        if module is None:
            raise AttributeError(f"module 'duly.service' has no attribute {name!r}")
        try:
            return getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "duly":
                raise
            needed = f"duly.service.{name} needs {error.name}, which comes with an extra: pip install 'duly[service]'"
            raise ModuleNotFoundError(needed, name=error.name) from error


__all__ = [
    "AsyncClient",
    "Began",
    "Bounds",
    "Client",
    "Closed",
    "Command",
    "CommandOf",
    "Decision",
    "DecisionLog",
    "Draining",
    "Ended",
    "Event",
    "Host",
    "HostState",
    "Interruption",
    "JournalFailed",
    "JsonFormatter",
    "Listener",
    "Metrics",
    "Opened",
    "Outputs",
    "Polled",
    "Server",
    "ServiceError",
    "ServiceRefused",
    "ServiceUnreachable",
    "Status",
    "TimedDisk",
    "Unauthorized",
    "Warned",
    "Work",
    "stopped_by_signals",
]
