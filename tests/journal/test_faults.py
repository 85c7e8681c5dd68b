"""An error at every single call to the disk, of every kind that the call can give.

What must hold after each: the caller gets a typed error, or nothing went wrong for good; a journal whose write or
sync failed is finished, touches the disk no more, and says so to every waiter; nothing unsynced was ever visible;
reopening works, or fails cleanly while the disk is full or broken; and if then the power goes, nothing acknowledged is
lost.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from duly.journal.errors import JournalError, JournalPoisoned, UnreadableJournal
from duly.journal.reader import read
from duly.journal.writer import Journal
from tests.journal.campaign import SEGMENT_BYTES
from tests.journal.crash_images import power_loss, seeded
from tests.journal.ledger import JOURNAL, Ledger
from tests.journal.simulated_disk import CHANGES, Call, Fault, SimulatedDisk


def failure(code: int) -> OSError:
    """What the system raises for this errno (EINTR is InterruptedError, and so on)."""
    return OSError(code, os.strerror(code))


def faults_of(call: Call) -> list[tuple[str, Fault]]:
    """Everything that can go wrong at this call."""
    every = [
        ("EIO", Fault(failure(errno.EIO))),
        ("EINTR", Fault(failure(errno.EINTR))),
        ("interrupted before", Fault(KeyboardInterrupt())),
        ("interrupted after", Fault(KeyboardInterrupt(), after=True)),
    ]
    match call:
        case "write":
            return [
                *every,
                ("ENOSPC", Fault(failure(errno.ENOSPC))),
                ("ENOSPC halfway", Fault(failure(errno.ENOSPC), kept=50)),
                ("EIO halfway", Fault(failure(errno.EIO), kept=120)),
                ("short by all but one", Fault(kept=1)),
                ("short", Fault(kept=70)),
                ("nothing written", Fault(kept=0)),
            ]
        case "sync" | "sync_folder" | "create" | "make_folder" | "replace" | "truncate":
            return [*every, ("ENOSPC", Fault(failure(errno.ENOSPC)))]
        case "close":
            return [("EIO after it closed", Fault(failure(errno.EIO), after=True)), *every[2:]]
        case _:
            return every


@dataclass
class Play:
    """One short life of a journal: create, append, group, rotate, close, recover a torn tail, append, close."""

    disk: SimulatedDisk = field(default_factory=SimulatedDisk)
    ledger: Ledger = field(default_factory=Ledger)
    journal: Journal | None = None
    outcome: BaseException | None = None
    phase: str = ""

    def run(self) -> None:
        """Plays until the end, or until something is raised."""
        try:
            self._run()
        except (JournalError, KeyboardInterrupt) as error:
            self.outcome = error

    def _run(self) -> None:
        self._open()
        self._append(20)
        self._append(300, 300)
        self._group((300,), (300, 300), (5,))
        self._append(10)
        assert self.journal is not None
        self.phase = "close"
        self.journal.close()
        self.ledger.acknowledged(len(self.ledger.entries))
        self._tear()
        self._open()
        self._append(10)
        self._group((0,), (200,))
        self.phase = "close"
        self.journal.close()

    def _open(self) -> None:
        self.phase = "open"
        self.journal = None
        self.journal = Journal.open(JOURNAL, now=self.ledger.now, disk=self.disk, segment_bytes=SEGMENT_BYTES)
        self.phase = "entries"
        self.ledger.recovered(list(self.journal.entries()))

    def _append(self, *sizes: int) -> None:
        self.phase = "append"
        assert self.journal is not None
        entries = self.ledger.fresh(sizes)
        first = self.ledger.expect(entries)
        assert self.journal.append(entries, self.ledger.now) == first
        self.ledger.acknowledged(len(self.ledger.entries))

    def _group(self, *batches: tuple[int, ...]) -> None:
        self.phase = "append"
        assert self.journal is not None
        for sizes in batches:
            entries = self.ledger.fresh(sizes)
            first = self.ledger.expect(entries)
            assert self.journal.enqueue(entries, self.ledger.now) == first
        self.journal.sync()
        self.ledger.acknowledged(len(self.ledger.entries))

    def _tear(self) -> None:
        """Leaves a readable line that HEAD does not prove and half a line, as a dead owner would."""
        self.phase = "tear"
        disk = self.disk
        watch, disk.watch, fault_for, disk.fault_for = disk.watch, None, disk.fault_for, None
        faults, disk.faults = disk.faults, {}
        capacity, disk.capacity = disk.capacity, None
        journal = Journal.open(JOURNAL, now=self.ledger.now, disk=disk, segment_bytes=SEGMENT_BYTES)
        entries = self.ledger.fresh((30,))
        self.ledger.expect(entries)
        journal.enqueue(entries, self.ledger.now)
        disk.fault_for = lambda _, call, __: Fault(failure(errno.EIO)) if call == "sync" else None
        with pytest.raises(JournalPoisoned):
            journal.sync()
        disk.fault_for = None
        journal.close()
        last = max(path for path in disk.files() if path.suffix == ".jsonl")
        handle = disk.open(last, write=True)
        disk.write(handle, disk.size(handle), b'{"c":"0000')
        disk.close(handle)
        disk.watch, disk.fault_for, disk.faults, disk.capacity = watch, fault_for, faults, capacity


def calls_of_a_play() -> list[tuple[int, Call, str]]:
    """Every call of an undisturbed play, by number."""
    play = Play()
    play.disk.log = []
    play.run()
    assert play.outcome is None
    return [(number, call, name) for number, (call, name) in enumerate(play.disk.log, 1)]


def every_fault() -> Iterator[tuple[int, Call, str, str, Fault]]:
    for number, call, name in calls_of_a_play():
        for kind, fault in faults_of(call):
            yield number, call, name, kind, fault


def one_of_each() -> list[tuple[int, Call, str, str, Fault]]:
    """Of the faults that differ only in when they happen, the first and the last."""
    found: dict[tuple[str, str, str], list[tuple[int, Call, str, str, Fault]]] = {}
    for each in every_fault():
        _, call, name, kind, _ = each
        found.setdefault((call, name[8:9] + name[-5:], kind), []).append(each)
    return [each for group in found.values() for each in dict.fromkeys((group[0], group[-1]))]


def disturbed(number: int, fault: Fault) -> Play:
    """A play in which the call of this number fails."""
    play = Play()
    play.disk.faults[number] = fault
    play.run()
    return play


def check_the_end_of(play: Play, story: str) -> None:
    """After the fault: the error is typed, a poisoned journal rests, and what it shows is synced."""
    journal = play.journal
    if play.outcome is None:
        return
    if journal is None:
        assert isinstance(play.outcome, (JournalError, KeyboardInterrupt)), story
        if isinstance(play.outcome, JournalError):
            assert play.outcome.path is not None, story
            assert play.outcome.hint, story
        return
    assert journal.durable_sequence >= play.ledger.floor, story
    play.ledger.acknowledged(journal.durable_sequence)
    if journal.poisoned:
        check_it_rests(play, journal, story)


def check_it_rests(play: Play, journal: Journal, story: str) -> None:
    """A poisoned journal refuses everything and changes nothing more."""
    disk = play.disk
    disk.log = []
    durable = journal.durable_sequence
    with pytest.raises(JournalPoisoned):
        journal.append(play.ledger.copy().fresh((1,)), play.ledger.now)
    with pytest.raises(JournalPoisoned):
        journal.enqueue(play.ledger.copy().fresh((1,)), play.ledger.now)
    if journal.last_sequence > durable:
        with pytest.raises(JournalPoisoned):
            journal.sync()
    with pytest.raises(JournalPoisoned):
        journal.check()
    assert journal.durable_sequence == durable, story
    journal.close()
    assert not {call for call, _ in disk.log} & CHANGES, f"{story}: a poisoned journal changed the disk: {disk.log}"


def check_recovery(play: Play, story: str, seed: int) -> None:
    """Reopening works, on the same disk, after memory pressure, in a new process and after a power cut."""
    if play.journal is not None:
        play.journal.close()
    assert play.disk.locked() == [], f"{story}: a lock stayed held"
    if not isinstance(play.outcome, KeyboardInterrupt) or play.phase == "close":
        # Between the system's open and the name for what it returned, nothing can be closed by anybody.
        assert play.disk.open_handles() == [], f"{story}: a file stayed open"
    play.disk.faults.clear()
    random = seeded(seed)
    futures: list[Callable[[], SimulatedDisk]] = [
        lambda: power_loss(play.disk, random),
        lambda: power_loss(play.disk, random),
        lambda: evicted(play.disk.kill()),
        lambda: play.disk,
    ]
    for future in futures:
        disk, ledger = future(), play.ledger.copy()
        go_on(disk, ledger)
        go_on(power_loss(disk, random), ledger)


def evicted(disk: SimulatedDisk) -> SimulatedDisk:
    disk.evict()
    return disk


def go_on(disk: SimulatedDisk, ledger: Ledger) -> None:
    """Opens, compares, appends, and closes."""
    journal = Journal.open(JOURNAL, now=ledger.now, disk=disk, segment_bytes=SEGMENT_BYTES)
    ledger.recovered(list(journal.entries()))
    entries = ledger.fresh((7,))
    first = ledger.expect(entries)
    assert journal.append(entries, ledger.now) == first
    ledger.acknowledged(first)
    journal.close()
    ledger.check([(record.sequence, record.entry) for record in read(JOURNAL, disk=disk)])


def survive(faults: Iterable[tuple[int, Call, str, str, Fault]]) -> dict[str, int]:
    """Plays each fault, checks what comes after it, and counts how the plays ended."""
    outcomes: dict[str, int] = {}
    for number, call, name, kind, fault in faults:
        story = f"call {number}, {call} of {name}: {kind}"
        play = disturbed(number, fault)
        check_the_end_of(play, story)
        check_recovery(play, story, number)
        outcome = "nothing was noticed" if play.outcome is None else type(play.outcome).__name__
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    refusals = {"JournalPoisoned", "UnreadableJournal", "LockUnsupported", "KeyboardInterrupt"}
    assert outcomes.keys() == {"nothing was noticed", *refusals}
    return outcomes


def test_errors_of_every_kind_at_every_kind_of_call_are_survived() -> None:
    assert sum(survive(one_of_each()).values()) > 150


@pytest.mark.torture
def test_every_error_at_every_call_is_survived() -> None:
    assert sum(survive(every_fault()).values()) > 1000


def test_a_failed_write_or_sync_of_a_segment_always_poisons() -> None:
    for number, call, name, kind, fault in one_of_each():
        if call in ("write", "sync") and name.endswith(".jsonl") and fault.error is not None:
            play = disturbed(number, fault)
            assert play.outcome is not None, f"call {number} {call} {name} {kind}"
            assert play.journal is None or play.journal.poisoned, f"call {number} {call} {name} {kind}"


def test_a_failed_write_of_head_is_not_worth_more_than_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    failed = 0
    for number, call, name, _, fault in one_of_each():
        if call == "write" and name == "HEAD" and isinstance(fault.error, OSError):
            assert disturbed(number, fault).outcome is None
            failed += 1
    assert failed > 5
    assert {record.levelname for record in caplog.records} == {"WARNING"}


def test_an_io_error_while_reading_is_never_called_damage() -> None:
    for number, call, name, kind, fault in one_of_each():
        if call in ("read", "open", "size", "names") and isinstance(fault.error, OSError):
            play = disturbed(number, fault)
            assert play.outcome is not None or not name.endswith(".jsonl"), (name, kind)
            assert "Corrupt" not in type(play.outcome).__name__, f"call {number}, {call} of {name}: {kind}"


def test_an_unreadable_segment_changes_nothing() -> None:
    play = Play()
    play.run()
    for path, file in play.disk.files().items():
        if path.suffix != ".jsonl":
            continue
        before = {other: bytes(each.cache) for other, each in play.disk.files().items()}
        file.unreadable = True
        with pytest.raises(UnreadableJournal):
            Journal.open(JOURNAL, now=play.ledger.now, disk=play.disk)
        with pytest.raises(UnreadableJournal):
            list(read(JOURNAL, disk=play.disk))
        file.unreadable = False
        assert {other: bytes(each.cache) for other, each in play.disk.files().items()} == before
        assert play.disk.open_handles() == []


def test_a_disk_that_stays_full_refuses_cleanly_and_loses_nothing() -> None:
    whole = Play()
    whole.run()
    size = whole.disk.used()
    refused = 0
    for capacity in range(0, size + 40, 23):
        play = Play()
        play.disk.capacity = capacity
        play.run()
        check_the_end_of(play, f"capacity {capacity}")
        if play.journal is not None:
            play.journal.close()
        refusal = None
        try:
            Journal.open(JOURNAL, now=play.ledger.now, disk=play.disk, segment_bytes=SEGMENT_BYTES).close()
        except JournalError as error:
            refusal = error
            refused += 1
        assert refusal is None or refusal.hint, capacity
        assert play.disk.open_handles() == [], capacity
        image = power_loss(play.disk, seeded(capacity))
        image.capacity = None
        go_on(image, play.ledger.copy())
        play.disk.capacity = None
        go_on(play.disk, play.ledger)
    assert refused > 5


def test_every_waiter_gets_the_error_of_the_sync_that_it_waited_for() -> None:
    disk, ledger = SimulatedDisk(), Ledger()
    journal = Journal.open(JOURNAL, now=ledger.now, disk=disk)
    journal.append(ledger.fresh((1,)), ledger.now)
    leading, release = threading.Event(), threading.Event()

    def fail_once_all_wait(_: int, call: Call, path: Path) -> Fault | None:
        if call != "sync" or path.suffix != ".jsonl":
            return None
        leading.set()
        assert release.wait(30)
        return Fault(failure(errno.EIO))

    disk.fault_for = fail_once_all_wait
    errors: list[BaseException] = []
    entries = [ledger.fresh((number,)) for number in range(8)]

    def wait(number: int) -> None:
        try:
            journal.append(entries[number], ledger.now)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(8)]
    threads[0].start()
    assert leading.wait(30)
    for thread in threads[1:]:
        thread.start()
    while journal.last_sequence < 9:
        pass
    shown_while_syncing = journal.durable_sequence
    release.set()
    for thread in threads:
        thread.join(30)
    assert shown_while_syncing == 1
    assert [type(error) for error in errors] == [JournalPoisoned] * 8
    assert journal.durable_sequence == 1
    journal.close()


def test_what_a_failed_sync_left_in_the_cache_is_written_again_before_it_is_trusted() -> None:
    disk, ledger = SimulatedDisk(), Ledger()
    journal = Journal.open(JOURNAL, now=ledger.now, disk=disk)
    entries = ledger.fresh((50,))
    ledger.expect(entries)
    disk.fault_for = lambda _, call, path: (
        Fault(failure(errno.EIO)) if (call, path.suffix) == ("sync", ".jsonl") else None
    )
    with pytest.raises(JournalPoisoned):
        journal.append(entries, ledger.now)
    disk.fault_for = None
    journal.close()
    again = Journal.open(JOURNAL, now=ledger.now, disk=disk)
    assert again.recovery.rewritten > 0
    ledger.recovered(list(again.entries()))
    assert ledger.floor == 1
    again.close()
    for seed in range(200):
        image = power_loss(disk, seeded(seed))
        reopened = Journal.open(JOURNAL, now=ledger.now, disk=image)
        ledger.copy().recovered(list(reopened.entries()))
        reopened.close()
