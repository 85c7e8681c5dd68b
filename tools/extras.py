"""What some options need, and comes with an extra: known before it is imported, so that nobody gets a traceback."""

from __future__ import annotations

from importlib.util import find_spec

import click

SERVICE = ("httpx2", "prometheus_client", "starlette", "uvicorn")


def need_service_extra(option: str) -> None:
    """Raises UsageError if what serves, and what asks a service, is not installed."""
    missing = [name for name in SERVICE if find_spec(name) is None]
    if missing:
        raise click.UsageError(
            f"{option} needs {', '.join(missing)}, which {'comes' if len(missing) == 1 else 'come'} with an extra: "
            "pip install 'duly[service]'."
        )
