"""croniter, asked on a wall. The only module that imports it.

Rule: it is imported when the first cron expression is read, as importing croniter takes longer than all of duly's own
modules together, and a program that reads a journal has no use for it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from croniter import croniter

from duly.scheduler.zones import WALL_EPOCH


class NaiveCroniter(croniter):  # type: ignore[misc]  # croniter has no type information
    """croniter on a wall: times are read as they stand, where croniter takes a detour over UTC that costs a tenth of a
    search, and that some platforms refuse before 1970."""

    def timestamp_to_datetime(self, timestamp: float, tzinfo: object = None) -> datetime:
        return WALL_EPOCH + timedelta(0, timestamp)
