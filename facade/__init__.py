"""duly: an embeddable, event-sourced scheduler. This package holds its public names and nothing else.

Rules kept here:
- a name is loaded when it is first asked for: `import duly.journal` loads neither the scheduler nor croniter;
- `PUBLIC` is the list of public names, each with the module it lives in. The `TYPE_CHECKING` block says the same to
  type checkers, and tests/test_facade.py holds the two together.
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if __name__ != "duly":
    raise ImportError(f"this is the package duly, not {__name__}: pip install it (-e . in a checkout) and import duly")

if TYPE_CHECKING:
    from duly.journal.entries import ErrorInfo as ErrorInfo
    from duly.journal.entries import TornTail as TornTail
    from duly.journal.errors import Error as Error
    from duly.journal.errors import ForeignJournal as ForeignJournal
    from duly.journal.errors import JournalCorrupt as JournalCorrupt
    from duly.journal.errors import JournalError as JournalError
    from duly.journal.errors import JournalLocked as JournalLocked
    from duly.journal.errors import JournalPoisoned as JournalPoisoned
    from duly.journal.errors import LockUnsupported as LockUnsupported
    from duly.journal.errors import UnconfirmedGone as UnconfirmedGone
    from duly.journal.errors import UnencodableEntry as UnencodableEntry
    from duly.journal.errors import UnreadableJournal as UnreadableJournal
    from duly.projections import Anomaly as Anomaly
    from duly.projections import BadCursor as BadCursor
    from duly.projections import Block as Block
    from duly.projections import NotRecorded as NotRecorded
    from duly.projections import Page as Page
    from duly.projections import Row as Row
    from duly.projections import Run as Run
    from duly.projections import Schedule as Schedule
    from duly.projections import State as State
    from duly.scheduler.clock import Clock as Clock
    from duly.scheduler.clock import ManualClock as ManualClock
    from duly.scheduler.clock import SystemClock as SystemClock
    from duly.scheduler.decisions.questions import Invocation as Invocation
    from duly.scheduler.decisions.questions import Target as Target
    from duly.scheduler.decisions.runs import Completed as Completed
    from duly.scheduler.decisions.runs import Failed as Failed
    from duly.scheduler.decisions.runs import Interrupted as Interrupted
    from duly.scheduler.decisions.runs import StillRunning as StillRunning
    from duly.scheduler.embedded import Scheduler as Scheduler
    from duly.scheduler.errors import Blocked as Blocked
    from duly.scheduler.errors import ClockUnusable as ClockUnusable
    from duly.scheduler.errors import DefinitionError as DefinitionError
    from duly.scheduler.errors import DuplicateSchedule as DuplicateSchedule
    from duly.scheduler.errors import NoTaskSlot as NoTaskSlot
    from duly.scheduler.errors import RevisionConflict as RevisionConflict
    from duly.scheduler.errors import SchedulerClosed as SchedulerClosed
    from duly.scheduler.errors import SchedulerError as SchedulerError
    from duly.scheduler.errors import StaleAttempt as StaleAttempt
    from duly.scheduler.errors import TriggerError as TriggerError
    from duly.scheduler.errors import UnknownRun as UnknownRun
    from duly.scheduler.errors import UnknownSchedule as UnknownSchedule
    from duly.scheduler.errors import WrongRunState as WrongRunState
    from duly.scheduler.execution import Attempt as Attempt
    from duly.scheduler.execution import RunContext as RunContext
    from duly.scheduler.explanations import Explanation as Explanation
    from duly.scheduler.explanations import Revision as Revision
    from duly.scheduler.explanations import RunFacts as RunFacts
    from duly.scheduler.explanations import SlotTaken as SlotTaken
    from duly.scheduler.explanations import Step as Step
    from duly.scheduler.explanations import Voided as Voided
    from duly.scheduler.inputs import occurrence as occurrence
    from duly.scheduler.inspection import Upcoming as Upcoming
    from duly.scheduler.polls import Poll as Poll
    from duly.scheduler.reconciling import EvidenceSource as EvidenceSource
    from duly.scheduler.reconciling import Recovery as Recovery
    from duly.scheduler.sources import OccurrenceSource as OccurrenceSource
    from duly.scheduler.triggers import Cron as Cron
    from duly.scheduler.triggers import Every as Every
    from duly.scheduler.triggers import OncePer as OncePer
    from duly.scheduler.triggers import OneShot as OneShot

__version__ = "0.1.0"

PUBLIC = MappingProxyType(
    {
        name: f"duly.{module}"
        for module, names in {
            "journal.errors": "Error ForeignJournal JournalCorrupt JournalError "
            "JournalLocked JournalPoisoned LockUnsupported UnconfirmedGone UnencodableEntry UnreadableJournal",
            "journal.entries": "ErrorInfo TornTail",
            "scheduler.clock": "Clock ManualClock SystemClock",
            "scheduler.decisions.questions": "Invocation Target",
            "projections": "Anomaly BadCursor Block NotRecorded Page Row Run Schedule State",
            "scheduler.decisions.runs": "Completed Failed Interrupted StillRunning",
            "scheduler.embedded": "Scheduler",
            "scheduler.execution": "Attempt RunContext",
            "scheduler.explanations": "Explanation Revision RunFacts SlotTaken Step Voided",
            "scheduler.inputs": "occurrence",
            "scheduler.inspection": "Upcoming",
            "scheduler.polls": "Poll",
            "scheduler.reconciling": "EvidenceSource Recovery",
            "scheduler.errors": "Blocked ClockUnusable DefinitionError DuplicateSchedule NoTaskSlot RevisionConflict "
            "SchedulerClosed SchedulerError StaleAttempt TriggerError UnknownRun UnknownSchedule WrongRunState",
            "scheduler.sources": "OccurrenceSource",
            "scheduler.triggers": "Cron Every OncePer OneShot",
        }.items()
        for name in names.split()
    }
)

if not TYPE_CHECKING:  # a checker that saw it would take any name for a public one

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return list(PUBLIC)
        module = PUBLIC.get(name)
        if module is None:
            raise AttributeError(f"module 'duly' has no attribute {name!r}")
        value = getattr(import_module(module), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*PUBLIC, *(name for name in globals() if name.startswith("__"))])
