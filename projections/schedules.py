"""A schedule's state: what the fold keeps of each, and the view that is handed out.

Rules: `ScheduleState` is mutable and belongs to the fold alone; nobody outside sees one change. `Schedule` is the
frozen view for users. Idle schedules must stay small: equal definitions are shared, empty things are shared.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Generic, TypeVar

import msgspec

from duly.journal.entries import (
    BlockCause,
    Definition,
    Expression,
    Json,
    Misfire,
    Overlap,
    SourceRule,
    TriggerRule,
)
from duly.projections.ranges import Ranges

Trigger = TypeVar("Trigger")


class Block(msgspec.Struct, frozen=True):
    """Why nothing of a schedule is decided: since which entry, by what, in words."""

    sequence: int
    cause: BlockCause
    reason: str


def may_block(block: Block | None) -> bool:
    """Whether another cause may block: an edit may free what a trigger blocked, so all others go first."""
    return block is None or block.cause == "trigger"


class ScheduleState(msgspec.Struct, gc=False):
    """What the fold knows of one schedule. Sequences are 0 where nothing happened."""

    id: str
    definition: Definition
    created_at: datetime
    consumed_through: datetime
    revision: int = 1
    candidate: datetime | None = None
    paused: int = 0
    disabled: int = 0
    deleted: int = 0
    block: Block | None = None
    exhausted: bool = False
    exhausted_through: datetime | None = None
    last_decided: datetime | None = None
    active: tuple[int, ...] = ()
    kept: Ranges = ()
    spent: list[tuple[datetime, int]] | None = None

    @property
    def live(self) -> bool:
        """Whether its instants are being decided."""
        return not (self.paused or self.disabled or self.deleted or self.block or self.exhausted)


class Schedule(msgspec.Struct, Generic[Trigger], frozen=True, kw_only=True):
    """One schedule as it stands. All instants are UTC.

    `blocked` is None or the reason's `Block`; `candidate` the held instant; `trigger` the on-disk rule in a replayed
    state, and the trigger itself when a Scheduler is asked.
    """

    id: str
    revision: int
    trigger: Trigger
    target: str
    target_revision: str | None
    overlap: Overlap
    max_active_runs: int | None
    misfire: Misfire
    lateness: timedelta
    input: dict[str, Expression]
    limits: dict[str, Json]
    paused: bool
    disabled: bool
    deleted: bool
    exhausted: bool
    blocked: Block | None
    created_at: datetime
    consumed_through: datetime
    candidate: datetime | None
    active_runs: tuple[int, ...]


def view(of: ScheduleState, trigger: Trigger) -> Schedule[Trigger]:
    """The frozen view of a schedule, with the trigger in the form the asker wants."""
    definition = of.definition
    if definition.input or definition.limits:
        # A copy, so that nobody outside can change the state by what was given to him.
        definition = msgspec.json.decode(msgspec.json.encode(definition), type=Definition)
    return Schedule(
        id=of.id,
        revision=of.revision,
        trigger=trigger,
        target=definition.target,
        target_revision=definition.target_revision,
        overlap=definition.overlap,
        max_active_runs=definition.max_active_runs,
        misfire=definition.misfire,
        lateness=definition.lateness,
        input=dict(definition.input),
        limits=dict(definition.limits),
        paused=bool(of.paused),
        disabled=bool(of.disabled),
        deleted=bool(of.deleted),
        exhausted=of.exhausted,
        blocked=of.block,
        created_at=of.created_at,
        consumed_through=of.consumed_through,
        candidate=of.candidate,
        active_runs=of.active,
    )


def rule_view(of: ScheduleState) -> Schedule[TriggerRule]:
    """The view with the on-disk rule."""
    return view(of, rule_copy(of.definition.trigger))


def rule_copy(rule: TriggerRule) -> TriggerRule:
    """The rule, sharing nothing with the state that can be changed."""
    if not isinstance(rule, SourceRule):
        return rule
    return msgspec.json.decode(msgspec.json.encode(rule), type=SourceRule)
