"""The keeper of what commands print: cuts the logs that are being written, and removes the oldest of too many.

Rules: over its bound a log's newest part is kept in `….log.1`, and the log begins anew; that is done by one thread at a
time, because two would keep nothing; a log is looked at while its command or anything of its group lives; nothing is
removed while files are being made.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import BinaryIO, Final

from duly.service.output import Outputs, made_anew, older_part, opened
from duly.service.processes import is_group_alive

LOOK_AGAIN: Final = 0.25
"""Seconds between two looks at the logs of running commands."""
LOOK_AT_LEFT: Final = 1.0
"""The same where only what commands have left in the background is running."""
SWEEP_AGAIN: Final = 60.0
"""Seconds between two looks at all files."""
PIECE: Final = 1 << 16


class Keeper:
    """Looks at the logs of running commands, while there are any."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs
        self._logs: set[Path] = set()
        self._left: dict[Path, int] = {}
        """Logs of commands that have ended, with the groups that may still write to them."""
        self._changed = Condition()
        self._thread: Thread | None = None
        self._closed = False
        self._swept_at: float | None = None
        self.arranging: Final = Lock()
        """Held while files are made, cut or removed."""

    @property
    def runs(self) -> set[int]:
        """The runs whose logs are being written."""
        with self._changed:
            return {int(log.stem) for log in (*self._logs, *self._left)}

    def watch(self, log: Path) -> None:
        """Keeps this log within its bound from now on."""
        with self._changed:
            self._begin()
            self._logs.add(log)
            self._left.pop(log, None)
            self._changed.notify()

    def leave(self, log: Path, group: int | None = None) -> None:
        """The command has ended: looks at its log for the last time, or for as long as something of its group lives."""
        with self._changed:
            self._logs.discard(log)
            if group is not None and is_group_alive(group):
                self._left[log] = group
            self._changed.notify()
        self._rotate(log)
        self._sweep()

    def close(self) -> None:
        """Looks at nothing any more."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _begin(self) -> None:
        if self._thread is None and not self._closed:
            thread = Thread(target=self._look, name="duly output", daemon=True)
            thread.start()
            self._thread = thread

    def _look(self) -> None:
        while True:
            with self._changed:
                if self._logs or self._left:
                    self._changed.wait(LOOK_AGAIN if self._logs else LOOK_AT_LEFT)
                if self._closed or not (self._logs or self._left):
                    self._thread = None
                    return
                logs = (*self._logs, *self._left)
                self._left = {log: group for log, group in self._left.items() if is_group_alive(group)}
            for log in logs:
                self._rotate(log)

    def _rotate(self, log: Path) -> None:
        with self.arranging:
            rotate(log, self._outputs.size)

    def _sweep(self) -> None:
        with self.arranging:
            now = time.monotonic()
            if self._swept_at is None or self._swept_at + SWEEP_AGAIN <= now:
                self._swept_at = now
                self._outputs.sweep(self.runs, lambda log: rotate(log, self._outputs.size))


def rotate(log: Path, size: int) -> bool:
    """Moves the newest `size` bytes of a log to `….1`, and empties it, if it is longer than that; whether it was.

    Where there is no room to keep anything, it is emptied all the same: that is what the bound is for.
    """
    try:
        with open(opened(log, os.O_RDWR), "r+b") as file:  # noqa: PTH123 - of a descriptor
            length = file.seek(0, os.SEEK_END)
            if length <= size:
                return False
            with suppress(OSError):
                _keep(file, length - size, older_part(log))
            file.truncate(0)  # a writer that appends goes on at the beginning
    except OSError:
        return False
    return True


def _keep(file: BinaryIO, start: int, target: Path) -> None:
    end = file.seek(0, os.SEEK_END)
    file.seek(start)
    with open(made_anew(target), "wb") as kept:  # noqa: PTH123 - of a descriptor
        for position in range(start, end, PIECE):
            kept.write(file.read(min(PIECE, end - position)))
