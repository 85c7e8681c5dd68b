"""What every test relies on: hypothesis draws the same examples in every run, and new ones under `-m torture`."""

import pytest
from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True)
settings.register_profile("torture", deadline=None, print_blob=True)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("torture" if config.option.markexpr == "torture" else "suite")
