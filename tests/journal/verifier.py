"""A verifier that shares no code with duly: the one that docs/reference/journal-format.md prints."""

import hashlib
import json
import zlib
from pathlib import Path


def verified(folder: str | Path) -> tuple[int, str]:
    h, sequence, number, size, seed = bytes(32), 0, 0, 0, 0
    for number, path in enumerate(sorted(Path(folder).glob("*-*.jsonl")), 1):
        *lines, rest = path.read_bytes().split(b"\n")
        for position, line in enumerate(lines):
            fields = json.loads(line)
            if position == 0:
                seed = zlib.crc32(bytes.fromhex(fields["j"]))
                right = (fields["g"], fields["s"], fields["p"], fields["b"]) == (number, sequence + 1, h.hex(), size)
            else:
                right = fields["s"] == sequence + 1 and fields["d"] <= sequence
                sequence += len(fields["e"])
            h = hashlib.sha256(h + line[86:]).digest()
            head = b'{"c":"%08x","h":"%b"' % (zlib.crc32(line[14:], seed), h.hex().encode())
            if not right or line[:86] != head:
                raise ValueError(f"{path}: line {position + 1} is not what was written")
        size = path.stat().st_size
        if rest:
            raise ValueError(f"{path}: the last line is unfinished")
    return sequence, h.hex()
