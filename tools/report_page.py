"""The report as one page: the templates of `tools/templates`, filled in, with all that they need inside.

Rules kept here:
- the page asks the network for nothing, and its policy forbids it: only the styles and scripts that it came with run,
  each named by its hash, so that nothing a journal says can;
- Jinja escapes every value; the scripts build elements and set their text, never markup;
- styles and scripts are files of their own, one for each part of the page, and may serve other pages as well.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from importlib.resources import files
from typing import Any, Final, NamedTuple

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from duly import __version__
from duly.scheduler.instants import describe_instant
from duly.scheduler.reports import OUTCOMES, Outcome, Report, ScheduleReport
from duly.tools.describe import describe_definition, describe_entry
from duly.tools.moments import describe_duration
from duly.tools.printable import printable
from duly.tools.report_data import end_of, page_data, script_json, shown_text
from duly.tools.wording import counted, lost_entries

GENERATOR: Final = "duly report"
"""What a page says it was made by, so that it is known when it is to be replaced."""
STYLES: Final = ("theme.css", "report.css", "timeline.css", "calendar.css")
SCRIPTS: Final = (
    "model.js",
    "glyphs.js",
    "panel.js",
    "timeline.js",
    "calendar.js",
    "table.js",
    "theme.js",
    "report.js",
)
SHARED: Final = ("theme.css", "theme.js")
"""What the status page of the service looks like, too."""
_OWN: Final = files("duly.tools").joinpath("templates")
BADLY: Final[tuple[Outcome, ...]] = ("failed", "abandoned")
MOST_LISTED: Final = 100
"""How many notices of one kind are listed."""
OUTCOME_NAMES: Final[dict[Outcome, str]] = {
    "completed": "completed",
    "failed": "failed",
    "abandoned": "abandoned",
    "open": "not ended",
    "skipped": "skipped",
    "superseded": "superseded",
    "held": "held",
    "waiting": "waiting",
}


class Notice(NamedTuple):
    """Something about the record that its reader should know: how grave (`bad`, `note`), where, and in words."""

    gravity: str
    place: str
    text: str


class Part(NamedTuple):
    """A style or a script, and the hash by which the page's policy lets it in."""

    text: Markup
    source: str


def render_page(report: Report, journal: str) -> str:
    """The page. `journal` is the folder, as the page's commands name it."""
    environment = Environment(
        loader=DictLoader({"report.html": _template("report.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["instant"] = _instant
    environment.filters["count"] = lambda number: f"{number:,}"
    styles, scripts = [_part(name) for name in STYLES], [_part(name) for name in SCRIPTS]
    data = page_data(report, journal)
    return environment.get_template("report.html").render(
        generator=GENERATOR,
        version=__version__,
        policy=_policy(styles, scripts),
        styles=styles,
        scripts=scripts,
        data=Markup(script_json(data)),  # noqa: S704 - it has no character that markup is made of
        report=report,
        journal=shown_text(journal),
        outcomes=OUTCOMES,
        by_hand=sum(len(one.by_hand) + one.unshown_by_hand for one in report.schedules),
        names=OUTCOME_NAMES,
        schedules=[_row(one) for one in report.schedules],
        notices=_notices(report),
        left_out=_left_out(report, data["shortened"]),
    )


def _template(name: str) -> str:
    folder = files("duly.service").joinpath("watching", "pages") if name in SHARED else _OWN
    return folder.joinpath(name).read_text(encoding="utf-8")


def _part(name: str) -> Part:
    text = _template(name)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Part(Markup(text), f"'sha256-{digest}'")  # noqa: S704 - it is our own


def _policy(styles: list[Part], scripts: list[Part]) -> str:
    allowed = {
        "default-src": "'none'",
        "style-src": " ".join(part.source for part in styles),
        "script-src": " ".join(part.source for part in scripts),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {source}" for name, source in allowed.items())


def _instant(instant: datetime | None) -> str:
    return "" if instant is None else f"{describe_instant(instant.replace(microsecond=0))[:-1].replace('T', ' ')} UTC"


def _row(one: ScheduleReport) -> dict[str, Any]:
    """A schedule's line in the table that is there without scripts."""
    return {
        "id": printable(one.id) or "by hand",
        "what": "runs that belong to no schedule"
        if one.definition is None
        else shown_text(describe_definition(one.definition)),
        "state": one.state,
        "why": shown_text(one.block.reason) if one.block is not None else shown_text(one.fault),
        "next": one.next_due,
        "by_outcome": {outcome: one.counts[outcome] for outcome in OUTCOMES},
        "by_hand": len(one.by_hand) + one.unshown_by_hand,
        "reasons": ", ".join(f"{reason} {number:,}" for reason, number in one.reasons.most_common()),
        "in_spans": sum(span.at_least for span in one.spans),
    }


def _notices(report: Report) -> list[Notice]:
    """What is wrong, or was, the gravest first."""
    found: list[Notice] = []
    if report.narrowed and not report.occurrences:
        text = f"no occurrence lies in it, as of {describe_instant(report.now.replace(microsecond=0))}"
        found.append(Notice("note", "the window", text))
    if report.lost:
        found.append(Notice("bad", "salvage", f"{lost_entries(report.lost)} before this journal was salvaged"))
    if report.unfinished:
        found.append(Notice("note", "the end", f"behind the last entry stands an unfinished line: {report.unfinished}"))
    found += [
        Notice("bad", f"entry {one.sequence}", shown_text(f"anomaly: {one.kind}: {one.text}"))
        for one in report.anomalies[:MOST_LISTED]
    ]
    if report.anomaly_count > MOST_LISTED:
        found.append(Notice("bad", "anomalies", f"{report.anomaly_count - MOST_LISTED:,} more: duly verify lists them"))
    for one in report.schedules:
        if one.block is not None:
            text = f"{one.id} is blocked ({one.block.cause}): {one.block.reason}"
            found.append(Notice("bad", f"entry {one.block.sequence}", shown_text(text)))
        if one.fault:
            found.append(Notice("bad", one.id, shown_text(f"cannot be evaluated here: {one.fault}")))
        if one.failing:
            found.append(Notice("bad", one.id or "by hand", shown_text(_failing(one))))
    ended_badly = [f"{report.counts[one]:,} {OUTCOME_NAMES[one]}" for one in BADLY if report.counts[one]]
    if ended_badly:
        text = f"{' and '.join(ended_badly)}: the timeline marks them, and the table says why"
        found.append(Notice("note", "runs", text))
    if report.steps_back:
        times = counted(report.steps_back, "time")
        back = describe_duration(report.largest_step_back)
        text = f"it stepped back {times}, by up to {back}; a step beyond the tolerance has an entry of its own"
        found.append(Notice("note", "the clock", text))
    found += [
        Notice(
            "note",
            f"entry {step.sequence}",
            shown_text(f"{describe_instant(step.entry.at)}  {describe_entry(step.entry)}"),
        )
        for step in report.moments
    ]
    found += [
        Notice("note", f"entry {one.sequence}", _downtime(one.since, one.until))
        for one in report.downtimes
        if not one.clean
    ]
    return found


def _failing(one: ScheduleReport) -> str:
    """The runs that came to nothing after the last one that did not, and why the latest did."""
    many = "its last run" if one.failing == 1 else f"its last {one.failing:,} runs"
    ended = [shown.explanation for shown in one.shown if shown.outcome in BADLY]
    if not ended:
        return f"{many} came to nothing"
    latest = max(ended, key=lambda explanation: explanation.scheduled_at)
    return f"{many} came to nothing, the latest of {describe_instant(latest.scheduled_at)}: {end_of(latest)}"


def _downtime(since: datetime, until: datetime) -> str:
    gone = f"the owner left no closing mark: nothing is recorded after {describe_instant(since)}"
    return f"{gone} until {describe_instant(until)} ({describe_duration(until - since)})"


def _left_out(report: Report, shortened: int) -> list[str]:
    """What the page does not show one by one, in sentences."""
    said: list[str] = []
    in_bins = sum(one.occurrences - len(one.shown) for one in report.schedules)
    if in_bins:
        width = describe_duration(report.bin_width)
        said.append(
            f"{counted(report.shown, 'occurrence')} can be opened one by one; {in_bins:,} more are counted in bins of "
            f"{width}. What ended badly is shown before what ended well, and the newest before the old."
        )
    if report.schedules_total > len([one for one in report.schedules if one.id]):
        left = report.schedules_total - len([one for one in report.schedules if one.id])
        said.append(f"{counted(left, 'more schedule')} have no timeline here; the totals and the calendar count them.")
    if report.unshown_days:
        said.append(f"The calendar begins {counted(report.unshown_days, 'day')} later than the record.")
    for one, many, number in (
        ("decision about many occurrences at once is", "decisions about many occurrences at once are", "unshown_spans"),
        ("older change of a schedule is", "older changes of schedules are", "unshown_acts"),
        ("older run by hand is", "older runs by hand are", "unshown_by_hand"),
    ):
        left = sum(getattr(schedule, number) for schedule in report.schedules)
        if left:
            said.append(f"{counted(left, one, many)} left out.")
    if report.unshown_moments:
        said.append(f"{counted(report.unshown_moments, 'older event')} of the clock or the journal left out.")
    if shortened:
        said.append(f"{counted(shortened, 'explanation')} are cut short, as the record says more than a page can hold.")
    if said:
        said.append("Narrow the report to see more: duly report … --schedule ID --since INSTANT --until INSTANT.")
    return said
