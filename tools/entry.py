"""Where the `duly` command starts: it runs `duly.tools.cli`, or says which extra to install.

Rules kept here:
- nothing that needs more than the standard library is imported until the extra is known to be there, so that nobody
  gets a traceback without it;
- `--version` needs no extra;
- Ctrl-C while all of that is imported, and a stream that is closed, are no fault and leave no traceback;
- a warning that the library logs is one line on standard error, and drives no terminal.
"""

import logging
import os
import sys
from contextlib import suppress

from duly import __version__
from duly.tools.exit_codes import FINE, INTERRUPTED, USAGE
from duly.tools.extras import CLI, lacking
from duly.tools.printable import printable


def main() -> int:
    """Run the command line and return its exit code; 2 if what it needs is not installed, 130 after Ctrl-C."""
    try:
        _open_streams()
        return _run()
    except KeyboardInterrupt:  # while it was starting
        return INTERRUPTED


def _open_streams() -> None:
    """Puts nothing in the place of streams that are closed, so that no journal is opened there."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - it is, where it was closed
        os.open(os.devnull, os.O_RDONLY)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


def _run() -> int:
    if sys.argv[1:] == ["--version"]:
        print(f"duly {__version__}")
        return FINE
    words = lacking("the command line", CLI, "cli")
    if words:
        print(f"duly: {words}", file=sys.stderr)
        return USAGE
    logging.lastResort = _Warnings(logging.WARNING)
    from duly.tools.cli import main as run

    return run()


class _Warnings(logging.Handler):
    """What is logged and nobody handles, as `duly: warning: …` on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):  # nobody reads it any more
            print(f"duly: warning: {printable(record.getMessage())}", file=sys.stderr)
