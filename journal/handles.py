"""Open files that are closed once, wherever an interruption strikes.

Rules kept here:
- A file is held before it is locked: whatever interrupts the opening, nothing that holds a lock is forgotten.
- Closing may be interrupted and asked for again. A file is only closed if it is still the one that was opened: its
  number may have been given to another one since.
- Handles that nobody can reach any more are closed: what they locked is given up when nobody can write through them.
  When the interpreter ends that is left to the operating system, as half of what closing needs may be gone by then.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from contextlib import suppress

from duly.journal.disk import Disk, Identity


class Handles:
    """The files that one owner has open."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._held: dict[int, Identity | None] = {}

    def hold(self, file: int) -> int:
        """Takes care of the file from here on."""
        self._held[file] = None
        self._held[file] = self._disk.identity(file)
        return file

    def close(self, file: int) -> None:
        """Closes the file, whose fate is no longer of interest, and drops its lock."""
        if file not in self._held:
            return
        if self._is_ours(file, self._held[file]):
            with suppress(OSError):
                self._disk.close(file)
        self._held.pop(file, None)

    def close_all(self) -> None:
        """Closes what is still open."""
        for file in list(self._held):
            self.close(file)

    def _is_ours(self, file: int, identity: Identity | None) -> bool:
        try:
            return identity is None or self._disk.identity(file) == identity
        except OSError as error:
            return error.errno != errno.EBADF

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        # The attribute is missing if the constructor was interrupted.
        if not is_ending() and hasattr(self, "_held"):
            self.close_all()
