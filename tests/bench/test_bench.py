"""The measurements work, and what they say is judged as it should be. How long anything takes is asserted nowhere."""

import json
import math
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.bench.goals import GOALS, Goal, Pick, judge
from tests.bench.measuring import ROOT
from tests.bench.run import OWN
from tests.bench.table import PAGE, RESULTS, as_text, page_with, read_lines, row_of, rows

MAY_LACK = {"apscheduler": find_spec("apscheduler") is None, "strace": shutil.which("strace") is None}
SCRIPT_OF = {
    "one decision": "one_decision",
    "replay": "replays",
    "cold start": "cold_start",
    "calendar": "searches",
    "idle memory": "idle_memory",
    "import": "imports",
}

RATIO = Goal("axis", "what", 2, Pick({"axis": "a", "peer": "ours"}), Pick({"axis": "a", "peer": "theirs"}))


def line(peer: str, number: int, seconds: float) -> dict[str, object]:
    return {"axis": "a", "peer": peer, "round": number, "seconds": seconds}


@pytest.mark.parametrize("script", OWN)
def test_each_script_measures_what_its_goals_compare(script: str):
    done = subprocess.run(
        [sys.executable, "-m", f"tests.bench.{script}", "--rounds", "1", "--scale", "0.0005", "--here"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(text) for text in done.stdout.splitlines()]
    failed = [one for one in lines if "error" in one]
    assert [one for one in failed if not any(lacks and name in one["error"] for name, lacks in MAY_LACK.items())] == []
    assert all(isinstance(one.get("seconds", one.get("value")), int | float) for one in lines if "error" not in one)
    excused = {(one["axis"], one["case"]) for one in failed}
    picks = [pick for goal in GOALS for pick in (goal.over, goal.under) if pick is not None]
    mine = [pick for pick in picks if SCRIPT_OF.get(pick.fields["axis"], pick.fields["axis"]) == script]
    assert mine
    wanted = [pick for pick in mine if (pick.fields["axis"], pick.fields["case"]) not in excused]
    assert [pick for pick in wanted if not pick.by_round(lines)] == []


def test_a_ratio_is_taken_within_a_round_and_the_median_is_judged():
    figures = [(0, 1.0, 1.0), (1, 30.0, 10.0), (2, 3.0, 2.0)]
    lines = [
        one for number, ours, theirs in figures for one in (line("ours", number, ours), line("theirs", number, theirs))
    ]
    judged = judge(RATIO, lines)
    assert (judged.middle, judged.low, judged.high, judged.rounds, judged.met) == (1.5, 1.0, 3.0, 3, True)
    assert row_of(judged, has_peers=False) == ("axis", "what", "≤ 2", "1.5", "1 … 3", "3", "met")
    assert not judge(RATIO._replace(bound=1.4), lines).met
    assert judge(RATIO._replace(bound=1.5, least=True), lines).met
    assert not judge(RATIO._replace(bound=1.6, least=True), lines).met


def test_a_round_that_lacks_one_side_counts_for_nothing():
    judged = judge(RATIO, [line("ours", 0, 1.0), line("theirs", 1, 1.0)])
    assert judged.middle is None
    assert math.isnan(judged.low)
    assert row_of(judged, has_peers=False)[3:] == ("-", "-", "0", "not measured")


def test_a_row_says_why_it_has_no_figure():
    failed = {"axis": "a", "peer": "ours", "round": 0, "error": "no room"}
    assert row_of(judge(RATIO, [failed]), has_peers=False)[-1] == "no room"
    beside = RATIO._replace(over=Pick({"axis": "P1", "peer": "duly"}))
    assert row_of(judge(beside, []), has_peers=False)[-1] == "needs PEERS=folder"
    late = {"axis": "P1", "peer": "duly", "round": 0, "timeout_s": 20}
    assert row_of(judge(beside, [late]), has_peers=True)[-1] == "no answer in 20 s"


def test_the_table_has_a_row_for_each_goal():
    table = rows([])
    assert len(table) == len(GOALS)
    assert as_text(table).count("\n") == len(GOALS)


def test_the_page_has_the_figures_of_the_saved_results():
    page = PAGE.read_text(encoding="utf-8")
    assert page_with(page, read_lines(RESULTS)) == page
