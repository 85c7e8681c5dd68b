"""The decisions: pure functions from state, one clock reading and the host's answers to journal entries.

Rules: no I/O, no clock, no callback, and nothing that is passed in is changed. What a decision needs to know from the
host it asks for, by yielding a question; whoever drives it sends the answer. So the same function decides live, in
the engine check and in a what-if.
"""

from __future__ import annotations

if __name__ != "duly.scheduler.decisions":
    raise ImportError(f"import duly.scheduler.decisions, not {__name__}")
