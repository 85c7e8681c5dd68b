"""What comes with an extra, known before it is imported, so that nobody gets a traceback without it.

Rule kept here: needs nothing but the standard library, as the command starts here.
"""

from __future__ import annotations

from importlib.util import find_spec

CLI = ("click", "jinja2", "rich")
SERVICE = ("httpx2", "prometheus_client", "starlette", "uvicorn")


def lacking(what: str, needed: tuple[str, ...], extra: str) -> str:
    """What to install so that this works, or nothing if all that it needs is there."""
    missing = [name for name in needed if find_spec(name) is None]
    if not missing:
        return ""
    *others, last = missing
    names, come = (f"{', '.join(others)} and {last}", "come") if others else (last, "comes")
    return f"{what} needs {names}, which {come} with an extra: pip install 'duly[{extra}]'"


def need_service_extra(option: str) -> None:
    """Raises UsageError if what serves, and what asks a service, is not installed."""
    words = lacking(option, SERVICE, "service")
    if words:
        import click

        raise click.UsageError(f"{words}.")
