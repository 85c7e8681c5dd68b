"""Group commit: those that wait together go together, and nobody whose line is durable waits for a later fsync."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import threading
import time
from pathlib import Path

from duly.journal import Journal
from tests.journal.ledger import JOURNAL
from tests.journal.samples import NOW, CountingDisk, notes
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal.test_interrupts import Interrupter, Scene, interrupt_each


class SlowDisk(SimulatedDisk):
    """Its syncs take as long as `pause` says, in which others queue."""

    syncs = 0
    pause = 0.0

    def sync(self, file: int) -> None:
        self.syncs += 1
        time.sleep(self.pause)
        super().sync(file)


def test_sixteen_threads_that_append_share_their_fsyncs():
    disk = SlowDisk()
    with Journal.open(JOURNAL, disk=disk) as journal:
        before, disk.pause = disk.syncs, 0.01

        def append(thread: int) -> None:
            for number in range(10):
                journal.append(notes(thread * 100 + number + 1), NOW)

        threads = [threading.Thread(target=append, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert journal.durable_sequence == 160
        assert disk.syncs - before <= 50, "160 appends: about 20 fsyncs, and never one for three of them"


class Held(CountingDisk):
    """A disk whose syncs wait, one by one, until they may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.holding = False
        self.began = threading.Semaphore(0)
        self.may_go_on = threading.Semaphore(0)

    def sync(self, file: int) -> None:
        if self.holding:
            self.began.release()
            assert self.may_go_on.acquire(timeout=20)
        super().sync(file)


def test_whose_line_is_durable_returns_while_the_next_commit_is_under_way(tmp_path: Path):
    disk = Held()
    journal = Journal.open(tmp_path, disk=disk)
    disk.holding = True
    threads: dict[int, threading.Thread] = {}

    def start(*numbers: int) -> None:
        for number in numbers:
            threads[number] = threading.Thread(target=journal.append, args=(notes(number), NOW))
            threads[number].start()
        while journal.last_sequence < max(numbers):
            time.sleep(0.001)

    start(1)
    assert disk.began.acquire(timeout=20)
    start(2)
    start(3, 4)
    disk.may_go_on.release()  # 1 is durable, and one of the three leads
    assert disk.began.acquire(timeout=20)
    threads[1].join(20)
    start(5)
    start(6)
    disk.may_go_on.release()
    assert disk.began.acquire(timeout=20)
    for number in (2, 3, 4):
        threads[number].join(20)
    assert [number for number, thread in threads.items() if thread.is_alive()] == [5, 6]
    disk.may_go_on.release()
    for thread in threads.values():
        thread.join(20)
    disk.holding = False
    journal.close()
    assert journal.durable_sequence == 6


def test_an_append_that_is_interrupted_anywhere_leaves_no_gate_shut():
    def interrupted(at: int) -> Interrupter:
        scene = Scene()
        gates: list[threading.Lock] = [scene.journal._gate]

        def new_gate() -> threading.Lock:
            gates.append(threading.Lock())
            return gates[-1]

        scene.journal._new_gate = new_gate
        interrupter = Interrupter(at, everywhere=False)
        interrupter.run(lambda: scene.journal.append(notes(1), NOW))
        assert not any(gate.locked() for gate in gates), interrupter.where
        scene.journal.close()
        return interrupter

    assert interrupt_each(interrupted) > 30


def test_a_thread_that_is_interrupted_while_it_waits_leaves_the_others_to_go_on(tmp_path: Path):
    disk = Held()
    journal = Journal.open(tmp_path, disk=disk)
    disk.holding = True
    done: list[str] = []

    class Interrupted(threading.Thread):
        """As a KeyboardInterrupt strikes the thread that leads next, while it waits for the commit before."""

        def run(self) -> None:
            try:
                with journal._gate:
                    waiting.set()
                    assert interrupt.wait(20)
                    raise KeyboardInterrupt
            except KeyboardInterrupt:
                done.append("interrupted")

    def append(number: int) -> None:
        journal.append(notes(number), NOW)
        done.append(f"appended {number}")

    waiting, interrupt = threading.Event(), threading.Event()
    threads = [threading.Thread(target=append, args=(1,))]
    threads[0].start()
    assert disk.began.acquire(timeout=20)
    threads.append(Interrupted())
    threads[1].start()
    assert waiting.wait(20)
    threads.append(threading.Thread(target=append, args=(2,)))
    threads[2].start()
    interrupt.set()
    threads[1].join(20)
    for _ in range(2):
        disk.may_go_on.release()
    for thread in threads:
        thread.join(20)
    disk.holding = False
    journal.close()
    assert sorted(done) == ["appended 1", "appended 2", "interrupted"]
