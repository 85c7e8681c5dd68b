"""Clock readings: which of the instants that entries carry were read by whoever decided.

Rule: a lost entry has none. Its `at` is the reading of the salvage, which says nothing of when its neighbours were
decided; so whatever looks for an instant among readings passes it over.
"""

from __future__ import annotations

from datetime import datetime

from duly.journal.entries import Entry, EntryLost


def clock_reading(entry: Entry) -> datetime | None:
    """The clock reading that the entry was decided by; None for a lost one."""
    return None if isinstance(entry, EntryLost) else entry.at


def is_until(entry: Entry, until: datetime) -> bool:
    """Whether the entry was decided at `until` or before."""
    reading = clock_reading(entry)
    return reading is not None and reading <= until


def is_since(entry: Entry, since: datetime) -> bool:
    """Whether the entry was decided at `since` or later."""
    reading = clock_reading(entry)
    return reading is not None and reading >= since
