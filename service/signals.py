"""Signals, as a host understands them.

Rules: a signal handler takes no lock and records nothing; it only tells the host, and the host's thread does the rest.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from duly.scheduler.errors import SchedulerClosed
from duly.service.host import Host

_log: Final = logging.getLogger("duly.service")


@contextmanager
def stopped_by_signals(host: Host, *, reload: Callable[[], object] | None = None) -> Generator[None]:
    """While the block runs, SIGTERM and SIGINT stop the host, a second one at once; SIGHUP calls `reload` on the
    host's thread. Only the main thread may do this: raises ValueError elsewhere."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        host.stop()

    def look_again(_number: int, _frame: FrameType | None) -> None:
        if reload is not None:
            host.call(reload).add_done_callback(_tell_failure)

    handlers: dict[signal.Signals, Callable[[int, FrameType | None], None] | signal.Handlers] = {
        signal.SIGTERM: stop,
        signal.SIGINT: stop,
    }
    if reload is not None and hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = look_again
    if hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        handlers[signal.SIGCHLD] = signal.SIG_DFL  # inherited so, it would take the exit codes of all commands away
    before: dict[signal.Signals, Any] = {number: signal.signal(number, told) for number, told in handlers.items()}
    try:
        yield
    finally:
        for number, told in before.items():
            signal.signal(number, told)


def _tell_failure(done: Future[object]) -> None:
    error = done.exception()
    if error is not None and not isinstance(error, SchedulerClosed):
        _log.error("reloading failed: %s", error)
