"""What commands print: a file for each run, bounded in size, and bounded in number for each schedule.

Rules: a command writes to its file by itself, so that it needs no living host; over its bound a file's newest part is
kept in `….log.1` and the file begins anew; of a schedule the newest runs' files are kept; files are readable by their
owner alone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from typing import BinaryIO, Final

import msgspec

from duly.projections import Run

LOOK_AGAIN: Final = 0.25
"""Seconds between two looks at the files of running commands."""
PIECE: Final = 1 << 16


class Outputs(msgspec.Struct, frozen=True):
    """Where output is kept: under `folder`, up to twice `size` bytes a run, of the newest `keep` runs a schedule."""

    folder: Path
    size: int = 1 << 20
    keep: int = 10

    def files_of(self, run: Run) -> RunFiles:
        """The files of a run; nothing is made yet."""
        # An id may be "." or begin with it; "_" is in no id.
        name = "_manual" if run.schedule_id is None else run.schedule_id
        folder = self.folder / (f"_{name}" if name.startswith(".") else name)
        return RunFiles(folder, f"{run.id}")

    def prune(self, files: RunFiles, at_work: set[int]) -> None:
        """Makes room for a run's files: removes those of all but the newest in its folder, and of none at work."""
        try:
            found = os.listdir(files.folder)  # noqa: PTH208 - the names, and no paths around them
        except OSError:
            return
        runs = {name.partition(".")[0] for name in found}
        others = sorted((int(run) for run in runs - {files.name} if run.isdecimal()), reverse=True)
        gone = {str(number) for number in others[self.keep - 1 :] if number not in at_work}
        for name in found:
            if name.partition(".")[0] in gone:
                with suppress(OSError):
                    files.folder.joinpath(name).unlink()


class RunFiles(msgspec.Struct, frozen=True):
    """The files of one run."""

    folder: Path
    name: str

    @property
    def log(self) -> Path:
        """Standard output and error."""
        return self.folder / f"{self.name}.log"

    @property
    def checkpoint(self) -> Path:
        """Where the command leaves its checkpoint."""
        return self.folder / f"{self.name}.checkpoint"

    @property
    def stdin(self) -> Path:
        """What the command reads."""
        return self.folder / f"{self.name}.stdin"

    def make_folder(self) -> None:
        """Makes the folder; others may pass through it, to a file that is theirs, and not list it."""
        self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)

    def write(self, path: Path, text: str, owner: int | None) -> None:
        """Writes one of the files anew, for its owner (None: the host's own user) alone."""
        with suppress(FileNotFoundError):
            path.unlink()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8", newline="") as file:  # noqa: PTH123 - of a descriptor
            file.write(text)
        if owner is not None:
            os.chown(path, owner, -1)

    def open_log(self) -> int:
        """A descriptor that appends to the log."""
        return os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def clean(self) -> None:
        """Removes what only the running command needs."""
        for path in (self.checkpoint, self.stdin):
            with suppress(OSError):
                path.unlink()


def rotate(log: Path, size: int) -> bool:
    """Moves the newest `size` bytes of a log to `….1`, and empties it, if it is longer than that; whether it was.

    Where there is no room to keep anything, it is emptied all the same: that is what the bound is for.
    """
    try:
        with log.open("r+b") as file:
            length = file.seek(0, os.SEEK_END)
            if length <= size:
                return False
            with suppress(OSError):
                _keep(file, length - size, log.with_name(f"{log.name}.1"))
            file.truncate(0)  # a writer that appends goes on at the beginning
    except OSError:
        return False
    return True


def _keep(file: BinaryIO, start: int, target: Path) -> None:
    end = file.seek(0, os.SEEK_END)
    file.seek(start)
    with target.open("wb") as kept:
        os.fchmod(kept.fileno(), 0o600)
        for position in range(start, end, PIECE):
            kept.write(file.read(min(PIECE, end - position)))


class Keeper:
    """Looks at the logs of running commands, while there are any."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._logs: set[Path] = set()
        self._changed = Condition()
        self._thread: Thread | None = None

    def watch(self, log: Path) -> None:
        """Keeps this log within its bound from now on."""
        with self._changed:
            self._logs.add(log)
            if self._thread is None:
                self._thread = Thread(target=self._look, name="duly output", daemon=True)
                self._thread.start()

    def leave(self, log: Path) -> None:
        """The command has ended: looks at its log for the last time."""
        with self._changed:
            self._logs.discard(log)
            self._changed.notify()
        rotate(log, self._size)

    def _look(self) -> None:
        while True:
            with self._changed:
                if self._logs:
                    self._changed.wait(LOOK_AGAIN)
                if not self._logs:
                    self._thread = None
                    return
                logs = tuple(self._logs)
            for log in logs:
                rotate(log, self._size)
