"""What every test relies on: hypothesis draws the same examples in every run, and new ones under `-m torture`; and
Ctrl-C means the same everywhere: what a shell starts in the background ignores it, and so would every child."""

import signal

import pytest
from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True)
settings.register_profile("torture", deadline=None, print_blob=True)


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.load_profile("torture" if config.option.markexpr == "torture" else "suite")
