"""Damage: every byte flipped, every cut, lines and segments moved about, and what each reader and owner says of it.

Each damage is refused with file, offset, sequence and remedy, and nothing is changed by the refusal; or it is a torn
tail by the rule (4.3.4 of the specification: in the last segment, beyond everything that is proven durable); or it
concerns HEAD, which is no authority. A reader says the same, or "unfinished". A salvage of each verifies: what is
intact stands where it stood, and what is lost is marked.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from unittest.mock import patch

import pytest

from duly.journal.entries import Entry, EntryLost
from duly.journal.errors import ForeignJournal, JournalCorrupt, JournalError, UnreadableJournal
from duly.journal.salvaging import salvage
from duly.journal.verification import verify
from duly.journal.writer import Journal
from tests.journal.campaign import foreign_journal, journal_id
from tests.journal.crash_images import digest, seeded
from tests.journal.ledger import JOURNAL, Ledger
from tests.journal.simulated_disk import Folder, Root, SimulatedDisk

SAVED = Root / "saved"
HEAD = "HEAD"
SEGMENT_BYTES = 1050
REFUSALS = (JournalCorrupt, ForeignJournal, UnreadableJournal)


@dataclass(frozen=True)
class Original:
    """An undamaged journal of several segments."""

    disk: SimulatedDisk
    entries: tuple[Entry, ...]
    names: tuple[str, ...]

    def copy(self, *, head: bool = True) -> SimulatedDisk:
        disk = self.disk.kill()
        if not head:
            disk.remove(JOURNAL / HEAD)
        return disk

    def content(self, name: str) -> bytes:
        return bytes(self.disk.file(JOURNAL / name).cache)

    def lines(self, name: str) -> list[bytes]:
        """The lines of the segment, header first, each with its newline."""
        return self.content(name).splitlines(keepends=True)


def an_original() -> Original:
    """Three segments: batches of one and of several entries; the last segment holds three lines."""
    disk, ledger = SimulatedDisk(), Ledger()
    with patch("duly.journal.recovery.new_journal_id", return_value=journal_id(77)):
        journal = Journal.open(JOURNAL, now=ledger.now, disk=disk, segment_bytes=SEGMENT_BYTES)
    for sizes in ((10,), (2, 2), (60,), (5,), (0, 0, 0), (9,), (20,), (1,)):
        entries = ledger.fresh(sizes)
        ledger.expect(entries)
        journal.append(entries, ledger.now)
    journal.close()
    names = tuple(sorted(path.name for path in disk.files() if path.suffix == ".jsonl"))
    original = Original(disk, tuple(ledger.entries), names)
    assert [len(original.lines(name)) for name in names] == [4, 4, 3], "a header and two or three lines each"
    return original


ORIGINAL = an_original()
LAST = ORIGINAL.names[-1]
FOREIGN = foreign_journal(77)


def put(disk: SimulatedDisk, name: str, content: bytes) -> SimulatedDisk:
    """Makes this the file's contents, durably."""
    path = JOURNAL / name
    if path not in disk.files():
        disk.close(disk.create(path))
    file = disk.file(path)
    file.cache[:] = content
    file.durable = content
    file.pending.clear()
    return disk


def damaged(name: str, content: bytes, *, head: bool = True) -> SimulatedDisk:
    return put(ORIGINAL.copy(head=head), name, content)


def seal(previous: bytes, line: bytes, *, chain: bool) -> bytes:
    """The line with its checksum made right, and its hash too if `chain`."""
    line = line.removesuffix(b"\n")
    h = sha256(previous + line[86:]).hexdigest().encode() if chain else line[21:85]
    checked = line[14:21] + h + line[85:]
    crc = zlib.crc32(checked, zlib.crc32(bytes.fromhex(journal_id(77))))
    return b'{"c":"%08x' % crc + checked + b"\n"


# what must hold


def check_refused(disk: SimulatedDisk, story: str, *, placed: bool = True) -> JournalError:
    """An owner refuses, tells where and what to do, and changes nothing; a reader reports the same."""
    before = digest(disk)
    with pytest.raises(REFUSALS) as caught:
        Journal.open(JOURNAL, now=Ledger().now, disk=disk, segment_bytes=SEGMENT_BYTES)
    error = caught.value
    assert digest(disk) == before, f"{story}: a refusal changed something"
    assert disk.open_handles() == [], story
    assert error.path is not None, story
    assert error.hint, story
    if placed and isinstance(error, JournalCorrupt):
        assert error.sequence is not None, story
        assert error.offset is not None, story
    check_reader_sees_damage(disk, story)
    return error


def check_reader_sees_damage(disk: SimulatedDisk, story: str) -> None:
    try:
        verification = verify(JOURNAL, disk=disk, sleep=_no_sleep)
    except (ForeignJournal, UnreadableJournal):
        return
    assert verification.damage is not None, f"{story}: a reader finds no fault"
    assert verification.damage.reason, story
    assert verification.damage.remedy, story
    assert not verification.intact


def check_torn(disk: SimulatedDisk, story: str, *, at_least: int) -> int:
    """A torn tail by the rule: a reader says unfinished or nothing, an owner keeps what it cuts and goes on."""
    verification = verify(JOURNAL, disk=disk, sleep=_no_sleep)
    assert verification.damage is None, f"{story}: a reader calls it damage: {verification}"
    size = len(disk.file(JOURNAL / LAST).cache)
    journal = Journal.open(JOURNAL, now=Ledger().now, disk=disk, segment_bytes=SEGMENT_BYTES)
    found = list(journal.entries())
    journal.close()
    assert [entry for _, entry in found] == list(ORIGINAL.entries[: len(found)]), story
    assert len(found) >= at_least, f"{story}: proven entries were cut"
    assert verification.sequence == len(found), story
    if verification.unfinished is not None:
        (torn,) = journal.recovery.torn
        assert torn.size == size - torn.offset, story
        assert JOURNAL / torn.kept in disk.files(), story
        assert len(disk.file(JOURNAL / torn.kept).cache) == torn.size
    return len(found)


def check_salvage(disk: SimulatedDisk, story: str, *, lost: Iterable[int]) -> None:
    """What is intact stands where it stood in a new journal that verifies; only what is in `lost` may be missing."""
    before = {path: bytes(file.cache) for path, file in disk.files().items()}
    saved = salvage(JOURNAL, SAVED, Ledger().now, disk=disk)
    assert {path: bytes(disk.file(path).cache) for path in before} == before, f"{story}: salvage wrote to its source"
    assert saved.journal_id != journal_id(77)
    verification = verify(SAVED, disk=disk, sleep=_no_sleep)
    assert verification.intact, f"{story}: {verification}"
    owner = Journal.open(SAVED, now=Ledger().now, disk=disk)
    found = dict(owner.entries())
    owner.close()
    may_be_lost = set(lost)
    for sequence, entry in enumerate(ORIGINAL.entries, 1):
        survivor = found.get(sequence)
        if survivor is None or isinstance(survivor, EntryLost):
            assert sequence in may_be_lost, f"{story}: entry {sequence} was intact and is not in the copy"
        else:
            assert survivor == entry, f"{story}: entry {sequence} came out changed"


def _no_sleep(seconds: float) -> None:
    del seconds


def places() -> Iterator[tuple[str, int, int, range]]:
    """(segment, first byte, end, sequences) for each line; a header has no sequences."""
    sequence = 1
    for name in ORIGINAL.names:
        offset = 0
        for number, line in enumerate(ORIGINAL.lines(name)):
            count = 0 if number == 0 else line.count(b'"kind":')
            yield name, offset, offset + len(line), range(sequence, sequence + count)
            offset += len(line)
            sequence += count


def touched(name: str, start: int, end: int) -> set[int]:
    """The sequences in the lines that the bytes from `start` to `end` are in; a newline belongs to both neighbours."""
    found: set[int] = set()
    for segment, first, last, sequences in places():
        if segment == name and first <= end and start < last:
            found.update(sequences)
    return found


def proven_without_head() -> int:
    """What later lines prove durable when HEAD is gone."""
    return list(places())[-1][3][0] - 1


# bytes


Change = Callable[[int], int]
FLIPS: dict[str, Change] = {
    "the lowest bit": lambda byte: byte ^ 1,
    "the highest bit": lambda byte: byte ^ 128,
    "NUL": lambda byte: 0 if byte else 1,
    "newline": lambda byte: 10 if byte != 10 else 32,
    "case": lambda byte: byte ^ 32,
}


def flipped(name: str, offset: int, change: Change, *, head: bool) -> SimulatedDisk:
    content = bytearray(ORIGINAL.content(name))
    content[offset] = change(content[offset])
    return damaged(name, bytes(content), head=head)


def check_flip(name: str, offset: int, kind: str, *, thorough: bool) -> None:
    story = f"{name}, byte {offset}, {kind}"
    check_refused(flipped(name, offset, FLIPS[kind], head=True), story)
    if not thorough and offset % 3:
        return
    without = flipped(name, offset, FLIPS[kind], head=False)
    if name == LAST and offset >= last_line_offset():
        check_torn(without, story, at_least=proven_without_head())
    else:
        check_refused(without, story)
    if thorough or offset % 7 == 0:
        check_salvage(flipped(name, offset, FLIPS[kind], head=True), story, lost=touched(name, offset, offset + 1))


def last_line_offset() -> int:
    return list(places())[-1][1]


def test_every_flipped_byte_is_refused_or_torn_by_the_rule() -> None:
    kinds = list(FLIPS)
    for name in ORIGINAL.names:
        for offset in range(len(ORIGINAL.content(name))):
            check_flip(name, offset, kinds[offset % len(kinds)], thorough=False)


@pytest.mark.torture
@pytest.mark.parametrize("kind", list(FLIPS))
def test_every_byte_flipped_in_every_way_is_refused_or_torn_and_can_be_salvaged(kind: str) -> None:
    for name in ORIGINAL.names:
        for offset in range(len(ORIGINAL.content(name))):
            check_flip(name, offset, kind, thorough=True)


def test_every_flipped_byte_of_head_costs_nothing() -> None:
    size = len(ORIGINAL.content(HEAD))
    for offset in range(size):
        content = bytearray(ORIGINAL.content(HEAD))
        content[offset] ^= 1
        disk = damaged(HEAD, bytes(content))
        verification = verify(JOURNAL, disk=disk, sleep=_no_sleep)
        assert verification.intact
        assert verification.entries == len(ORIGINAL.entries)
        owner = Journal.open(JOURNAL, now=Ledger().now, disk=disk)
        assert [entry for _, entry in owner.entries()] == list(ORIGINAL.entries)
        owner.close()
        assert disk.file(JOURNAL / HEAD).cache == ORIGINAL.content(HEAD), "HEAD was not mended"


# cuts


def check_cut(name: str, size: int, *, salvaging: bool) -> None:
    story = f"{name}, cut at {size}"
    content = ORIGINAL.content(name)[:size]
    check_refused(damaged(name, content), story, placed=size > 0)
    without = damaged(name, content, head=False)
    if name == LAST and size >= last_line_offset():
        check_torn(without, story, at_least=proven_without_head())
    elif name == LAST:
        # A cut tail is visible only through HEAD or an anchor: what is left may still be a whole journal.
        check_cut_unnoticed_or_refused(without, story)
    else:
        check_refused(without, story, placed=size > 0)
    if salvaging and size > 0:
        lost = {s for n, _, end, sequences in places() if n == name and end > size for s in sequences}
        check_salvage(damaged(name, content), story, lost=lost)


def check_cut_unnoticed_or_refused(disk: SimulatedDisk, story: str) -> None:
    verification = verify(JOURNAL, disk=disk, sleep=_no_sleep)
    assert verification.damage is None, story
    anchor = anchored()
    assert not verify(JOURNAL, anchor, disk=disk, sleep=_no_sleep).intact, f"{story}: the anchor notices nothing"


def anchored() -> tuple[int, str]:
    verification = verify(JOURNAL, disk=ORIGINAL.copy(), sleep=_no_sleep)
    return verification.sequence, verification.h


def test_every_cut_is_refused_or_torn_by_the_rule() -> None:
    for name in ORIGINAL.names:
        for size in range(0, len(ORIGINAL.content(name)), 3):
            check_cut(name, size, salvaging=size % 5 == 0)


@pytest.mark.torture
def test_every_cut_at_every_byte_is_refused_or_torn_and_can_be_salvaged() -> None:
    for name in ORIGINAL.names:
        for size in range(len(ORIGINAL.content(name))):
            check_cut(name, size, salvaging=True)


def test_what_is_written_behind_the_end_is_a_torn_tail_and_kept() -> None:
    whole = ORIGINAL.content(LAST)
    random = seeded("behind the end")
    foreign = b"".join(bytes(file.cache) for path, file in FOREIGN.files().items() if path.suffix == ".jsonl")
    tails = {
        "NULs": bytes(300),
        "one NUL": b"\0",
        "noise": random.randbytes(200),
        "newlines": b"\n\n\n",
        "lines of another journal": foreign[:700],
        "later lines of another journal": b"x\n" + b"".join(foreign.splitlines(keepends=True)[-4:]),
        "an older line of this journal": ORIGINAL.lines(ORIGINAL.names[0])[1],
        "the last line again": ORIGINAL.lines(LAST)[-1],
        "a header of this journal": ORIGINAL.lines(LAST)[0],
        "half a line": ORIGINAL.lines(LAST)[-1][:120],
    }
    for story, tail in tails.items():
        for head in (True, False):
            disk = damaged(LAST, whole + tail, head=head)
            assert check_torn(disk, story, at_least=len(ORIGINAL.entries)) == len(ORIGINAL.entries), story
        check_salvage(damaged(LAST, whole + tail), story, lost=())


# lines


def moved_lines() -> Iterator[tuple[str, str, list[bytes], set[int]]]:
    """(story, segment, lines, sequences that may be lost) for lines swapped, duplicated, deleted and edited."""
    for name in ORIGINAL.names:
        lines = ORIGINAL.lines(name)
        sequences = [set(each[3]) for each in places() if each[0] == name]
        for index in range(len(lines)):
            for other in range(index + 1, len(lines)):
                swapped = list(lines)
                swapped[index], swapped[other] = lines[other], lines[index]
                yield f"lines {index} and {other} swapped", name, swapped, set().union(*sequences[index : other + 1])
            yield f"line {index} twice", name, [*lines[: index + 1], *lines[index:]], set()
            yield f"line {index} deleted", name, lines[:index] + lines[index + 1 :], sequences[index]
            foreign = bytes(FOREIGN.file(JOURNAL / "00000001-0000000000000001.jsonl").cache).splitlines(keepends=True)
            replaced = [*lines[:index], foreign[index], *lines[index + 1 :]]
            yield f"line {index} from another journal", name, replaced, sequences[index]
            inserted = [*lines[:index], foreign[1], *lines[index:]]
            yield f"a line of another journal before line {index}", name, inserted, set()
            yield (
                f"line {index} as zeros",
                name,
                [*lines[:index], bytes(len(lines[index])), *lines[index + 1 :]],
                (sequences[index].union(*sequences[index + 1 : index + 2])),
            )


def test_lines_swapped_repeated_deleted_and_foreign_are_refused() -> None:
    count = 0
    for story, name, lines, lost in moved_lines():
        content = b"".join(lines)
        if content.startswith(ORIGINAL.content(name)) and name == LAST:
            continue  # behind the end: another test
        check_refused(damaged(name, content), f"{name}: {story}")
        check_salvage(damaged(name, content), f"{name}: {story}", lost=lost)
        count += 1
    assert count > 60


def test_an_edited_line_with_a_repaired_checksum_is_refused_by_the_chain() -> None:
    for name in ORIGINAL.names:
        lines = ORIGINAL.lines(name)
        for index in range(1, len(lines)):
            edited = lines[index].replace(b'"run_id":', b'"run_id":1', 1)
            assert edited != lines[index]
            content = b"".join([*lines[:index], seal(b"", edited, chain=False), *lines[index + 1 :]])
            error = check_refused(damaged(name, content), f"{name}, line {index} edited, checksum repaired")
            assert error.offset == sum(map(len, lines[:index]))
            place = [each for each in places() if each[0] == name][index]
            check_salvage(damaged(name, content), f"{name}, line {index} edited", lost=place[3])


def test_an_edited_line_with_checksum_and_hash_repaired_is_refused_by_the_line_after_it_or_by_head() -> None:
    for name in ORIGINAL.names:
        lines = ORIGINAL.lines(name)
        for index in range(1, len(lines)):
            previous = bytes.fromhex(lines[index - 1][21:85].decode())
            edited = seal(previous, lines[index].replace(b'"run_id":', b'"run_id":1', 1), chain=True)
            content = b"".join([*lines[:index], edited, *lines[index + 1 :]])
            check_refused(damaged(name, content), f"{name}, line {index} edited, checksum and hash repaired")


def test_a_rewritten_end_is_told_by_an_anchor_when_head_is_rewritten_too() -> None:
    lines = ORIGINAL.lines(LAST)
    previous = bytes.fromhex(lines[-2][21:85].decode())
    edited = seal(previous, lines[-1].replace(b'"run_id":', b'"run_id":1', 1), chain=True)
    disk = damaged(LAST, b"".join([*lines[:-1], edited]), head=False)
    Journal.open(JOURNAL, now=Ledger().now, disk=disk).close()
    assert verify(JOURNAL, disk=disk, sleep=_no_sleep).intact
    assert "another record" in verify(JOURNAL, anchored(), disk=disk, sleep=_no_sleep).expected


# segments


def test_a_missing_segment_is_refused() -> None:
    for index, name in enumerate(ORIGINAL.names):
        disk = ORIGINAL.copy()
        disk.remove(JOURNAL / name)
        check_refused(disk, f"{name} is missing", placed=False)
        lost = {s for n, _, __, sequences in places() if n == name for s in sequences}
        check_salvage(disk, f"{name} is missing", lost=lost)
        if index < 2:
            without = ORIGINAL.copy(head=False)
            without.remove(JOURNAL / name)
            check_refused(without, f"{name} and HEAD are missing", placed=False)


def test_swapped_copied_and_hard_linked_segments_are_refused() -> None:
    contents = {name: ORIGINAL.content(name) for name in ORIGINAL.names}
    first, second, third = ORIGINAL.names
    following = f"00000004-{len(ORIGINAL.entries) + 1:016d}.jsonl"
    stories: dict[str, dict[str, bytes]] = {
        "the first two swapped": {first: contents[second], second: contents[first]},
        "the last two swapped": {second: contents[third], third: contents[second]},
        "the second in the place of the third": {third: contents[second]},
        "the first in the place of the second": {second: contents[first]},
        "the last once more under the next name": {following: contents[third]},
        "the first once more under the next name": {following: contents[first]},
        "one of another journal": {second: bytes(FOREIGN.file(JOURNAL / first).cache)},
        "one of another journal under the next name": {following: bytes(FOREIGN.file(JOURNAL / first).cache)},
        "an empty one in the middle": {second: b""},
        "zeros in the middle": {second: bytes(len(contents[second]))},
        "zeros at the end": {third: bytes(len(contents[third]))},
        "zeros at the beginning": {first: bytes(len(contents[first]))},
    }
    for story, changes in stories.items():
        disk = ORIGINAL.copy()
        for name, content in changes.items():
            put(disk, name, content)
        check_refused(disk, story, placed=False)
    for target in (third, following):
        disk = ORIGINAL.copy()
        folder = disk.root.cache["journal"]
        assert isinstance(folder, Folder)
        folder.cache[target] = folder.durable[target] = disk.file(JOURNAL / second)
        check_refused(disk, f"the second hard-linked as {target}", placed=False)


def test_a_segment_there_twice_under_names_that_disagree_is_refused() -> None:
    for extra in ("00000002-0000000000000009.jsonl", "00000009-0000000000000099.jsonl", "00000002.jsonl", "x.jsonl"):
        disk = ORIGINAL.copy()
        put(disk, extra, ORIGINAL.content(ORIGINAL.names[1]))
        check_refused(disk, extra, placed=False)


def test_a_hole_of_zeros_anywhere_is_refused_or_torn_by_the_rule() -> None:
    for name in ORIGINAL.names:
        content = ORIGINAL.content(name)
        for start in range(0, len(content), 32):
            hole = min(64, len(content) - start)
            broken = content[:start] + bytes(hole) + content[start + hole :]
            story = f"{name}, zeros from {start}"
            check_refused(damaged(name, broken), story)
            check_salvage(damaged(name, broken), story, lost=touched(name, start, start + hole))


def test_the_original_is_whole() -> None:
    assert verify(JOURNAL, disk=ORIGINAL.copy(), sleep=_no_sleep).intact
    assert verify(JOURNAL, disk=ORIGINAL.copy(head=False), sleep=_no_sleep).intact
    check_salvage(ORIGINAL.copy(), "undamaged", lost=())
    assert [each[3] for each in places()][-1][-1] == len(ORIGINAL.entries)
