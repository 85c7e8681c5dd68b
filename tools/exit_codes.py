"""What a command ends with.

Rule kept here: a number has one name and one meaning, and every command takes it from here.
"""

from __future__ import annotations

from typing import Final

FINE: Final = 0
BAD: Final = 1
"""The answer is bad: a record that is not intact, a crontab with malformed lines."""
USAGE: Final = 2
UNREADABLE: Final = 3
NEEDS_HELP: Final = 4
"""Something is starving or blocked."""
OUR_FAULT: Final = 70
INTERRUPTED: Final = 130
"""Ctrl-C."""
BROKEN_PIPE: Final = 141
"""The reader left, as after SIGPIPE."""
