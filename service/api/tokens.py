"""The bearer token: a file that only its owner can read.

Rules: a token comes from a file and is never an argument that a list of processes shows; it is compared in constant
time, and appears in no text that is made of it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from duly.scheduler.errors import DefinitionError

SHORTEST: Final = 16
LONGEST: Final = 4_096


class Token:
    """A secret, that says nothing of itself when it is printed."""

    def __init__(self, secret: str) -> None:
        if not SHORTEST <= len(secret) <= LONGEST or not secret.isascii() or not secret.isprintable() or " " in secret:
            remedy = (
                f"Use {SHORTEST} to {LONGEST:,} ASCII characters without spaces, for example of openssl rand -hex 32."
            )
            raise DefinitionError("token", "…", "is not a token", remedy)
        self._secret = secret
        self._digest = hashlib.sha256(secret.encode()).digest()

    @property
    def header(self) -> str:
        """The value of the header `Authorization`."""
        return f"Bearer {self._secret}"

    def opens(self, authorization: str) -> bool:
        """Whether the value of a header `Authorization` has this token; takes as long for each that has not."""
        scheme, _, given = authorization.partition(" ")
        digest = hashlib.sha256(given.strip().encode("utf-8", "surrogateescape")).digest()
        return hmac.compare_digest(digest, self._digest) and scheme.lower() == "bearer"

    def __repr__(self) -> str:
        return "Token(…)"


def read_token(path: Path | str) -> Token:
    """The token in the file. Raises OSError, and DefinitionError for a file that others may read or change, or that
    holds no token."""
    place = Path(path)
    with place.open("rb") as file:
        status = os.fstat(file.fileno())
        text = file.read(LONGEST + 2)
    if os.name == "posix" and status.st_uid not in (0, os.geteuid()):
        remedy = f"Write a new token to a file of your own: whoever owns {place} knows this one."
        raise DefinitionError("token_file", str(place), f"belongs to the user {status.st_uid}", remedy)
    if os.name == "posix" and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        shown = oct(stat.S_IMODE(status.st_mode))
        raise DefinitionError(
            "token_file", str(place), f"has the mode {shown}: others can use it", f"Do: chmod 600 {place}"
        )
    try:
        return Token(text.decode("utf-8", "replace").strip())
    except DefinitionError as error:
        remedy = f"Remove it, and a service makes one; or write one: {error.remedy}"
        raise DefinitionError("token_file", str(place), "holds no token", remedy) from None


def ensure_token(path: Path | str) -> Token:
    """The token in the file, which is made with a new one if it is not there. Raises as `read_token` does."""
    with suppress(FileExistsError):
        _make(Path(path))
    return read_token(path)


def _make(place: Path) -> None:
    """Makes the file, whole or not at all. Raises FileExistsError if it is there."""
    if place.exists():
        raise FileExistsError(place)
    draft = place.with_name(f"{place.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:  # noqa: PTH123 - of a descriptor
            file.write(f"{secrets.token_urlsafe(32)}\n")
            file.flush()
            os.fsync(file.fileno())
        place.hardlink_to(draft)  # which replaces nothing
    finally:
        draft.unlink(missing_ok=True)
