"""duly.journal: the authority. An append-only, fsynced, hash-chained journal of entries: one owner, any readers.

Rules kept here:
- This package imports nothing of duly outside of itself, reads no clock, and neither loads croniter nor tzdata.
- A name is loaded when it is first asked for. `PUBLIC` says from which module; the `TYPE_CHECKING` block says the
  same to type checkers, and a test holds the two together.
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if __name__ != "duly.journal":
    raise ImportError(f"this is the package duly.journal, not {__name__}: import duly.journal")

if TYPE_CHECKING:
    from duly.journal.archived import archive_at as archive_at
    from duly.journal.disk import Disk as Disk
    from duly.journal.disk import Identity as Identity
    from duly.journal.entries import Entry as Entry
    from duly.journal.entries import Json as Json
    from duly.journal.entries import TornTail as TornTail
    from duly.journal.errors import Error as Error
    from duly.journal.errors import ForeignJournal as ForeignJournal
    from duly.journal.errors import JournalArchived as JournalArchived
    from duly.journal.errors import JournalCorrupt as JournalCorrupt
    from duly.journal.errors import JournalError as JournalError
    from duly.journal.errors import JournalLocked as JournalLocked
    from duly.journal.errors import JournalPoisoned as JournalPoisoned
    from duly.journal.errors import LockUnsupported as LockUnsupported
    from duly.journal.errors import UnconfirmedGone as UnconfirmedGone
    from duly.journal.errors import UnencodableEntry as UnencodableEntry
    from duly.journal.errors import UnreadableJournal as UnreadableJournal
    from duly.journal.reader import Line as Line
    from duly.journal.reader import Reader as Reader
    from duly.journal.reader import Record as Record
    from duly.journal.reader import Unfinished as Unfinished
    from duly.journal.reader import read as read
    from duly.journal.real_disk import RealDisk as RealDisk
    from duly.journal.recovery import Recovery as Recovery
    from duly.journal.salvaging import Salvage as Salvage
    from duly.journal.salvaging import salvage as salvage
    from duly.journal.strict import frozen_json as frozen_json
    from duly.journal.verification import Damage as Damage
    from duly.journal.verification import Head as Head
    from duly.journal.verification import Verification as Verification
    from duly.journal.verification import head as head
    from duly.journal.verification import verify as verify
    from duly.journal.writer import Journal as Journal

PUBLIC = MappingProxyType(
    {
        name: f"duly.journal.{module}"
        for module, names in {
            "archived": "archive_at",
            "disk": "Disk Identity",
            "entries": "Entry Json TornTail",
            "errors": "Error ForeignJournal JournalArchived JournalCorrupt JournalError JournalLocked JournalPoisoned "
            "LockUnsupported UnconfirmedGone UnencodableEntry UnreadableJournal",
            "reader": "Line Reader Record Unfinished read",
            "real_disk": "RealDisk",
            "recovery": "Recovery",
            "salvaging": "Salvage salvage",
            "strict": "frozen_json",
            "verification": "Damage Head Verification head verify",
            "writer": "Journal",
        }.items()
        for name in names.split()
    }
)


def __getattr__(name: str) -> object:
    if name == "__all__":
        return list(PUBLIC)
    module = PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'duly.journal' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*PUBLIC, *(name for name in globals() if name.startswith("__"))])
