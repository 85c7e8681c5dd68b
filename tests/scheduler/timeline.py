r"""Timelines: `check(text)` runs a scheduler through a day that reads like its record.

    09:00  create report cron="*/15 * * * *" overlap=skip misfire=skip
    09:15  poll                  -> admit report@09:15
    09:15  start report@09:15
    09:30  poll                  -> skip report@09:30 overlap
    09:31  complete report@09:15
    09:32  poll                  -> nothing
    2026-03-08T06:59Z  pause report actor=eve
           crash                 (reopen without close)

A line is `[time] command [-> decision, decision …]`. Times are UTC; the day is 2026-03-02, a Monday, until a line gives
another one (`2026-03-08` or `2026-03-08T06:59Z`, seconds and fractions as needed). A line without a time happens at the
time of the line above. A later time is waited for; an earlier time is a clock that was stepped back. A line that begins
with `->` goes on with the decisions of the line above. `(…)` at the end of a line and lines that begin with `#` are
remarks. Instants, also in decisions, may be times of day of the line's own day.

Commands (S a schedule, R a run, D a duration such as 90s, 5m, 1h30m, 2d):

    open [slots=N] [batch=N] [tolerance=D] [targets=NAME[@REVISION],…]      the first line, if any (slots=8)
    host [targets=…] [refuse=S,…] [accept=S,…] [break=S,…]     what targets() and preflight() answer from here on
    create|declare S TRIGGER [zone=Z] [fold=first] [overlap=…] [limit=N] [misfire=…] [lateness=D] [target=NAME]
        [pin=REVISION] [input=JSON] [limits=JSON] [request=KEY]         overlap=parallel has limit=10 unless it is given
    edit S [revision=N] [the same options]                              revision: the current one unless it is given
    TRIGGER: cron="…" | once=INSTANT | once_per=day|week|month | every="1 day" [at=HH:MM] anchor=DATE|INSTANT
    pause|unpause|disable|enable|delete|unblock S     block S [reason=…]     rebaseline S through=INSTANT
    external S at=INSTANT          run_now [S] [target=NAME] [input=JSON] [limits=JSON] [request=KEY]
    poll [start=yes] [next=INSTANT|none]       poll more (again and again, until there is no more)
    start R …     complete|fail|interrupt|note R [attempt=N|none] [value=JSON]     resume R     abandon R
    stop (stop_admitting)     clock (the wall clock steps to this time: the monotonic clock does not go along)
    crash|reopen [completed=R,…] [failed=R,…] [interrupted=R,…] [running=R,…] [breaks=R,…] [attempt=N|none]
        [stray=S,…] [slots=N] [batch=N]         without and with a close; what is named is the evidence
    schedule S NAME=VALUE …     run R NAME=VALUE …     occurrence S@INSTANT NAME=VALUE …         what a question answers
    any command: actor=… note=… (where the API has them) and raises=ERROR

A run is named by its occurrence (`report@09:15`), a manual run `report#1`, `report#2`, … in order, one without a
schedule `#1`; attempts count from 1 within their run.

Decisions, in the order of the journal:

    admit R | skip O REASON | supersede O by INSTANT | hold O | interval S@AFTER..BEFORE REASON
    create S | edit S | pause S | … | block S CAUSE | unblock S | rebaseline S | external S | calendar S
    start R | complete R | fail R | interrupt R | resume R | clear R | abandon R CAUSE | note R
    regress | jump | offer R (offered, and admitted earlier than by this poll) | more | warn | nothing

and details that are compared only where a timeline names them: `blocked_by=R`, `spent_by=R|external`, `at_least=N`,
`exhausts=yes|no`, `covers=AFTER..THROUGH` (`..THROUGH` from the beginning), `revision=N`, `detail=yes`, `actor=…`,
`note=…`, `error=TYPE`. The entry of a command itself is understood and not written (its details may stand among the
command's options: `pause report covers=09:00..09:20`), except after `poll`, `declare` and `run_now`, which must say
what they decide. `-> nothing` is nothing at all: the command's own entry is missing too.

`check` compares the whole transcript, asks the journal for the same state (`replay` and its digest), runs every proof
of `tests.scheduler.timeline_proofs` over the journal, and does it all once more with a crash and a reopening after
every line, with evidence that whatever was running still runs. `jump` is left out of that second reading: a new process
has no clock to compare with. Nothing crashes unnoticed between `stop` and the next crash or reopening.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.scheduler.timeline_proofs import prove
from tests.scheduler.timeline_text import Decision, Line, compared, parse_timeline, retold
from tests.scheduler.timeline_world import World


def check(text: str) -> None:
    """Runs the timeline, and runs it once more with a crash and a reopening after every line."""
    lines = parse_timeline(text)
    for crashing in (False, True):
        expected, actual = transcripts(lines, crashing=crashing)
        assert actual == expected, described(lines, expected, actual, crashing=crashing)


def transcripts(lines: list[Line], *, crashing: bool) -> tuple[list[list[str]], list[list[str]]]:
    """For each line, what the timeline says and what happened."""
    expected: list[list[str]] = []
    actual: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="timeline-") as folder, World(Path(folder), lines) as world:
        for line in lines:
            said, done = compared(_understood(line.expected, crashing), world.run(line), line.now.date())
            expected.append(said)
            actual.append(done)
            if crashing:
                world.crash_unnoticed()
        prove(world.path, world.digest())
    return expected, actual


def described(lines: list[Line], expected: list[list[str]], actual: list[list[str]], *, crashing: bool) -> str:
    """The timeline as it went, to be pasted, and above each line that went another way what was expected there."""
    told = ["with a crash after every line:" if crashing else "as it stands:"]
    for line, wanted, happened in zip(lines, expected, actual, strict=True):
        if wanted == happened:
            told.append(line.text)
        else:
            told += [f"# expected: {line.text}", retold(line, happened)]
    return "\n    ".join(told)


def _understood(decisions: tuple[Decision, ...], crashing: bool) -> tuple[Decision, ...]:
    return tuple(decision for decision in decisions if not (crashing and decision.text == "jump"))
