"""Real processes on the real disk: killed, interrupted, traced, and with no space left.

Tracing needs strace and a kernel that allows ptrace; a small disk needs the right to mount. Where one of them is
missing, the test says so, and why, on the terminal, and proves with the simulated disk's tests alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from duly.journal.entries import RunNoted
from duly.journal.verification import verify
from duly.journal.writer import Journal
from tests.journal.crash_images import seeded

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STRACE = shutil.which("strace") or ""

COMMON = """
    import json, os, sys
    from datetime import UTC, datetime
    from pathlib import Path
    from random import Random
    from duly.journal.entries import RunNoted
    from duly.journal.errors import JournalError, JournalPoisoned
    from duly.journal.verification import verify
    from duly.journal.writer import Journal

    NOW = datetime(2026, 1, 1, tzinfo=UTC)
    folder = Path(sys.argv[1])

    def note(number, size=50):
        return RunNoted(at=NOW, run_id=number, data="x" * size)

    def append(journal, count=1, size=50):
        first = journal.last_sequence + 1
        assert journal.append([note(first + n, size) for n in range(count)], NOW) == first
        os.write(1, b"%d\\n" % (first + count - 1))  # one system call: an interruption never splits it
"""

APPENDING = """
    random = Random(int(sys.argv[2]))
    journal = Journal.open(folder, now=NOW, segment_bytes=6000)
    print(journal.durable_sequence, flush=True)
    while True:
        append(journal, random.choice((1, 1, 4)), random.randrange(400))
"""

INTERRUPTED = """
    random = Random(int(sys.argv[2]))
    journal = Journal.open(folder, now=NOW, segment_bytes=6000)
    print(journal.durable_sequence, flush=True)
    interrupted = poisoned = 0
    while interrupted < 25:
        try:
            append(journal, random.choice((1, 1, 4)), random.randrange(400))
        except KeyboardInterrupt:
            interrupted += 1
        except JournalPoisoned:
            try:
                journal.close()
                journal = Journal.open(folder, now=NOW, segment_bytes=6000)
            except KeyboardInterrupt:
                interrupted += 1
            else:
                poisoned += 1
    print("done", flush=True)
"""

FAILING = """
    try:
        with Journal.open(folder, now=NOW, segment_bytes=1500) as journal:
            print(journal.durable_sequence, flush=True)
            for number in range(12):
                append(journal, size=200)
    except JournalError as error:
        print(type(error).__name__, flush=True)
    else:
        print("done", flush=True)
"""

THREADED = """
    import threading
    journal = Journal.open(folder, now=NOW)
    start = threading.Barrier(16)

    def work(thread):
        start.wait()
        for number in range(25):
            journal.append([note(thread * 100 + number)], NOW)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(16)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(journal.durable_sequence)
    journal.close()
"""

FULL = """
    ballast = folder.parent / "ballast"
    ballast.write_bytes(bytes(20_000))
    outcome = {"acknowledged": 0, "reopened_full": "", "poisoned": False}
    try:
        journal = Journal.open(folder, now=NOW)
        for number in range(1000):
            first = journal.last_sequence + 1
            journal.append([note(first, 500)], NOW)
            outcome["acknowledged"] = first
    except JournalPoisoned:
        outcome["poisoned"] = True
        journal.close()
    try:
        Journal.open(folder, now=NOW).close()
        outcome["reopened_full"] = "opened"
    except JournalError as error:
        outcome["reopened_full"] = type(error).__name__
    outcome["read_full"] = verify(folder).entries
    ballast.unlink()
    with Journal.open(folder, now=NOW) as journal:
        entries = [entry for _, entry in journal.entries()]
        outcome["kept"] = len(entries)
        outcome["right"] = entries == [note(number, 500) for number in range(1, len(entries) + 1)]
        outcome["appended"] = journal.append([note(0)], NOW)
    outcome["intact"] = verify(folder).intact
    print(json.dumps(outcome))
"""


def command(script: str, *arguments: str) -> list[str]:
    return [sys.executable, "-P", "-c", textwrap.dedent(COMMON) + textwrap.dedent(script), *arguments]


def strace_refusal() -> str:
    """Why system calls cannot be traced here; empty if they can."""
    if not STRACE:
        return "strace is not installed"
    tried = subprocess.run([STRACE, "-f", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"ptrace does not work here: {tried.stderr.strip()[:200]}"


def mount_refusal() -> str:
    """Why a small file system cannot be mounted here; empty if it can."""
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    tried = subprocess.run(mounting("true", os.fspath(Path.cwd())), capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"mounting is not allowed here: {tried.stderr.strip()[:200]}"


def mounting(then: str, folder: str) -> list[str]:
    """A command that runs `then` where a tmpfs of 64 KiB covers the folder; nobody else sees the mount."""
    private = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
    return [*private, "sh", "-c", f'mount -t tmpfs -o size=64k none "$0" && {then}', folder]


def say(capsys: pytest.CaptureFixture[str], reason: str) -> None:
    with capsys.disabled():
        print(f"\n{reason}: only the simulated disk's faults were proved", file=sys.stderr)  # noqa: T201 - the run tells what it could not do


def acknowledged(output: str) -> int:
    """The highest sequence that the process printed, which it does only once it was durable."""
    whole = output.rpartition("\n")[0]
    return max((int(line) for line in whole.splitlines() if line.isdigit()), default=0)


def check_kept(folder: Path, floor: int) -> int:
    """The journal opens, holds at least `floor` entries, each in its place, and verifies. Returns how many."""
    assert verify(folder, sleep=lambda _: None).damage is None
    with Journal.open(folder, now=NOW, segment_bytes=6000) as journal:
        found = list(journal.entries())
    assert len(found) >= floor, f"{floor} were acknowledged, and {len(found)} are left"
    assert [entry.run_id for _, entry in found if isinstance(entry, RunNoted)] == list(range(1, len(found) + 1))
    assert verify(folder).intact
    return len(found)


def kill_again_and_again(folder: Path, rounds: int, seed: int) -> int:
    """An owner is killed with SIGKILL, `rounds` times. Returns how many entries are there in the end."""
    random = seeded(seed)
    held = 0
    for number in range(rounds):
        with subprocess.Popen(command(APPENDING, str(folder), str(number)), stdout=subprocess.PIPE, text=True) as owner:
            assert owner.stdout is not None
            first = owner.stdout.readline()
            assert int(first) == held
            time.sleep(random.random() * 0.06)
            owner.kill()
            output = first + owner.stdout.read()
        # The lock is free at once: this opens it in this process.
        held = check_kept(folder, acknowledged(output))
    return held


def test_an_owner_that_is_killed_again_and_again_loses_nothing(tmp_path: Path) -> None:
    assert kill_again_and_again(tmp_path / "journal", 12, seed=1) > 12


@pytest.mark.torture
def test_an_owner_that_is_killed_two_hundred_times_loses_nothing(tmp_path: Path) -> None:
    assert kill_again_and_again(tmp_path / "journal", 200, seed=2) > 1000


def interrupt_again_and_again(folder: Path, seed: int) -> None:
    random = seeded(seed)
    with subprocess.Popen(command(INTERRUPTED, str(folder), str(seed)), stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        output = owner.stdout.readline()
        assert output == "0\n"
        while owner.poll() is None:
            time.sleep(0.002 + random.random() * 0.01)
            owner.send_signal(signal.SIGINT)
        output += owner.stdout.read()
    check_kept(folder, acknowledged(output))


def test_an_owner_that_gets_ctrl_c_again_and_again_loses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if sys.platform == "win32":
        return say(capsys, "one process cannot send Ctrl-C to another here")
    return interrupt_again_and_again(tmp_path / "journal", 1)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(2, 22))
def test_many_owners_that_get_ctrl_c_again_and_again_lose_nothing(tmp_path: Path, seed: int) -> None:
    interrupt_again_and_again(tmp_path / "journal", seed)


def inject(folder: Path, fault: str) -> tuple[str, int]:
    """Runs an owner while the kernel reports this fault. Returns how it ended, and what it acknowledged."""
    options = ["-f", "-o", os.devnull, "-e", f"inject={fault}"]
    done = subprocess.run(
        [STRACE, *options, *command(FAILING, str(folder))], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1], acknowledged(done.stdout)


def check_injected(folder: Path, faults: list[str]) -> set[str]:
    endings: set[str] = set()
    for number, fault in enumerate(faults):
        path = folder / str(number)
        ending, floor = inject(path, fault)
        endings.add(ending)
        if (path / "LOCK").exists():
            check_kept(path, floor)
        else:
            assert floor == 0, fault
    return endings


def test_a_kernel_that_reports_errors_poisons_and_nothing_acknowledged_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = strace_refusal()
    if reason:
        return say(capsys, reason)
    faults = ["fsync:error=EIO:when=2", "fsync:error=EIO:when=14", "pwrite64:error=ENOSPC:when=5"]
    assert check_injected(tmp_path, faults) == {"UnreadableJournal", "JournalPoisoned"}
    return None


@pytest.mark.torture
@pytest.mark.parametrize(
    "fault", ["fsync:error=EIO", "pwrite64:error=EIO", "pwrite64:error=ENOSPC", "ftruncate:error=EIO"]
)
def test_a_kernel_that_reports_an_error_at_any_call_poisons_and_nothing_acknowledged_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    reason = strace_refusal()
    if reason:
        return say(capsys, reason)
    assert "done" in check_injected(tmp_path, [f"{fault}:when={number}" for number in range(1, 40)])
    return None


def traced(log: Path, calls: str, run: list[str]) -> tuple[list[str], str]:
    """The system calls that the command made, in the order in which they were finished, and its output."""
    options = ["-f", "-y", "-o", str(log), "-e", f"trace={calls}"]
    done = subprocess.run([STRACE, *options, *run], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return log.read_text().splitlines(), done.stdout


def test_sixteen_threads_share_their_fsyncs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reason = strace_refusal()
    if reason:
        return say(capsys, reason)
    lines, output = traced(tmp_path / "log", "fsync,fdatasync", command(THREADED, str(tmp_path / "journal")))
    syncs = sum(bool(re.search(r"\bf(data)?sync\(", line)) for line in lines)
    assert int(output) == 400
    assert 0 < syncs < 300, f"{syncs} fsyncs for 400 appends"
    assert verify(tmp_path / "journal").entries == 400
    return None


def test_the_kernel_is_asked_to_write_to_sync_and_only_then_to_move_head(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = strace_refusal()
    if reason:
        return say(capsys, reason)
    lines, _ = traced(tmp_path / "log", "pwrite64,fsync,mkdir,openat", command(FAILING, str(tmp_path / "journal")))
    calls = [call for call in map(kernel_call, lines) if call]
    story = " ".join(calls)
    created = (
        "mkdir sync:parent create:LOCK create:HEAD create:segment write:segment sync:segment sync:folder sync:parent"
    )
    begun = re.match(f"{created}( sync:parent)*( write:HEAD)", story)
    assert begun is not None, story
    rest = story[begun.start(2) :].split()
    append = ["write:segment", "sync:segment", "write:HEAD"]
    rotate = ["create:segment", "write:segment", "sync:segment", "sync:folder"]
    expected = re.compile(f"( write:HEAD)+(( {' '.join(rotate)})? {' '.join(append)}){{12}}")
    assert expected.fullmatch(" " + " ".join(rest)), rest
    assert rest.count("create:segment") > 1
    return None


def kernel_call(line: str) -> str:
    """What a line of the trace did to the journal; empty if nothing."""
    called = re.search(r"\b(pwrite64|fsync|mkdir|openat)\(", line)
    if called is None or "/journal" not in line or ".py" in line or " = -1 " in line:
        return "sync:parent" if called is not None and called[1] == "fsync" and "/journal" not in line else ""
    names: dict[str, Callable[[], str]] = {
        "pwrite64": lambda: f"write:{what(line)}",
        "fsync": lambda: f"sync:{what(line)}",
        "mkdir": lambda: "mkdir",
        "openat": lambda: f"create:{what(line)}" if "O_CREAT" in line else "",
    }
    return names[called[1]]()


def what(line: str) -> str:
    for name, pattern in {"segment": r"\.jsonl", "HEAD": r"/HEAD", "LOCK": r"/LOCK"}.items():
        if re.search(pattern, line):
            return name
    return "folder"


def test_a_disk_of_64_kibibytes_runs_full_and_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reason = mount_refusal()
    if reason:
        return say(capsys, reason)
    folder = tmp_path / "small"
    folder.mkdir()
    script = tmp_path / "full.py"
    script.write_text(textwrap.dedent(COMMON) + textwrap.dedent(FULL))
    then = f'"{sys.executable}" -P "{script}" "$0/journal"'
    done = subprocess.run(mounting(then, str(folder)), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["poisoned"]
    assert outcome["acknowledged"] > 20
    assert outcome["reopened_full"] in ("opened", "UnreadableJournal")
    assert outcome["read_full"] >= outcome["acknowledged"]
    assert outcome["kept"] >= outcome["acknowledged"]
    assert outcome["right"]
    assert outcome["appended"] == outcome["kept"] + 1
    assert outcome["intact"]
    return None
