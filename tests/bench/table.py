"""The table of goals from saved lines: to a terminal, and into docs/performance.md.

`python -m tests.bench.table RESULTS` prints it; with `--page` it writes the figures of docs/performance.md anew, so
that nobody types a figure.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.bench.goals import GOALS, Goal, Judged, judge
from tests.bench.measuring import ROOT

PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "tests" / "bench" / "results.jsonl"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
HEADINGS = ("axis", "what", "goal", "measured", "spread", "rounds", "")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a results file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def rows(lines: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """One row for each goal, in text."""
    has_peers = any(str(line["axis"]).startswith("P") for line in lines)
    return [row_of(judge(goal, lines), has_peers=has_peers) for goal in GOALS]


def row_of(judged: Judged, *, has_peers: bool) -> tuple[str, ...]:
    """Axis, what, goal, measured, spread, rounds, and met or short."""
    goal = judged.goal
    begin = (goal.axis, goal.text, f"{'≥' if goal.least else '≤'} {shown(goal, goal.bound)}")
    if judged.middle is None:
        missing = "needs PEERS=folder" if goal.needs_peers and not has_peers else judged.error or "not measured"
        return (*begin, "-", "-", "0", missing)
    spread = f"{shown(goal, judged.low)} … {shown(goal, judged.high)}"
    verdict = "met" if judged.met else "short"
    return (*begin, shown(goal, judged.middle), spread, str(judged.rounds), verdict)


def shown(goal: Goal, figure: float) -> str:
    """Three digits, and the unit."""
    if abs(figure) >= 100 or figure == int(figure):
        return f"{figure:,.0f}{goal.unit}"
    return f"{figure:.3g}{goal.unit}"


def as_text(table: Iterable[tuple[str, ...]]) -> str:
    """Columns for a terminal."""
    lines = [HEADINGS, *table]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def as_markdown(table: Iterable[tuple[str, ...]]) -> str:
    """A table for the page."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *table]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def summary(table: Sequence[tuple[str, ...]]) -> str:
    """How many goals were met."""
    met, short = (sum(row[-1] == verdict for row in table) for verdict in ("met", "short"))
    return f"{met} met, {short} short, {len(table) - met - short} not measured"


def page_with(page: str, lines: Sequence[dict[str, Any]]) -> str:
    """The page with these figures between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the page has no {BEGIN} … {END}")
    table = rows(lines)
    about = next(line for line in lines if "machine" in line)
    remarks = [f"{summary(table)}."]
    if about["scale"] != 1:
        remarks.append(f"**All sizes are times {about['scale']}: this is a try.**")
    if about.get("note"):
        remarks.append(about["note"])
    text = f"Measured on {about['machine']}: {' '.join(remarks)}\n\n{as_markdown(table)}"
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="?", type=Path, default=RESULTS)
    parser.add_argument("--page", action="store_true", help="write the figures into docs/performance.md")
    given = parser.parse_args()
    lines = read_lines(given.results)
    if given.page:
        PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), lines), encoding="utf-8")
    table = rows(lines)
    sys.stdout.write(f"{as_text(table)}\n{summary(table)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
