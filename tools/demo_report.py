"""What the demo prints: the decisions per schedule, the moments worth telling, and the proof from the record.

Rules kept here: every figure is counted from the journal; a figure that is not as promised is printed as it is, in red,
and makes the demo fail.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.text import Text

from duly.journal import read, verify
from duly.journal.entries import CronRule, Entry, JournalOpened
from duly.scheduler.triggers import trigger_of
from duly.tools.account import ScheduleAccount, account
from duly.tools.demo import BEGIN, Story
from duly.tools.demo_moments import Moment, moments
from duly.tools.describe import REASONS, describe_trigger
from duly.tools.moments import describe_instant
from duly.tools.output import Output

STYLES = {
    "clocks": "cyan",
    "opened": "green",
    "down": "yellow",
    "killed": "red",
    "overlap": "yellow",
    "capacity": "yellow",
    "failed": "red",
}


def print_story(output: Output, story: Story) -> bool:
    """Print all of it; whether everything is as promised."""
    entries = [(record.sequence, record.entry) for record in read(story.journal)]
    accounts = account(entries, trigger_of)
    _print_head(output, story, entries)
    _print_accounts(output, accounts)
    output.line()
    output.line("What happened", style="bold")
    _print_moments(output, moments(entries))
    output.line()
    balanced = _print_proof(output, accounts)
    intact = _print_verification(output, story.journal)
    _print_ways_on(output, story, accounts)
    return balanced and intact


def _print_head(output: Output, story: Story, entries: Sequence[tuple[int, Entry]]) -> None:
    days = round((entries[-1][1].at - BEGIN).total_seconds() / 86_400)
    owners = sum(isinstance(entry, JournalOpened) for _, entry in entries)
    kept = len(story.crontab.entries)
    killed = f", one of which was killed (run {story.kill.run_id} was at work)" if story.kill is not None else ""
    what = f"{kept} schedules, {days} days from {describe_instant(BEGIN)} on, under a simulated clock"
    output.line(f"{what}; kept by {owners} real processes, one after the other{killed}", style="bold")
    for problem in story.crontab.problems:
        output.line(f"not imported: {problem}", style="yellow")
    output.line()


def _print_accounts(output: Output, accounts: Sequence[ScheduleAccount]) -> None:
    columns = ("schedule", "when", "due", "admitted", "not completed", "skipped", "superseded", "unaccounted")
    output.table(columns, [_row(one) for one in accounts], right=("due", "admitted", "superseded", "unaccounted"))


def _row(one: ScheduleAccount) -> list[object]:
    rule = one.rule
    when = f"{rule.expression} {rule.zone.rpartition('/')[2]}" if isinstance(rule, CronRule) else describe_trigger(rule)
    wrong = len(one.unaccounted) + len(one.double) + len(one.foreign)
    bad_ends = ", ".join(f"{one.runs[state]} {state}" for state in ("failed", "abandoned") if one.runs[state])
    skipped = ", ".join(f"{number} {reason_in_words(reason)}" for reason, number in one.skipped.items())
    return [
        one.schedule_id,
        when,
        f"{one.due:,}",
        f"{one.admitted:,}",
        Text(bad_ends, style="red"),
        Text(skipped, style="yellow"),
        Text(str(one.superseded or ""), style="yellow"),
        Text(str(wrong), style="green" if wrong == 0 else "bold red"),
    ]


def reason_in_words(reason: str) -> str:
    """The words for a reason of a skip; the reason itself if there are none."""
    words: Mapping[str, str] = dict[str, str](REASONS.items())
    return words.get(reason, reason)


def _print_moments(output: Output, told: Sequence[Moment]) -> None:
    output.grid(
        ((f"{moment.at:%a %m-%d %H:%M}Z", moment.kind, moment.text), STYLES.get(moment.kind, "")) for moment in told
    )


def _print_proof(output: Output, accounts: Sequence[ScheduleAccount]) -> bool:
    due, admitted = sum(one.due for one in accounts), sum(one.admitted for one in accounts)
    skipped, superseded = sum(sum(one.skipped.values()) for one in accounts), sum(one.superseded for one in accounts)
    waiting = sum(one.waiting for one in accounts)
    lost = sum(len(one.unaccounted) for one in accounts)
    double = sum(len(one.double) for one in accounts)
    foreign = sum(len(one.foreign) for one in accounts)
    right = not (lost or double or foreign)
    output.line(
        f"counted against the calendar: {due:,} occurrences came due = {admitted:,} admitted + {skipped:,} skipped + "
        f"{superseded:,} superseded + {waiting:,} still waiting",
    )
    output.line(
        f"decided twice: {double}, decided though never due: {foreign}, unaccounted: {lost}",
        style="green" if right else "bold red",
    )
    return right


def _print_verification(output: Output, journal: Path) -> bool:
    found = verify(journal)
    intact = found.intact
    text = f"journal verified, {found.entries:,} entries, chain intact" if intact else f"journal NOT intact: {found}"
    output.line(text, style="green" if intact else "bold red")
    return intact


def _print_ways_on(output: Output, story: Story, accounts: Sequence[ScheduleAccount]) -> None:
    duly, journal = command_name(), quoted(story.journal)
    subject = story.kill.schedule_id if story.kill is not None else accounts[0].schedule_id
    output.line()
    output.line(f"The journal stays in {story.journal}. To explore it:")
    output.line(f"  {duly} log {journal} --schedule {subject}")
    output.line(f"  {duly} dump {journal} --projection history")
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
