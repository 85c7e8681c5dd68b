"""Where a service is: a host and port, or a socket in the file system, in one notation for servers and clients.

Rules: `HOST:PORT`, `:PORT` (this machine alone) or `unix:PATH`; a socket file is for its owner alone, and one that
nobody listens on any more gives way to the next; a listener that ends removes its own file and no other.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from duly.scheduler.errors import DefinitionError

BACKLOG: Final = 100
"""How many connections wait to be let in."""
PROBED: Final = 1.0
"""Seconds in which somebody who listens lets a connection in."""


class Address(msgspec.Struct, frozen=True):
    """An address: `socket` is the path of a socket, or `host` and `port` are set."""

    host: str = ""
    port: int = 0
    socket: str = ""

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        if self.socket or self.host == "localhost":
            return True
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return False

    @property
    def url(self) -> str:
        """What an HTTP client asks; for a socket, a name that stands for it."""
        if self.socket:
            return "http://duly"
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"unix:{self.socket}" if self.socket else self.url.removeprefix("http://")


def parse_address(text: str) -> Address:
    """The address that is written. Raises DefinitionError."""
    if text.startswith("unix:") and len(text) > len("unix:"):
        return Address(socket=text.removeprefix("unix:"))
    host, colon, port = text.removeprefix("http://").rstrip("/").rpartition(":")
    if colon and port.isascii() and port.isdecimal() and int(port) < 1 << 16:
        return Address(host=host.strip("[]") or "127.0.0.1", port=int(port))
    raise DefinitionError("address", text, "is no address", "Write 127.0.0.1:8080, :8080, or unix:/run/duly.sock.")


class Listener:
    """A socket that listens at an address, from `open` to `close`; what connects waits until it is served."""

    def __init__(self, listening: socket.socket) -> None:
        self.socket: Final = listening
        name = listening.getsockname()
        self.address: Final = Address(socket=name) if isinstance(name, str) else Address(host=name[0], port=name[1])
        """Where it listens, with the port that the system has chosen."""
        self._file = _identity(self.address)

    @classmethod
    def open(cls, address: str) -> Self:
        """Raises DefinitionError for what is no address; OSError, also if somebody listens there already."""
        where = parse_address(address)
        if where.socket:
            _make_room(Path(where.socket))
        family = socket.AF_UNIX if where.socket else socket.AF_INET6 if ":" in where.host else socket.AF_INET
        # Named so, a connection is known as one of TCP, and its small packets are not held back.
        listening = socket.socket(family, socket.SOCK_STREAM, 0 if where.socket else socket.IPPROTO_TCP)
        try:
            _bind(listening, where)
            listening.listen(BACKLOG)
            return cls(listening)
        except OSError as error:
            listening.close()
            raise OSError(error.errno, error.strerror, str(where)) from None

    def close(self) -> None:
        """Ends it, and removes its file, unless another has taken the place. Closing again does nothing."""
        self.socket.close()
        if self._file is not None and _identity(self.address) == self._file:
            Path(self.address.socket).unlink(missing_ok=True)
        self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _identity(address: Address) -> tuple[int, int, int] | None:
    """Tells the file of a socket from one that takes its place, perhaps with the same number; None if there is none."""
    if not address.socket:
        return None
    with suppress(OSError):
        status = Path(address.socket).lstat()
        return status.st_dev, status.st_ino, status.st_ctime_ns
    return None


def _bind(listening: socket.socket, address: Address) -> None:
    if address.socket:
        listening.bind(address.socket)
        Path(address.socket).chmod(0o600)  # before anybody can connect
        return
    if os.name == "posix":
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((address.host, address.port))


def _make_room(path: Path) -> None:
    """Removes a socket that nobody listens on. Raises OSError if somebody does, or if it is another file."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(f"{path} is there, and no socket: choose another name")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(PROBED)
            if probe.connect_ex(str(path)) not in (errno.ECONNREFUSED, errno.ENOENT):  # a full one is somebody's, too
                raise OSError(errno.EADDRINUSE, "somebody listens there already", str(path))
        path.unlink()
