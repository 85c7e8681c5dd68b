"""duly.scheduler: triggers and the calendar, the pure decision functions, and the Scheduler that owns clock, journal
and state. Nothing is loaded from here: import the modules, or the public names from `duly`."""

if __name__ != "duly.scheduler":
    raise ImportError(f"this is the package duly.scheduler, not {__name__}: import duly.scheduler")
