"""What commands print: a file for each run, bounded in size, in number for each schedule, and all of them in bytes.

Rules: a command writes to its file by itself, so that it needs no living host; the files of the newest runs are kept,
and of whatever is still being written; nothing but files of runs is ever removed; what a command may have put in the
place of a file is opened only if it is one; files are readable by their owner alone.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from duly.projections import Run
from duly.scheduler.errors import DefinitionError

FILE_OF_A_RUN: Final = re.compile(r"([0-9]+)\.(?:log|log\.1|checkpoint|stdin)")


class NoFile(OSError):
    """There is something else where a file is expected: a link, a pipe, a device."""


class Outputs(msgspec.Struct, frozen=True):
    """Where output is kept: under `folder`, up to twice `size` bytes a run, of each schedule's newest `keep` runs, and
    of all runs together the newest `total` bytes. Raises DefinitionError for what is not greater than 0.
    """

    folder: Path
    size: int = 1 << 20
    keep: int = 10
    total: int = 1 << 30

    def __post_init__(self) -> None:
        _check_path(self.folder)
        for name in ("size", "keep", "total"):
            value: object = getattr(self, name)
            if type(value) is not int or value < 1:
                raise DefinitionError(name, value, "is not how much to keep", "Write a whole number, 1 or more")

    def files_of(self, run: Run) -> RunFiles:
        """The files of a run; nothing is made yet."""
        # An id may be "." or begin with it; "_" is in no id.
        name = "_manual" if run.schedule_id is None else run.schedule_id
        folder = self.folder / (f"_{name}" if name.startswith(".") else name)
        return RunFiles(folder, f"{run.id}")

    def prune(self, files: RunFiles, at_work: set[int]) -> None:
        """Makes room for a run's files: removes those of all but the newest in its folder, and of none at work."""
        found = _files_in(files.folder)
        others = sorted((run_id for run_id in found if f"{run_id}" != files.name), reverse=True)
        for run_id in others[self.keep - 1 :]:
            if run_id not in at_work:
                _remove(found[run_id])

    def sweep(self, at_work: set[int], shorten: Callable[[Path], object]) -> None:
        """Removes the files of the oldest runs, if all together have more than `total` bytes, of none at work, and the
        folders that are empty by that. Calls `shorten` with each log that is too long."""
        lengths: dict[int, int] = defaultdict(int)
        found: dict[int, list[Path]] = defaultdict(list)
        for folder in _folders_in(self.folder):
            for run_id, paths in _files_in(folder).items():
                for path in paths:
                    found[run_id].append(path)
                    lengths[run_id] += min(self._length(path, shorten), self.size)
        left = self.total
        for run_id in sorted(found, reverse=True):
            left -= lengths[run_id]
            if left < 0 and run_id not in at_work:
                _remove(found[run_id])
                for folder in {path.parent for path in found[run_id]}:
                    with suppress(OSError):
                        folder.rmdir()

    def _length(self, path: Path, shorten: Callable[[Path], object]) -> int:
        try:
            length = path.lstat().st_size
        except OSError:
            return 0
        if length > self.size and path.suffix == ".log":
            shorten(path)
        return length


def _check_path(folder: object) -> None:
    if not isinstance(folder, Path):
        raise DefinitionError("folder", folder, "is no path", "Write Path('output')")


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
        with open(made_anew(path), "w", encoding="utf-8", newline="") as file:
            file.write(text)
        if owner is not None:
            os.chown(path, owner, -1)

    def open_log(self) -> int:
        """A descriptor that appends to the log. Raises NoFile."""
        return opened(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def describe_output(self) -> str:
        """Where the output is that there is."""
        log, older = self.log.absolute(), older_part(self.log).absolute()
        match _is_filled(older), _is_filled(log):
            case True, True:
                return f"its output is in {log}, and what came before in {older}"
            case True, False:
                return f"its output is in {older}"
            case False, True:
                return f"its output is in {log}"
            case _:
                return "it printed nothing"

    def clean(self) -> None:
        """Removes what only the running command needs."""
        for path in (self.checkpoint, self.stdin):
            with suppress(OSError):
                path.unlink()


def older_part(log: Path) -> Path:
    """Where the end of a log is kept, when it begins anew."""
    return log.with_name(f"{log.name}.1")


def opened(path: Path, flags: int) -> int:
    """A descriptor of a file; nothing is followed, and nothing is waited for. Raises NoFile, OSError."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a pipe that nobody reads
            raise NoFile(f"{path} is no file") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NoFile(f"{path} is no file")
    os.set_blocking(descriptor, True)
    return descriptor


def made_anew(path: Path) -> int:
    """A descriptor of an empty file, in the place of whatever was there."""
    with suppress(FileNotFoundError):
        path.unlink()
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _is_filled(path: Path) -> bool:
    try:
        return path.lstat().st_size > 0
    except OSError:
        return False


def _folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as found:
            return [Path(one.path) for one in found if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _files_in(folder: Path) -> dict[int, list[Path]]:
    """The files of runs, by run."""
    found: dict[int, list[Path]] = defaultdict(list)
    with suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 - the names, and no paths around them
            if (match := FILE_OF_A_RUN.fullmatch(name)) is not None:
                found[int(match[1])].append(folder / name)
    return found


def _remove(paths: list[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()
