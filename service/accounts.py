"""Users of the machine, for commands that run as somebody else.

Rules: a host that is not root runs commands as itself alone, and says so; whoever is named gets his groups, his home
and his name in the environment, as cron does it.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec


class NoSuchAccount(Exception):
    """The user is unknown, or the host may not run commands as that user."""


class Account(msgspec.Struct, frozen=True):
    """A user of this machine."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        """What the user's programs expect."""
        return {"HOME": str(self.home), "LOGNAME": self.name, "USER": self.name}


def account_of(user: str | None) -> Account | None:
    """The account to change to; None if there is nothing to change. Raises NoSuchAccount."""
    if user is None:
        return None
    import pwd  # there is none on Windows, where commands are not executed

    try:
        found = pwd.getpwnam(user)
    except KeyError:
        raise NoSuchAccount(f"this machine has no user {user!r}") from None
    if found.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise NoSuchAccount(f"only root may run commands as {user!r}: start the host as root, or as {user!r}")
    groups = tuple(os.getgrouplist(user, found.pw_gid))
    return Account(user, found.pw_uid, found.pw_gid, groups, Path(found.pw_dir))
