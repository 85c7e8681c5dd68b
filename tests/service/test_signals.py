"""What signals tell a host, in the process that runs it."""

from __future__ import annotations

import logging
import signal
from pathlib import Path

import pytest

from duly.service import Event, Host, Polled, stopped_by_signals
from tests.service.hosting import due, outcomes

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no such signals")
NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) if hasattr(signal, "SIGHUP") else ()


def test_a_signal_stops_it_and_the_handlers_before_are_put_back(tmp_path: Path):
    before = [signal.getsignal(number) for number in NUMBERS]
    with Host.open(tmp_path / "j", {"f": lambda _: signal.raise_signal(signal.SIGTERM)}) as host:
        due(host, "f")
        with stopped_by_signals(host, reload=lambda: None):
            assert [signal.getsignal(number) for number in NUMBERS] != before
            host.run()
    assert outcomes(tmp_path / "j") == {"f": None}
    assert [signal.getsignal(number) for number in NUMBERS] == before


def test_a_hangup_has_the_host_reload_and_what_that_raises_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    def hangs_up(event: Event) -> None:
        if isinstance(event, Polled) and event.poll.offered:
            signal.raise_signal(signal.SIGHUP)

    def reload() -> None:
        host.stop()
        raise ValueError("the file is on fire")

    with (
        caplog.at_level(logging.ERROR, "duly.service"),
        Host.open(tmp_path / "j", {"f": lambda _: "done"}, observers=[hangs_up]) as host,
        stopped_by_signals(host, reload=reload),
    ):
        due(host, "f")
        host.run()
    assert caplog.messages == ["reloading failed: the file is on fire"]
    assert outcomes(tmp_path / "j") == {"f": "done"}


def test_without_a_reload_a_hangup_means_what_it_meant_before(tmp_path: Path):
    before = signal.getsignal(signal.SIGHUP)
    with Host.open(tmp_path / "j", {}) as host, stopped_by_signals(host):
        assert signal.getsignal(signal.SIGHUP) == before
