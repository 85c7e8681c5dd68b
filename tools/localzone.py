"""The zone of this machine, by its IANA name: where the times of a crontab without CRON_TZ are meant.

Rule: only what says a name counts ($TZ, or where /etc/localtime points); a machine that says none is in UTC.
"""

from __future__ import annotations

import os
from pathlib import Path

from duly.scheduler.zones import zone_names

LOCALTIME = Path("/etc/localtime")


def local_zone() -> str:
    """The name of this machine's zone, `UTC` where it cannot be told."""
    said = os.environ.get("TZ", "").removeprefix(":")
    if said in zone_names():
        return said
    try:
        target = LOCALTIME.resolve().as_posix()
    except OSError:
        return "UTC"
    _, found, name = target.partition("/zoneinfo/")
    name = name.removeprefix("posix/").removeprefix("right/")
    return name if found and name in zone_names() else "UTC"
