"""A host of commands that is killed: `python -m tests.service.killed_host JOURNAL LOG SECONDS`.

Its clock runs fast, so that every moment has its occurrences. Each command appends `begin RUN ATTEMPT SCHEDULE` to LOG,
works for a moment, and appends `end …`; some stop with a checkpoint and are resumed by the next host. When its time is
over without a kill, it drains and closes. `-` for LOG's second field stands for no attempt.
"""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Timer
from typing import Any

from duly import Every
from duly.service import Command, Host, Outputs, stopped_by_signals
from tests.scheduler.killed_host import FastClock

SLOTS = 3


def command(log: str) -> Command:
    """Work that writes down that it begins and that it has ended."""
    file = shlex.quote(log)
    words = '"$1 $DULY_RUN_ID ${DULY_ATTEMPT_ID:--} $DULY_SCHEDULE_ID"'
    lines = [
        f"say() {{ echo {words} >> {file}; }}",
        "say begin",
        "sleep 0.0$((DULY_RUN_ID % 9))",
        '[ $((DULY_RUN_ID % 5)) -ne 0 ] || [ -n "$DULY_ATTEMPT_ID" ] || { say stop; exit 75; }',
        "say end",
    ]
    return Command("\n".join(lines))


def main(journal: str, log: str, seconds: float) -> None:
    """The host, until it is killed or its time is over."""
    outputs = Outputs(Path(f"{journal}-output"), keep=3)
    clock = FastClock()
    grace = timedelta(seconds=30)
    host = Host.open(
        journal,
        dict.fromkeys("abcd", command(log)),
        outputs=outputs,
        drain_grace=grace,
        resume_at_start=True,
        task_slots=SLOTS,
        clock=clock,
        lock_timeout=5,
    )
    with host, stopped_by_signals(host):
        anchor = datetime(2026, 1, 1, tzinfo=UTC)
        policy: dict[str, Any] = {"overlap": "skip"}
        for name in "abcd":
            host.scheduler.declare(name, Every(1, "minute", anchor=anchor), target=name, **policy)
        Timer(seconds, host.stop).start()
        host.run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
