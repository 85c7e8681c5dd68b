"""A journal whose texts would run, if a page took any of them for markup."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from duly import Cron, ManualClock, Scheduler

BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MARKUP = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
MOVING = "\u202eturned\u2028next\u2029line\x1b[2J\x00<!--<script>"
TEXTS = {
    "note": f"note {MARKUP} {MOVING}",
    "actor": f"actor {MARKUP}",
    "target": f"target {MARKUP} '\"`{{{{7*7}}}}{{% raw %}}",
    "reason": f"reason {MARKUP} {MOVING}",
    "error": f"error {MARKUP} {MOVING} javascript:document.title='owned'",
}


def make_hostile(path: Path) -> Path:
    """Make the journal, closed, and return its folder."""
    clock = ManualClock(BEGIN)
    with Scheduler.open(path, clock=clock, actor=TEXTS["actor"], task_slots=9) as scheduler:
        scheduler.create(
            "a", Cron("@hourly", zone="UTC"), target=TEXTS["target"], actor=TEXTS["actor"], note=TEXTS["note"]
        )
        scheduler.create("b", Cron("@hourly", zone="UTC"), target="b", overlap="parallel", max_active_runs=9)
        clock.advance(timedelta(hours=1))
        first, second = scheduler.poll(start=True).offered
        scheduler.note_run(first.id, {MARKUP: MARKUP})
        scheduler.fail(first.id, error=TEXTS["error"])
        scheduler.complete(second.id, result={"markup": MARKUP})
        manual = scheduler.run_now("a", actor=TEXTS["actor"], note=TEXTS["note"])
        scheduler.start(manual.id)
        scheduler.fail(manual.id, error=RuntimeError(TEXTS["error"]))
        scheduler.block("b", TEXTS["reason"], actor=TEXTS["actor"], note=TEXTS["note"])
        clock.advance(timedelta(hours=1))
        scheduler.poll()
    return path
