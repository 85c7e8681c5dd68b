"""Arbitrary bytes and mutated journals: never anything but the typed errors, in bounded memory and without end."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tracemalloc
import venv
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import duly
import duly.journal
from duly.journal.errors import JournalError
from duly.journal.format import MAX_LINE, envelopes
from duly.journal.reader import read
from duly.journal.writer import Journal
from tests.journal.crash_images import seeded
from tests.journal.fuzz_target import LAST, NAMES, SAMPLE, examine, mutate, one, parse, put, sealed
from tests.journal.ledger import JOURNAL, START

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["kind", "at", "data"]) | st.text(), inner),
    max_leaves=12,
)


@given(st.binary(max_size=600))
def test_arbitrary_bytes_parse_to_nothing_and_raise_nothing(data: bytes) -> None:
    parse(data)


@settings(max_examples=150)
@given(st.sampled_from(NAMES), st.binary(max_size=900))
def test_arbitrary_bytes_in_the_place_of_any_file_give_typed_errors(name: str, content: bytes) -> None:
    disk = SAMPLE.kill()
    put(disk, name, content)
    examine(disk)


@settings(max_examples=150)
@given(st.binary(min_size=4, max_size=40))
def test_mutated_journals_give_typed_errors(program: bytes) -> None:
    disk = SAMPLE.kill()
    mutate(disk, program)
    examine(disk)


@settings(max_examples=150)
@given(JSON)
@example([{"kind": "RunNoted"}])
@example([{"kind": "RunNoted", "at": "0000-00-00T00:00:00Z", "run_id": 1}])
@example([{"kind": "Unknown", "at": "2026-01-01T00:00:00Z"}])
@example([{"kind": 1}])
@example([])
def test_a_line_that_is_sealed_and_says_anything_gives_typed_errors(value: object) -> None:
    import msgspec

    disk = SAMPLE.kill()
    put(disk, LAST, bytes(disk.file(JOURNAL / LAST).cache) + sealed(msgspec.json.encode(value)))
    examine(disk)


NOTE = b'[{"kind":"RunNoted","at":"2026-01-01T00:00:00Z","run_id":1,"data":%b}]'
BOMBS: dict[str, bytes] = {
    "arrays in arrays": b"[" * 200_000 + b"]" * 200_000,
    "objects in objects": NOTE % (b'{"a":' * 100_000 + b"1"),
    "data within data": NOTE % (b"[" * 5000 + b"]" * 5000),
    "a huge integer": b'[{"kind":"RunNoted","at":"2026-01-01T00:00:00Z","run_id":%b}]' % (b"9" * 100_000),
    "a huge exponent": NOTE % b"1e999999999",
    "a huge fraction": NOTE % (b"0." + b"1" * 200_000),
    "a duration beyond time": b'[{"kind":"ClockJumped","at":"2026-01-01T00:00:00Z","ahead":"P999999999999D"}]',
    "a year beyond time": b'[{"kind":"JournalClosed","at":"99999-01-01T00:00:00Z"}]',
    "no UTF-8": b'[{"kind":"JournalClosed","at":"2026-01-01T00:00:00Z","actor":"\xff\xfe"}]',
    "a lone surrogate": b'[{"kind":"JournalClosed","at":"2026-01-01T00:00:00Z","actor":"\\ud800"}]',
    "NUL": b'[{"kind":"JournalClosed","at":"2026-01-01T00:00:00Z","actor":"\\u0000"}]',
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=list(BOMBS))
def test_a_bomb_in_a_sealed_line_is_an_error_or_an_entry_and_takes_little_memory(bomb: bytes) -> None:
    disk = SAMPLE.kill()
    put(disk, LAST, bytes(disk.file(JOURNAL / LAST).cache) + sealed(bomb))
    tracemalloc.start()
    try:
        examine(disk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(bomb) + 8 * 1024 * 1024


@pytest.mark.parametrize("filling", [b"\0", b"x", b"[", b"\n", b'{"c":"'])
def test_a_tail_of_mebibytes_is_read_in_little_memory(filling: bytes) -> None:
    size = 3 * MAX_LINE if filling != b"\n" else MAX_LINE // 32
    tail = (filling * (size // len(filling) + 1))[:size]
    disk = SAMPLE.kill()
    put(disk, LAST, bytes(disk.file(JOURNAL / LAST).cache) + tail)
    tracemalloc.start()
    try:
        assert sum(1 for _ in read(JOURNAL, disk=disk)) == 12
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * MAX_LINE


def test_a_piece_full_of_beginnings_of_lines_is_searched_in_linear_work() -> None:
    prefix = b'{"c":"00000000","h":"' + b"a" * 64 + b'","s":'

    def work(count: int) -> int:
        return sum(len(candidate) for _, candidate in envelopes(prefix * count))

    assert work(2000) <= 2.5 * work(1000)


def test_random_programs_of_mutations_give_typed_errors() -> None:
    random = seeded("programs")
    for _ in range(150):
        one(random.randbytes(random.randrange(1, 60)))


@pytest.mark.torture
@settings(max_examples=5000)
@given(st.binary(max_size=3000))
def test_many_arbitrary_inputs_give_typed_errors(data: bytes) -> None:
    one(data)


@pytest.mark.torture
def test_a_coverage_guided_fuzzer_finds_nothing_but_typed_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python, reason = fuzzing_python(tmp_path)
    if reason:
        with capsys.disabled():
            print(f"\n{reason}: random inputs without guidance instead", file=sys.stderr)  # noqa: T201 - the run tells what it could not do
        random = seeded("unguided")
        for _ in range(5000):
            one(random.randbytes(random.randrange(1, 400)))
        return
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [python, str(root / "tests" / "journal" / "fuzz_target.py"), "120", str(tmp_path / "corpus")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(package(tmp_path / "package")), str(root), *sys.path])},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "DONE" in done.stderr or "Done" in done.stderr
    with capsys.disabled():
        print("\n" + done.stderr.strip().splitlines()[-1], file=sys.stderr)  # noqa: T201 - the run tells what it could not do


def package(folder: Path) -> Path:
    """A folder in which the package under test lies under its installed name."""
    (folder / "duly").mkdir(parents=True)
    for source in [*Path(str(duly.__file__)).parent.glob("*.py"), Path(str(duly.journal.__file__)).parent]:
        (folder / "duly" / source.name).symlink_to(source)
    return folder


def fuzzing_python(folder: Path) -> tuple[str, str]:
    """An interpreter that has atheris; or why there is none."""
    if importlib.util.find_spec("atheris") is not None:
        return sys.executable, ""
    venv.create(folder / "fuzzing", with_pip=True)
    python = folder / "fuzzing" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "-q", "atheris"]
    installed = subprocess.run(install, capture_output=True, text=True, check=False)
    return str(python), "" if installed.returncode == 0 else f"atheris does not install here: {installed.stderr[-200:]}"


def test_the_fuzzers_reach_what_they_aim_at() -> None:
    disk = SAMPLE.kill()
    closed = sealed(b'[{"kind":"JournalClosed","at":"2026-01-01T00:00:00Z"}]')
    put(disk, LAST, bytes(disk.file(JOURNAL / LAST).cache) + closed)
    with Journal.open(JOURNAL, now=START, disk=disk, segment_bytes=700) as journal:
        assert journal.last_sequence == 13
    unknown = SAMPLE.kill()
    put(unknown, LAST, bytes(unknown.file(JOURNAL / LAST).cache) + sealed(b'[{"kind":"Later"}]'))
    with pytest.raises(JournalError, match="this version cannot read it"):
        list(read(JOURNAL, disk=unknown))
