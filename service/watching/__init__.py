"""duly.service.watching: what one sees of a host from outside. Health, metrics, the log of decisions, the status page.

Rules kept here:
- what is shown is read from the record or asked of the scheduler, never counted beside it;
- watching changes nothing and delays nothing: it may fail, and the host goes on.
"""

from __future__ import annotations

if __name__ != "duly.service.watching":
    raise ImportError(f"this is the package duly.service.watching, not {__name__}: import duly.service.watching")
