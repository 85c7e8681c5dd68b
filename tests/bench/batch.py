"""A thousand decisions in one poll: the journal's own CPU for each entry, the whole decision beside an SQLite
transaction of a thousand rows, and the bytes that are written.

`python -m tests.bench.batch`. Two transactions are measured: `sqlite-rows` only inserts a thousand rows; `sqlite-poll`
is what a poll by hand does: it selects what is due, inserts a row for each, and moves each schedule on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from duly.journal import Entry, Journal
from tests.bench.measuring import Case, Contender, Line, Measured, alternate, run_axis
from tests.bench.one_decision import appended, inserted, opened
from tests.bench.scenes import SCENES, START, MixedScene, Scene

CASES = [Case("1000", {"due": 1000, "steps": 20})]


def measure(case: Measured) -> Iterator[Line]:
    """Seconds and bytes of one decision among a thousand."""
    due, steps = case.sizes["due"], case.sizes["steps"]
    scenes = {peer: scene_of(_made(case.folder / peer), due, due) for peer, scene_of in SCENES.items()}
    per = {peer: _decisions(scene) for peer, scene in scenes.items()}
    entries = _entries(MixedScene(_made(case.folder / "entries"), due, due))
    journal = Journal.open(case.folder / "journal")
    before = _size(journal.path)
    journal.append(entries, START)
    size = _size(journal.path) - before
    yield from alternate(
        [
            *(Contender(peer, scene.poll, scene.rearm, per[peer]) for peer, scene in scenes.items()),
            Contender("journal", lambda: journal.append(entries, START), per=len(entries)),
            Contender("append", appended(case.folder / "raw", b"x" * size), per=len(entries)),
            Contender("sqlite-rows", inserted(case.folder / "rows.db", due), per=due),
            Contender("sqlite-poll", *polled(case.folder / "poll.db", due), per=due),
        ],
        steps=steps,
    )
    journal.close()
    for peer, scene in scenes.items():
        yield {"peer": peer, "value": _bytes(scene) / per[peer], "unit": "bytes"}


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _decisions(scene: Scene) -> int:
    """How many entries the timed part makes: a report, too, is a decision of it."""
    scene.rearm()
    scene.poll()
    scene.rearm()
    before = scene.scheduler.recovery.replayed
    reported = len(scene.offered) if type(scene).__name__ == "ReportingScene" else 0
    assert before == 0
    return len(scene.poll().decisions) + reported


def _entries(scene: MixedScene) -> list[Entry]:
    scene.rearm()
    return [entry for _, entry in scene.poll().decisions]


def _bytes(scene: Scene) -> int:
    scene.rearm()
    before = _size(scene.scheduler.path)
    scene.poll()
    return _size(scene.scheduler.path) - before


def _size(journal: Path) -> int:
    """How many bytes the journal's segments have."""
    return sum(segment.stat().st_size for segment in journal.glob("*.jsonl"))


def polled(path: Path, due: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """A poll by hand over an indexed table, in one transaction; and what makes the schedules due again."""
    database = opened(path)
    database.execute("create table schedule(id integer primary key, next int)")
    database.executemany("insert into schedule values(?, ?)", ((number, 0) for number in range(due)))
    database.execute("create index by_next on schedule(next)")

    def poll() -> None:
        found = database.execute("select id, next from schedule where next <= 60").fetchall()
        database.execute("begin immediate")
        database.executemany(
            "insert into log(schedule, due, at, kind, attempt) values(?, ?, 60, 'admitted', 0)",
            [(f"job-{number:08d}", instant) for number, instant in found],
        )
        database.executemany("update schedule set next = ? where id = ?", [(120, number) for number, _ in found])
        database.execute("commit")

    return poll, lambda: database.execute("update schedule set next = 0")


if __name__ == "__main__":
    run_axis("batch", measure, CASES)
