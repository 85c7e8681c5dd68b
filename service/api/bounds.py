"""The bounds of what a client may ask for, and the bucket that holds its rate.

Rules: every bound is here, with its unit; reaching one is an answer that says which, never an accident.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

import msgspec

from duly.scheduler.errors import DefinitionError


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a server bears.

    A request has at most `body` bytes, nested `depth` deep, with `batch` calls; after `reply` bytes of its reply, the
    calls that are left are refused. Its head arrives within `arrival` seconds, and so does its body. In the long run,
    `rate` calls a second are answered, and `burst` at once; of wrong tokens, `guesses` a second; of metrics, `scrapes`.
    A list is told in pieces of at most `listed` items and about `reply` bytes. At most `connections` are open. Of
    requests with the token, `pending` are being answered, so that there is room for those who watch, and `threads` make
    their calls at once. Raises DefinitionError for what is not greater than 0.
    """

    body: int = 1 << 20
    depth: int = 64
    batch: int = 100
    reply: int = 16 << 20
    arrival: float = 10.0
    rate: float = 1_000.0
    burst: float = 2_000.0
    guesses: float = 10.0
    scrapes: float = 20.0
    listed: int = 1_000
    connections: int = 200
    pending: int = 150
    threads: int = 8

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value: object = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
                raise DefinitionError(f"bounds.{name}", value, "is no bound", "Give a number greater than 0.")


class Bucket:
    """Lets so many pass a second, and so many at once. Any thread may ask."""

    def __init__(self, rate: float, burst: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._now = rate, max(burst, 1.0), now
        self._left, self._at = self._burst, now()
        self._lock = Lock()

    def take(self, count: int = 1) -> float:
        """Takes so many, all or none: 0 if they were there, else the seconds until they will be."""
        with self._lock:
            now = self._now()
            self._left = min(self._burst, self._left + (now - self._at) * self._rate)
            self._at = now
            if count <= self._left:
                self._left -= count
                return 0.0
            return (count - self._left) / self._rate


def is_deeper(value: object, depth: int) -> bool:
    """Whether decoded JSON is nested deeper than this."""
    level: list[object] = [value]
    for _ in range(depth + 1):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return False
    return True


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - any JSON
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType] - any JSON
