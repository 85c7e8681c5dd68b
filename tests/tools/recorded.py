"""The eventful journal, and what it lacks: a second night in which everything else happens that can be explained.

In it, after `eventful`: an occurrence that finds no task slot until it is too late, a period that an external run has
spent, an edit with a reason, a disabled afternoon, a clock that runs two days ahead and comes back, an interrupted run
that is resumed, a rebaseline, and what is left undecided at the end.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from duly import Cron, ManualClock, OncePer, Scheduler
from tests.tools.eventful import make_eventful

BEGIN = datetime(2026, 3, 29, 4, 0, tzinfo=UTC)
END = datetime(2026, 3, 29, 20, 0, tzinfo=UTC)
"""When the journal is read, for those who ask what waits."""
MINUTE = timedelta(minutes=1)


def make_recorded(path: Path) -> Path:
    """Make the journal, closed, and return its folder."""
    make_eventful(path)
    clock = ManualClock(BEGIN)
    with Scheduler.open(path, task_slots=2, clock=clock, actor="test") as scheduler:
        scheduler.delete("often", actor="ann", note="too noisy")
        scheduler.create("capped", Cron("10 * * * *", zone="UTC"), target="fetch", misfire="skip", actor="bob")
        scheduler.create("tally", OncePer("day", zone="America/New_York"), target="tally", actor="bob")
        scheduler.record_external_run("tally", BEGIN, actor="bob", note="from the old cron")
        held = [scheduler.run_now(target="import", actor="bob").id for _ in range(2)]
        scheduler.start(*held)
        clock.advance(10 * MINUTE)
        scheduler.poll()  # tally's period is spent, capped waits: the house is full
        clock.advance(2 * MINUTE)
        scheduler.poll()  # too late for capped
        for run_id in held:
            scheduler.complete(run_id)
        scheduler.edit(
            "capped", expected_revision=1, lateness=10 * MINUTE, actor="ann", note="it missed one for want of a slot"
        )
        scheduler.disable("hourly", actor="ann")
        clock.advance(3 * timedelta(hours=1))
        [nightly, *others] = scheduler.poll(start=True).offered
        scheduler.interrupt(nightly.id, checkpoint={"done": 3})
        for run in others:
            scheduler.complete(run.id)
        scheduler.enable("hourly", actor="ann")
        scheduler.resume(nightly.id)
        clock.advance(timedelta(days=2))  # the clock is wrong …
        for run in scheduler.poll(start=True).offered:
            scheduler.complete(run.id)
        clock.step(-timedelta(days=2))  # … and is set right
        scheduler.poll()
        scheduler.pause("nightly", actor="ann", note="until the disk is replaced")
        clock.advance(3 * timedelta(hours=1))
        scheduler.rebaseline("capped", clock.now() - timedelta(hours=1), actor="ann", note="those are done by hand")
        scheduler.block("hourly", "its host is gone", actor="ann")
    return path
