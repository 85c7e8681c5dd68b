"""The batch of one poll: the entries it has decided so far, and the bound that it is cut at.

Rules: what belongs together is added together or not at all; the first entries always find their place; once something
did not, the poll is cut, and what it lacks is left as it is for the next one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from duly.journal.entries import Entry, OccurrenceSkipped, OccurrenceSuperseded, SkipReason
from duly.scheduler.decisions.turns import Turn

BATCH_BYTES: Final = 1 << 20
_encode: Final = msgspec.json.Encoder().encode


class Batch:
    """The entries of a poll at `now`, at most `most` of them."""

    def __init__(self, now: datetime, most: int) -> None:
        self.entries: list[Entry] = []
        self.cut = False
        self._now = now
        self._most = most
        self._bytes = 0

    def add(self, *entries: Entry) -> bool:
        """Adds entries that belong together, or cuts the poll here."""
        size = self._bytes
        for entry in entries:
            size += len(_encode(entry)) + 1
        if self.entries and (size > BATCH_BYTES or len(self.entries) + len(entries) > self._most):
            self.cut = True
            return False
        self.entries.extend(entries)
        self._bytes = size
        return True

    def skip(  # noqa: PLR0913 - the fields of the entry
        self,
        turn: Turn,
        instant: datetime,
        reason: SkipReason,
        *,
        exhausts: bool,
        blocking_run: int | None = None,
        by: int | None = None,
        detail: str = "",
    ) -> bool:
        """Adds that an occurrence is skipped."""
        return self.add(
            OccurrenceSkipped(
                at=self._now,
                schedule_id=turn.schedule.id,
                scheduled_at=instant,
                revision=turn.schedule.revision,
                reason=reason,
                blocking_run=blocking_run,
                by=by,
                detail=detail,
                exhausts=exhausts,
            )
        )

    def supersede(self, turn: Turn, instant: datetime, by: datetime) -> bool:
        """Adds that an occurrence gives way to the one at `by`."""
        return self.add(
            OccurrenceSuperseded(
                at=self._now,
                schedule_id=turn.schedule.id,
                scheduled_at=instant,
                revision=turn.schedule.revision,
                by=by,
            )
        )
