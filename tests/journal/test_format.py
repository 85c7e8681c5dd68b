"""The format, to the byte."""

from __future__ import annotations

import json
import zlib
from hashlib import sha256
from pathlib import Path

import pytest

from duly.journal import Journal, head
from duly.journal.format import (
    BODY,
    batch_body,
    crc_fits,
    envelopes,
    fits,
    header_line,
    header_version,
    microseconds,
    parse_header,
    seal,
    seed,
)
from duly.journal.mark import HEAD_SIZE, Mark, encode_mark, parse_mark
from tests.journal.samples import NOW, fill, note, segments
from tests.journal.verifier import verified

ID = "000102030405060708090a0b0c0d0e0f"


def test_a_batch_is_one_line_with_checksum_and_chain_at_fixed_places():
    previous = bytes(range(32))
    sealed = seal(previous, seed(ID), batch_body(7, 6, 1767259800000000, b'[{"kind":"JournalClosed"}]'))
    body = b',"s":7,"d":6,"t":1767259800000000,"e":[{"kind":"JournalClosed"}]}'
    h = sha256(previous + body).hexdigest().encode()
    checked = b'","h":"' + h + b'"' + body
    c = b"%08x" % zlib.crc32(checked, zlib.crc32(bytes(range(16))))
    assert sealed.line == b'{"c":"' + c + checked
    assert sealed.line[6:14] == c
    assert sealed.line[21:85] == h
    assert sealed.line[BODY:] == body
    assert sealed.h.hex().encode() == h


def test_a_header_names_format_journal_segment_and_predecessor():
    sealed = header_line(ID, 2, 31, bytes(32), 4096)
    assert sealed.line[BODY:] == (
        b',"v":1,"j":"000102030405060708090a0b0c0d0e0f","g":2,"s":31,"p":"' + b"0" * 64 + b'","b":4096}'
    )
    assert parse_header(sealed.line) == (ID, 2, 31, bytes(32), 4096, sealed.h, len(sealed.line) + 1)


def test_a_header_with_any_byte_changed_is_none():
    line = header_line(ID, 2, 31, bytes(32), 4096).line
    for place in range(len(line)):
        for flip in (0x01, 0x20, 0x80):
            changed = line[:place] + bytes([line[place] ^ flip]) + line[place + 1 :]
            assert parse_header(changed) is None, (place, flip)


def test_a_line_with_any_byte_changed_does_not_fit():
    line = seal(bytes(32), seed(ID), batch_body(1, 0, 0, b'[{"kind":"JournalClosed"}]')).line
    assert fits(line, bytes(32), seed(ID)) is not None
    for place in range(len(line)):
        for flip in (0x01, 0x20, 0x80):
            changed = line[:place] + bytes([line[place] ^ flip]) + line[place + 1 :]
            assert fits(changed, bytes(32), seed(ID)) is None, (place, flip)
            assert not crc_fits(changed, seed(ID)), (place, flip)


def test_a_block_of_another_journal_is_refused_by_the_seeded_checksum():
    line = seal(bytes(32), seed(ID), batch_body(1, 0, 0, b"[1]")).line
    assert crc_fits(line, seed(ID))
    assert not crc_fits(line, seed("f" * 32))


def test_a_newer_version_is_told_from_a_damaged_header():
    line = header_line(ID, 1, 1, bytes(32), 0).line
    newer = seal(bytes(32), seed(ID), line[BODY:].replace(b'"v":1', b'"v":2')).line
    assert header_version(newer) == 2
    assert header_version(newer.replace(b'"v":2', b'"v":3')) is None


def test_a_good_line_is_found_behind_a_bad_one_that_lost_its_newline():
    line = seal(bytes(32), seed(ID), batch_body(1, 0, 0, b"[1]")).line
    assert [piece for _, piece in envelopes(line[:40] + b"\xff" + line) if crc_fits(piece, seed(ID))] == [line]


def test_time_is_exact_to_the_microsecond_and_never_naive():
    assert microseconds(NOW) == 1767259800000000
    assert microseconds(NOW.replace(year=1901, microsecond=1)) == -2177418599999999
    with pytest.raises(ValueError, match="naive"):
        microseconds(NOW.replace(tzinfo=None))


def test_head_is_one_line_of_fixed_size():
    mark = Mark(ID, 12, 3, 4567, bytes(range(32)))
    data = encode_mark(mark, seed(ID))
    assert len(data) == HEAD_SIZE
    assert data.endswith(b" \n")
    assert parse_mark(data) == mark
    assert json.loads(data) == {
        "c": data[6:14].decode(),
        "j": ID,
        "s": 12,
        "g": 3,
        "o": 4567,
        "h": bytes(range(32)).hex(),
    }


def test_head_with_any_byte_changed_is_ignored():
    data = encode_mark(Mark(ID, 12, 3, 4567, bytes(range(32))), seed(ID))
    for place in range(len(data)):
        assert parse_mark(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]) is None, place
    assert parse_mark(b"") is None
    assert parse_mark(data[:100]) is None
    assert parse_mark(data + b"x") is None


def test_the_journal_on_disk_is_what_the_format_says(tmp_path: Path):
    with Journal.open(tmp_path / "journal", now=NOW) as journal:
        journal.append([note(1, {"group": 77}), note(2)], NOW)
        journal.append([note(3)], NOW)
    header, first, second, end = (tmp_path / "journal" / "00000001-0000000000000001.jsonl").read_bytes().split(b"\n")
    assert end == b""
    assert json.loads(header)["j"] == journal.journal_id
    assert first[BODY:] == (
        b',"s":1,"d":0,"t":1767259800000000,"e":['
        b'{"kind":"RunNoted","at":"2026-01-01T09:30:00Z","run_id":1,"data":{"group":77}},'
        b'{"kind":"RunNoted","at":"2026-01-01T09:30:00Z","run_id":2}]}'
    )
    assert second[BODY:] == (
        b',"s":3,"d":2,"t":1767259800000000,"e":[{"kind":"RunNoted","at":"2026-01-01T09:30:00Z","run_id":3}]}'
    )
    assert sorted(path.name for path in (tmp_path / "journal").iterdir()) == [
        "00000001-0000000000000001.jsonl",
        "HEAD",
        "LOCK",
    ]
    assert (tmp_path / "journal" / "LOCK").read_bytes() == b""


def test_a_program_of_the_standard_library_alone_verifies_a_journal_of_many_segments(tmp_path: Path):
    fill(tmp_path / "journal", 40, segment_bytes=2000, each=3)
    assert len(segments(tmp_path / "journal")) > 5
    anchor = head(tmp_path / "journal")
    assert verified(tmp_path / "journal") == (120, anchor.h)


def test_that_program_finds_every_changed_byte(tmp_path: Path):
    fill(tmp_path / "journal", 3, segment_bytes=600)
    for path in segments(tmp_path / "journal"):
        data = path.read_bytes()
        for place in range(0, len(data), 7):
            path.write_bytes(data[:place] + bytes([data[place] ^ 2]) + data[place + 1 :])
            with pytest.raises((ValueError, KeyError)):  # whatever a broken line makes of itself
                verified(tmp_path / "journal")
        path.write_bytes(data)
    assert verified(tmp_path / "journal")[0] == 3


def test_the_reference_prints_that_very_program():
    root = Path(__file__).parents[2]
    program = (root / "tests" / "journal" / "verifier.py").read_text(encoding="utf-8").split('"""', 2)[2].strip()
    assert f"```python\n{program}\n```" in (root / "docs" / "reference" / "journal-format.md").read_text(
        encoding="utf-8"
    )
    body = program[program.index("def verified") :].splitlines()
    assert len(body) <= 22
