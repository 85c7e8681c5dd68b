"""The closed union of journal entries: every fact that duly ever records, one class each.

Rules:
- An entry is one decision, in the past tense, complete in itself: replay needs no clock, calendar or configuration.
- Instants are aware UTC datetimes; durations are timedeltas; runs, attempts and other entries are named by sequence.
- The `kind` on disk is written out here and never derived from a class or module name: renaming code renames nothing
  on disk. Kinds are never reused. Fields are only ever added, each with a default.
- `at` is the clock reading of the decision.
- A new kind of decision touches this file, the fold in `duly.projections`, one module in `duly.scheduler.decisions` and
  the words for people in `duly.tools.describe`; type checkers name each place that lacks it. What the journal has to
  check in it, it reads off the annotations.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgspec

Json: TypeAlias = Any
"""A JSON value of the host: None, bool, int, finite float, str, list, or dict with string keys."""

Instant: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""An aware datetime; a naive one is refused, on the way in and on the way out."""

Overlap: TypeAlias = Literal["skip", "parallel"]
Misfire: TypeAlias = Literal["latest", "skip"]
Fold: TypeAlias = Literal["both", "first"]
Period: TypeAlias = Literal["day", "week", "month"]
Unit: TypeAlias = Literal["minute", "hour", "day", "week", "month", "year"]
SkipReason: TypeAlias = Literal[
    "misfire",
    "backlog",
    "overlap",
    "capacity",
    "preflight",
    "spent",
    "paused",
    "edited",
    "deleted",
    "disabled",
    "operator",
]
BlockCause: TypeAlias = Literal["trigger", "operator", "anomaly", "evidence"]
AbandonCause: TypeAlias = Literal["crash", "ambiguous", "operator"]


class CronRule(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="kind", tag="cron"):
    """A cron expression, read as local wall-clock time in `zone` (an IANA name)."""

    expression: str
    zone: str
    fold: Fold = "both"


class OneShotRule(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="kind", tag="one_shot"):
    """A single instant."""

    at: Instant


class OncePerRule(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="kind", tag="once_per"):
    """Once in every calendar period of `zone`, at any time in it."""

    period: Period
    zone: str


class EveryRule(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="kind", tag="every"):
    """Every `count` units, counted from `anchor`.

    For minute and hour `anchor` is an instant in ISO form (UTC) and `at` is None; for day to year it is a date in
    ISO form and `at` is "HH:MM" of local time in `zone`.
    """

    count: int
    unit: Unit
    anchor: str
    zone: str | None = None
    at: str | None = None
    fold: Fold = "both"


class SourceRule(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="source"):
    """A source of instants that the host brings: the name it is registered under and its parameters."""

    source: str
    parameters: Json = None


TriggerRule: TypeAlias = CronRule | OneShotRule | OncePerRule | EveryRule | SourceRule


class Literally(msgspec.Struct, frozen=True, tag_field="from", tag="literal"):
    """An input that is a JSON value, as it stands."""

    value: Json


class ArrayOf(msgspec.Struct, frozen=True, tag_field="from", tag="array"):
    """An input that is an array of further inputs."""

    items: tuple[Expression, ...]


class ObjectOf(msgspec.Struct, frozen=True, tag_field="from", tag="object"):
    """An input that is an object of further inputs."""

    members: dict[str, Expression]


class FromOccurrence(msgspec.Struct, frozen=True, tag_field="from", tag="occurrence"):
    """An input that is taken from the occurrence being admitted."""

    field: Literal["schedule_id", "occurrence_id", "scheduled_at"]


Expression: TypeAlias = "Literally | ArrayOf | ObjectOf | FromOccurrence"


class Definition(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a schedule is, apart from its id and its state: one revision of it."""

    trigger: TriggerRule
    target: str
    target_revision: str | None = None
    overlap: Overlap = "skip"
    max_active_runs: int | None = None
    misfire: Misfire = "latest"
    lateness: timedelta = timedelta(seconds=60)
    input: dict[str, Expression] = {}
    limits: dict[str, Json] = {}


class ErrorInfo(msgspec.Struct, frozen=True):
    """Why a run failed, as the host reported it."""

    type: str
    message: str


class TornTail(msgspec.Struct, frozen=True):
    """What recovery cut off: `size` bytes at `offset` of `segment`, kept in the file `kept`."""

    segment: str
    offset: int
    size: int
    kept: str


class _Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    at: Instant


class _Commanded(_Entry, frozen=True, kw_only=True, omit_defaults=True):
    """An entry that somebody asked for: who, why, and the idempotency key of the command."""

    actor: str = ""
    note: str = ""
    request: str = ""


class _Administered(_Commanded, frozen=True, kw_only=True, omit_defaults=True):
    schedule_id: str


class _Baseline(_Administered, frozen=True, kw_only=True, omit_defaults=True):
    """An entry that moves the watermark: every instant in (`covers_after`, `covers_through`] is covered by it.

    `covers_after` None means from the beginning of time. An empty cover has `covers_after` == `covers_through`.
    """

    covers_after: Instant | None = None
    covers_through: Instant
    exhausts: bool = False


# Administration


class ScheduleCreated(_Baseline, frozen=True, kw_only=True, omit_defaults=True, tag="ScheduleCreated"):
    """A schedule began, at revision 1."""

    definition: Definition


class ScheduleEdited(_Baseline, frozen=True, kw_only=True, omit_defaults=True, tag="ScheduleEdited"):
    """A schedule got a new definition; `changed` names the fields that differ from the revision before."""

    revision: int
    definition: Definition
    changed: tuple[str, ...] = ()


class SchedulePaused(_Baseline, frozen=True, kw_only=True, omit_defaults=True, tag="SchedulePaused"):
    """From here on the schedule's instants do not run, by decision."""


class ScheduleUnpaused(_Baseline, frozen=True, kw_only=True, omit_defaults=True, tag="ScheduleUnpaused"):
    """The pause is over; what lay in it is covered and does not run."""


class ScheduleDisabled(_Baseline, frozen=True, kw_only=True, omit_defaults=True, tag="ScheduleDisabled"):
    """The schedule is off, as by a pause, but by its own switch (a declaration that has vanished, for example)."""


class ScheduleEnabled(_Baseline, frozen=True, kw_only=True, omit_defaults=True, tag="ScheduleEnabled"):
    """The schedule is on again."""


class ScheduleDeleted(_Baseline, frozen=True, kw_only=True, omit_defaults=True, tag="ScheduleDeleted"):
    """The schedule ended. Its history stays and its id is never used again."""


class ScheduleBlocked(_Administered, frozen=True, kw_only=True, omit_defaults=True, tag="ScheduleBlocked"):
    """A fault: nothing of this schedule is decided or offered until it is mended."""

    cause: BlockCause
    reason: str


class ScheduleUnblocked(_Administered, frozen=True, kw_only=True, omit_defaults=True, tag="ScheduleUnblocked"):
    """The fault is mended; the misfire policy deals with what came due meanwhile."""


class ScheduleRebaselined(_Administered, frozen=True, kw_only=True, omit_defaults=True, tag="ScheduleRebaselined"):
    """An operator moved the watermark to `through`: back (`regressed`, as by a clock regression), or forward, which
    covers (`covers_after`, `through`]."""

    through: Instant
    regressed: bool = False
    covers_after: Instant | None = None
    exhausts: bool = False


class ExternalRunRecorded(_Administered, frozen=True, kw_only=True, omit_defaults=True, tag="ExternalRunRecorded"):
    """A run that happened outside of duly; it spends its calendar period."""

    started_at: Instant


class CalendarChanged(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="CalendarChanged"):
    """Under the calendar of this machine the last decided instant `was` is no longer an occurrence."""

    schedule_id: str
    was: Instant
    next: Instant | None = None
    croniter: str = ""
    tzdata: str = ""


# Occurrences


class _Occurrence(_Entry, frozen=True, kw_only=True, omit_defaults=True):
    schedule_id: str
    scheduled_at: Instant
    revision: int = 1


# Not tracked by the garbage collector: it holds JSON at most, which has no cycles, and there are very many.
class OccurrenceAdmitted(
    _Occurrence, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="OccurrenceAdmitted"
):
    """An occurrence became a run, whose id is this entry's sequence; the invocation is frozen here.

    `lateness` is the allowance that was in force.
    """

    target: str
    target_revision: str | None = None
    environment: Json = None
    input: dict[str, Json] = {}
    limits: dict[str, Json] = {}
    lateness: timedelta = timedelta(seconds=60)
    exhausts: bool = False


class OccurrenceSkipped(_Occurrence, frozen=True, kw_only=True, omit_defaults=True, tag="OccurrenceSkipped"):
    """An occurrence will not run. `blocking_run` goes with `overlap`, `by` (a sequence) with `spent`."""

    reason: SkipReason
    blocking_run: int | None = None
    by: int | None = None
    detail: str = ""
    exhausts: bool = False


class OccurrenceSuperseded(_Occurrence, frozen=True, kw_only=True, omit_defaults=True, tag="OccurrenceSuperseded"):
    """An occurrence gave way to the newer instant `by`."""

    by: Instant


class IntervalSkipped(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="IntervalSkipped"):
    """Every instant in (`after`, `before`), both ends excluded, at least `at_least` of them, was decided at once.

    `reason` is `backlog` (they were skipped) or `superseded` (they gave way to `before`).
    """

    schedule_id: str
    revision: int = 1
    after: Instant
    before: Instant
    at_least: int
    reason: Literal["backlog", "superseded"]


class CandidateHeld(_Occurrence, frozen=True, kw_only=True, omit_defaults=True, tag="CandidateHeld"):
    """An occurrence waits for a free task slot as its schedule's one candidate."""


# Runs


class RunAdmittedManually(_Commanded, frozen=True, kw_only=True, omit_defaults=True, tag="RunAdmittedManually"):
    """Somebody asked for a run; its id is this entry's sequence."""

    schedule_id: str | None = None
    revision: int | None = None
    target: str
    target_revision: str | None = None
    environment: Json = None
    input: dict[str, Json] = {}
    limits: dict[str, Json] = {}


class _OfRun(_Entry, frozen=True, kw_only=True, omit_defaults=True):
    run_id: int
    schedule_id: str | None = None


class RunStarted(_OfRun, frozen=True, kw_only=True, omit_defaults=True, tag="RunStarted"):
    """The host said that it begins to execute the run. From here a crash means abandoned."""


class RunNoted(_OfRun, frozen=True, kw_only=True, omit_defaults=True, tag="RunNoted"):
    """JSON of the host about a run, for example its process group."""

    data: Json = None


class RunCompleted(_OfRun, frozen=True, kw_only=True, omit_defaults=True, tag="RunCompleted"):
    """The run succeeded."""

    attempt_id: int | None = None
    result: Json = None


class RunFailed(_OfRun, frozen=True, kw_only=True, omit_defaults=True, tag="RunFailed"):
    """The run failed."""

    attempt_id: int | None = None
    error: ErrorInfo


class RunInterrupted(_OfRun, frozen=True, kw_only=True, omit_defaults=True, tag="RunInterrupted"):
    """The run stopped with a checkpoint and can be resumed."""

    attempt_id: int | None = None
    checkpoint: Json = None


class ResumeMarked(_OfRun, frozen=True, kw_only=True, omit_defaults=True, tag="ResumeMarked"):
    """An attempt to resume the run became ACTIVE; its id is this entry's sequence."""


class AttemptCleared(_OfRun, frozen=True, kw_only=True, omit_defaults=True, tag="AttemptCleared"):
    """The attempt is DONE."""

    attempt_id: int


class RunAbandoned(_OfRun, frozen=True, kw_only=True, omit_defaults=True, tag="RunAbandoned"):
    """The run ended without a result: its process died (`crash`), its attempt's outcome cannot be told
    (`ambiguous`), or somebody gave it up (`operator`). It is never retried."""

    cause: AbandonCause
    attempt_id: int | None = None
    detail: str = ""
    actor: str = ""
    note: str = ""


# The journal itself


class JournalOpened(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="JournalOpened"):
    """An owner took the journal, with these versions and the settings that decisions depend on; `engine` is the version
    of the admission rules."""

    host: str
    pid: int
    duly: str
    croniter: str
    tzdata: str
    python: str
    task_slots: int
    batch: int
    clock_tolerance: timedelta
    torn: tuple[TornTail, ...] = ()
    actor: str = ""
    engine: int = 1


class JournalClosed(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="JournalClosed"):
    """The owner left in good order."""

    actor: str = ""


class ClockRegressed(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="ClockRegressed"):
    """The clock reads earlier than the journal's `highest` reading by more than `tolerance`. This entry is the
    rebaseline of every schedule whose watermark lies above `at` + `tolerance`."""

    tolerance: timedelta
    highest: Instant


class ClockJumped(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="ClockJumped"):
    """Within one process the wall clock ran ahead of the monotonic clock by `ahead`."""

    ahead: timedelta


class Checkpoint(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="Checkpoint"):
    """Part `part` of `parts` (from 1) of the whole state as text, so that older segments may be archived."""

    part: int
    parts: int
    through: int
    state: str


class EntryLost(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="EntryLost"):
    """An entry stood here and is lost. Written by salvage alone, so that sequences never move; `at` is the clock
    reading of the salvage."""


Entry: TypeAlias = (
    ScheduleCreated
    | ScheduleEdited
    | SchedulePaused
    | ScheduleUnpaused
    | ScheduleDisabled
    | ScheduleEnabled
    | ScheduleDeleted
    | ScheduleBlocked
    | ScheduleUnblocked
    | ScheduleRebaselined
    | ExternalRunRecorded
    | CalendarChanged
    | OccurrenceAdmitted
    | OccurrenceSkipped
    | OccurrenceSuperseded
    | IntervalSkipped
    | CandidateHeld
    | RunAdmittedManually
    | RunStarted
    | RunNoted
    | RunCompleted
    | RunFailed
    | RunInterrupted
    | ResumeMarked
    | AttemptCleared
    | RunAbandoned
    | JournalOpened
    | JournalClosed
    | ClockRegressed
    | ClockJumped
    | Checkpoint
    | EntryLost
)
"""Any entry. The union is closed: the fold names each member."""

ENTRY_CLASSES: tuple[type[Entry], ...] = get_args(Entry)


def kind_of(entry: Entry | type[Entry]) -> str:
    """The entry's kind, as it stands on disk."""
    return str(entry.__struct_config__.tag)
