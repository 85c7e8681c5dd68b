"""duly.service: the part that acts. A host executes what the scheduler offers, and reports how it ended.

Rules kept here:
- nothing runs unless it is asked for; the core knows nothing of this package;
- the host decides nothing: what it does is recorded through the Scheduler's own calls, a start before the execution;
- one thread polls; everything else reaches it through its inbox.
"""

from __future__ import annotations

if __name__ != "duly.service":
    raise ImportError(f"this is the package duly.service, not {__name__}: import duly.service")

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

__all__ = [
    "Began",
    "Closed",
    "Command",
    "CommandOf",
    "Draining",
    "Ended",
    "Event",
    "Host",
    "HostState",
    "Interruption",
    "JournalFailed",
    "Opened",
    "Outputs",
    "Polled",
    "Warned",
    "Work",
    "stopped_by_signals",
]
