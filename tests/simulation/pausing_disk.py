"""The simulated disk, with pauses for other threads and a planned death.

Rules: a pause comes before every call that changes something, never while the disk's own lock is held. Death comes at
the planned change, before or after it had its effect; what the next owner finds is fixed at that moment.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.journal.simulated_disk import PowerLost, SimulatedDisk


def _no_pause() -> None:
    """Nobody else is there."""


class PausingDisk(SimulatedDisk):
    """A `SimulatedDisk` that pauses, counts its changes, and dies when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.pause: Callable[[], None] = _no_pause
        self.doom: int | None = None
        """How many more changes happen; None: it does not die."""
        self.changes = 0
        self.last_gasp = False
        """Whether the change at which it dies still has its effect."""
        self.image_of: Callable[[PausingDisk], SimulatedDisk] = SimulatedDisk.kill
        self.image: PausingDisk | None = None
        """What the next owner finds, once this disk is dead."""

    @classmethod
    def like(cls, other: SimulatedDisk) -> PausingDisk:
        """A disk of this kind with all that the other holds."""
        disk = cls()
        disk.root = other.root
        disk.inodes = other.inodes
        disk.buried = other.buried
        disk.capacity = other.capacity
        return disk

    def die(self) -> None:
        """Fixes what is left, and answers no call any more."""
        self.image = PausingDisk.like(self.image_of(self))
        self.go_down()

    def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
        self._before_change()
        written = super().write(file, offset, data)
        self._after_change()
        return written

    def sync(self, file: int) -> None:
        self._before_change()
        super().sync(file)
        self._after_change()

    def sync_folder(self, folder: Path) -> None:
        self._before_change()
        super().sync_folder(folder)
        self._after_change()

    def create(self, path: Path) -> int:
        self._before_change()
        created = super().create(path)
        self._after_change()
        return created

    def truncate(self, file: int, size: int) -> None:
        self._before_change()
        super().truncate(file, size)
        self._after_change()

    def replace(self, source: Path, target: Path) -> None:
        self._before_change()
        super().replace(source, target)
        self._after_change()

    def _before_change(self) -> None:
        self.pause()
        self.changes += 1
        if self.doom is not None and not self.dead:
            self.doom -= 1
            if self.doom < 0 and not self.last_gasp:
                self.die()

    def _after_change(self) -> None:
        if self.doom is not None and self.doom < 0:
            self.die()
            raise PowerLost
