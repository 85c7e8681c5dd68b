"""Where the `duly` command starts: it runs `duly.tools.cli`, or says which extra to install.

Rules kept here:
- nothing that needs more than the standard library is imported until the extra is known to be there, so that nobody
  gets a traceback without it;
- `--version` needs no extra;
- a warning that the library logs is one line on standard error, and drives no terminal.
"""

import logging
import sys
from contextlib import suppress
from importlib.util import find_spec

from duly import __version__
from duly.tools.exit_codes import FINE, USAGE
from duly.tools.printable import printable

NEEDED = ("click", "jinja2", "rich")


def main() -> int:
    """Run the command line and return its exit code; 2 if what it needs is not installed."""
    if sys.argv[1:] == ["--version"]:
        print(f"duly {__version__}")
        return FINE
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        *others, last = missing
        needed = f"{', '.join(others)} and {last}" if others else last
        print(
            f"duly: the command line needs {needed}, which come with an extra: pip install 'duly[cli]'", file=sys.stderr
        )
        return USAGE
    logging.lastResort = _Warnings(logging.WARNING)
    from duly.tools.cli import main as run

    return run()


class _Warnings(logging.Handler):
    """What is logged and nobody handles, as `duly: warning: …` on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):  # nobody reads it any more
            print(f"duly: warning: {printable(record.getMessage())}", file=sys.stderr)
