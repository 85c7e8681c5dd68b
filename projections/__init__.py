"""Pure folds of journal entries into state, and what can be asked of that state.

Rules: nothing here reads a clock, a calendar, a configuration or a host; the same entries always give the same state;
`apply` never raises, whatever the entries say.
"""

from __future__ import annotations

if __name__ != "duly.projections":
    raise ImportError(f"import duly.projections, not {__name__}")

from duly.projections.dump import PROJECTIONS, dump
from duly.projections.facts import Anomaly
from duly.projections.history import BadCursor, History, Page, Row
from duly.projections.replay import NaiveInstant, replay
from duly.projections.runs import Run
from duly.projections.schedules import Block, Schedule
from duly.projections.state import NotRecorded, State

__all__ = [
    "PROJECTIONS",
    "Anomaly",
    "BadCursor",
    "Block",
    "History",
    "NaiveInstant",
    "NotRecorded",
    "Page",
    "Row",
    "Run",
    "Schedule",
    "State",
    "dump",
    "replay",
]
