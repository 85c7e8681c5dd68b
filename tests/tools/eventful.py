"""A journal in which much happens, made by the real scheduler under a `ManualClock`, always the same.

In it: a change of the clocks, downtime, overlap, a full house, pause and unpause, an edit, a failure whose text would
drive a terminal, a manual run, a crash that abandons a run, a one-shot that ends, a block, a deletion.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from duly import Cron, ManualClock, OneShot, Scheduler

BEGIN = datetime(2026, 3, 28, 0, 0, tzinfo=UTC)
HOSTILE = "no disk\x1b[2J\x1b]0;owned\x07 \u202egnp.exe\nsecond line"
"""Would clear the screen, rename the window, turn text around and forge a line."""


def make_eventful(path: Path) -> Path:
    """Make the journal, closed, and return its folder."""
    clock = ManualClock(BEGIN)
    with Scheduler.open(path, task_slots=2, clock=clock, actor="test") as scheduler:
        scheduler.create(
            "nightly", Cron("30 2 * * *", zone="Europe/Berlin"), target="backup", actor="ann", note="first"
        )
        scheduler.create("often", Cron("*/15 * * * *", zone="UTC"), target="check", misfire="skip")
        scheduler.create("hourly", Cron("0 * * * *", zone="UTC"), target="roll", overlap="parallel", max_active_runs=2)
        scheduler.create("once", OneShot(BEGIN + timedelta(minutes=20)), target="greet")
        scheduler.create("gone", Cron("@daily", zone="Asia/Tokyo"), target="old")
        clock.advance(timedelta(minutes=15))
        [often] = scheduler.poll(start=True).offered  # and is still at work at 00:30
        clock.advance(timedelta(minutes=5))
        [once] = scheduler.poll(start=True).offered
        scheduler.complete(once.id, result={"said": "hello"})
        clock.advance(timedelta(minutes=10))
        scheduler.poll()
        scheduler.fail(often.id, error=OSError(HOSTILE))
        manual = scheduler.run_now("nightly", actor="bob", note=HOSTILE)
        scheduler.start(manual.id)
        clock.advance(timedelta(minutes=15))
        [often] = scheduler.poll(start=True).offered  # with the manual run the house is full
        clock.advance(timedelta(minutes=15))
        scheduler.poll()  # hourly is held
        scheduler.complete(manual.id)
        [hourly] = scheduler.poll(start=True).offered
        scheduler.complete(hourly.id)
        scheduler.complete(often.id)
        scheduler.delete("gone", actor="ann", note="no longer needed")
        scheduler.pause("often", actor="ann")
        clock.advance(timedelta(minutes=20))
        scheduler.unpause("often", actor="ann")
        scheduler.edit("hourly", expected_revision=1, lateness=timedelta(minutes=5), actor="ann")
        scheduler.block("often", "the disk is full", actor="ann")
        clock.advance(timedelta(minutes=10))
        [nightly] = scheduler.poll(start=True).offered
        assert nightly.schedule_id == "nightly"
        # The process dies here, with nightly at work.
        scheduler._journal.close()  # pyright: ignore[reportPrivateUsage] - a death leaves no closing mark
    clock.advance(timedelta(hours=26))  # downtime, over the change of the clocks at 01:00Z
    with Scheduler.open(path, task_slots=2, clock=clock, actor="test") as scheduler:
        scheduler.unblock("often", actor="ann", note="tidied up")
        poll = scheduler.poll(start=True)
        while poll.more:
            poll = scheduler.poll(start=True)
        for run in scheduler.runs(state="started"):
            scheduler.complete(run.id)
    return path


def hostile_text_is_escaped(text: str) -> bool:
    """Whether the hostile text came out, and nothing of it raw."""
    raw = any(character in text for character in "\x1b\x07\u202e")
    return not raw and ("\\x1b[2J" in text or "\\u001b[2J" in text)


def without_what_differs(text: str, path: Path) -> str:
    """The text with everything that depends on machine, process and version replaced by its name."""
    text = text.replace(str(path), "JOURNAL")
    text = re.sub(r"\b[0-9a-f]{64}\b", "<64 hex>", text)
    text = re.sub(r"\b[0-9a-f]{32}\b", "<32 hex>", text)
    text = re.sub(r"on \S+, process [0-9]+, duly \S+,", "on <host>, process <pid>, duly <version>,", text)
    text = re.sub(r"[0-9,]+ bytes", "<n> bytes", text)
    text = re.sub(r'"bytes": [0-9]+', '"bytes": <n>', text)
    for name in ("host", "duly", "croniter", "tzdata", "python"):
        text = re.sub(rf'"{name}": "[^"]*"', f'"{name}": "<{name}>"', text)
    return re.sub(r'"pid": [0-9]+', '"pid": <pid>', text)
