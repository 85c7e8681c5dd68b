"""What the demo prints: the decisions per schedule, the moments worth telling, and the proof from the record.

Rules kept here: every figure is counted from the journal; a figure that is not as promised is printed as it is, in red,
and makes the demo fail.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.text import Text

from duly.journal import read, verify
from duly.journal.entries import CronRule, Entry, JournalOpened, RunAbandoned, RunFailed, ScheduleCreated
from duly.scheduler.accounting import Account, ScheduleAccount, account_of
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
    account = account_of(entries)
    _print_head(output, story, entries)
    _print_accounts(output, account, entries)
    output.line()
    output.line("What happened", style="bold")
    _print_moments(output, moments(entries))
    output.line()
    balanced = _print_proof(output, account)
    intact = _print_verification(output, story.journal)
    _print_ways_on(output, story)
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


def _print_accounts(output: Output, account: Account, entries: Sequence[tuple[int, Entry]]) -> None:
    columns = ("schedule", "when", "due", "admitted", "not completed", "skipped", "superseded", "unaccounted")
    when = {entry.schedule_id: _when(entry) for _, entry in entries if isinstance(entry, ScheduleCreated)}
    ends = Counter(
        (entry.schedule_id, "failed" if isinstance(entry, RunFailed) else "abandoned")
        for _, entry in entries
        if isinstance(entry, RunFailed | RunAbandoned)
    )
    listed = sorted(account.schedules, key=lambda one: list(when).index(one.schedule_id))
    rows = [_row(one, when[one.schedule_id], ends) for one in listed]
    output.table(columns, rows, right=("due", "admitted", "superseded", "unaccounted"))


def _when(created: ScheduleCreated) -> str:
    rule = created.definition.trigger
    return f"{rule.expression} {rule.zone.rpartition('/')[2]}" if isinstance(rule, CronRule) else describe_trigger(rule)


def _row(one: ScheduleAccount, when: str, ends: Mapping[tuple[str | None, str], int]) -> list[object]:
    wrong = len(one.unaccounted) + len(one.double) + len(one.foreign)
    told = [(state, ends.get((one.schedule_id, state), 0)) for state in ("failed", "abandoned")]
    skipped = [(reason, one.counts[f"skipped:{reason}"]) for reason in REASONS]
    skipped.append(("backlog", one.counts["interval:backlog"]))
    superseded = one.counts["superseded"] + one.counts["interval:superseded"]
    return [
        one.schedule_id,
        when,
        f"{one.due:,}",
        f"{one.counts['admitted']:,}",
        Text(", ".join(f"{number} {state}" for state, number in told if number), style="red"),
        Text(", ".join(f"{number} {reason_in_words(reason)}" for reason, number in skipped if number), style="yellow"),
        Text(str(superseded or ""), style="yellow"),
        Text(one.fault or str(wrong), style="green" if one.balanced else "bold red"),
    ]


def reason_in_words(reason: str) -> str:
    """The words for a reason of a skip; the reason itself if there are none."""
    words: Mapping[str, str] = dict[str, str](REASONS.items())
    return words.get(reason, reason)


def _print_moments(output: Output, told: Sequence[Moment]) -> None:
    output.grid(
        ((f"{moment.at:%a %m-%d %H:%M}Z", moment.kind, moment.text), STYLES.get(moment.kind, "")) for moment in told
    )


def _print_proof(output: Output, account: Account) -> bool:
    counts = sum((one.counts for one in account.schedules), Counter[str]())
    due = sum(one.due for one in account.schedules)
    parts = {
        "admitted": counts["admitted"],
        "skipped": counts["skipped"] + counts["interval:backlog"],
        "superseded": counts["superseded"] + counts["interval:superseded"],
        "still waiting": counts["waiting"] + counts["held"],
    }
    total = " + ".join(f"{number:,} {name}" for name, number in parts.items())
    output.line(f"counted against the calendar: {due:,} occurrences came due = {total}")
    lost = account.unaccounted + due - sum(parts.values()) - sum(one.counts["covered"] for one in account.schedules)
    double = sum(len(one.double) for one in account.schedules)
    foreign = sum(len(one.foreign) for one in account.schedules)
    right = account.balanced and not lost
    output.line(
        f"decided twice: {double}, decided though never due: {foreign}, unaccounted: {lost}",
        style="green" if right else "bold red",
    )
    return right


def _print_verification(output: Output, journal: Path) -> bool:
    found = verify(journal)
    output.line(str(found), style="green" if found.intact else "bold red")
    return found.intact


def _print_ways_on(output: Output, story: Story) -> None:
    duly, journal = command_name(), quoted(story.journal)
    subject = story.kill.schedule_id if story.kill is not None else story.crontab.entries[0].schedule_id
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
