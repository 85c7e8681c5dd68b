"""What a decision may ask of the host, and what the host may answer.

Rules: a question is a value; a target is the same throughout one decision; a host that raises, or answers something
that is not what was asked for, has refused, in its own words.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

import msgspec

from duly.journal.entries import Json


class Target(msgspec.Struct, frozen=True):
    """What a schedule's target name stands for at this moment.

    `revision` is an opaque string of the host, for example a content hash; `environment` is JSON that an admission
    pins, so that a resumed run never reads again what may have changed.
    """

    name: str
    revision: str | None = None
    environment: Json = None


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it would be admitted: what a preflight may look at. `scheduled_at` is None for a manual run."""

    schedule_id: str | None
    occurrence_id: str | None
    scheduled_at: datetime | None
    target: str
    target_revision: str | None
    environment: Json
    input: dict[str, Json]
    limits: dict[str, Json]


class Refusal(msgspec.Struct, frozen=True):
    """Why the host will not have it, for people."""

    detail: str


class AskTarget(msgspec.Struct, frozen=True):
    """What does this target name stand for? Asked for the occurrence at `scheduled_at`, or for a manual run."""

    name: str
    schedule_id: str | None = None
    scheduled_at: datetime | None = None


class AskPreflight(msgspec.Struct, frozen=True):
    """May this run be admitted?"""

    invocation: Invocation


Question: TypeAlias = AskTarget | AskPreflight
Answer: TypeAlias = Target | Refusal | None
"""AskTarget: the Target, or a Refusal. AskPreflight: None for yes, or a Refusal."""


# The words of a refusal say which question it answered, and a what-if reads them: so they are put together here alone.


def the_target(name: str) -> str:
    """How a refusal begins that was found by looking at the target of this name."""
    return f"the target {name!r} is"


def by_targets(name: str) -> str:
    """How a refusal begins that was made of what the host's `targets` did when it was asked for this name."""
    return f"targets({name!r})"


def is_of_target(detail: str, name: str) -> bool:
    """Whether a refusal was given for the target of this name, and not by the preflight."""
    return detail.startswith((f"{the_target(name)} ", f"{by_targets(name)} "))
