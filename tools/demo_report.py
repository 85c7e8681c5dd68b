"""What the demo prints: the decisions per schedule, the moments worth telling, and the proof.

Rules kept here: it prints what was found; a figure that is not as promised is printed as it is, in red.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.text import Text

from duly.scheduler.instants import describe_instant
from duly.tools.demo import BEGIN, Story
from duly.tools.demo_findings import Findings, ScheduleFindings
from duly.tools.describe import REASONS
from duly.tools.output import Output
from duly.tools.printable import printable
from duly.tools.wording import counted

STYLES = {
    "clocks": "cyan",
    "opened": "green",
    "down": "yellow",
    "killed": "red",
    "overlap": "yellow",
    "capacity": "yellow",
    "failed": "red",
}


def print_findings(output: Output, story: Story, found: Findings) -> None:
    """Print all of it."""
    _print_head(output, story, found)
    columns = ("schedule", "when", "due", "admitted", "ended badly", "skipped", "superseded", "unaccounted")
    right = ("due", "admitted", "superseded", "unaccounted")
    output.table(columns, [_row(one) for one in found.schedules], right=right, whole=("when",))
    output.line()
    output.line("What happened", style="bold")
    output.grid(
        ((f"{moment.at:%a %m-%d %H:%M}Z", moment.kind, moment.text), STYLES.get(moment.kind, ""))
        for moment in found.moments
    )
    output.line()
    _print_proof(output, found)
    _print_ways_on(output, story, found)


def _print_head(output: Output, story: Story, found: Findings) -> None:
    killed = f", one of which was killed (run {story.kill.run_id} was at work)" if story.kill is not None else ""
    when = f"{found.days} days from {describe_instant(BEGIN)} on, under a simulated clock"
    owners = f"{found.owners} real processes, one after the other"
    kept = counted(len(found.schedules), "schedule")
    output.line(f"{kept}, {when}; kept by {owners}{killed}", style="bold")
    for problem in story.crontab.problems:
        output.line(f"not imported: {problem}", style="yellow")
    output.line()


def _row(one: ScheduleFindings) -> list[object]:
    words: Mapping[str, str] = dict[str, str](REASONS.items())
    wrong = str(one.unaccounted + one.double + one.foreign)
    return [
        one.schedule_id,
        one.when,
        f"{one.due:,}",
        f"{one.admitted:,}",
        Text(", ".join(f"{number} {state}" for state, number in one.ends.items()), style="red"),
        Text(", ".join(f"{number} {words[reason]}" for reason, number in one.skipped.items()), style="yellow"),
        Text(str(one.superseded or ""), style="yellow"),
        Text(printable(one.fault) or wrong, style="green" if one.balanced else "bold red"),
    ]


def _print_proof(output: Output, found: Findings) -> None:
    parts = {
        "admitted": found.total("admitted"),
        "skipped": found.skipped,
        "superseded": found.total("superseded"),
        "still waiting": found.total("waiting"),
    }
    total = " + ".join(f"{number:,} {name}" for name, number in parts.items())
    output.line(f"counted against the calendar: {found.total('due'):,} occurrences came due = {total}")
    wrong = {
        "decided twice": found.total("double"),
        "decided though never due": found.total("foreign"),
        "unaccounted": found.total("unaccounted"),
    }
    text = ", ".join(f"{name}: {number}" for name, number in wrong.items())
    output.line(text, style="bold red" if any(wrong.values()) else "green")
    output.line(str(found.verification), style="green" if found.verification.intact else "bold red")


def _print_ways_on(output: Output, story: Story, found: Findings) -> None:
    duly, journal = command_name(), quoted(story.journal)
    subject = story.kill.schedule_id if story.kill is not None else story.crontab.entries[0].schedule_id
    output.line()
    output.line(f"The journal stays in {story.journal}. To explore it:")
    output.line(f"  {duly} log {journal} --schedule {subject}")
    output.line(f"  {duly} history {subject} -j {journal}")
    if found.killed_at_work is not None:
        output.line(f"  {duly} explain {subject} {describe_instant(found.killed_at_work)} -j {journal}")
    output.line(f"  {duly} verify {journal}")


def command_name() -> str:
    """How to call the command line again, as it was called: `duly` if the shell finds it, or through Python."""
    if shutil.which("duly") is not None:
        return "duly"
    try:
        python = Path(sys.executable).relative_to(Path.cwd())
    except ValueError:
        python = Path(sys.executable)
    return f"{quoted(python)} -m duly"


def quoted(path: Path) -> str:
    """The path as a shell takes it."""
    text = str(path)
    if all(character.isalnum() or character in "-_./\\:" for character in text):
        return text
    return f'"{text}"' if os.name == "nt" else "'" + text.replace("'", "'\\''") + "'"
