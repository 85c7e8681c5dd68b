"""References: which fields of entries name another entry by its sequence, and what they become in another numbering.

Rules kept here:
- a reference is a whole number in a field of `REFERENCES`; every other whole number is a quantity, and a test holds
  that each field of the union is one or the other;
- a numbering keeps the order: what was recorded earlier has the lower number, so that whatever is sorted by run or
  sequence sorts as it did.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Final

import msgspec

from duly.journal.entries import ENTRY_CLASSES, Entry

REFERENCES: Final = frozenset({"run_id", "attempt_id", "blocking_run", "by", "through"})
"""The fields that name an entry where they hold a whole number (`by` and `through` are instants in other kinds)."""

_FIELDS: Final[dict[type[Entry], tuple[str, ...]]] = {
    kind: tuple(name for name in kind.__struct_fields__ if name in REFERENCES) for kind in ENTRY_CLASSES
}


class Renumbering:
    """Which number an entry has in a journal that was copied without some of its entries, or with others between.

    Kept as the places where the distance between the two numbers changes, so that it is small.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._distances: list[int] = []

    def note(self, was: int, now: int) -> None:
        """The entry `was` is now `now`. Both only ever grow."""
        if not self._starts or now - was != self._distances[-1]:
            self._starts.append(was)
            self._distances.append(now - was)

    def of(self, was: int) -> int:
        """The new number of an entry that was copied. Of one that was not: what it would be, had it been."""
        place = bisect_right(self._starts, was) - 1
        return was if place < 0 else was + self._distances[place]

    def renumbered(self, entry: Entry) -> Entry:
        """The entry, with its references in the new numbering."""
        changes: dict[str, Any] = {}
        for name in _FIELDS[type(entry)]:
            value: object = getattr(entry, name)
            if isinstance(value, int) and self.of(value) != value:
                changes[name] = self.of(value)
        return msgspec.structs.replace(entry, **changes) if changes else entry
