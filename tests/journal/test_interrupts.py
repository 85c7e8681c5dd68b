"""Ctrl-C between any two bytecodes of the journal's code.

CPython looks for signals after calls, at the start of functions and when it jumps back. The suite raises
KeyboardInterrupt at each such place of `append`, `enqueue`, `sync`, `close` and `open`; the long form raises it in
front of every single bytecode (but for the row that leaves a `with`, where nothing can strike). What must hold after
each: the journal is poisoned or consistent, none of its own locks is held, close finishes, and what a reopened journal
holds fits what was shown.
"""

from __future__ import annotations

import dis
import inspect
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from duly.journal.errors import JournalPoisoned
from duly.journal.ownership import CLAIMS
from duly.journal.reader import read
from duly.journal.writer import Journal
from tests.journal.crash_images import power_loss, seeded
from tests.journal.ledger import JOURNAL, Ledger
from tests.journal.simulated_disk import SimulatedDisk

PACKAGE = str(Path(str(Journal.append.__code__.co_filename)).parent)
LOOKS_FOR_SIGNALS = ("CALL", "RESUME", "JUMP_BACKWARD")
SEGMENT_BYTES = 1000
TOOL = 4
"""A tool number of sys.monitoring that is nobody's by custom."""

# What strikes while the interpreter closes a generator that nobody needs any more is swallowed by the interpreter.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

_offsets: dict[CodeType, frozenset[int]] = {}
_rows: dict[CodeType, frozenset[int]] = {}


def checkpoints(code: CodeType) -> frozenset[int]:
    """The instructions at whose end the interpreter looks for signals."""
    found = _offsets.get(code)
    if found is None:
        found = frozenset(i.offset for i in dis.get_instructions(code) if i.opname.startswith(LOOKS_FOR_SIGNALS))
        _offsets[code] = found
    return found


def in_a_finalizer(frame: FrameType | None) -> bool:
    """Whether the frame works for a `__del__`, whose exceptions the interpreter swallows."""
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def leaving_a_with(code: CodeType) -> frozenset[int]:
    """The straight row of instructions that calls `__exit__`: nothing looks for signals in it, and no test can be in it
    either, since its lock would stay held."""
    found = _rows.get(code)
    if found is None:
        row = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "PRECALL")]
        offsets: set[int] = set()
        for first in range(len(row) - 3):
            four = row[first : first + 4]
            if [(i.opname, i.argval) for i in four] == [("LOAD_CONST", None)] * 3 + [("CALL", 2)]:
                # Before it, what the body returns may be put aside.
                start = row[first - 1] if first and row[first - 1].opname == "SWAP" else four[0]
                offsets.update(range(start.offset, four[3].offset + 1))
        found = frozenset(offsets)
        _rows[code] = found
    return found


class Interrupter:
    """Raises KeyboardInterrupt at the `at`-th place inside the journal package; counts them if there are fewer."""

    def __init__(self, at: int, *, everywhere: bool) -> None:
        self.at = at
        self.everywhere = everywhere
        self.places = 0
        self.where = ""
        self._last: dict[FrameType, int] = {}
        self._inlined: set[FrameType] = set()

    def run(self, action: Callable[[], object]) -> bool:
        """Whether the action was interrupted."""
        watch = _monitored if "monitoring" in vars(sys) else _traced
        try:
            watch(self, action)
        except KeyboardInterrupt:
            return True
        finally:
            self._last.clear()
            self._inlined.clear()
        return False

    def begun(self, frame: FrameType) -> None:
        """A function begins."""
        if frame.f_back is not None and not frame.f_code.co_name.startswith("__"):
            # A Python function that is called from Python is no call to the interpreter: nothing looks at its end.
            self._inlined.add(frame.f_back)

    def reached(self, frame: FrameType, offset: int) -> None:
        """The frame is about to execute the instruction at `offset`."""
        before = self._last.get(frame)
        self._last[frame] = offset
        inlined = frame in self._inlined
        self._inlined.discard(frame)
        here = self.everywhere and offset not in leaving_a_with(frame.f_code)
        if (here or (before in checkpoints(frame.f_code) and not inlined)) and not in_a_finalizer(frame):
            self.places += 1
            if self.places == self.at:
                self.where = f"{frame.f_code.co_qualname}, line {frame.f_lineno}"
                raise KeyboardInterrupt


def _traced(interrupter: Interrupter, action: Callable[[], object]) -> None:
    """Runs the action under sys.settrace."""

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        del argument
        if event == "call":
            interrupter.begun(frame)
            if not frame.f_code.co_filename.startswith(PACKAGE):
                return None
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
        elif event == "opcode":
            interrupter.reached(frame, frame.f_lasti)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)


def _monitored(interrupter: Interrupter, action: Callable[[], object]) -> None:
    """Runs the action under sys.monitoring, which sees every instruction where sys.settrace does not."""
    monitoring: Any = vars(sys)["monitoring"]
    events = monitoring.events
    this_thread = threading.get_ident()

    def start(code: CodeType, offset: int) -> None:
        del code, offset
        if threading.get_ident() == this_thread:
            interrupter.begun(_watched())

    def instruction(code: CodeType, offset: int) -> object:
        if not code.co_filename.startswith(PACKAGE):
            return monitoring.DISABLE
        if threading.get_ident() == this_thread:
            interrupter.reached(_watched(), offset)
        return None

    monitoring.use_tool_id(TOOL, "interrupter")
    monitoring.register_callback(TOOL, events.PY_START, start)
    monitoring.register_callback(TOOL, events.INSTRUCTION, instruction)
    monitoring.set_events(TOOL, events.PY_START | events.INSTRUCTION)
    try:
        action()
    finally:
        monitoring.set_events(TOOL, 0)
        monitoring.register_callback(TOOL, events.PY_START, None)
        monitoring.register_callback(TOOL, events.INSTRUCTION, None)
        monitoring.free_tool_id(TOOL)


def _watched() -> FrameType:
    """The frame that the calling callback was called for. No frame is left holding itself: it would live on."""
    here = inspect.currentframe()
    assert here is not None
    assert here.f_back is not None
    watched = here.f_back.f_back
    del here
    assert watched is not None
    return watched


class Scene:
    """An open journal with some entries, and what is about to be done to it."""

    def __init__(self) -> None:
        CLAIMS.forget()
        self.disk = SimulatedDisk()
        self.ledger = Ledger()
        self.journal = Journal.open(JOURNAL, now=self.ledger.now, disk=self.disk, segment_bytes=SEGMENT_BYTES)
        for size in (10, 100):
            self.append(size)

    def append(self, size: int) -> None:
        entries = self.ledger.fresh((size,))
        first = self.ledger.expect(entries)
        assert self.journal.append(entries, self.ledger.now) == first
        self.ledger.acknowledged(first)

    def check_after(self, story: str) -> None:
        """The journal is poisoned, or goes on; then it closes, reopens, and survives a power cut."""
        journal, ledger, disk = self.journal, self.ledger, self.disk
        for name in ("_commit_lock", "_queue_lock"):
            assert not vars(journal)[name].locked(), f"{story}: {name} is held for good"
        shown = journal.durable_sequence
        assert ledger.floor <= shown <= len(ledger.entries), story
        ledger.acknowledged(shown)
        # What was not queued cannot be on the disk.
        del ledger.entries[journal.last_sequence :]
        ledger.ends = [end for end in ledger.ends if end <= len(ledger.entries)]
        cut = power_loss(disk, seeded(story))
        ledger.copy().recovered(list(Journal.open(JOURNAL, now=ledger.now, disk=cut).entries()))
        try:
            self.append(5)
        except JournalPoisoned:
            assert journal.poisoned, story
            del ledger.entries[journal.last_sequence :]
            ledger.ends = [end for end in ledger.ends if end <= len(ledger.entries)]
        journal.close()
        assert disk.locked() == [], f"{story}: a lock is held for good"
        self.check_reopened(story)

    def check_reopened(self, story: str) -> None:
        again = Journal.open(JOURNAL, now=self.ledger.now, disk=self.disk, segment_bytes=SEGMENT_BYTES)
        self.ledger.recovered(list(again.entries()))
        again.close()
        assert self.disk.locked() == [], story
        records = [(record.sequence, record.entry) for record in read(JOURNAL, disk=self.disk)]
        self.ledger.check(records)


def interrupted_append(at: int, size: int, *, everywhere: bool) -> Interrupter:
    """An append that is interrupted at the `at`-th place; with a large `size` the segment rotates in it."""
    scene = Scene()
    entries = scene.ledger.fresh((size,))
    scene.ledger.expect(entries)
    interrupter = Interrupter(at, everywhere=everywhere)
    interrupter.run(lambda: scene.journal.append(entries, scene.ledger.now))
    scene.check_after(f"append {size}, place {at}, {interrupter.where}")
    return interrupter


def interrupted_group(at: int, *, everywhere: bool) -> Interrupter:
    """Three lines that are queued and synced together, interrupted."""
    scene = Scene()
    batches = [scene.ledger.fresh(sizes) for sizes in ((5,), (400, 3), (300,))]
    for batch in batches:
        scene.ledger.expect(batch)

    def group() -> None:
        for batch in batches:
            scene.journal.enqueue(batch, scene.ledger.now)
        scene.journal.sync()

    interrupter = Interrupter(at, everywhere=everywhere)
    interrupter.run(group)
    scene.check_after(f"group, place {at}, {interrupter.where}")
    return interrupter


def interrupted_close(at: int, *, everywhere: bool) -> Interrupter:
    """A close with a line in the queue, interrupted, and closed again."""
    scene = Scene()
    entries = scene.ledger.fresh((9,))
    scene.ledger.expect(entries)
    scene.journal.enqueue(entries, scene.ledger.now)
    interrupter = Interrupter(at, everywhere=everywhere)
    interrupter.run(scene.journal.close)
    story = f"close, place {at}, {interrupter.where}"
    scene.journal.close()
    assert scene.disk.locked() == [], f"{story}: a lock is held for good"
    scene.check_reopened(story)
    return interrupter


def interrupted_open(at: int, *, everywhere: bool) -> Interrupter:
    """An opening that mends a torn tail and an unproved line, interrupted; the next one in the same process works."""
    scene = Scene()
    scene.journal.close()
    last = max(path for path in scene.disk.files() if path.suffix == ".jsonl")
    handle = scene.disk.open(last, write=True)
    scene.disk.write(handle, scene.disk.size(handle), b'{"c":"0000')
    scene.disk.close(handle)
    scene.disk.remove(JOURNAL / "HEAD")
    opened: list[Journal] = []
    interrupter = Interrupter(at, everywhere=everywhere)
    interrupter.run(
        lambda: opened.append(Journal.open(JOURNAL, now=scene.ledger.now, disk=scene.disk, segment_bytes=SEGMENT_BYTES))
    )
    for journal in opened:
        journal.close()
    story = f"open, place {at}, {interrupter.where}"
    assert scene.disk.locked() == [], f"{story}: a lock is held for good"
    scene.check_reopened(story)
    return interrupter


def interrupt_each(scene: Callable[[int], Interrupter]) -> int:
    """Interrupts at every place, one after the other; returns how many there are."""
    at = 1
    while scene(at).where:
        at += 1
    return at - 1


def test_an_append_that_is_interrupted_anywhere_leaves_a_poisoned_or_consistent_journal() -> None:
    assert interrupt_each(lambda at: interrupted_append(at, 30, everywhere=False)) > 30


def test_a_rotation_that_is_interrupted_anywhere_leaves_a_poisoned_or_consistent_journal() -> None:
    assert interrupt_each(lambda at: interrupted_append(at, 600, everywhere=False)) > 60


def test_a_group_commit_that_is_interrupted_anywhere_leaves_a_poisoned_or_consistent_journal() -> None:
    assert interrupt_each(lambda at: interrupted_group(at, everywhere=False)) > 150


def test_a_close_that_is_interrupted_anywhere_can_be_finished() -> None:
    assert interrupt_each(lambda at: interrupted_close(at, everywhere=False)) > 25


def test_an_opening_that_is_interrupted_anywhere_can_be_repeated_in_the_same_process() -> None:
    assert interrupt_each(lambda at: interrupted_open(at, everywhere=False)) > 120


@pytest.mark.torture
@pytest.mark.parametrize("size", [30, 600])
def test_an_append_survives_an_interruption_in_front_of_every_bytecode(size: int) -> None:
    assert interrupt_each(lambda at: interrupted_append(at, size, everywhere=True)) > 500


@pytest.mark.torture
def test_a_group_commit_survives_an_interruption_in_front_of_every_bytecode() -> None:
    assert interrupt_each(lambda at: interrupted_group(at, everywhere=True)) > 500
