"""Bringing a journal's end into order when an owner opens it: section 4.3 of the specification.

Rules kept here:
- First everything is looked at, then what must not be changed is refused, and only then is anything changed.
- Bytes that are cut off are kept first, in `torn/`.
- A readable tail that nothing proves durable is saved to a synced side file, written again and synced before it is
  trusted: after a failed fsync the kernel calls pages clean that never reached the disk.
- Each step may be interrupted by a crash and is done again, with the same outcome, by the next opening.
"""

from __future__ import annotations

import errno
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from duly.journal.checkpoint import (
    CheckpointDoubted,
    CheckpointFile,
    Folding,
    Position,
    find_checkpoint,
    line_before,
    place_after,
)
from duly.journal.disk import Disk
from duly.journal.entries import TornTail
from duly.journal.errors import JournalCorrupt
from duly.journal.format import FIRST_HASH, header_line, seed
from duly.journal.judgement import SALVAGE
from duly.journal.mark import Mark, read_mark
from duly.journal.rewriting import Saved, encode_saved, overlaid, read_saved
from duly.journal.scanning import Place, Read, reader_of
from duly.journal.segments import REWRITE, REWRITE_NEW, TORN, Listing, Segment
from duly.journal.survey import Survey, Surveyor, readable_header, reading

NOT_OURS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL, errno.ENOENT})
"""What the sync of a folder says that this process cannot reach, and can have made no name in, or that has no sync."""

_log = logging.getLogger("duly.journal")

_TORN_NAME = "{stem}-{offset}{again}.bin"


class Recovery(NamedTuple):
    """What opening found and did."""

    created: bool = False
    torn: tuple[TornTail, ...] = ()
    """What was cut off and is not yet recorded by a JournalOpened."""
    rewritten: int = 0
    """How many readable bytes were written again because nothing proved them durable."""
    restored: int = 0
    """How many bytes came back from the side file of an interrupted rewrite."""
    warnings: tuple[str, ...] = ()
    checkpoint: int = 0
    """The last entry of the state that was taken from the checkpoint; 0 if none was."""


class Recovered(NamedTuple):
    """A journal that is ready to be appended to."""

    journal_id: str
    segments: tuple[Segment, ...]
    place: Place
    recovery: Recovery


def new_journal_id() -> str:
    """A fresh, random journal id."""
    return os.urandom(16).hex()


class Recoverer:
    """Recovers one journal whose lock is held. `file` is its last segment, open for writing."""

    def __init__(self, disk: Disk, folder: Path, found: Listing, file: int, folding: Folding | None = None) -> None:
        self._disk = disk
        self._folding = folding
        self._durable = 0
        self._folder = folder
        self._found = found
        self._file = file
        self._segment = found.segments[-1]
        self._path = folder / self._segment.name
        self._warnings = [f"the journal's folder holds a file that is not the journal's: {n}" for n in found.strangers]

    def recover(self) -> Recovered:
        """Looks, refuses or mends, and says what was done."""
        with reading(self._path):
            saved = self._saved()
            mark = self._mark(saved)
        start = self._checkpoint(saved)
        survey = self._survey(mark, saved, start)
        if survey.torn_header:
            return self._create_again(survey)
        restored = self._restored(saved)
        torn = self._cut_records(survey)
        rewritten = self._mend(survey, saved if restored else None)
        return Recovered(
            survey.journal_id,
            survey.segments,
            survey.place,
            Recovery(
                False,
                torn,
                rewritten,
                restored,
                tuple(self._warnings),
                0 if start is None or self._folding is None else start.place.next - 1,
            ),
        )

    def _checkpoint(self, saved: Saved | None) -> Position | None:
        """Where the journal goes on after the state that the checkpoint holds, which was loaded then; None if the
        whole journal is to be folded."""
        if self._folding is None:
            return None
        self._folding.begin()
        try:
            with reading(self._path):
                found = find_checkpoint(self._disk, self._folder)
                return None if found is None else self._loaded(found, saved, self._folding)
        except CheckpointDoubted as doubt:
            self._folding.begin()
            self._doubt(str(doubt))
            return None

    def _loaded(self, found: CheckpointFile, saved: Saved | None, folding: Folding) -> Position | None:
        segment, place = found.position
        there = next((one for one in self._found.segments if one.number == segment), None)
        is_beyond = segment > self._segment.number
        if there is not None:
            is_beyond = not self._stands(found, there, saved)
        elif not is_beyond:
            raise CheckpointDoubted("the segment that it was made after is archived")
        found.load(folding)
        # It was made of what was durable: what the journal lacks of that is missing.
        self._durable = place.next - 1
        if not is_beyond:
            return found.position
        folding.begin()
        return None

    def _stands(self, found: CheckpointFile, segment: Segment, saved: Saved | None) -> bool:
        """Whether the line that the checkpoint was made after is there; False if the segment ends before it. Raises
        CheckpointDoubted if another one stands there."""
        path = self._folder / segment.name
        file = self._disk.open(path)
        try:
            read = reader_of(self._disk, file)
            size = self._disk.size(file)
            if segment == self._segment and saved is not None:
                read, size = overlaid(read, saved), max(size, saved.end)
            header = readable_header(path, read)
            if header is None or header.journal_id != found.journal_id:
                raise CheckpointDoubted("it belongs to another journal")
            place = found.position.place
            if place.offset > size:
                if segment != self._segment:
                    raise CheckpointDoubted("the journal has another line where it was made")
                return False
            if place_after(line_before(read, place.offset), seed(header.journal_id), place.offset) != place:
                raise CheckpointDoubted("the journal has another line where it was made")
        finally:
            self._disk.close(file)
        return True

    def _doubt(self, why: str) -> None:
        warning = f"the checkpoint is ignored, and all entries are read: {why}"
        self._warnings.append(warning)
        _log.warning("%s: %s", self._folder, warning)

    def _mark(self, saved: Saved | None) -> Mark | None:
        mark = read_mark(self._disk, self._folder)
        if mark is None:
            if self._segment.number > 1 or self._disk.size(self._file) > 0:
                self._warnings.append("HEAD is missing or torn: a cut tail could not be noticed by it")
            return None
        first = self._found.segments[0]
        file = self._disk.open(self._folder / first.name)
        try:
            # The header itself may be what a broken rewrite left in the side file.
            read = overlaid(
                lambda offset, size: self._disk.read(file, offset, size), saved if first == self._segment else None
            )
            header = readable_header(self._folder / first.name, read)
        finally:
            self._disk.close(file)
        if header is not None and header.journal_id != mark.journal_id:
            self._warnings.append(f"HEAD belongs to another journal ({mark.journal_id}) and is ignored")
            return None
        return mark

    def _saved(self) -> Saved | None:
        return read_saved(self._disk, self._folder, self._segment.number) if REWRITE in self._found.ours else None

    def _survey(self, mark: Mark | None, saved: Saved | None, start: Position | None) -> Survey:
        with reading(self._path):
            size = self._disk.size(self._file)
        if saved is not None and saved.offset > size:
            raise JournalCorrupt(
                f"the segment ends before offset {saved.offset}, from where on the side file {REWRITE} continues it",
                path=self._path,
                offset=size,
                hint=SALVAGE,
            )
        segments = self._found.segments
        return Surveyor(self._disk, self._folder, segments, mark, self._durable, start, self._folding).survey(
            self._overlaid(saved), size if saved is None else max(size, saved.end)
        )

    def _overlaid(self, saved: Saved | None) -> Read:
        return overlaid(reader_of(self._disk, self._file), saved)

    def _restored(self, saved: Saved | None) -> int:
        if saved is None:
            return 0
        with reading(self._path):
            there = self._disk.read(self._file, saved.offset, len(saved.data))
        return 0 if there == saved.data else len(saved.data)

    def _cut_records(self, survey: Survey) -> tuple[TornTail, ...]:
        """Keeps the torn tail in `torn/`, and names every copy that no JournalOpened can have recorded: as long as
        nothing was appended since, the segment still ends where that one was cut."""
        if survey.fault:
            with reading(self._path):
                tail = self._overlaid(self._saved())(survey.place.offset, survey.size - survey.place.offset)
            self._keep(tail, survey.place.offset)
        return self._kept(survey.place.offset)

    def _kept(self, offset: int) -> tuple[TornTail, ...]:
        folder = self._folder / TORN
        try:
            names = self._disk.names(folder)
        except FileNotFoundError:
            return ()
        prefix = _TORN_NAME.format(stem=self._path.stem, offset=offset, again="")[:-4]
        records: list[TornTail] = []
        for name in sorted(names):
            if name == f"{prefix}.bin" or (name.startswith(f"{prefix}.") and name.endswith(".bin")):
                file = self._disk.open(folder / name)
                try:
                    size = self._disk.size(file)
                finally:
                    self._disk.close(file)
                records.append(TornTail(self._segment.name, offset, size, f"{TORN}/{name}"))
        return tuple(records)

    def _keep(self, data: bytes, offset: int) -> None:
        if not data:
            return
        folder = self._folder / TORN
        with suppress(FileExistsError):
            self._disk.make_folder(folder)
        self._disk.sync_folder(self._folder)
        for number in range(1, 10_000):
            again = "" if number == 1 else f".{number}"
            path = folder / _TORN_NAME.format(stem=self._path.stem, offset=offset, again=again)
            if self._write_copy(path, data):
                break
        self._disk.sync_folder(folder)

    def _write_copy(self, path: Path, data: bytes) -> bool:
        """False if the name is taken by other bytes."""
        try:
            file = self._disk.create(path)
        except FileExistsError:
            file = self._disk.open(path, write=True)
        try:
            if not data.startswith(self._disk.read(file, 0, len(data) + 1)):
                return False
            # What an interrupted copy holds may never have reached the disk: it is written again as a whole.
            write_all(self._disk, file, 0, data)
            self._disk.sync(file)
        finally:
            self._disk.close(file)
        return True

    def _mend(self, survey: Survey, saved: Saved | None) -> int:
        end = survey.place.offset
        start = min(survey.proven, saved.offset if saved else survey.proven, end)
        with reading(self._path):
            tail = self._overlaid(saved)(start, end - start)
        if tail:
            self._save(Saved(survey.journal_id, self._segment.number, start, tail))
        if self._disk.size(self._file) > end:
            self._disk.truncate(self._file, end)
            if start == 0:
                # A header that is torn while it is written again must not be longer than one: that would be damage.
                self._disk.sync(self._file)
        if tail:
            write_all(self._disk, self._file, start, tail)
        # Even where nothing was mended: an opening before this one may have cut the tail and been interrupted before
        # its sync, and a segment that the next line does not fit in is never synced again.
        self._disk.sync(self._file)
        self._disk.sync_folder(self._folder)
        if survey.durable == 0:
            sync_ancestors(self._disk, self._folder)
        if tail or REWRITE in self._found.ours:
            self._disk.remove(self._folder / REWRITE)
            self._disk.sync_folder(self._folder)
        return len(tail)

    def _save(self, saved: Saved) -> None:
        """Writes the side file; an older one holds nothing that this one does not."""
        # The segment's own name first: a side file without it would look like a journal that lost its segments.
        self._disk.sync_folder(self._folder)
        path = self._folder / REWRITE
        fresh = self._folder / REWRITE_NEW
        data = encode_saved(saved)
        try:
            file = self._disk.create(fresh)
        except FileExistsError:
            file = self._disk.open(fresh, write=True)
        try:
            if self._disk.size(file):
                self._disk.truncate(file, 0)
            write_all(self._disk, file, 0, data)
            self._disk.sync(file)
        finally:
            self._disk.close(file)
        self._disk.replace(fresh, path)
        self._disk.sync_folder(self._folder)

    def _create_again(self, survey: Survey) -> Recovered:
        """A last segment that was torn while it was created: nothing but a part of its header can be in it."""
        with reading(self._path):
            torn = self._disk.read(self._file, 0, survey.size)
        self._keep(torn, 0)
        journal_id = survey.journal_id or new_journal_id()
        sealed = header_line(journal_id, self._segment.number, survey.place.next, survey.place.h, survey.previous_bytes)
        write_header(self._disk, self._file, sealed.line)
        self._disk.sync_folder(self._folder)
        if survey.durable == 0:
            sync_ancestors(self._disk, self._folder)
        place = Place(survey.place.next, sealed.h, len(sealed.line) + 1)
        recovery = Recovery(self._segment.number == 1, self._kept(0), 0, 0, tuple(self._warnings))
        return Recovered(journal_id, survey.segments, place, recovery)


def sync_ancestors(disk: Disk, folder: Path) -> None:
    """Makes the names of the folder and of those around it durable: a creation that a crash broke off may have made
    them and not got as far as that. Once an entry was acknowledged they are."""
    disk.sync_folder(folder.parent)
    for ancestor in folder.parent.parents:
        try:
            disk.sync_folder(ancestor)
        except OSError as error:
            if error.errno not in NOT_OURS:
                raise
            return


def create_first_segment(disk: Disk, file: int) -> tuple[str, Place]:
    """The header of a new journal, written and synced; its id and where it goes on."""
    journal_id = new_journal_id()
    sealed = header_line(journal_id, 1, 1, FIRST_HASH, 0)
    write_header(disk, file, sealed.line)
    return journal_id, Place(1, sealed.h, len(sealed.line) + 1)


def write_header(disk: Disk, file: int, line: bytes) -> None:
    """Makes the header the file's whole contents, durably."""
    disk.truncate(file, 0)
    write_all(disk, file, 0, line + b"\n")
    disk.sync(file)


def write_all(disk: Disk, file: int, offset: int, data: bytes) -> None:
    """Writes it all. A short write goes on where it stopped; one that writes nothing is an error."""
    written = disk.write(file, offset, data)
    if written == len(data):
        return
    rest = memoryview(data)
    while True:
        if written <= 0:
            raise OSError("the disk wrote nothing")
        rest = rest[written:]
        offset += written
        if not rest:
            return
        written = disk.write(file, offset, rest)
