"""The errors of the journal, and `Error`, the one base of everything duly raises on purpose.

Rules: an error says which operation failed, on which path, at which position, and what to do next. Its text is for
people; its attributes are for programs.
"""

from __future__ import annotations

from pathlib import Path


class Error(Exception):
    """The base of every error that duly raises on purpose."""


class JournalError(Error):
    """Something about a journal is not as it must be.

    `path` is the file or folder, `offset` the byte in it, `sequence` the entry number, `hint` what to do next; each
    is None (or empty) where it does not apply.
    """

    def __init__(
        self,
        message: str,
        *,
        path: Path | str | None = None,
        offset: int | None = None,
        sequence: int | None = None,
        hint: str = "",
    ) -> None:
        self.message = message
        self.path = None if path is None else Path(path)
        self.offset = offset
        self.sequence = sequence
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        places = [
            str(self.path) if self.path is not None else "",
            f"offset {self.offset}" if self.offset is not None else "",
            f"sequence {self.sequence}" if self.sequence is not None else "",
        ]
        where = ", ".join(place for place in places if place)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text}. {self.hint}" if self.hint else text


class JournalLocked(JournalError):
    """Somebody else owns the journal; the text tells who, for people, where that can be told."""


class LockUnsupported(JournalError):
    """The file system cannot hold the ownership lock that the journal's promises rest on."""


class JournalCorrupt(JournalError):
    """Acknowledged data is damaged or missing. Nothing was changed."""


class JournalPoisoned(JournalError):
    """A write, an fsync or the code around them failed: this writer is finished, and the last append is
    indeterminate. Reopen the journal to learn what it holds."""


class ForeignJournal(JournalError):
    """The folder is not a journal, or holds files that are not the journal's."""


class UnreadableJournal(JournalError):
    """The journal cannot be read by this version or at this moment (an I/O error, an unknown entry kind or format
    version); it is not known to be damaged."""


class JournalArchived(UnreadableJournal):
    """What is asked for was archived, and the archive was not named or is not there. The record is whole: name the
    archive."""


class UnconfirmedGone(UnreadableJournal):
    """A reader had read entries that were not known to be durable, and they are gone: they were never acknowledged, and
    the record goes on without them. It is whole; read it again from its beginning."""


class UnencodableEntry(JournalError, ValueError):
    """An entry cannot be written: NaN or Infinity, a lone surrogate, a set, too deep, too large. Nothing was
    written."""
